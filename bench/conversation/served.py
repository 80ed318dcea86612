"""Runs `antiphon serve` in its own process, with a voice and an empty data folder."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Final

from antiphon.config import Settings
from antiphon.weights.folder import locate
from antiphon.weights.manifest import find_model
from bench.load.process import ServerProcess

ROOT: Final = Path(__file__).parents[2]
MODELS: Final = ("silero-vad", "smart-turn", "moonshine-base-en")


def check_models(models_dir: Path) -> None:
    """Checks that all model files are present. Without one, the server would still run, but in text only.

    Raises `AntiphonError`.
    """
    for model in MODELS:
        for file in find_model(model).files:
            locate(models_dir, model, file.name)


@contextmanager
def serving(settings: Settings, **variables: str) -> Iterator[str]:
    """Runs the server and gives the address of its socket. It has the settings of this process and these variables.

    Raises `Crashed`.
    """
    command = [sys.executable, "-m", "antiphon", "serve", "--port", "0"]
    with TemporaryDirectory() as folder, TemporaryFile("w+") as log:
        env = {
            **os.environ,
            "ANTIPHON_DATA_DIR": folder,
            "ANTIPHON_MODELS_DIR": str(settings.models_dir),
            # Its output must not be buffered, although it does not go to a terminal.
            "PYTHONUNBUFFERED": "1",
            **variables,
        }
        with Popen(command, cwd=ROOT, env=env, stdin=PIPE, stdout=PIPE, stderr=log, text=True) as process:
            try:
                host, port = ServerProcess(process, log).address
                yield f"ws://{host}:{port}/ws"
            finally:
                process.terminate()
