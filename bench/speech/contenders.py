"""The recognisers that `stt.py` compares, each in its own process."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryFile
from typing import IO, Any, Final

import psutil

from bench.peers.environment import prepare_peers

ROOT: Final = Path(__file__).parents[2]
REQUIREMENTS: Final = Path(__file__).with_name("requirements.txt")
OURS: Final = "antiphon_engine"
OFFICIAL: Final = "official_graphs"
PACKAGE: Final = "moonshine_package"


class Crashed(Exception):
    """A contender ended too early. The message has the last line of its output."""


@dataclass(frozen=True, slots=True)
class Heard:
    text: str
    s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Memory:
    rss_bytes: int
    own_bytes: int
    """Its memory without pages of files that other processes map too (USS)."""


class Contender:
    def __init__(self, process: Popen[str], errors: IO[str]) -> None:
        self._process = process
        self._errors = errors
        self.load_s: float = self._read()["load_s"]

    def hear(self, file: Path, at_once: int = 1) -> Heard:
        """Recognises a file. The time is that until all copies are recognised."""
        assert self._process.stdin is not None
        print(json.dumps({"file": str(file), "at_once": at_once}), file=self._process.stdin, flush=True)
        return Heard(**self._read())

    def memory(self) -> Memory:
        found = psutil.Process(self._process.pid).memory_full_info()
        return Memory(found.rss, found.uss)

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            raise Crashed((self._errors.read().strip() or "It said nothing.").splitlines()[-1])
        return json.loads(line)


@contextmanager
def started(name: str, python: Path, models_dir: Path) -> Iterator[Contender]:
    """Starts a contender and waits until it is ready. Raises `Crashed`."""
    command = [str(python), "-m", "bench.speech", name, str(models_dir)]
    with (
        TemporaryFile("w+") as errors,
        Popen(command, cwd=ROOT, stdin=PIPE, stdout=PIPE, stderr=errors, text=True) as process,
    ):
        yield Contender(process, errors)


def prepare_package() -> Path:
    """Returns the Python of the peers' environment, which is created if it is missing or has another version."""
    return prepare_peers(REQUIREMENTS)
