"""Prepares the user's words for matching, and maps matches back to what was really said or typed."""

import re
from typing import Final

_IS: Final = ("what", "where", "who", "how", "when", "that", "there", "here", "it")
_NOT: Final = ("do", "does", "did", "is", "are", "was", "were", "has", "have", "would", "could", "should")
_CONTRACTIONS: Final = {
    **{f"{word}'s": f"{word} is" for word in _IS},
    # Recognisers and hurried people omit the apostrophe. "its" is not expanded, since it is a word of its own.
    **{f"{word}s": f"{word} is" for word in _IS if word != "it"},
    **{f"{word}n't": f"{word} not" for word in _NOT},
    **{f"{word}nt": f"{word} not" for word in _NOT},
    "can't": "can not",
    "cant": "can not",
    "cannot": "can not",
    "won't": "will not",
    "i'm": "i am",
    "i'd": "i would",
    "i'll": "i will",
    "i've": "i have",
    "you're": "you are",
    "we're": "we are",
}
_SIGNS: Final = {
    "%": "percent",
    "+": "plus",
    "-": "minus",
    "*": "times",
    "×": "times",
    "x": "times",
    "/": "divided by",
    "÷": "divided by",
}
_NUMBER_WORDS: Final = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen"
    "|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
)
_EXPANDED: Final = re.compile(
    rf"(?<![\w'])(?:{'|'.join(sorted(_CONTRACTIONS, key=len, reverse=True))})(?![\w'])"
    r"|\d+([-/])\d+\1\d+"  # a date stays as it is
    rf"|(?<=\bhundred )and (?=(?:{_NUMBER_WORDS})\b)"  # numbers are matched without it
    r"|(?<=\d)\s*%|(?<=[\d)])\s*(?:[-+*×/÷]|(?<=\s)x(?=\s))\s*(?=[\d(])",
    re.IGNORECASE,
)
_EDGES: Final = ' \t\r\n.,!?;:…"“”'


def _expansion(match: re.Match[str]) -> str:
    found = match[0].lower()
    if found == "and ":
        return ""
    sign = _SIGNS.get(found.strip())
    if sign is None:
        return _CONTRACTIONS.get(found, match[0])
    return f" {sign}" if sign == "percent" else f" {sign} "


def expand(text: str) -> str:
    """Writes out contractions and signs, in templates and in what people say, since either may use either form."""
    return _EXPANDED.sub(_expansion, text.replace("’", "'"))


class Phrase:
    """What was said, written out. `text` is for matching; `source` gives any part of it as it was said.

    A slot must get the user's own words: "remind me that it's cold" asks for "it's cold", and a URL loses its
    colon in hassil's clean-up.
    """

    __slots__ = ("_ends", "_said", "_starts", "text")

    def __init__(self, said: str) -> None:
        parts: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        at = 0
        for match in _EXPANDED.finditer(said.replace("’", "'")):
            start, end = match.span()
            starts += range(at, start)
            ends += range(at + 1, start + 1)
            written_out = _expansion(match)
            starts += [start] * len(written_out)
            ends += [end] * len(written_out)
            parts += [said[at:start], written_out]
            at = end
        starts += range(at, len(said))
        ends += range(at + 1, len(said) + 1)
        self._said = said
        self._starts = starts
        self._ends = ends
        self.text = "".join([*parts, said[at:]]).replace("’", "'")

    def source(self, start: int, end: int) -> str:
        """Returns the original words of `text[start:end]`."""
        return self._said[self._starts[start] : self._ends[end - 1]].strip() if end > start else ""

    def words(self) -> list[tuple[str, int, int]]:
        """Lists each word in lower case, without punctuation, with its position in `text`."""
        found = []
        for match in re.finditer(r"\S+", self.text):
            bare = match[0].strip(_EDGES)
            if bare:
                start = match.start() + match[0].index(bare)
                found.append((bare.lower(), start, start + len(bare)))
        return found
