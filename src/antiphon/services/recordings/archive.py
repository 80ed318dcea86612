"""The recordings that there are: their files in the data folder, and the store that knows whose they are.

A file has a random name of 256 bits. Its row is stored before the file is complete, and deleted before the file is, so
a crash leaves at most a file without a row or a file that is not complete. `sweep` deletes or completes those.
"""

import asyncio
import os
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from msgspec.structs import replace

from antiphon.services.recordings.sound_file import SUFFIX, RecordingError, lock, read_duration_ms
from antiphon.storage.recordings import Recording, RecordingStore
from antiphon.telemetry.log import get_logger

NAME_BYTES: Final = 32
BATCH: Final = 200
_NAME: Final = re.compile(rf"[A-Za-z0-9_-]{{43}}\{SUFFIX}")
_PARTIAL: Final = re.compile(rf"\.({_NAME.pattern})\.partial")

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

    async def has_file(self, recording: Recording) -> bool:
        return await asyncio.to_thread(self.path_of(recording).is_file)

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
        """Deletes the files of recordings that are gone, and completes those whose process died. Returns how many of
        either there were."""
        found = await asyncio.to_thread(self._list)
        changed = 0
        for first in range(0, len(found), BATCH):
            batch = found[first : first + BATCH]
            rows = {row.file: row for row in await self.store.find([file for file, _ in batch])}
            for file, is_partial in batch:
                changed += await self._check(file, rows.get(file), is_partial=is_partial)
        return changed

    def _list(self) -> list[tuple[str, bool]]:
        """Lists the files by the names that they have or will have, and whether they are partial."""
        if not self._folder.is_dir():
            return []
        names = sorted(path.name for path in self._folder.iterdir())
        partial = [(found[1], True) for name in names if (found := _PARTIAL.fullmatch(name))]
        return [*((name, False) for name in names if _NAME.fullmatch(name)), *partial]

    async def _check(self, file: str, row: Recording | None, *, is_partial: bool) -> bool:
        path = self.partial_path(file) if is_partial else self._folder / file
        if row is None:
            return await asyncio.to_thread(_if_left, path, path.unlink) is not None
        if row.duration_ms is not None:
            return False
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
            await self.store.save(replace(row, duration_ms=duration_ms, size_bytes=size_bytes))
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
