"""The words of a text: those that a search looks for, and whether two words are forms of the same one."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

MAX_TERMS: Final = 24
"""How many different words of a query are looked for."""
_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_WORD_LIST: Final = """
    a about above across after again against all almost also although am among an and another any anybody anyone
    anything are aren around as ask at away back be because been before being below between both but by can cannot
    could couldn d did didn do does doesn doing don down during each either else ever every everybody everyone
    everything find for from further get give given go got had hadn has hasn have haven having he her here hers herself
    him himself his how however i if in into is isn it its itself just know let like ll look m many may maybe me mean
    might mine more most much must my myself need neither no nor not now of off often on once one only onto or other our
    ours out over own per please quite rather re really s said same say shall she should shouldn show since so some
    somebody someone something still such t tell than that the their theirs them themselves then there these they thing
    things this those though through thus to too toward under until up upon us ve very want was wasn way we well were
    weren what whatever when whenever where whether which while who whoever whom whose why will with within without won
    would wouldn yet you your yours yourself
"""
STOP_WORDS: Final = frozenset(_WORD_LIST.split())
"""Words that say nothing about what is looked for. A search for one of them would look at nearly every record."""

_SOFT_LIST: Final = """
    call called current currently exact exactly happen happened happens kind name named sort time times use used uses
    using usually work works
"""
SOFT_WORDS: Final = frozenset(_SOFT_LIST.split())
"""Words that shape a question rather than say what it is about."""
_MEASURE: Final = re.compile(
    r"\bhow (?:long|often|far|soon|old|big|tall|fast|late|early)\b|"
    r"\b(?:what|which) (?:day|date|weekday|month|year|time|hour)\b",
    re.IGNORECASE,
)
"""What kind of answer is expected. The answer says "four hours", and not "long"."""


class Word(NamedTuple):
    text: str
    start: int
    end: int


def words(text: str) -> Iterator[Word]:
    for match in _WORD.finditer(text):
        yield Word(match[0], match.start(), match.end())


def stems(text: str) -> set[str]:
    """Returns the stems of the words in a text."""
    # Ten times as fast as by `words`: a search does this for a hundred passages.
    return {stem(word) for word in set(_WORD.findall(text))}


def terms(query: str) -> list[str]:
    """Returns the words to look for, each once, in lower case: all words if there are only stop words."""
    said = [part for word in words(_MEASURE.sub("how", query)) for part in re.split("['’]", fold(word.text)) if part]
    chosen = dict.fromkeys(word for word in said if word not in STOP_WORDS)
    by_stem = {stem(word): word for word in reversed(chosen or dict.fromkeys(said))}
    return [word for word in dict.fromkeys(said) if by_stem.get(stem(word)) == word][:MAX_TERMS]


def fold(word: str) -> str:
    """Returns a word in lower case and without accents."""
    if word.isascii():
        return word.lower()
    split = unicodedata.normalize("NFKD", word.casefold())
    return "".join(letter for letter in split if not unicodedata.combining(letter))


@lru_cache(50_000)
def stem(word: str) -> str:
    """Returns what the forms of an English word have in common: "policies" and "policy", "running" and "runs"."""
    word = fold(word).removesuffix("'s").removesuffix("’s")
    for suffix, instead in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)] + instead
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word[-1] in "ei" else word


_SUFFIXES: Final = (
    ("ational", "ate"),
    ("ations", "at"),
    ("ation", "at"),
    ("sses", "ss"),
    ("ments", "ment"),
    ("ingly", ""),
    ("ings", ""),
    ("ies", "i"),
    ("ied", "i"),
    ("ing", ""),
    ("edly", ""),
    ("ers", "er"),
    ("ed", ""),
    ("es", "e"),
    ("ly", ""),
    ("ss", "ss"),
    ("us", "us"),
    ("is", "is"),
    ("s", ""),
    ("y", "i"),
)
