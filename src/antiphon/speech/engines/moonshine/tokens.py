"""Tokens to text. `tokenizer.bin` has each token's bytes behind their length, from token 0 on."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

START: Final = 1
END: Final = 2

_SPACE: Final = "▁".encode()


class Tokens:
    def __init__(self, file: bytes) -> None:
        """Raises `ValueError` for what is no such file."""
        self._bytes: list[bytes] = []
        at = 0
        while at < len(file):
            length, at = file[at], at + 1
            if length >= 128 and at < len(file):
                length, at = file[at] * 128 + length - 128, at + 1
            if at + length > len(file):
                raise ValueError(f"it ends within token {len(self._bytes)}")
            self._bytes.append(file[at : at + length])
            at += length
        if len(self._bytes) <= END:
            raise ValueError("it has no tokens")

    def __len__(self) -> int:
        return len(self._bytes)

    def write(self, tokens: Sequence[int]) -> str:
        """Without blanks around it, or more than one between words."""
        # Those up to the end's are marks, and the model knows some hundred numbers that no token has.
        known = (self._bytes[token] for token in tokens if END < token < len(self._bytes))
        return " ".join(b"".join(known).replace(_SPACE, b" ").decode("utf-8", "ignore").split())


def read_tokens(path: Path) -> Tokens:
    return Tokens(path.read_bytes())
