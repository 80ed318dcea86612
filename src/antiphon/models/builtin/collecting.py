"""Reads the answer to a question for digits, a spelled word, an e-mail address or a name, and reads it back.

It keeps no state: whether something is being read back is in the assistant's last sentence.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from antiphon.models.expectation import Expectation
from antiphon.tools.affirmation import verdict
from antiphon.transcript import AssistantMessage, Message, UserMessage
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

SAY_AGAIN: Final[Mapping[Expectation, str]] = {
    Expectation.DIGITS: "Sorry. Please say the number again, digit by digit.",
    Expectation.SPELLING: "Sorry. Please spell it again.",
    Expectation.EMAIL: "Sorry. Please say the address again.",
    Expectation.NAME: "Sorry. Please say the name again, or spell it.",
}
"""What is said if an answer cannot be read, or was read wrongly."""

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
_READ_BACK: Final = re.compile(r"(?:^|(?<=[.!?] ))That's (?P<said>[^?]+), right\?$")
_DENIAL: Final = re.compile(
    r"^(?:(?:no|nope|nah|wrong|not quite|incorrect|sorry|actually|that's wrong|that is wrong|it's|it is|i said|i meant)"
    r"[\s,.!]+)+",
    re.IGNORECASE,
)
_NOT: Final = re.compile(r"^(?P<right>.+?)[\s,]+not (?P<wrong>.+)$", re.IGNORECASE)
_PLACE: Final = re.compile(
    r"^(?:the )?(?P<place>first|last)(?: (?P<count>two|three|four|five|2|3|4|5))?(?: (?:digits?|numbers?|ones?))?"
    r" (?:is|are|should be|was)\s+(?P<value>.+)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ReadBack:
    """A value that the assistant asks about: "That's 5 5 5, 1 2 3 4, right?"."""

    kind: Expectation
    value: str

    @property
    def question(self) -> str:
        return f"That's {_SPEAKERS[self.kind](self.value)}, right?"


@dataclass(frozen=True, slots=True)
class Settled:
    """The person has said yes to the value."""

    kind: Expectation
    value: str


@dataclass(frozen=True, slots=True)
class AskAgain:
    """The answer could not be read, or the value was wrong and no other was given."""

    kind: Expectation

    @property
    def question(self) -> str:
        return SAY_AGAIN[self.kind]


def can_collect(kind: Expectation) -> bool:
    return kind in _READERS


def read(kind: Expectation, text: str) -> ReadBack | AskAgain:
    """Reads the answer to a question for something of this kind."""
    value = _READERS[kind](text)
    return AskAgain(kind) if value is None else ReadBack(kind, value)


def pending(messages: Sequence[Message]) -> ReadBack | AskAgain | None:
    """Returns the question that the last message, the user's, may answer; None if there is none of this kind."""
    match messages[-2:]:
        case [AssistantMessage(text=question, calls=()), UserMessage()]:
            return find_question(question)
    return None


def resolve(messages: Sequence[Message]) -> Settled | ReadBack | AskAgain | None:
    """Returns what the last message, the user's, makes of the pending question; None if it is about something else."""
    match pending(messages), messages[-1:]:
        case ReadBack() as asked, [UserMessage(text=answer)]:
            return _settle(asked, answer)
        case AskAgain() as asked, [UserMessage(text=answer)]:
            return _read_again(asked, answer)
    return None


def find_question(text: str) -> ReadBack | AskAgain | None:
    """Returns the question that ends the assistant's text, if it is one of ours."""
    for kind, question in SAY_AGAIN.items():
        if text.endswith(question):
            return AskAgain(kind)
    found = _READ_BACK.search(text)
    if found is None:
        return None
    said = found["said"]
    if not re.search(r"[^\d\s,+]", said):
        return ReadBack(Expectation.DIGITS, re.sub(r"[\s,]", "", said))
    if " at " in said and (address := read_email(said)):
        return ReadBack(Expectation.EMAIL, address)
    if "," in said and (word := read_spelling(said)):
        return ReadBack(Expectation.SPELLING, word)
    return ReadBack(Expectation.NAME, said)


def _read_again(asked: AskAgain, text: str) -> ReadBack | AskAgain | None:
    if verdict(text) is False:
        # "Never mind": the person gives up.
        return None
    return read(asked.kind, text)


def _settle(asked: ReadBack, text: str) -> Settled | ReadBack | AskAgain | None:
    answer = verdict(text)
    if answer is not None:
        return Settled(asked.kind, asked.value) if answer else AskAgain(asked.kind)
    said = _DENIAL.sub("", text.strip())
    is_denied = said != text.strip()
    if asked.kind is Expectation.DIGITS:
        corrected = _correct_digits(asked.value, said)
    else:
        corrected = _READERS[asked.kind](said) if is_denied or asked.kind is not Expectation.NAME else None
    if corrected is None:
        return AskAgain(asked.kind) if is_denied else None
    if corrected == asked.value and not is_denied:
        return Settled(asked.kind, asked.value)
    return ReadBack(asked.kind, corrected)


def _correct_digits(value: str, said: str) -> str | None:
    """Returns the digits after a correction of all of them, of the part that is like the new one, or of a named one."""
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
    if part is None or len(part) >= len(value) - 1:
        return part
    return _replace_part(value, part)


def _replace_part(value: str, part: str) -> str | None:
    """Replaces the group that is most like the part, or any digits as many if no group has its length."""
    starts, at = [], 0
    for group in group_digits(value):
        starts.append(at)
        at += len(group)
    fits = [start for start in starts if start + len(part) <= len(value)]
    others = [start for start in range(len(value) - len(part) + 1) if start not in fits]

    def differences(start: int) -> int:
        return sum(old != new for old, new in zip(value[start : start + len(part)], part, strict=True))

    # A correction changes something, so where nothing would change is not the place.
    places = [start for start in [*fits, *others] if differences(start)]
    if not places:
        return None
    start = min(places, key=differences)
    return value[:start] + part + value[start + len(part) :]
