"""The recordings that there are: their files in the data folder, and the store that knows whose they are.

A file has a random name of 256 bits. Its row is stored before the file is complete, and deleted before the file is, so
a crash leaves at most a file without a row or a file that is not complete. `sweep` deletes or completes those.

If the servers do not share a folder, the store has the sound of a complete file, too, and a server without the file
fetches it from there. A file never changes once it is complete, so both can be repeated at any time.
"""

import asyncio
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Final, TypeVar
from weakref import WeakValueDictionary

from msgspec.structs import replace

from antiphon.services.recordings.sound_file import SUFFIX, RecordingError, lock, read_duration_ms
from antiphon.storage.recordings import PART_BYTES, Recording, RecordingStore
from antiphon.telemetry.log import get_logger

NAME_BYTES: Final = 32
BATCH: Final = 200
_NAME: Final = re.compile(rf"[A-Za-z0-9_-]{{43}}\{SUFFIX}")
_PARTIAL: Final = re.compile(rf"\.({_NAME.pattern})\.partial")
_FETCHING: Final = re.compile(rf"\.{_NAME.pattern}\.[0-9a-f]{{16}}\.fetching")

Done = TypeVar("Done")

log = get_logger(__name__)


def make_name() -> str:
    return secrets.token_urlsafe(NAME_BYTES) + SUFFIX


