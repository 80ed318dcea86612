"""Runs the Pipecat pipeline as a process in the peers' environment, which reads speech from files."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

import msgspec

from bench.conversation.calls import Turn
from bench.conversation.served import ROOT
from bench.conversation.sounds import Utterance
from bench.tools import Crashed, last_line


class PipecatProcess:
    def __init__(self, process: Popen[str], errors: IO[str], folder: Path) -> None:
        self._process = process
        self._errors = errors
        self._pcm = folder / "speech.pcm"
        if self._read() != "ready":
            raise Crashed("Pipecat wrote something else than that it is ready.")

    def hold(self, utterance: Utterance) -> Turn:
        """Speaks the utterance, which takes as long as it and its answer last. Raises `Crashed`."""
        assert self._process.stdin is not None
        self._pcm.write_bytes(utterance.pcm)
        print(self._pcm, file=self._process.stdin, flush=True)
        return msgspec.json.decode(self._read(), type=Turn)

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            raise Crashed(last_line(self._errors.read()))
        return line.strip()


@contextmanager
def pipecat(python: Path, models_dir: Path) -> Iterator[PipecatProcess]:
    """Starts a pipeline and waits until it is ready. Raises `Crashed`."""
    command = [str(python), "-m", "bench.conversation.pipecat_bot", str(models_dir)]
    # Only the dependencies of our packages are installed there, not the packages themselves.
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    with (
        TemporaryDirectory() as folder,
        TemporaryFile("w+") as errors,
        Popen(command, cwd=ROOT, env=env, stdin=PIPE, stdout=PIPE, stderr=errors, text=True) as process,
    ):
        try:
            yield PipecatProcess(process, errors, Path(folder))
        finally:
            process.terminate()
