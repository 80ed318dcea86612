"""English text as Kokoro's phonemes, which hibari's voices read too. The lexicon and the rules are those of misaki.

They come with the package `hibari-tts` and need neither spaCy nor espeak.
"""

import re
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Final

import hibari  # type: ignore[import-untyped]
import msgspec
from hibari.g2p import G2P  # type: ignore[import-untyped]

from antiphon.speech.base import is_silent
from antiphon.speech.engines.synthesis import SENTENCE_ENDS, encodable, portions

MAX_CHARS: Final = 800
"""What is read at once takes 10 ms, in Python."""
MAX_PHONEMES: Final = 200
"""About 12 seconds of speech. Voices synthesise an utterance as a whole, which delays the first sound."""

_LONG_NUMBER: Final = re.compile(r"\d{13,}")
"""No number that people read as one. Beyond quadrillions the package fails."""
_NO_WORD: Final = re.compile(r"[^A-Za-z' ]+")
_EDGE: Final = 0
"""The symbol at both ends of an utterance."""

ASSETS: Final = Path(hibari.__file__).parent / "assets"


class Phonemizer:
    """Reads text with an American or a British accent. It is thread-safe. It takes 0.5 s and 70 MB to load."""

    def __init__(self, *, british: bool) -> None:
        self._g2p = G2P(british=british)
        self._reading = Lock()

    def phonemize(self, text: str) -> list[str]:
        """Returns the phonemes of each sentence, which end in its punctuation; none for a text without sound."""
        sentences = [
            sentence
            for portion in portions(encodable(_LONG_NUMBER.sub(_spaced, text)), MAX_CHARS)
            for sentence in hibari.Hibari.split_sentences(portion)
            if not is_silent(sentence)
        ]
        return [part for each in sentences for part in portions(self._read(each), MAX_PHONEMES) if _is_audible(part)]

    def _read(self, sentence: str) -> str:
        with self._reading:
            try:
                phonemes: str = self._g2p(sentence)
            except (ValueError, LookupError, TypeError, AttributeError):
                # The package fails on some odd texts, such as "¹A". Their words are better than nothing.
                phonemes = self._g2p(_NO_WORD.sub(" ", sentence))
        # The full stop of an abbreviation at the end, "at 7 p.m.", also ends the sentence.
        is_open = sentence[-1] in SENTENCE_ENDS and phonemes[-1:] not in SENTENCE_ENDS
        return phonemes + sentence[-1] if phonemes and is_open else phonemes


def to_symbols(phonemes: str) -> list[int]:
    """Returns the numbers that the models know the phonemes by. What they do not know is left out."""
    known = _vocabulary()
    return [_EDGE, *(known[each] for each in phonemes if each in known), _EDGE]


@cache
def phonemizer(*, british: bool) -> Phonemizer:
    """Returns the one of this process."""
    return Phonemizer(british=british)


@cache
def _vocabulary() -> dict[str, int]:
    return msgspec.json.decode((ASSETS / "vocab.json").read_bytes(), type=dict[str, int])


def _spaced(number: re.Match[str]) -> str:
    return " ".join(number[0])


def _is_audible(phonemes: str) -> bool:
    return any(each.isalpha() for each in phonemes)
