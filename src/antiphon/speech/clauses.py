"""Splits a text that is still being generated into parts to speak: a first clause early, then sentences.

Every cut depends only on the text, so the cuts are the same however the text arrives, and only white space is lost.
"""

import re
from typing import Final

EARLY_WORDS: Final = 4
EARLY_CHARS: Final = 20
"""Until a clause of this length has been emitted, a comma ends one, since the listener is waiting."""
MOST_CHARS: Final = 240
"""A longer sentence is split."""
MOST_WORD_CHARS: Final = 1_000
"""A word longer than a clause is taken for an address and kept whole, up to this length."""

_AHEAD_CHARS: Final = 40
"""The longest lookahead that a decision needs."""
_LEAST_CHARS: Final = MOST_CHARS // 4

_RUN: Final = re.compile(r"\s+|\S+")
_GAP: Final = re.compile(r"[ \n]")
_FENCE: Final = re.compile(r"(`{3,20}|~{3,20})[^`\n]{0,80}\n")
_MAYBE_FENCE: Final = re.compile(r"(?:`{3,20}|~{3,20})[^`\n]{0,80}\Z")

_CLOSERS: Final = "\"'”’)]}»*_`"
_OPENERS: Final = "\"'“‘([{«*_`"
_MOST_OPENERS: Final = 8
_JOINERS: Final = "but|because|so|which|while|although|though|unless|until|since|whereas"
_SUBJECTS: Final = "I|I'm|I'll|I've|you|you'll|he|she|it|it's|we|they|the|this|that|there|then|here|if|when|so"
_CLOSED: Final = re.escape(_CLOSERS)
_MARK: Final = re.compile(
    rf"""
    (?P<line> \n+ )
    | (?P<stop> (?<![.!?…]) [.!?…]++ [{_CLOSED}]*+ ) [ ]
    | (?P<pause> [,;:] [{_CLOSED}]*+ ) [ ] (?!\d)
    | (?P<dash> [ ] [-–—]++ (?=[ ]) | — (?=\w) )
    | (?P<joint> [ ] ) (?: (?:{_JOINERS})[ ] | (?:and|or)[ ](?:{_SUBJECTS})[^\w'’] )
    """,
    re.VERBOSE,
)

_TITLES: Final = re.compile(
    r"dr|mr|mrs|ms|mx|messrs|prof|st|mt|ft|gen|sen|rep|rev|hon|gov|capt|col|sgt|lt|fr|ph\.d|vs|e\.g|i\.e|cf|viz"
)
_BEFORE_NUMBERS: Final = re.compile(
    "nos?|vol|ch|sec|art|fig|eq|pp?|ca|approx|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
)
_LETTERS: Final = re.compile(r"(?:[a-z]\.)*[a-z]")
"""Initials, and abbreviations such as "U.S": what comes after them may be a name."""
_HOURS: Final = ("a.m", "p.m")


class Clauses:
    """Splits one text after another: `finish` ends a text, and the next push begins a new one."""

    _text: str
    """Text that is not split yet, with normalised white space and none at the end."""
    _newlines: int
    _has_gap: bool
    """Whether white space is pending."""
    _is_line_start: bool
    _is_early: bool
    _searched: int
    """How much of a code block was already searched for its closing fence."""

    def __init__(self) -> None:
        self._begin()

    def push(self, delta: str) -> list[str]:
        """Returns the clauses that are now complete."""
        parts = [self._text]
        for run in _RUN.finditer(delta):
            if run[0].isspace():
                self._has_gap = True
                self._newlines += run[0].count("\n")
                continue
            if any(parts):
                parts.append("\n" * min(self._newlines, 2) or " " * self._has_gap)
            else:
                self._is_line_start |= self._newlines > 0
            parts.append(run[0])
            self._newlines, self._has_gap = 0, False
        self._text = "".join(parts)
        return self._cut(is_final=False)

    def finish(self) -> list[str]:
        """Returns the rest of the text."""
        clauses = [*self._cut(is_final=True), self._text]
        self._begin()
        return list(filter(None, clauses))

    def _begin(self) -> None:
        self._text = ""
        self._newlines, self._has_gap = 0, False
        self._is_line_start = self._is_early = True
        self._searched = 0

    def _cut(self, is_final: bool) -> list[str]:
        clauses: list[str] = []
        at = 0
        while (end := self._find_end(at, is_final)) is not None:
            clause = self._text[at:end].strip()
            rest = self._text[end : end + 2]
            at = end + len(rest) - len(rest.lstrip())
            clauses.append(clause)
            self._is_line_start = rest.startswith("\n")
            self._is_early = self._is_early and not _is_long_enough(clause)
            self._searched = at
        self._text = self._text[at:]
        self._searched -= at
        return clauses

    def _find_end(self, at: int, is_final: bool) -> int | None:
        """Returns the end of the clause that begins here; None if it is not known yet."""
        if self._is_line_start and (fence := _FENCE.match(self._text, at)):
            return self._find_fence_end(fence)
        if self._is_line_start and not is_final and _MAYBE_FENCE.match(self._text, at):
            return None
        return _find_prose_end(self._text, at, self._is_early, is_final)

    def _find_fence_end(self, fence: re.Match[str]) -> int | None:
        closing = re.compile(rf"\n{fence[1][0]}{{{len(fence[1])},}}(?=\n)")
        start = max(self._searched, fence.end() - 1)
        # Searching from the beginning each time would be quadratic.
        self._searched = max(start, self._text.rfind("\n", start))
        found = closing.search(self._text, start)
        return found.end() if found else None


