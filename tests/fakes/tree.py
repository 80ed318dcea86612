"""The tree that the tests are in, and how a child process imports from it rather than from what is installed."""

import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PYTHON_PATH: Final = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
"""`PYTHONPATH` of a child process."""
