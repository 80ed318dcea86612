"""Records calls: what a session hears and says is put into a file by a thread, while the call goes on."""

import asyncio
import socket
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from antiphon.clock import Clock
from antiphon.config import Settings
from antiphon.errors import AntiphonError
from antiphon.services.recordings.archive import RecordingArchive, make_name
from antiphon.services.recordings.sound_file import FORMAT, RecordingError, SoundWriter, load_library, read_duration_ms
from antiphon.speech.workers import Workers
from antiphon.storage.base import StorageError
from antiphon.storage.recordings import Recording, RecordingStore
from antiphon.telemetry.log import get_logger

if TYPE_CHECKING:
    from antiphon.services.recordings.mixer import Mixer

WRITE_S: Final = 0.5
"""How often the newest sound is written."""
MAX_WAITING_BYTES: Final = 16 << 20
"""How much sound may wait for the disk: minutes of it."""
CHANNELS: Final = 2
BLOCK: Final = 24_000
"""How many frames are encoded at once."""
CLOSE_S: Final = 5.0
"""How long a server that stops waits until the sound of its last calls is in the store."""

Done = TypeVar("Done")
Step = Callable[["Mixer"], None]
"""Something that has happened, for the mixer to take in."""

log = get_logger(__name__)


class OpenRecording:
    """A recording that is being made. Times are those of the monotonic clock, in seconds.

    If it fails, `on_failure` is called once with a sentence. What was recorded until then is kept, if it can be.
    """

    format = FORMAT
    channels = CHANNELS

    def __init__(
        self,
        archive: RecordingArchive,
        workers: Workers,
        clock: Clock,
        *,
        since_s: float,
        on_failure: Callable[[str], None],
    ) -> None:
        self.file = make_name()
        self.node = archive.node
        self._archive = archive
        self._workers = workers
        self._clock = clock
        self._since_s = since_s
        self._on_failure = on_failure
        self._steps: deque[Step] = deque()
        """What the thread has not taken in yet."""
        self._waiting_bytes = 0
        self._mixer: Mixer | None = None
        self._writer: SoundWriter | None = None
        self._has_failed = False
        self._writing = asyncio.create_task(self._write_regularly())

    # What happens, in its order. No method waits.

    def hear(self, pcm: bytes, at_s: float) -> None:
        """The microphone has sent this."""
        self._add(lambda mixer: mixer.hear(pcm, at_s - self._since_s), len(pcm))

    def play(self, turn: int, pcm: bytes, at_s: float) -> None:
        """The client was sent this speech."""
        self._add(lambda mixer: mixer.play(turn, pcm, at_s - self._since_s), len(pcm))

    def hold(self, at_s: float) -> None:
        self._add(lambda mixer: mixer.hold(at_s - self._since_s))

    def resume(self, at_s: float) -> None:
        self._add(lambda mixer: mixer.resume(at_s - self._since_s))

    def interrupt(self, played_ms: float | None, at_s: float) -> None:
        self._add(lambda mixer: mixer.interrupt(played_ms, at_s - self._since_s))

    def _add(self, step: Step, size: int = 0) -> None:
        if not self._has_failed:
            self._steps.append(step)
            self._waiting_bytes += size

    # The end.

    async def finish(self) -> tuple[int, int] | None:
        """Completes the file, and returns its duration in milliseconds and its size; None if nothing is left of it."""
        await self._stop_writing()
        finished = None
        for _ in range(2):
            # The second time, what was written before it failed is completed.
            try:
                finished = await self._run(partial(self._finish, self._clock.monotonic()))
                break
            except (OSError, AntiphonError) as error:
                self._fail(error)
        if finished is None:
            await self.discard()
        return finished

    async def discard(self) -> None:
        """Deletes what was recorded."""
        await self._stop_writing()
        with suppress(OSError, AntiphonError):
            await self._run(self._discard)

    async def _stop_writing(self) -> None:
        if not self._writing.done():
            self._writing.cancel()
            await asyncio.wait([self._writing])

    # The writing. The workers are one thread, so that it is done in order, even after a cancelled wait.

    async def _write_regularly(self) -> None:
        try:
            while True:
                await asyncio.sleep(WRITE_S)
                if self._waiting_bytes > MAX_WAITING_BYTES:
                    raise RecordingError("The disk is too slow.")
                waiting_bytes = self._waiting_bytes
                await self._run(partial(self._write, self._clock.monotonic()))
                self._waiting_bytes -= waiting_bytes
        except (OSError, AntiphonError) as error:
            self._fail(error)

    async def _run(self, work: Callable[[], Done]) -> Done:
        return await self._workers.run(lambda abandoned: work(), refusable=False)

    def _fail(self, error: Exception) -> None:
        if not self._has_failed:
            self._has_failed = True
            self._steps.clear()
            reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
            log.error("recording_failed", file=self.file, error=reason)
            self._on_failure(reason)

    def _write(self, now_s: float, *, last: bool = False) -> SoundWriter:
        """Takes in what has happened, and writes what is final."""
        if self._writer is None:
            # Imported here: a server that records nothing does without these libraries.
            from antiphon.services.recordings.mixer import HZ, Mixer

            self._archive.make_folder()
            self._writer = SoundWriter(self._archive.partial_path(self.file), HZ, CHANNELS)
            self._mixer = Mixer()
        assert self._mixer is not None
        while self._steps:
            self._steps.popleft()(self._mixer)
        frames = self._mixer.read(now_s - self._since_s, last=last)
        for first in range(0, len(frames), BLOCK):
            self._writer.write(frames[first : first + BLOCK])
        return self._writer

    def _finish(self, now_s: float) -> tuple[int, int] | None:
        path = self._archive.partial_path(self.file)
        if self._has_failed:
            self._close()
            duration_ms = read_duration_ms(path) if path.exists() else None
            if duration_ms is None:
                return None
        else:
            writer = self._write(now_s, last=True)
            writer.finish()
            duration_ms = writer.duration_ms
        size_bytes = path.stat().st_size
        self._archive.complete(self.file)
        self._close()
        return duration_ms, size_bytes

    def _discard(self) -> None:
        self._close()
        self._archive.partial_path(self.file).unlink(missing_ok=True)

    def _close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()


