"""Ogg Opus files: written while a call goes on, and read again to repair them.

It is Opus, since a minute of both channels takes 0.4 MB (as FLAC 2 MB) and 2% of a core, and since the pages of an Ogg
file are complete by themselves: the file of a process that was killed is whole up to its last second. A FLAC file would
lack its length.
"""

import os
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from antiphon.errors import AntiphonError

FORMAT: Final = "opus"
MEDIA_TYPE: Final = "audio/ogg; codecs=opus"
SUFFIX: Final = ".opus"
COMPRESSION: Final = 0.93
"""How libsndfile is told a bit rate of 48 kbit/s. At 36 kbit/s the encoder took three times as long."""


class RecordingError(AntiphonError):
    """A call cannot be recorded, or can no longer be."""

    code = "recording_failed"


def load_library() -> ModuleType:
    """Imports what recording needs. Raises `RecordingError` if it is not installed."""
    try:
        import numpy  # noqa: F401
        import soundfile  # type: ignore[import-untyped]
        import soxr  # type: ignore[import-untyped] # noqa: F401
    except (ImportError, OSError) as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else "soundfile"
        raise RecordingError(
            f"Recording needs the package {missing}, which is not installed or does not work here. "
            "Run: pip install 'antiphon[recording]'. Or set recording.calls = \"off\"."
        ) from error
    library: ModuleType = soundfile
    return library


class _Target:
    """The file that libsndfile writes into. It cannot pass on an error of the system, so the error is kept here."""

    def __init__(self, descriptor: int) -> None:
        self.error: OSError | None = None
        self._descriptor = descriptor

    def write(self, data: Any) -> int:
        view = memoryview(data)
        written = 0
        try:
            while written < len(view):
                written += os.write(self._descriptor, view[written:])
        except OSError as error:
            self.error = self.error or error
        return written

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return os.lseek(self._descriptor, offset, whence)

    def tell(self) -> int:
        return self.seek(0, os.SEEK_CUR)

    def flush(self) -> None:
        """Does nothing: every write goes to the system at once."""


class SoundWriter:
    """A new file that only this user can read. It is locked as long as it is open, so that no sweep takes it for one
    that was left behind. All methods block, and raise `OSError` or `RecordingError`."""

    def __init__(self, path: Path, hz: int, channels: int) -> None:
        self._frames = 0
        self._hz = hz
        library = load_library()
        self._descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        try:
            lock(self._descriptor)
            self._target = _Target(self._descriptor)
            self._file = library.SoundFile(
                self._target,
                "w",
                samplerate=hz,
                channels=channels,
                format="OGG",
                subtype="OPUS",
                compression_level=COMPRESSION,
            )
        except BaseException:
            os.close(self._descriptor)
            raise

    def write(self, frames: Any) -> None:
        try:
            self._file.write(frames)
        except (RuntimeError, AssertionError) as error:
            # An AssertionError says that less was written than was given.
            self._check()
            raise RecordingError(f"The sound could not be encoded: {error}.") from error
        self._check()
        self._frames += len(frames)

    @property
    def duration_ms(self) -> int:
        return self._frames * 1000 // self._hz

    def finish(self) -> None:
        """Completes the sound, which is on disk then. The file stays locked until `close`."""
        self._file.close()
        self._check()
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Closes the file as it is."""
        with suppress(RuntimeError):
            self._file.close()
        os.close(self._descriptor)

    def _check(self) -> None:
        if self._target.error is not None:
            raise self._target.error


def lock(descriptor: int) -> bool:
    """Locks a file for as long as it is open here. Returns False if it is locked already."""
    try:
        import fcntl
    except ImportError:  # Windows, which does not let others delete or rename a file that is open
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def read_duration_ms(path: Path) -> int | None:
    """Returns how long a recording is, as far as it can be read; None if there is no sound in it."""
    library = load_library()
    try:
        with library.SoundFile(path) as file:
            return round(file.frames * 1000 / file.samplerate) if file.frames else None
    except (RuntimeError, OSError):
        return None
