"""Starts the server under load on its own core, asks it for its figures, and ends it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryFile
from time import monotonic
from typing import IO, Final

import psutil

ROOT: Final = Path(__file__).parents[2]
LISTENS: Final = re.compile(r"listens on http://(\S+):(\d+) ")
STOPPING_S: Final = 30.0


class Crashed(Exception):
    """The server ended too early. The message has the last line of its output."""


class ServerProcess:
    def __init__(self, process: Popen[str], log: IO[str]) -> None:
        self._process = process
        self._log = log
        self._seen = psutil.Process(process.pid)
        found = LISTENS.search(self._read("listens on"))
        assert found is not None
        self.address = (found[1], int(found[2]))

    def rss_bytes(self) -> int:
        """Returns its resident size after garbage collection."""
        assert self._process.stdin is not None
        print(file=self._process.stdin, flush=True)
        self._read("collected")
        return int(self._seen.memory_info().rss)

    def cpu_s(self) -> float:
        times = self._seen.cpu_times()
        return float(times.user + times.system)

    def _read(self, wanted: str) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if wanted in line:
                return line
        self._log.seek(0)
        raise Crashed((self._log.read().strip() or "The server said nothing.").splitlines()[-1])


@contextmanager
def started(command: Sequence[str], core: int, env: Mapping[str, str] | None = None) -> Iterator[ServerProcess]:
    """Starts a server and waits until it is ready. All its threads run on one core."""
    with TemporaryFile("w+") as log, spawn(command, core, env, log) as process:
        try:
            yield ServerProcess(process, log)
        finally:
            process.terminate()
            try:
                process.wait(STOPPING_S)
            except subprocess.TimeoutExpired:
                process.kill()


def load_server(
    folder: Path, storage: str, phrases: Path | None, profile: Path | None, voice: str | None = None
) -> list[str]:
    """Returns the command of the load server. If there are phrases, it listens to them; `voice` is a live model."""
    options = {"--ears": phrases, "--profile": profile, "--voice": voice}
    given = [word for option, value in options.items() if value is not None for word in (option, str(value))]
    return [sys.executable, "-m", "bench.load.server", str(folder), storage, *given]


def measure_start_s(folder: Path, core: int) -> float:
    """Measures how long `antiphon serve` takes to be ready for text, with an empty data folder."""
    command = [sys.executable, "-m", "antiphon", "serve", "--port", "0"]
    # Its output must not be buffered, although it does not go to a terminal.
    env = {**os.environ, "ANTIPHON_DATA_DIR": str(folder), "ANTIPHON_MODEL__VOICE": "none", "PYTHONUNBUFFERED": "1"}
    begun_s = monotonic()
    with started(command, core, env):
        return monotonic() - begun_s


def spawn(command: Sequence[str], core: int, env: Mapping[str, str] | None, log: IO[str]) -> Popen[str]:
    """Starts a process on one core. A child inherits its parent's cores, so the parent moves there for a moment."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        return Popen(command, cwd=ROOT, env=env, stdin=PIPE, stdout=PIPE, stderr=log, text=True)
    finally:
        os.sched_setaffinity(0, mine)
