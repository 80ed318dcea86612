"""Voice activity detection for all sessions of a process: the frames that wait at a moment are run as one batch."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Final, Protocol

from antiphon.audio.pcm import Samples
from antiphon.audio.vad import VadStream
from antiphon.models.cascade.endpointer import FRAME_BYTES
from antiphon.telemetry.log import get_logger

BATCH_EVERY_S: Final = 0.016
"""Half a frame. A batch costs a hop to a thread and back, whatever its size: a hundred sessions have 50 frames."""
MAX_BEHIND_FRAMES: Final = 940
"""30 s, the burst that the wire allows. If more frames wait, the oldest are dropped."""

log = get_logger(__name__)

OnFrame = Callable[[float, bytes], None]
"""Called with the probability that a frame is speech, and the frame."""


class Vad(Protocol):
    """The voice activity model, or a stand-in for it."""

    def stream(self) -> VadStream: ...

    def run(self, batch: Sequence[tuple[VadStream, bytes | Samples]]) -> list[float]: ...


class AudioStream:
    """The audio of one session on its way through the model."""

    def __init__(self, batched: "BatchedVad", vad: VadStream, on_frame: OnFrame) -> None:
        self.vad = vad
        self.on_frame = on_frame
        self.waiting: deque[bytes] = deque(maxlen=MAX_BEHIND_FRAMES)
        self.is_closed = False
        self.has_failed = False
        self._is_idle = True
        """Whether no frame waits or is in a batch."""
        self._when_idle: list[Callable[[], None]] = []
        self._batched = batched
        self._rest = b""

    def push(self, pcm: bytes) -> None:
        if self.is_closed:
            return
        pcm, at = self._rest + pcm, 0
        # This runs fifty times a second for each session, and mostly there is one frame or none.
        while len(pcm) - at >= FRAME_BYTES:
            self.waiting.append(pcm[at : at + FRAME_BYTES])
            at += FRAME_BYTES
        self._rest = pcm[at:]
        if at:
            self._is_idle = False
            self._batched.schedule(self)

    def flush(self, then: Callable[[], None]) -> None:
        """Calls `then` when all audio has been heard. An incomplete frame at the end is filled up with silence."""
        if self._rest:
            self.push(bytes(FRAME_BYTES - len(self._rest)))
        self.when_idle(then)

    def when_idle(self, then: Callable[[], None]) -> None:
        """Calls `then` when no frame waits, at once or later; never if the stream is closed."""
        if self._is_idle and not self.is_closed:
            then()
        elif not self.is_closed:
            self._when_idle.append(then)

    def note_heard(self) -> None:
        """Called after each frame."""
        if not self.waiting and not self.is_closed:
            self._is_idle = True
            calls, self._when_idle = self._when_idle, []
            for call in calls:
                call()

    def close(self) -> None:
        """Stops the stream. Frames that are already in a batch are dropped too."""
        self.is_closed = True
        self.waiting.clear()
        self._when_idle.clear()
        self._batched.remove(self)


class BatchedVad:
    """Its task runs only while frames wait."""

    def __init__(self, vad: Vad, thread: Executor | None = None) -> None:
        self._vad = vad
        self._thread = thread or ThreadPoolExecutor(1, thread_name_prefix="vad")
        self._streams: set[AudioStream] = set()
        self._due: dict[AudioStream, None] = {}
        """The streams with waiting frames, in the order in which they came."""
        self._task: asyncio.Task[None] | None = None
        self._is_failing = False

    def open(self, on_frame: OnFrame) -> AudioStream:
        stream = AudioStream(self, self._vad.stream(), on_frame)
        self._streams.add(stream)
        return stream

    def schedule(self, stream: AudioStream) -> None:
        self._due[stream] = None
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    def remove(self, stream: AudioStream) -> None:
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
                # One frame of each: the next one needs the model's state after this one.
                await self._run_batch([(stream, stream.waiting.popleft()) for stream in streams])
            # Frames that come in the meantime wait for the next batch.
            await asyncio.sleep(max(0.0, began_s + BATCH_EVERY_S - loop.time()))

    async def _run_batch(self, batch: list[tuple[AudioStream, bytes]]) -> None:
        frames = [(stream.vad, frame) for stream, frame in batch]
        try:
            probabilities = await asyncio.get_running_loop().run_in_executor(self._thread, self._vad.run, frames)
        except Exception:
            # The frames count as silence: sentences come to an end, and the next batch may succeed. There are a hundred
            # batches a second, and they would fill the log.
            if not self._is_failing:
                log.exception("vad_failed")
            self._is_failing = True
            probabilities = [0.0] * len(batch)
        else:
            self._is_failing = False
        for (stream, frame), probability in zip(batch, probabilities, strict=True):
            self._pass_on(stream, probability, frame)

    @staticmethod
    def _pass_on(stream: AudioStream, probability: float, frame: bytes) -> None:
        if stream.is_closed:
            return
        try:
            try:
                stream.on_frame(probability, frame)
            finally:
                stream.note_heard()
        except Exception:
            # A bug in one session must not stop the others from being heard, nor fill the log.
            if not stream.has_failed:
                log.exception("frame_listener_failed")
            stream.has_failed = True