class RecordingService:
    """Makes the recordings of a process."""

    def __init__(self, archive: RecordingArchive, workers: Workers, clock: Clock, calls: str) -> None:
        """`calls` is the setting: which calls are recorded."""
        self.archive = archive
        self.calls = calls
        self._workers = workers
        self._clock = clock
        self._storing: set[asyncio.Task[None]] = set()

    @property
    def store(self) -> RecordingStore:
        return self.archive.store

    def begin(self, since_s: float, on_failure: Callable[[str], None]) -> OpenRecording:
        """Begins a recording at a time of the monotonic clock."""
        return OpenRecording(self.archive, self._workers, self._clock, since_s=since_s, on_failure=on_failure)

    def share(self, recording: Recording) -> None:
        """Lets other servers have the sound of a recording that is complete. This goes on in the background."""
        task = asyncio.create_task(self._store_sound(recording))
        self._storing.add(task)
        task.add_done_callback(self._storing.discard)

    async def _store_sound(self, recording: Recording) -> None:
        try:
            await self.archive.store_sound(recording)
        except StorageError as error:
            log.warning("recording_sound_not_stored", recording=recording.id, error=str(error))

    async def aclose(self) -> None:
        """Waits a moment for what goes on in the background. A sweep does the rest when this machine starts again."""
        if self._storing:
            _, unfinished = await asyncio.wait(self._storing, timeout=CLOSE_S)
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)

    async def delete(self, user: str, conversation_id: str) -> None:
        """Deletes the recordings of a conversation."""
        await self.archive.delete(user, conversation_id=conversation_id)

    async def delete_file(self, file: str) -> None:
        """Deletes a file that belongs to no recording any more."""
        await self.archive.delete_files([file])


def open_archive(settings: Settings, store: RecordingStore, folder: Path | None = None) -> RecordingArchive:
    """Opens the recordings of the data folder, or of another folder if nothing is kept there."""
    chosen = folder or settings.recordings_dir
    assert chosen is not None, "there is a database, so recordings are kept"
    return RecordingArchive(store, chosen, socket.gethostname())


@asynccontextmanager
async def open_recordings(settings: Settings, store: RecordingStore, clock: Clock) -> AsyncIterator[RecordingService]:
    """Opens the recordings. Raises `RecordingError` if calls are to be recorded and the library for it is missing."""
    if settings.recording.calls != "off":
        await asyncio.to_thread(load_library)
    with ExitStack() as stack:
        folder = settings.recordings_dir
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="antiphon-recordings-")))
        workers = Workers(1, yielding=True)
        service = RecordingService(open_archive(settings, store, folder), workers, clock, settings.recording.calls)
        try:
            yield service
        finally:
            await service.aclose()
            await workers.aclose()
