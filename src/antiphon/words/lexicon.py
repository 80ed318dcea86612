"""Which words there are in English, to tell a misspelt one. The pronouncing dictionaries of `hibari-tts` know 210,000,
with names and inflected forms.

Only a checksum of each word is kept: 0.8 MB instead of 20, and one in 20,000 misspelt words is taken for a word.
"""

import gzip
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zlib import crc32

import msgspec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PACKAGE: Final = "hibari"
FILES: Final = "assets/lexicon_*.json.gz"


class Lexicon:
    def __init__(self, checksums: "NDArray[np.uint32]") -> None:
        self._checksums = checksums
        """In ascending order."""

    @classmethod
    def load(cls) -> "Lexicon | None":
        """Reads the dictionaries, in half a second; None if the package or its files are not there."""
        import numpy as np

        spec = find_spec(PACKAGE)
        files = [] if spec is None or spec.origin is None else sorted(Path(spec.origin).parent.glob(FILES))
        found = set[int]()
        for file in files:
            try:
                words = msgspec.json.decode(gzip.decompress(file.read_bytes()), type=dict[str, msgspec.Raw])
            except (OSError, EOFError, msgspec.DecodeError):
                return None
            found.update(_checksum(word) for word in words)
        return cls(np.array(sorted(found), np.uint32)) if found else None

    def __contains__(self, word: object) -> bool:
        checksum = _checksum(str(word))
        at = int(self._checksums.searchsorted(checksum))
        return at < len(self._checksums) and int(self._checksums[at]) == checksum


def _checksum(word: str) -> int:
    return crc32(word.lower().encode())
