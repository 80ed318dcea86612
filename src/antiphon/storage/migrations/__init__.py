"""The steps from one version of the tables to the next. A new step is a file in `versions/` and a new `HEAD`."""

from pathlib import Path
from typing import Final

HEAD: Final = "0004"
"""The revision that `sql/tables.py` describes. Revisions are numbers of four digits, so they sort as they follow."""

FOLDER: Final = Path(__file__).parent
