"""What an engine derives from a model's files: made once, in drafts, and then kept in the model's cache folder."""

import hashlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_DRAFTS: Final = "new-"


def key_of(files: Iterable[Path], recipe: str) -> str:
    """A folder name for what the recipe makes of these files, and of no others. Raises `OSError`."""
    digest = hashlib.sha256(recipe.encode())
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


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
        drafts.rename(folder)
    except OSError:
        return drafts
    for other in folder.parent.iterdir():
        # What is being made by another process is let be.
        if other != folder and not other.name.startswith(_DRAFTS):
            shutil.rmtree(other, ignore_errors=True)
    return folder


def _make_folder(cache_dir: Path) -> Path:
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=_DRAFTS, dir=cache_dir))
    except OSError:
        return Path(tempfile.mkdtemp(prefix="antiphon-"))
