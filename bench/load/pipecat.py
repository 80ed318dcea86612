"""Runs Pipecat's input side as a process in the peers' environment, on the core of our server."""

import json
from pathlib import Path
from subprocess import Popen
from tempfile import TemporaryFile
from time import monotonic, sleep
from typing import IO, Final

import psutil

from bench.load.figures import PeerFigures
from bench.load.microphone import EVERY_FRAMES, FRAME_MS
from bench.load.process import Crashed, spawn

WARM_S: Final = EVERY_FRAMES * FRAME_MS / 1000
"""How long it takes until everybody has spoken once."""
MEASURED_S: Final = 2 * WARM_S


def measure_input(python: Path, sessions: int, phrases_dir: Path, core: int) -> PeerFigures:
    """Measures this many sessions, in half a minute in total. Raises `Crashed`."""
    command = [str(python), "-m", "bench.peers", "pipecat_input"]
    with TemporaryFile("w+") as log, spawn(command, core, None, log) as process:
        try:
            return _measure(process, log, sessions, phrases_dir)
        finally:
            process.kill()


def _measure(process: Popen[str], log: IO[str], sessions: int, phrases_dir: Path) -> PeerFigures:
    seen = psutil.Process(process.pid)
    _tell(process, json.dumps({"sessions": sessions, "phrases": str(phrases_dir)}))
    _read(process, log, "loaded")
    before_bytes = seen.memory_info().rss
    _read(process, log, "ready")
    sleep(WARM_S)
    begun_s, times = monotonic(), seen.cpu_times()
    used_s = -times.user - times.system
    sleep(MEASURED_S)
    passed_s, times = monotonic() - begun_s, seen.cpu_times()
    used_s += times.user + times.system
    held_bytes = seen.memory_info().rss - before_bytes
    _tell(process, "")
    heard = json.loads(_read(process, log, "turns"))
    return PeerFigures(sessions, used_s / passed_s, held_bytes / sessions / 1000, **heard)


def _tell(process: Popen[str], line: str) -> None:
    assert process.stdin is not None
    print(line, file=process.stdin, flush=True)


def _read(process: Popen[str], log: IO[str], wanted: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if wanted in line:
            return line
    log.seek(0)
    raise Crashed((log.read().strip() or "Pipecat said nothing.").splitlines()[-1])
