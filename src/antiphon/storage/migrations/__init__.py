"""The migrations of the tables. A new one is a file in `versions/` and a new `HEAD`."""

from pathlib import Path
from typing import Final

HEAD: Final = "0014"
"""The revision that `sql/tables.py` describes. Revisions are four-digit numbers, so that they sort in order."""

FOLDER: Final = Path(__file__).parent
