"""The wheel, as a release has it."""

import re
import subprocess
import sys
from pathlib import Path

from tests.deploy.proxies import DEPLOY
from tests.fakes.tree import ROOT


def build_wheel(folder: Path) -> Path:
    """Builds the wheel of this checkout, without a network."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=50)
    [wheel] = folder.glob("antiphon-*.whl")
    return wheel


def image_extras() -> str:
    """Returns the extras that the image installs, separated by commas."""
    found = re.search(r"^ARG EXTRAS=(\S+)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]
