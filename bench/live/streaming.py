"""What the contenders that hold their sessions in their own process share. It needs only the standard library.

A contender reads its order from a line of input: the simulator's address, the number of sessions and how to spread
them. It reports when all sessions stream. Each further line of input makes it report the latencies since the last one.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from time import monotonic_ns

FRAME_MS = 20
HZ = 16_000
FRAME_BYTES = 2 * HZ * FRAME_MS // 1000
STAMP_BYTES = 8

Send = Callable[[bytes], Awaitable[None]]


class Arrivals:
    """How long the messages of the simulator took, in nanoseconds, by kind."""

    def __init__(self) -> None:
        self.took_ns: dict[str, list[tuple[int, int]]] = {}

    def note_text(self, kind: str, text: str) -> None:
        now_ns = monotonic_ns()
        for stamp in text.split():
            self.took_ns.setdefault(kind, []).append((int(stamp), now_ns))

    def note_audio(self, pcm: bytes) -> None:
        self.took_ns.setdefault("audio", []).append((int.from_bytes(pcm[:STAMP_BYTES], "little"), monotonic_ns()))


def make_frame() -> bytes:
    return monotonic_ns().to_bytes(STAMP_BYTES, "little") + bytes(FRAME_BYTES - STAMP_BYTES)


async def stream(send: Send, begin_s: float) -> None:
    """Streams a microphone in real time. Each session has a task that wakes for each frame, as its socket would."""
    loop = asyncio.get_running_loop()
    for frame in count():
        await asyncio.sleep(begin_s + frame * FRAME_MS / 1000 - loop.time())
        await send(make_frame())


async def read_order() -> dict[str, object]:
    order: dict[str, object] = json.loads(await asyncio.to_thread(sys.stdin.readline))
    return order


async def stream_all(sends: Sequence[Send], ramp_s: float, arrivals: Arrivals) -> None:
    """Streams all sessions, whose beginnings are spread evenly, and reports on request until the input ends."""
    begin_s = asyncio.get_running_loop().time()
    streaming = [
        # Microphones are not synchronised within a frame either.
        asyncio.create_task(stream(send, begin_s + ramp_s * place / len(sends) + place % 20 / 1000))
        for place, send in enumerate(sends)
    ]
    print("ready", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        took_ns, arrivals.took_ns = arrivals.took_ns, {}
        print(json.dumps(took_ns), flush=True)
    for task in streaming:
        task.cancel()
    await asyncio.gather(*streaming, return_exceptions=True)
