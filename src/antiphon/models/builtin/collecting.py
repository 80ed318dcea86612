"""Collects a value that was asked for: digits, a spelled word, an e-mail address or a name.

What was spoken is read back, and a yes, a no or a correction settles it. What was typed is exact and is not read back.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from rapidfuzz.distance import LCSseq

from antiphon.models.expectation import Expectation
from antiphon.tools.affirmation import verdict
from antiphon.words.spelling import (
    group_digits,
    read_digits,
    read_email,
    read_name,
    read_spelling,
    say_digits,
    say_email,
    say_spelling,
)

MAX_FAILURES: Final = 2
"""After so many answers in a row that cannot be read, the assistant gives up."""
MIN_ALIKE: Final = 0.6
"""How many of the digits of a correction are the same as before: two of three, or three of five."""
MAX_DIFFERENCES: Final = 2
"""How many digits differ at most in a correction of several groups."""
SAY_AGAIN: Final[Mapping[Expectation, str]] = {
    Expectation.DIGITS: "Sorry. Please say the number again, digit by digit.",
    Expectation.SPELLING: "Sorry. Please spell it again.",
    Expectation.EMAIL: "Sorry. Please say the address again.",
    Expectation.NAME: "Sorry. Please say the name again, or spell it.",
}
"""What is said if an answer cannot be read, or was read wrongly."""
GIVEN_UP: Final[Mapping[Expectation, str]] = {
    kind: f"Sorry, I didn't get {what}, so I've left it. Please ask me again."
    for kind, what in {
        Expectation.DIGITS: "the number",
        Expectation.SPELLING: "the spelling",
        Expectation.EMAIL: "the address",
        Expectation.NAME: "the name",
    }.items()
}
EXACT: Final = frozenset({Expectation.DIGITS, Expectation.EMAIL})
"""Nothing else looks like these, so what can be read as one is the answer. A name can be any words."""

_READERS: Final[Mapping[Expectation, Callable[[str], str | None]]] = {
    Expectation.DIGITS: read_digits,
    Expectation.SPELLING: read_spelling,
    Expectation.EMAIL: read_email,
    Expectation.NAME: read_name,
}
_SPEAKERS: Final[Mapping[Expectation, Callable[[str], str]]] = {
    Expectation.DIGITS: say_digits,
    Expectation.SPELLING: say_spelling,
    Expectation.EMAIL: say_email,
    Expectation.NAME: str,
}
_READ_BACK: Final = "That's "
_RIGHT: Final = re.compile(
    r"(?:(?:yes|yeah|yep|uh|um)\W+)*"
    r"(?:right|exactly|perfect|you(?:['’]ve)? got it|that(?:['’]s| is) (?:it|the one|all))\W*",
    re.IGNORECASE,
)
"""What confirms a value, beside a plain yes. It approves nothing else."""
_WRONG: Final = re.compile(
    r"(?:(?:(?:oh|um+|uh+|well|sorry)\W+)*"
    r"(?:no|nope|nah|wrong|incorrect|not (?:quite|right|correct)|(?:it|that)(?:['’]s| is) (?:not|wrong|incorrect)"
    r"(?: right| correct| it| quite right)?|(?:it|that) isn['’]?t(?: right| correct| it)?)\b\W*)+",
    re.IGNORECASE,
)
"""A no to the value. "Never mind" and "cancel" are a no to the whole request."""
_DENIAL: Final = re.compile(
    r"^(?:(?:no|nope|nah|wrong|not quite|incorrect|sorry|actually|almost|but|that['’]s wrong|that is wrong|"
    r"it['’]s|it is|i said|i meant)[\s,.!]+)+",
    re.IGNORECASE,
)
_NOT: Final = re.compile(r"^(?P<right>.+?)[\s,]+not (?P<wrong>.+)$", re.IGNORECASE)
_PLACE: Final = re.compile(
    r"^(?:the )?(?P<place>first|last)(?: (?P<count>two|three|four|five|2|3|4|5))?(?: (?:digits?|numbers?|ones?))?"
    r" (?:is|are|should be|was)\s+(?P<value>.+)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A value that was asked for, or has to be said again."""

    kind: Expectation
    failures: int = 0
    """How many answers in a row could not be read."""

    @property
    def question(self) -> str:
        """How it is asked for again."""
        return SAY_AGAIN[self.kind]


@dataclass(frozen=True, slots=True)
class ReadBack:
    """A value that the assistant asks about: "That's 5 5 5, 1 2 3 4, right?"."""

    kind: Expectation
    value: str
    failures: int = 0

    @property
    def question(self) -> str:
        return f"{_READ_BACK}{_SPEAKERS[self.kind](self.value)}, right?"

    def is_in(self, text: str) -> bool:
        """Whether a text says the value as people say it. Digits in a row are said as one number."""
        return self.kind in (Expectation.EMAIL, Expectation.NAME) and self.value in text


