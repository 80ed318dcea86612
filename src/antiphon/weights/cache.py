"""What an engine derives from a model's files: made once, in drafts, and then kept in the model's cache folder."""

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

DRAFTS_LAST_S: Final = 24 * 60 * 60
"""Nobody works on older ones any more: whoever made them was killed."""

_DRAFTS: Final = "new-"
_log = get_logger(__name__)

Opened = TypeVar("Opened")


def key_of(files: Iterable[Path], recipe: str) -> str:
    """A folder name for what the recipe makes of these files, and of no others. Raises `OSError`."""
    digest = hashlib.sha256(recipe.encode())
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def open_made(cache_dir: Path, key: str, make: Callable[[Path], None], open_folder: Callable[[Path], Opened]) -> Opened:
    """Opens what `make` has once put into a folder. It is made if there is none, or none that can be opened.

    If the cache cannot be written, it is made for this time only. Raises `OSError`, and what the two functions raise.
    """
    _clear_drafts(cache_dir)
    folder = cache_dir / key
    if folder.is_dir():
        try:
            return open_folder(folder)
        except Exception as error:  # onnxruntime's errors have no common ancestor below this one.
            _log.warning("cache_made_anew", folder=str(folder), reason=str(error))
            shutil.rmtree(folder, ignore_errors=True)
    with drafting(cache_dir) as drafts:
        make(drafts)
        return open_folder(keep(drafts, folder))


@contextmanager
def drafting(cache_dir: Path) -> Iterator[Path]:
    """An empty folder to write to, which is gone afterwards unless it was kept. Raises `OSError`.

    It is in the cache, or, where that cannot be written, in the system's folder for temporary files.
    """
    drafts = _make_folder(cache_dir)
    try:
        yield drafts
    finally:
        shutil.rmtree(drafts, ignore_errors=True)


def keep(drafts: Path, folder: Path) -> Path:
    """Puts finished drafts where they are found the next time, in place of those of other versions.

    Gives the folder that they are in now: their own still, if they cannot be kept or another process was quicker.
    """
    if drafts.parent != folder.parent:
        return drafts
    try:
        # Others may share the models.
        drafts.chmod(0o755)
        for file in drafts.iterdir():
            file.chmod(0o644)
            _sync(file)
        drafts.rename(folder)
    except OSError:
        return drafts
    for other in folder.parent.iterdir():
        # What is being made by another process is let be.
        if other != folder and not other.name.startswith(_DRAFTS):
            shutil.rmtree(other, ignore_errors=True)
    return folder


def _sync(file: Path) -> None:
    """A file that has its size but not yet its content may be opened after a power cut, and be noise."""
    descriptor = os.open(file, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _clear_drafts(cache_dir: Path) -> None:
    # Another process may clear them, too.
    with suppress(OSError):
        for drafts in cache_dir.glob(f"{_DRAFTS}*"):
            if drafts.stat().st_mtime < time.time() - DRAFTS_LAST_S:
                shutil.rmtree(drafts, ignore_errors=True)


def _make_folder(cache_dir: Path) -> Path:
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=_DRAFTS, dir=cache_dir))
    except OSError as error:
        _log.warning("cache_not_written", folder=str(cache_dir), reason=str(error))
        return Path(tempfile.mkdtemp(prefix="antiphon-"))
