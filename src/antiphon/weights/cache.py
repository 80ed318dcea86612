"""What an engine derives from a model's files. It is made once and kept in the model's cache folder."""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from antiphon.telemetry.log import get_logger

STALE_AFTER_S: Final = 24 * 60 * 60
"""A work folder older than this was left behind by a process that was killed."""

_TEMPORARY: Final = "new-"
_log = get_logger(__name__)

Opened = TypeVar("Opened")


def cache_key(files: Iterable[Path], recipe: str) -> str:
    """Returns a folder name that is unique to these files and this recipe. Raises `OSError`."""
    digest = hashlib.sha256(recipe.encode())
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def open_cached(
    cache_dir: Path, key: str, make: Callable[[Path], None], open_folder: Callable[[Path], Opened]
) -> Opened:
    """Opens the cached folder, after `make` has filled it if it is missing or cannot be opened.

    If the cache is not writable, the files are made for this process only. Raises `OSError`, and
    whatever the two functions raise.
    """
    _remove_stale_folders(cache_dir)
    folder = cache_dir / key
    if folder.is_dir():
        try:
            return open_folder(folder)
        except Exception as error:  # onnxruntime's errors have no common ancestor below this one.
            _log.warning("cache_rebuilt", folder=str(folder), reason=str(error))
            shutil.rmtree(folder, ignore_errors=True)
    with temporary_folder(cache_dir) as work:
        make(work)
        return open_folder(move_into_cache(work, folder))


@contextmanager
def temporary_folder(cache_dir: Path) -> Iterator[Path]:
    """Yields an empty folder to write to, and removes it afterwards unless it was moved. Raises `OSError`.

    It is in the cache, or in the system's temporary folder if the cache is not writable.
    """
    work = _create_folder(cache_dir)
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def move_into_cache(work: Path, folder: Path) -> Path:
    """Moves a finished work folder to its place in the cache, and removes those of other versions.

    Returns where the files are now: still the work folder if it cannot be moved or another process was faster.
    """
    if work.parent != folder.parent:
        return work
    try:
        # Others may share the models.
        work.chmod(0o755)
        for file in work.iterdir():
            file.chmod(0o644)
            _sync(file)
        work.rename(folder)
    except OSError:
        return work
    for other in folder.parent.iterdir():
        # Another process may still be writing to a work folder.
        if other != folder and not other.name.startswith(_TEMPORARY):
            shutil.rmtree(other, ignore_errors=True)
    return folder


def _sync(file: Path) -> None:
    """Syncs a file. Without this, it can have its full size but not its content after a power cut."""
    descriptor = os.open(file, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_stale_folders(cache_dir: Path) -> None:
    # Another process may be removing them too.
    with suppress(OSError):
        for work in cache_dir.glob(f"{_TEMPORARY}*"):
            if work.stat().st_mtime < time.time() - STALE_AFTER_S:
                shutil.rmtree(work, ignore_errors=True)


def _create_folder(cache_dir: Path) -> Path:
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=cache_dir))
    except OSError as error:
        _log.warning("cache_not_writable", folder=str(cache_dir), reason=str(error))
        return Path(tempfile.mkdtemp(prefix="antiphon-"))
