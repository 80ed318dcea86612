"""The separate environment in which the peers are installed: bench/.venv-peers."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import copyfile
from typing import Final

PEERS_VENV: Final = Path(__file__).parents[1] / ".venv-peers"


def prepare_peers(requirements: Path, on_install: Callable[[], None] = lambda: None) -> Path:
    """Installs the requirements if they are missing or out of date, and returns the environment's Python.

    Raises `OSError` and `CalledProcessError`.
    """
    python = PEERS_VENV / "bin" / "python"
    installed = PEERS_VENV / f"{requirements.parent.name}-{requirements.name}"
    if installed.exists() and installed.read_bytes() == requirements.read_bytes():
        return python
    on_install()
    make = [sys.executable, "-m", "venv", str(PEERS_VENV)]
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", str(requirements)]
    for command in (make, pip):
        subprocess.run(command, check=True, capture_output=True, text=True)
    copyfile(requirements, installed)
    return python
