"""A thousand frames that no client should send: the server answers, forgets them, and goes on.

`make soak` sends ten thousand.
"""

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
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
"""Frames between two pings: a client that never waits finds out nothing about the order of things."""
HELLO: Final[Message] = {
    "type": "hello",
    "resume": "apr_none",
    "last_n": 7,
    "conversation_id": "none",
    "audio": "binary",
    "initial_messages": [{"role": "user", "content": "Hello."}] * 100,
    "client": "fuzz/1",
}
MARK: Final = 424_242
MAX_GROWTH_BYTES: Final = 20 << 20
VOICE: Final = (Hear("Hm.", after_ms=200), Say("I see, and go on.", audio_ms=200)) * 50

Frame = str | bytes
Dice = random.Random


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("served"), voice=VOICE, limits=UNLIMITED) as served:
        yield served


def valid(dice: Dice) -> Frame:
    return json.dumps(dice.choice(EVERY_MESSAGE[:-1]))


def audio(dice: Dice) -> Frame:
    return bytes([dice.randrange(256)]) + dice.randbytes(2 * dice.choice([1, 160, 320, 8_000]))


def noise(dice: Dice) -> Frame:
    return dice.randbytes(dice.choice([0, 1, 2, 13, 999, 32_768]))


def swapped_value(dice: Dice) -> Frame:
    """A message with something else in one of its fields."""
    return swap(dice, dice.choice(EVERY_MESSAGE))


def swap(dice: Dice, message: Message) -> str:
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
    return json.dumps({**message, dice.choice([*message, "text", "turn", "unheard_of"]): dice.choice(values)})


def broken_text(dice: Dice) -> Frame:
    """A message with a few characters lost, doubled or replaced."""
    text = list(json.dumps(dice.choice(EVERY_MESSAGE)))
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(text))
        text[at] = dice.choice(["", text[at] * 2, "\\", '"', "{", "]", "\u2028", "\\ud800", "NaN", "1e999", "/*"])
    return "".join(text)


def nested(dice: Dice) -> Frame:
    return '{"type": "ping", "t": ' + dice.choice(["[", '{"a":']) * dice.randint(1, 9_000)


MAKERS: Final[tuple[Callable[[Dice], Frame], ...]] = (valid, audio, noise, swapped_value, broken_text, nested)
WEIGHTS: Final = (3, 3, 1, 3, 3, 1)


async def drain(socket: ClientConnection, pongs: asyncio.Semaphore) -> None:
    """Reads what comes, and counts the pings that were answered."""
    with suppress(ConnectionClosed):
        async for frame in socket:
            if isinstance(frame, str) and json.loads(frame).get("t") == MARK:
                pongs.release()


async def pester(url: str, seed: int, frames: int) -> int:
    """Sends frames on one socket, and on another if that one is closed; gives how many were sent."""
    dice, sent = Dice(seed), 0
    while sent < frames:
        async with connect(url, max_size=None) as socket:
            pongs = asyncio.Semaphore(0)
            reading = asyncio.create_task(drain(socket, pongs))
            with suppress(ConnectionClosed):
                await socket.send(swap(dice, HELLO))
                while sent < frames and not reading.done():
                    for _ in range(min(AT_ONCE, frames - sent)):
                        await socket.send(dice.choices(MAKERS, WEIGHTS)[0](dice))
                        sent += 1
                    await socket.send(json.dumps({"type": "ping", "t": MARK}))
                    await answered_or_closed(pongs, reading)
                    if dice.random() < 0.05:
                        break
            await socket.close(dice.choice([1000, 1001, 4000]))
            await reading
    return sent


async def answered_or_closed(pongs: asyncio.Semaphore, reading: "asyncio.Task[None]") -> None:
    waiting = asyncio.create_task(pongs.acquire())
    done, _ = await asyncio.wait([waiting, reading], timeout=20, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    assert done, "the server has stopped answering"


async def storm(url: str, seed: int, frames: int) -> int:
    async with asyncio.TaskGroup() as clients:
        share = frames // CLIENTS
        sent = [clients.create_task(pester(url, seed * CLIENTS + place, share)) for place in range(CLIENTS)]
    return sum(task.result() for task in sent)


async def send_and_assert_no_harm(served: Served, frames: int) -> None:
    # The first tenth fills caches and pools, which is no leak.
    await storm(served.url, 0, frames // 10)
    before = served.resident_bytes
    assert await storm(served.url, 1, frames) == frames
    assert served.process.poll() is None
    async with call(served.url, {"mode": "text"}) as caller:
        assert await caller.ask("What is 2 plus 3?") == "2 plus 3 is 5."
    assert served.resident_bytes - before < MAX_GROWTH_BYTES
    assert served.failures == []


async def test_a_thousand_bad_frames_do_no_harm(served: Served) -> None:
    """`make soak` sends ten thousand."""
    await send_and_assert_no_harm(served, FRAMES)
