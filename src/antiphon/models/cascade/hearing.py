"""One ear for all sessions: whoever has a frame waiting is in the next batch of the voice activity model."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from antiphon.audio.vad import Vad, VadStream
from antiphon.models.cascade.ear import FRAME_BYTES
from antiphon.telemetry.log import get_logger

BATCH_EVERY_S: Final = 0.01
"""A batch costs a hop to a thread and back, whatever its size: a hundred sessions have 31 frames in 10 ms."""
MAX_BEHIND_FRAMES: Final = 940
"""30 s: the burst that the wire allows."""

log = get_logger(__name__)

Listener = Callable[[float, bytes], None]
"""Told of each frame and how likely it is speech."""


class Stream:
    """The audio of one session on its way through the model."""

    def __init__(self, hearing: "Hearing", vad: VadStream, listener: Listener) -> None:
        self.vad = vad
        self.listener = listener
        self.waiting: deque[bytes] = deque(maxlen=MAX_BEHIND_FRAMES)
        self.heard = asyncio.Event()
        """Set while no frame waits or is in a batch."""
        self.heard.set()
        self._hearing = hearing
        self._rest = b""

    def push(self, pcm: bytes) -> None:
        pcm = self._rest + pcm
        whole = len(pcm) - len(pcm) % FRAME_BYTES
        for at in range(0, whole, FRAME_BYTES):
            self.waiting.append(pcm[at : at + FRAME_BYTES])
        self._rest = pcm[whole:]
        if self.waiting:
            self.heard.clear()
            self._hearing.stir(self)

    async def flush(self) -> None:
        """Returns when all that was pushed has been heard. A part of a frame at the end is filled up with silence."""
        if self._rest:
            self.push(bytes(FRAME_BYTES - len(self._rest)))
        await self.heard.wait()

    def close(self) -> None:
        self._hearing.forget(self)


class Hearing:
    def __init__(self, vad: Vad) -> None:
        self._vad = vad
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hearing")
        self._due: dict[Stream, None] = {}
        """Those with a frame waiting, in the order of their coming."""
        self._stirred = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None

    def open(self, listener: Listener) -> Stream:
        if self._loop is None:
            self._loop = asyncio.create_task(self._run())
        return Stream(self, self._vad.stream(), listener)

    def stir(self, stream: Stream) -> None:
        self._due[stream] = None
        self._stirred.set()

    def forget(self, stream: Stream) -> None:
        self._due.pop(stream, None)
        stream.waiting.clear()
        stream.heard.set()

    async def aclose(self) -> None:
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.wait([self._loop])
        self._thread.shutdown(wait=False)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            began = loop.time()
            while self._due:
                # One frame of each: the next one needs what the model remembers of this one.
                batch = [(stream, stream.waiting.popleft()) for stream in self._due if stream.waiting]
                self._due = {stream: None for stream in self._due if stream.waiting}
                frames = [(stream.vad, frame) for stream, frame in batch]
                probabilities = await loop.run_in_executor(self._thread, self._vad.run, frames)
                for (stream, frame), probability in zip(batch, probabilities, strict=True):
                    self._tell(stream, probability, frame)
            await asyncio.sleep(max(0.0, began + BATCH_EVERY_S - loop.time()))

    @staticmethod
    def _tell(stream: Stream, probability: float, frame: bytes) -> None:
        try:
            stream.listener(probability, frame)
        except Exception:
            # One session's mistake must not make all the others deaf.
            log.exception("listener_failed")
        if not stream.waiting:
            stream.heard.set()