def _find_prose_end(text: str, at: int, is_early: bool, is_final: bool) -> int | None:
    within = None
    """Returns the last position before the limit where a long sentence may be split."""
    for mark in _MARK.finditer(text, at, at + MOST_CHARS + _AHEAD_CHARS):
        kind = str(mark.lastgroup)
        end = mark.start(kind) if kind in ("line", "joint") else mark.end(kind)
        if end - at > MOST_CHARS:
            return _find_long_end(text, at, within)
        if kind == "line":
            if _ends_line(text, mark):
                return end
        elif _is_open(text[at:end]):
            continue
        elif kind == "stop":
            ends = _ends_sentence(text, at, mark)
            if ends or (ends is None and is_final):
                return end
            if ends is None:
                return None
        elif not _is_between_numbers(text, mark):
            if is_early and _is_long_enough(text[at:end]):
                return end
            within = end if end - at >= _LEAST_CHARS else within
    if len(text) - at > MOST_CHARS + (0 if is_final else _AHEAD_CHARS):
        return _find_long_end(text, at, within)
    return None


def _find_long_end(text: str, at: int, within: int | None) -> int | None:
    if within is not None:
        return within
    if (space := max(text.rfind(gap, at + 1, at + MOST_CHARS) for gap in " \n")) > 0:
        return space
    if gap := _GAP.search(text, at, at + MOST_WORD_CHARS):
        return gap.start()
    return at + MOST_WORD_CHARS if len(text) - at >= MOST_WORD_CHARS else None


def _is_long_enough(clause: str) -> bool:
    return len(clause) >= EARLY_CHARS or len(clause.split()) >= EARLY_WORDS


def _is_open(clause: str) -> bool:
    """Whether it ends within inline code or the text of a link."""
    return clause.count("`") % 2 == 1 or clause.rfind("[") > clause.rfind("]")


def _ends_line(text: str, mark: re.Match[str]) -> bool:
    """Whether a clause ends with the line, and does not continue on the next one."""
    return len(mark[0]) > 1 or not text[mark.end()].islower() or text[mark.start() - 1] in ".!?…:"


def _is_between_numbers(text: str, mark: re.Match[str]) -> bool:
    return text[mark.start() - 1].isdigit() and text[mark.end() : mark.end() + 2].lstrip()[:1].isdigit()


def _ends_sentence(text: str, at: int, mark: re.Match[str]) -> bool | None:
    """None if it depends on what follows, and False in doubt: joined sentences sound better than half of one."""
    ahead = text[mark.end() : mark.end() + _MOST_OPENERS]
    following = ahead.lstrip(_OPENERS)[:1]
    if not following and len(ahead) < _MOST_OPENERS:
        return None
    if following.islower():
        return False
    if mark["stop"].rstrip(_CLOSERS) != ".":
        return True
    begin = max(at, *(text.rfind(gap, at, mark.start()) + 1 for gap in " \n"))
    word = text[begin : mark.start()].lower()
    if begin == at and word.isdigit():
        return False  # The number of an item in a list.
    return _may_be_last(word.lstrip(_OPENERS), following)


def _may_be_last(word: str, following: str) -> bool:
    """Whether a full stop after this word can be the end of a sentence."""
    if _TITLES.fullmatch(word):
        return False
    if _BEFORE_NUMBERS.fullmatch(word):
        return not following.isdigit()
    return not _LETTERS.fullmatch(word) or word in _HOURS
