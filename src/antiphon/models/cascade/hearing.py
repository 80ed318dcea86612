"""One ear for all sessions: whoever has a frame waiting is in the next batch of the voice activity model."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Final, Protocol

from antiphon.audio.pcm import Samples
from antiphon.audio.vad import VadStream
from antiphon.models.cascade.ear import FRAME_BYTES
from antiphon.telemetry.log import get_logger

BATCH_EVERY_S: Final = 0.016
"""Half a frame. A batch costs a hop to a thread and back, whatever its size: a hundred sessions have 50 frames."""
MAX_BEHIND_FRAMES: Final = 940
"""30 s: the burst that the wire allows. Of more, the oldest are dropped."""

log = get_logger(__name__)

Listener = Callable[[float, bytes], None]
"""Told of each frame and how likely it is speech."""


class Vad(Protocol):
    """The voice activity model, or what stands in for it."""

    def stream(self) -> VadStream: ...

    def run(self, batch: Sequence[tuple[VadStream, bytes | Samples]]) -> list[float]: ...


class Stream:
    """The audio of one session on its way through the model."""

    def __init__(self, hearing: "Hearing", vad: VadStream, listener: Listener) -> None:
        self.vad = vad
        self.listener = listener
        self.waiting: deque[bytes] = deque(maxlen=MAX_BEHIND_FRAMES)
        self.is_closed = False
        self.has_failed = False
        self.heard = asyncio.Event()
        """Set while no frame waits or is in a batch."""
        self.heard.set()
        self._hearing = hearing
        self._rest = b""

    def push(self, pcm: bytes) -> None:
        if self.is_closed:
            return
        pcm, at = self._rest + pcm, 0
        # Fifty times a second for each session, and mostly there is one frame or none.
        while len(pcm) - at >= FRAME_BYTES:
            self.waiting.append(pcm[at : at + FRAME_BYTES])
            at += FRAME_BYTES
        self._rest = pcm[at:]
        if at:
            self.heard.clear()
            self._hearing.stir(self)

    async def flush(self) -> None:
        """Returns when all that was pushed has been heard. A part of a frame at the end is filled up with silence."""
        if self._rest:
            self.push(bytes(FRAME_BYTES - len(self._rest)))
        await self.heard.wait()

    def close(self) -> None:
        """Nothing more is heard, not even what is in a batch."""
        self.is_closed = True
        self.waiting.clear()
        self.heard.set()
        self._hearing.forget(self)


class Hearing:
    """Its task lives only while somebody has a frame waiting."""

    def __init__(self, vad: Vad, thread: Executor | None = None) -> None:
        self._vad = vad
        self._thread = thread or ThreadPoolExecutor(1, thread_name_prefix="hearing")
        self._streams: set[Stream] = set()
        self._due: dict[Stream, None] = {}
        """Those with a frame waiting, in the order of their coming."""
        self._task: asyncio.Task[None] | None = None
        self._is_failing = False

    def open(self, listener: Listener) -> Stream:
        stream = Stream(self, self._vad.stream(), listener)
        self._streams.add(stream)
        return stream

    def stir(self, stream: Stream) -> None:
        self._due[stream] = None
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    def forget(self, stream: Stream) -> None:
        self._due.pop(stream, None)
        self._streams.discard(stream)

    async def aclose(self) -> None:
        """Closes all streams."""
        for stream in list(self._streams):
            stream.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._thread.shutdown(wait=False)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._due:
            began_s = loop.time()
            due, self._due = self._due, {}
            while streams := [stream for stream in due if stream.waiting]:
                # One frame of each: the next one needs what the model remembers of this one.
                await self._hear([(stream, stream.waiting.popleft()) for stream in streams])
            # Who comes in the meantime is gathered.
            await asyncio.sleep(max(0.0, began_s + BATCH_EVERY_S - loop.time()))

    async def _hear(self, batch: list[tuple[Stream, bytes]]) -> None:
        frames = [(stream.vad, frame) for stream, frame in batch]
        try:
            probabilities = await asyncio.get_running_loop().run_in_executor(self._thread, self._vad.run, frames)
        except Exception:
            # What was not heard is silence: sentences come to an end, and the next batch may be better. There are a
            # hundred in a second, and they would fill the log.
            if not self._is_failing:
                log.exception("hearing_failed")
            self._is_failing = True
            probabilities = [0.0] * len(batch)
        else:
            self._is_failing = False
        for (stream, frame), probability in zip(batch, probabilities, strict=True):
            self._tell(stream, probability, frame)

    @staticmethod
    def _tell(stream: Stream, probability: float, frame: bytes) -> None:
        if stream.is_closed:
            return
        try:
            stream.listener(probability, frame)
        except Exception:
            # One session's mistake must not make all the others deaf, nor fill the log.
            if not stream.has_failed:
                log.exception("listener_failed")
            stream.has_failed = True
        if not stream.waiting:
            stream.heard.set()
