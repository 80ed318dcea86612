"""The folder of the model files, `<models_dir>/<model>/<file>`: what is there, and whether it is whole.

What an engine derives from a model's files, such as an optimised graph, lies in `<models_dir>/cache/<model>/`. It can
be made again, and goes with its model.
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
    """Where a file is. Raises `WeightsError` unless it is there and has its size; its digest is not computed."""
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
    """Where to keep what was derived from the files of a model. It may have to be made."""
    return models_dir / CACHE / model


def path_of(models_dir: Path, model: Model, file: File) -> Path:
    return models_dir / model.name / file.name


def state_of(models_dir: Path, model: Model, file: File) -> State:
    """By its size alone, which takes microseconds. `verify` reads the file."""
    path = path_of(models_dir, model, file)
    try:
        size_bytes = path.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return State.MISSING
    except OSError as error:
        raise WeightsError(f"{path} cannot be looked at: {error.strerror}. Give this user the right to.") from None
    return State.PRESENT if size_bytes == file.size_bytes else State.DAMAGED


def verify(models_dir: Path, model: Model, file: File, on_bytes: Callable[[int], None] = lambda _: None) -> State:
    """By its digest. Tells how many bytes it has read so far."""
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
        raise WeightsError(f"{path} cannot be read: {error.strerror}. Give this user the right to.") from None
    return State.PRESENT if digest.hexdigest() == file.sha256 else State.DAMAGED


def remove(models_dir: Path, model: Model) -> bool:
    """Removes the files of a model and what was derived from them. False if none was there.

    A file that somebody else put into its folder stays.
    """
    folder, cache = models_dir / model.name, cache_dir(models_dir, model.name)
    if not folder.exists() and not cache.exists():
        return False
    try:
        with alone(models_dir):
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
def alone(models_dir: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Only one process at a time changes a folder. What one that was killed has left half done is cleared away."""
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
    """Where a file is written before it takes its place. It is beside it, so that the last step is a renaming."""
    return path.with_name(f".{path.name}.partial")
