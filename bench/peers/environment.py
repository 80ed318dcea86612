"""The separate environments in which the peers are installed."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import copyfile
from typing import Final

PEERS_VENV: Final = Path(__file__).parents[1] / ".venv-peers"
LIVEKIT_VENV: Final = Path(__file__).parents[1] / ".venv-livekit"
"""The environment of a version of LiveKit Agents that does not work with the packages of the other."""


def prepare_peers(
    requirements: Path, on_install: Callable[[], None] = lambda: None, *, venv: Path = PEERS_VENV
) -> Path:
    """Installs the requirements if they are missing or out of date, and returns the environment's Python.

    Raises `OSError` and `CalledProcessError`.
    """
    python = venv / "bin" / "python"
    installed = venv / f"{requirements.parent.name}-{requirements.name}"
    if installed.exists() and installed.read_bytes() == requirements.read_bytes():
        return python
    on_install()
    make = [sys.executable, "-m", "venv", str(venv)]
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", str(requirements)]
    for command in (make, pip):
        subprocess.run(command, check=True, capture_output=True, text=True)
    copyfile(requirements, installed)
    return python
