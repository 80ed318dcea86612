"""The tokens that the network writes: pieces of words as bytes."""

from collections.abc import Sequence
from typing import Final

START: Final = 1
END: Final = 2

_SPACE: Final = "▁".encode()


class Tokens:
    def __init__(self, file: bytes) -> None:
        """Raises `ValueError` for a malformed file."""
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
        self._ids = {each: id for id, each in enumerate(self._bytes) if id > END and each}
        self._longest = max(map(len, self._bytes))

    def __len__(self) -> int:
        return len(self._bytes)

    def write(self, tokens: Sequence[int]) -> str:
        """Returns the text with normalised spaces."""
        # Tokens up to END are markers, and the model has about a hundred ids without a token.
        known = (self._bytes[token] for token in tokens if END < token < len(self._bytes))
        return " ".join(b"".join(known).replace(_SPACE, b" ").decode("utf-8", "ignore").split())

    def split(self, text: str) -> list[int]:
        """Returns tokens that spell the text in the middle of a sentence; none if there are none for it.

        The longest token comes first. For words that occur in sentences, that is how the network writes them, too.
        """
        rest = _SPACE + text.replace(" ", _SPACE.decode()).encode()
        tokens = []
        while rest:
            token = next(filter(None, (self._ids.get(rest[:size]) for size in range(self._longest, 0, -1))), None)
            if token is None:
                return []
            tokens.append(token)
            rest = rest[len(self._bytes[token]) :]
        return tokens