@dataclass(frozen=True, slots=True)
class Settled:
    """The value is what the person meant: they have typed it, or said yes to it."""

    value: str


def can_collect(kind: Expectation) -> bool:
    return kind in _READERS


def is_read_back(text: str) -> bool:
    """Whether the assistant's text is a value that it reads back, or the part of it that was heard."""
    return text.startswith(_READ_BACK)


def resolve(asked: Wanted | ReadBack, text: str, *, is_spoken: bool) -> Settled | ReadBack | Wanted | None:
    """Returns what the answer makes of the question; None if it is not an answer, or cannot be read."""
    if isinstance(asked, ReadBack):
        return _settle(asked, text)
    if verdict(text) is not None:
        return None
    value = _READERS[asked.kind](text) if is_spoken else _read_typed(asked.kind, text)
    if value is None:
        return None
    return ReadBack(asked.kind, value) if is_spoken else Settled(value)


def ask_again(asked: Wanted | ReadBack, text: str) -> Wanted | ReadBack | None:
    """Returns what to ask after an answer that could not be read; None if that has been tried often enough."""
    failures = asked.failures + 1
    if failures >= MAX_FAILURES:
        return None
    if isinstance(asked, ReadBack) and _DENIAL.match(text.strip()) is None:
        return replace(asked, failures=failures)
    return Wanted(asked.kind, failures)


def _read_typed(kind: Expectation, text: str) -> str | None:
    typed = text.strip().rstrip(".!?,;")
    if kind is Expectation.NAME:
        return typed if read_name(typed) is not None else None
    is_word = len(typed.split()) == 1
    if kind is Expectation.SPELLING and is_word:
        return typed
    if kind is Expectation.EMAIL and is_word and re.fullmatch(r"[^@]+@[^@]+\.[^@.]+", typed):
        return typed
    return _READERS[kind](text)


def _settle(asked: ReadBack, text: str) -> Settled | ReadBack | Wanted | None:
    if _WRONG.fullmatch(text.strip()):
        return Wanted(asked.kind)
    if _RIGHT.fullmatch(text.strip()):
        return Settled(asked.value)
    if (answer := verdict(text)) is not None:
        return Settled(asked.value) if answer else None
    said = _DENIAL.sub("", text.strip())
    is_denied = said != text.strip()
    if asked.kind is Expectation.DIGITS:
        corrected = _correct_digits(asked.value, said, is_denied=is_denied)
    else:
        # "Thanks" is no other word, and no other name.
        is_value = is_denied or asked.kind is Expectation.EMAIL or _is_spelled(asked.kind, said)
        corrected = _READERS[asked.kind](said) if is_value else None
    # The same value again is no yes: somebody who was misheard repeats it, and may be misheard again.
    return None if corrected is None else ReadBack(asked.kind, corrected)


def _is_spelled(kind: Expectation, said: str) -> bool:
    return kind is Expectation.SPELLING and len(re.findall(r"\w+", said)) > 1


def _correct_digits(value: str, said: str, *, is_denied: bool) -> str | None:
    """Returns the digits after a correction of all of them, of the part that is like the new one, or of a named one.

    Other digits, without a no, are the rest of a number that was read back in the middle of it.
    """
    if named := _PLACE.match(said):
        part = read_digits(named["value"])
        if part is None or len(part) > len(value):
            return None
        return part + value[len(part) :] if named["place"].lower() == "first" else value[: -len(part)] + part
    if instead := _NOT.match(said):
        right, wrong = read_digits(instead["right"]), read_digits(instead["wrong"])
        if right and wrong and value.count(wrong) == 1:
            return value.replace(wrong, right)
        return None
    part = read_digits(said)
    if part is None:
        return None
    if not is_denied and not _is_like(value, part):
        return value + part
    return part if len(part) >= len(value) - 1 else _replace_part(value, part)


def _is_like(value: str, part: str) -> bool:
    """Whether most of the digits are in the value, in the same order."""
    return LCSseq.similarity(value, part) >= MIN_ALIKE * len(part)


def _replace_part(value: str, part: str) -> str | None:
    """Replaces the group that is most like the part, or any digits as many if no group has its length. More than one
    group that is not like any is the whole number, of which too many digits were heard."""
    groups = group_digits(value)
    is_long = len(part) > max(map(len, groups))
    if part in value:
        # A group that was right says nothing about what was wrong.
        return part if is_long else None
    starts = [sum(map(len, groups[:at])) for at in range(len(groups))]
    fits = [start for start in starts if start + len(part) <= len(value)]
    others = [start for start in range(len(value) - len(part) + 1) if start not in fits]

    def differences(start: int) -> int:
        return sum(old != new for old, new in zip(value[start : start + len(part)], part, strict=True))

    start = min([*fits, *others], key=differences)
    if is_long and differences(start) > MAX_DIFFERENCES:
        return part
    return value[:start] + part + value[start + len(part) :]
