"""Finds the list or the item that the user means, if the words are not exactly right."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from rapidfuzz import fuzz

from antiphon.words.lists import item_key

NEAR: Final = 82
"""How similar two names must be, from 0 to 100: "brocoli" and "broccoli" are at 93, "bread" and "beans" at 40."""
MIN_CHARS_NEAR: Final = 4
"""Shorter words differ too little: "tea" and "pea" are different things."""

Named = TypeVar("Named")


def find_near(said: str, among: Iterable[Named], text_of: Callable[[Named], str]) -> Sequence[Named]:
    """Returns everything that the words could mean: an exact match alone, else what contains the words, else what is
    spelled nearly alike."""
    wanted = item_key(said)
    one, words = _singular(wanted), _words(wanted)
    keyed = [(item_key(text_of(each)), each) for each in among]
    for fits in (
        lambda key: key == wanted,
        lambda key: _singular(key) == one,
        lambda key: words <= _words(key),
        lambda key: is_spelled_alike(key, wanted),
    ):
        found = [each for key, each in keyed if fits(key)]
        if found:
            return found
    return []


def is_spelled_alike(one: str, other: str) -> bool:
    return min(len(one), len(other)) >= MIN_CHARS_NEAR and fuzz.ratio(one, other) >= NEAR


def _words(key: str) -> set[str]:
    return set(map(_singular, key.split()))


def _singular(word: str) -> str:
    return word[:-1] if len(word) >= MIN_CHARS_NEAR and word.endswith("s") and not word.endswith("ss") else word
