"""A thousand frames that no client should send: the server answers, keeps nothing, and goes on.

`make soak` sends ten thousand.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any, Final

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.fakes.scripted_live import Hear, Say
from tests.wire.caller import Message, call
from tests.wire.served import UNLIMITED, Served, serve
from tests.wire.test_additions import EVERY_MESSAGE

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(120)]

FRAMES: Final = 1_000
CLIENTS: Final = 8
AT_ONCE: Final = 25
"""How many frames are sent between two pings. A client that never waits would not notice a server that hangs."""
HELLO: Final[Message] = {
    "type": "hello",
    "resume": "apr_none",
    "last_n": 7,
    "conversation_id": "none",
    "audio": "binary",
    "initial_messages": [{"role": "user", "content": "Hello."}] * 100,
    "client": "fuzz/1",
}
PING_MARK: Final = 424_242
MAX_GROWTH_BYTES: Final = 20 << 20
VOICE: Final = (Hear("Hm.", after_ms=200), Say("I see, and go on.", audio_ms=200)) * 50

Frame = str | bytes


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("served"), voice=VOICE, limits=UNLIMITED) as served:
        yield served


def valid(rng: Random) -> Frame:
    return json.dumps(rng.choice(EVERY_MESSAGE[:-1]))


def audio(rng: Random) -> Frame:
    return bytes([rng.randrange(256)]) + rng.randbytes(2 * rng.choice([1, 160, 320, 8_000]))


def noise(rng: Random) -> Frame:
    return rng.randbytes(rng.choice([0, 1, 2, 13, 999, 32_768]))


def swapped_value(rng: Random) -> Frame:
    """A message with an unexpected value in one of its fields."""
    return swap(rng, rng.choice(EVERY_MESSAGE))


def swap(rng: Random, message: Message) -> str:
    values: list[Any] = [
        None,
        True,
        -1,
        2**64,
        1e308,
        "",
        "\u0000",
        "x" * 9_000,
        [],
        {},
        [[[]]],
        {"type": "ping"},
        "🙂" * 99,
    ]
    return json.dumps({**message, rng.choice([*message, "text", "turn", "unheard_of"]): rng.choice(values)})


def broken_text(rng: Random) -> Frame:
    """A message with a few characters lost, doubled or replaced."""
    text = list(json.dumps(rng.choice(EVERY_MESSAGE)))
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text))
        text[at] = rng.choice(["", text[at] * 2, "\\", '"', "{", "]", "\u2028", "\\ud800", "NaN", "1e999", "/*"])
    return "".join(text)


def nested(rng: Random) -> Frame:
    return '{"type": "ping", "t": ' + rng.choice(["[", '{"a":']) * rng.randint(1, 9_000)


MAKERS: Final[tuple[Callable[[Random], Frame], ...]] = (valid, audio, noise, swapped_value, broken_text, nested)
WEIGHTS: Final = (3, 3, 1, 3, 3, 1)


async def drain(socket: ClientConnection, pongs: asyncio.Semaphore) -> None:
    """Reads what comes, and counts the answered pings."""
    with suppress(ConnectionClosed):
        async for frame in socket:
            if isinstance(frame, str) and json.loads(frame).get("t") == PING_MARK:
                pongs.release()


async def send_bad_frames(url: str, seed: int, frames: int) -> int:
    """Sends frames over one socket, and over another if that is closed. Returns how many were sent."""
    rng, sent = Random(seed), 0
    while sent < frames:
        async with connect(url, max_size=None) as socket:
            pongs = asyncio.Semaphore(0)
            reading = asyncio.create_task(drain(socket, pongs))
            with suppress(ConnectionClosed):
                await socket.send(swap(rng, HELLO))
                while sent < frames and not reading.done():
                    for _ in range(min(AT_ONCE, frames - sent)):
                        await socket.send(rng.choices(MAKERS, WEIGHTS)[0](rng))
                        sent += 1
                    await socket.send(json.dumps({"type": "ping", "t": PING_MARK}))
                    await answered_or_closed(pongs, reading)
                    if rng.random() < 0.05:
                        break
            await socket.close(rng.choice([1000, 1001, 4000]))
            await reading
    return sent


async def answered_or_closed(pongs: asyncio.Semaphore, reading: "asyncio.Task[None]") -> None:
    waiting = asyncio.create_task(pongs.acquire())
    done, _ = await asyncio.wait([waiting, reading], timeout=20, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    assert done, "the server has stopped answering"


async def flood(url: str, seed: int, frames: int) -> int:
    async with asyncio.TaskGroup() as clients:
        share = frames // CLIENTS
        sent = [clients.create_task(send_bad_frames(url, seed * CLIENTS + place, share)) for place in range(CLIENTS)]
    return sum(task.result() for task in sent)


async def send_and_assert_no_harm(served: Served, frames: int) -> None:
    # The first tenth fills caches and pools, which is no leak.
    await flood(served.url, 0, frames // 10)
    before = await served.steady_bytes()
    assert await flood(served.url, 1, frames) == frames
    assert served.process.poll() is None
    async with call(served.url, {"mode": "text"}) as caller:
        assert await caller.ask("What is 2 plus 3?") == "2 plus 3 is 5."
    assert served.resident_bytes - before < MAX_GROWTH_BYTES
    assert served.failures == []


async def test_a_thousand_bad_frames_do_no_harm(served: Served) -> None:
    """`make soak` sends ten thousand."""
    await send_and_assert_no_harm(served, FRAMES)
