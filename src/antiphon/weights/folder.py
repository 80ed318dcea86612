"""The folder of the model files, `<models_dir>/<model>/<file>`: which files are there and intact.

What an engine derives from a model's files, such as an optimised graph, is in `<models_dir>/cache/<model>/`. It can
be derived again, and is removed with its model.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

from antiphon.weights.manifest import File, Model, WeightsError, find_model

CHUNK_BYTES: Final = 1 << 20
CACHE: Final = "cache"
LOCK: Final = ".lock"
WORK_PREFIX: Final = ".pull-"


class State(StrEnum):
    PRESENT = "present"
    MISSING = "missing"
    DAMAGED = "damaged"


def locate(models_dir: Path, model: str, file: str) -> Path:
    """Returns the path of a file. Raises `WeightsError` unless it has the right size; the digest is not checked."""
    known = find_model(model)
    found = next((each for each in known.files if each.name == file), None)
    if found is None:
        names = ", ".join(each.name for each in known.files)
        raise WeightsError(f"the model {model} has no file {file!r}. It has {names}.")
    path = path_of(models_dir, known, found)
    state = state_of(models_dir, known, found)
    if state is not State.PRESENT:
        raise WeightsError(f"the model file {path} is {state}. Run `antiphon models pull {model}`.")
    return path


def cache_dir(models_dir: Path, model: str) -> Path:
    """Returns the folder for what is derived from a model's files. It may not exist yet."""
    return models_dir / CACHE / model


def path_of(models_dir: Path, model: Model, file: File) -> Path:
    return models_dir / model.name / file.name


def state_of(models_dir: Path, model: Model, file: File) -> State:
    """Checks only the size, which takes microseconds. `verify` reads the file."""
    path = path_of(models_dir, model, file)
    try:
        size_bytes = path.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return State.MISSING
    except OSError as error:
        raise WeightsError(f"{path} cannot be accessed: {error.strerror}. Give this user permission.") from None
    return State.PRESENT if size_bytes == file.size_bytes else State.DAMAGED


def verify(models_dir: Path, model: Model, file: File, on_bytes: Callable[[int], None] = lambda _: None) -> State:
    """Checks the digest. Reports how many bytes it has read so far."""
    state = state_of(models_dir, model, file)
    if state is not State.PRESENT:
        return state
    path = path_of(models_dir, model, file)
    digest = hashlib.sha256()
    done_bytes = 0
    try:
        with path.open("rb") as source:
            while chunk := source.read(CHUNK_BYTES):
                digest.update(chunk)
                done_bytes += len(chunk)
                on_bytes(done_bytes)
    except OSError as error:
        raise WeightsError(f"{path} cannot be read: {error.strerror}. Give this user permission.") from None
    return State.PRESENT if digest.hexdigest() == file.sha256 else State.DAMAGED


def remove(models_dir: Path, model: Model) -> bool:
    """Removes a model's files and everything derived from them. Returns False if there was nothing to remove.

    Other files in its folder stay.
    """
    folder, cache = models_dir / model.name, cache_dir(models_dir, model.name)
    if not folder.exists() and not cache.exists():
        return False
    try:
        with exclusive_access(models_dir):
            for file in model.files:
                path_of(models_dir, model, file).unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                shutil.rmtree(cache)
            with suppress(OSError):
                folder.rmdir()
    except OSError as error:
        raise WeightsError(f"{model.name} cannot be removed from {models_dir}: {error.strerror}.") from None
    return True


@contextmanager
def exclusive_access(models_dir: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Lets only one process at a time change the folder, and removes what a killed process left unfinished."""
    import fcntl  # here, since Windows has none: models that were copied into their folder can be used there, too

    with (models_dir / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(lock, fcntl.LOCK_EX)
        for work in models_dir.glob(f"{WORK_PREFIX}*"):
            shutil.rmtree(work, ignore_errors=True)
        for partial in models_dir.glob("*/.*.partial"):
            partial.unlink(missing_ok=True)
        yield


def partial_of(path: Path) -> Path:
    """Returns the path where a file is written first. It is in the same folder, so that the last step is a rename."""
    return path.with_name(f".{path.name}.partial")
