"""A client that never reads disturbs nobody, and its answers do not fill the server's memory.

A client that is only slow loses speech before it loses words.
"""

import asyncio
import json
import socket
import statistics
import time
from collections.abc import Iterator
from typing import Final

import pytest
from websockets.client import ClientProtocol
from websockets.uri import parse_uri

from tests.fakes.scripted_live import Say
from tests.wire.caller import Caller, call
from tests.wire.served import UNLIMITED, Served, serve

pytestmark = pytest.mark.real_time

LONG: Final = "a long story " * 600
ASKED: Final = 1_500
"""How often the history is asked for, at about 25 KB each: far more than sockets and queues hold."""
MAX_GROWTH_BYTES: Final = 40 << 20
"""Room for a queue of 4 MB, and for a few copies of what a session keeps for a resume."""
WRITE_S: Final = 2.0
"""How long the server of these tests waits for a client that does not read."""
CUT_S: Final = 10.0
"""How much later than that the client must be gone."""


PARTS: Final = 24
"""How many parts of 20 s a spoken answer has: more than the sockets of both sides and the server's queue hold."""
SPEECH: Final = [
    Say(f"Part {n}. ", first_text_ms=1, first_audio_ms=1, audio_ms=20_000, goes_on=n < PARTS)
    for n in range(1, PARTS + 1)
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("served"), limits=UNLIMITED, write_s=WRITE_S) as served:
        yield served


class ClientThatNeverReads:
    """A WebSocket with the smallest receive buffer, which reads nothing but the handshake."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._socket = socket.socket()
        self._socket.settimeout(10)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        self._socket.connect(("127.0.0.1", served.port))
        self._protocol = ClientProtocol(parse_uri(served.url))
        self._protocol.send_request(self._protocol.connect())
        self._flush()
        self._protocol.receive_data(self._socket.recv(4096))

    def send(self, **message: object) -> None:
        self._protocol.send_text(json.dumps(message).encode())
        self._flush()

    @property
    def is_connected(self) -> bool:
        """Whether the server still has its side of the connection. On ours, only a read would show it."""
        port = self._socket.getsockname()[1]
        return any(each.raddr and each.raddr.port == port for each in self._served.connections)

    def close(self) -> None:
        self._socket.close()

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            self._socket.sendall(data)


async def seconds_of_turn(caller: Caller) -> float:
    begun_s = time.perf_counter()
    await caller.ask("What is 2 plus 3?")
    return time.perf_counter() - begun_s


async def make_long_conversation(served: Served) -> str:
    """Creates a conversation with a long history, and returns its id."""
    async with call(served.url, {"mode": "text"}) as caller:
        for _ in range(3):
            await caller.ask(LONG)
    conversation_id: str = caller.session["conversation_id"]
    return conversation_id


async def disturb_and_assert_closed(served: Served, write_s: float) -> None:
    conversation_id = await make_long_conversation(served)
    async with call(served.url, {"mode": "text"}) as other:
        quiet_s = [await seconds_of_turn(other) for _ in range(20)]
        before = served.resident_bytes
        client = ClientThatNeverReads(served)
        disturbed_s: list[float] = []
        sizes: list[int] = []
        try:
            client.send(type="hello", mode="text")
            for _ in range(ASKED):
                client.send(type="load_conversation", conversation_id=conversation_id)
            async with asyncio.timeout(write_s + CUT_S):
                while client.is_connected:
                    disturbed_s.append(await seconds_of_turn(other))
                    sizes.append(served.resident_bytes)
                    await asyncio.sleep(0.05)
        finally:
            client.close()
    # The median, since a single turn may take long on a busy machine.
    assert statistics.median(disturbed_s[:20]) < 5 * statistics.median(quiet_s) + 0.1
    assert max(sizes) - before < MAX_GROWTH_BYTES


async def test_a_client_that_never_reads_disturbs_nobody_and_is_closed(served: Served) -> None:
    """After 2 s here; `make soak` waits for the 20 s of a real server."""
    await disturb_and_assert_closed(served, WRITE_S)


@pytest.fixture(scope="module")
def talkative(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("talkative"), voice=SPEECH, limits=UNLIMITED) as served:
        yield served


@pytest.mark.parametrize("form", ["json", "binary"])
async def test_a_slow_reader_loses_speech_before_text(talkative: Served, form: str) -> None:
    async with call(talkative.url, {"audio": form}, max_queue=1, compression=None) as caller:
        await caller.send("text_message", text="Tell me everything.")
        await asyncio.sleep(2)
        response = await caller.until("response")
        assert response["text"] == "".join(chunk["text"] for chunk in caller.every("response_chunk"))
        assert response["text"].startswith("Part 1.")
        assert response["text"].strip().endswith(f"Part {PARTS}.")
        assert await caller.is_answered()
    heard = len(caller.every("audio")) + len(caller.audio)
    assert 0 < heard < PARTS
    numbers = {message["n"] for message in caller.received} | {int.from_bytes(frame[1:5]) for frame in caller.audio}
    assert max(numbers) - len(numbers) == PARTS - heard, "nothing but speech was lost"
