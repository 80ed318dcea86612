"""One tool's directory as it was read: its files, and a digest that detects changes.

The digest is the same on any machine and in any folder. JSON is hashed in canonical form, text with the line ends of
Unix (git may check the same file out with others), everything else byte by byte.
"""

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

SKIPPED_SUFFIXES: Final = (".pyc", ".pyo")
TESTS: Final = "tests"


@dataclass(frozen=True, slots=True)
class Source:
    directory: Path
    files: Mapping[str, bytes]
    """The files by path within the directory, with forward slashes, without tests, caches and hidden files."""
    digest: str

    @property
    def tool_id(self) -> str:
        """The id that the directory's name stands for: kb-search and kb_search are the same tool."""
        return tool_id_of(self.directory.name)

    def text(self, name: str) -> str:
        """Raises KeyError if there is no such file, UnicodeDecodeError if it is not UTF-8."""
        return self.files[name].decode("utf-8-sig")


def tool_id_of(directory_name: str) -> str:
    return directory_name.replace("-", "_")


def read(directory: Path) -> Source:
    """Raises OSError if the directory, or a file in it, cannot be read."""
    files = {name: _unix_lines(_content(path)) for name, path in sorted(_walk(str(directory), ""))}
    return Source(directory, files, digest_of((name, _canonical(name, content)) for name, content in files.items()))


def digest_of(parts: Iterable[tuple[str, bytes]]) -> str:
    """Hashes names and contents with SHA-256, each preceded by its length, so that the boundaries are unambiguous."""
    sha = hashlib.sha256()
    for name, content in parts:
        encoded = name.encode("utf-8", "surrogateescape")
        sha.update(b"%d:%b%d:" % (len(encoded), encoded, len(content)))
        sha.update(content)
    return sha.hexdigest()


def parse_json(content: bytes) -> Any:
    """Parses JSON strictly: duplicate keys, NaN, 1e999 and lone surrogates are errors too. Raises ValueError."""
    try:
        value = json.loads(content, object_pairs_hook=_distinct, parse_float=_finite, parse_constant=_finite)
        canonical_json(value)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("a string holds half of a surrogate pair") from None
    return value


def canonical_json(value: Any) -> bytes:
    """Encodes with sorted keys at every depth. 1 and 1.0 stay different; 1e3 and 1000.0 are the same number."""
    return msgspec.json.encode(value, order="sorted")


def _walk(directory: str, prefix: str) -> Iterator[tuple[str, str]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            name = entry.name
            if name.startswith(".") or name.endswith(SKIPPED_SUFFIXES):
                continue
            if entry.is_dir(follow_symlinks=False):
                if name != "__pycache__" and (prefix or name != TESTS):
                    yield from _walk(entry.path, f"{prefix}{name}/")
            elif entry.is_file():
                yield f"{prefix}{name}", entry.path


def _content(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


def _unix_lines(content: bytes) -> bytes:
    """Converts line ends. Binary files stay as they are; as in git, a NUL byte identifies them."""
    return content if b"\r\n" not in content or b"\0" in content else content.replace(b"\r\n", b"\n")


def _canonical(name: str, content: bytes) -> bytes:
    if not name.endswith(".json"):
        return content
    try:
        return canonical_json(parse_json(content))
    except ValueError:
        return content


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f'"{twice}" appears twice in the same object')
    return made


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is not a valid JSON number")
    return value
