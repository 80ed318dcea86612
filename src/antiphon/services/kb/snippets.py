"""What is shown of a passage: the part around the words that were looked for, and the sentences that answer."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from antiphon.services.kb.terms import stem, stems, words

SNIPPET_CHARS: Final = 240
_SPACES: Final = re.compile(r"\s+")
_HEADING: Final = re.compile(r"^#{1,6} +(.+?)[ \t#]*$", re.MULTILINE)
_MARKUP: Final = re.compile(r"^[-*+] +|^>+ ?|[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}", re.MULTILINE)
_LINK: Final = re.compile(r"!?\[([^\]\n]*)\]\([^)\s]*\)")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+(?=[\"'“‘(]?[^\Wa-z])|\n+")
_HEADING_LINE: Final = re.compile(r"#{1,6} ")


def coverage(weights: Mapping[str, float], *texts: str) -> float:
    """Returns the share of the words' weight that occurs in the texts. The keys are stems."""
    total = sum(weights.values())
    if not total:
        return 0.0
    there = stems(" ".join(texts))
    return sum(weight for term, weight in weights.items() if term in there) / total


def snippet(text: str, wanted: Collection[str]) -> str:
    """Returns the part of a text that has the most of the wanted stems, cut at words."""
    text = plain(text)
    if len(text) <= SNIPPET_CHARS:
        return text
    hits = [(word.start, stem(word.text)) for word in words(text) if stem(word.text) in wanted]
    best = 0
    if hits:
        # The window begins a little before a hit, so that the hit has its context.
        starts = [max(0, start - SNIPPET_CHARS // 4) for start, _ in hits]
        best = max(starts, key=lambda start: len({s for at, s in hits if start <= at < start + SNIPPET_CHARS - 20}))
    start = best if best == 0 else text.find(" ", best) + 1
    end = min(len(text), start + SNIPPET_CHARS)
    if end < len(text):
        end = max(text.rfind(" ", start, end), start + 1)
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def plain(text: str) -> str:
    """Returns a text without Markdown's marks, on one line."""
    return _SPACES.sub(" ", _MARKUP.sub("", _LINK.sub(r"\1", _HEADING.sub(r"\1:", text)))).strip()


def sentences(text: str) -> list[str]:
    """Returns the sentences of a passage without its headings, each fit to be said."""
    lines = "\n".join(line for line in text.splitlines() if not _HEADING_LINE.match(line.lstrip()))
    found = (plain(piece) for piece in _SENTENCE_END.split(_join_lines(lines)))
    return [sentence for sentence in found if sentence]


def _join_lines(text: str) -> str:
    """Joins the lines of a paragraph; a list item and a blank line stay apart."""
    return re.sub(r"(?<=[^\n.!?:])\n(?=[^\n\-*+>|#\d])", " ", text)


def best_sentence(found: Sequence[str], weights: Mapping[str, float]) -> int:
    """Returns the position of the first sentence that has the most of the words."""
    covered = [coverage(weights, sentence) for sentence in found]
    return max(range(len(found)), key=lambda n: (round(covered[n], 6), -n))