class RecordingArchive:
    """The folder may be shared by several processes. It is made when the first call is recorded."""

    def __init__(self, store: RecordingStore, folder: Path, node: str) -> None:
        """`node` is the name of this machine."""
        self.store = store
        self.node = node
        self._folder = folder
        self._storing = asyncio.Lock()
        """Only one file is stored at a time, so that the conversations have the other connections of the database."""
        self._fetching: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By the name of the file, as long as somebody waits for it."""

    def path_of(self, recording: Recording) -> Path:
        return self._folder / recording.file

    def partial_path(self, file: str) -> Path:
        """Where the file is while it is being written."""
        return self._folder / f".{file}.partial"

    def make_folder(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def complete(self, file: str) -> None:
        """Gives a file that was written its name."""
        os.replace(self.partial_path(file), self._folder / file)

    # The sound in the store.

    async def store_sound(self, recording: Recording) -> bool:
        """Puts the sound of a complete file into the store, if that is where other servers look for it. Returns whether
        that was done. Raises `StorageError`; the next `sweep` tries again."""
        if recording.is_stored or not self.store.keeps_sound:
            return False
        path, number = self.path_of(recording), 0
        async with self._storing:
            try:
                while data := await asyncio.to_thread(_read_part, path, number):
                    if not await self.store.add_part(recording.id, number, data):
                        return False
                    number += 1
            except OSError as error:
                log.warning("recording_not_read", recording=recording.id, error=str(error.strerror))
                return False
            return await self.store.mark_stored(recording.id)

    async def fetch(self, recording: Recording) -> Path | None:
        """Returns the path of the file of a complete recording. If it is not here, its sound is fetched from the store.
        Returns None if that does not have it either."""
        path = self.path_of(recording)
        # A player asks for several ranges at once: the first request fetches the file, and the others wait for it.
        fetching = self._fetching.setdefault(recording.file, asyncio.Lock())
        async with fetching:
            if await asyncio.to_thread(path.is_file):
                return path
            if not recording.is_stored:
                return None
            await asyncio.to_thread(self.make_folder)
            # Another process with this folder may fetch it as well, so each has a file of its own until it is whole.
            partial = self._folder / f".{recording.file}.{secrets.token_hex(8)}.fetching"
            file = _create(partial)
            try:
                if not await self._write_sound(recording, file):
                    return None
                await asyncio.to_thread(os.replace, partial, path)
            finally:
                file.close()
                partial.unlink(missing_ok=True)
        log.info("recording_fetched", recording=recording.id, node=recording.node)
        return path

    async def copy(self, recording: Recording, path: Path) -> bool:
        """Writes a recording into a new file. Returns False if the sound is neither here nor in the store."""
        with _create(path) as file:
            try:
                await asyncio.to_thread(_copy, self.path_of(recording), file)
                return True
            except FileNotFoundError:
                if recording.is_stored and await self._write_sound(recording, file):
                    return True
        await asyncio.to_thread(path.unlink)
        return False

    async def _write_sound(self, recording: Recording, file: IO[bytes]) -> bool:
        """Writes the sound that is in the store into a file. Returns False if some of it is missing."""
        number = size_bytes = 0
        while (data := await self.store.part(recording.id, number)) is not None:
            await asyncio.to_thread(file.write, data)
            number, size_bytes = number + 1, size_bytes + len(data)
        if size_bytes != recording.size_bytes:
            # It was deleted meanwhile, or the database was damaged.
            log.warning("recording_incomplete", recording=recording.id, size_bytes=size_bytes)
            return False
        file.flush()
        await asyncio.to_thread(os.fsync, file.fileno())
        return True

    # Deleting.

    async def delete(self, user: str, *, conversation_id: str | None = None, call_id: str | None = None) -> int:
        """Deletes the recordings of a user, only those of a conversation or of a call if one is given."""
        return await self._delete(await self.store.delete(user, conversation_id=conversation_id, call_id=call_id))

    async def delete_before(self, at_ms: int) -> int:
        return await self._delete(await self.store.delete_before(at_ms))

    async def _delete(self, recordings: Sequence[Recording]) -> int:
        await self.delete_files(each.file for each in recordings)
        return len(recordings)

    async def delete_files(self, files: Iterable[str]) -> None:
        """Deletes files whose rows are gone. A file that is still being written goes when its recording ends."""

        def work() -> None:
            for file in files:
                (self._folder / file).unlink(missing_ok=True)

        await asyncio.to_thread(work)

    async def sweep(self) -> int:
        """Deletes the files of recordings that are gone, completes those whose process died, and stores sound that is
        not in the store yet. Returns how many files that were."""
        found = await asyncio.to_thread(self._list)
        changed = 0
        for first in range(0, len(found), BATCH):
            batch = found[first : first + BATCH]
            rows = {row.file: row for row in await self.store.find([file for file, _ in batch])}
            for file, is_partial in batch:
                changed += await self._check(file, rows.get(file), is_partial=is_partial)
        return changed

    def _list(self) -> list[tuple[str, bool]]:
        """Lists the files by the names that they have or will have, and whether they are partial. Deletes what is left
        of fetching that was interrupted."""
        if not self._folder.is_dir():
            return []
        names = sorted(path.name for path in self._folder.iterdir())
        for name in filter(_FETCHING.fullmatch, names):
            path = self._folder / name
            _if_left(path, path.unlink)
        partial = [(found[1], True) for name in names if (found := _PARTIAL.fullmatch(name))]
        return [*((name, False) for name in names if _NAME.fullmatch(name)), *partial]

    async def _check(self, file: str, row: Recording | None, *, is_partial: bool) -> bool:
        path = self.partial_path(file) if is_partial else self._folder / file
        if row is None:
            return await asyncio.to_thread(_if_left, path, path.unlink) is not None
        if row.duration_ms is not None:
            return not is_partial and await self.store_sound(row)
        try:
            measured = await asyncio.to_thread(_if_left, path, lambda: self._repair(path, file))
        except RecordingError as error:
            log.warning("recording_not_repaired", recording=row.id, error=str(error))
            return False
        if measured is None:
            return False
        [duration_ms] = measured
        if duration_ms is None:
            await self.store.delete(row.user, id=row.id)
        else:
            size_bytes = await asyncio.to_thread(lambda: self.path_of(row).stat().st_size)
            repaired = replace(row, duration_ms=duration_ms, size_bytes=size_bytes)
            if await self.store.save(repaired):
                await self.store_sound(repaired)
        log.info("recording_repaired", recording=row.id, duration_ms=duration_ms)
        return True

    def _repair(self, path: Path, file: str) -> int | None:
        """Completes a file that was left behind, and returns its duration. Deletes one that has no sound."""
        duration_ms = read_duration_ms(path)
        if duration_ms is None:
            path.unlink()
        else:
            os.replace(path, self._folder / file)
        return duration_ms


def _create(path: Path) -> IO[bytes]:
    """Creates a file that only this user can read. It is locked as long as it is open, as those of `SoundWriter`."""
    file = os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")
    lock(file.fileno())
    return file


def _copy(path: Path, file: IO[bytes]) -> None:
    with path.open("rb") as source:
        shutil.copyfileobj(source, file)


def _read_part(path: Path, number: int) -> bytes:
    with path.open("rb") as file:
        file.seek(number * PART_BYTES)
        return file.read(PART_BYTES)


def _if_left(path: Path, work: Callable[[], Done]) -> tuple[Done] | None:
    """Does something to a file, unless a process is writing it or it is gone. Returns the result in a tuple."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        return (work(),) if lock(descriptor) else None
    finally:
        os.close(descriptor)
