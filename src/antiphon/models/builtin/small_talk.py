"""Answers what people say to be friendly, or to find out who they are talking to. Nothing here calls a tool."""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Final
from zlib import crc32

import yaml

MAX_CHARS: Final = 120


class Remark(StrEnum):
    """What kind of remark it is, if it needs more than an answer in words."""

    OTHER = "other"
    HELP = "help"
    """What the assistant can do."""
    GOODBYE = "goodbye"
    """Ends a call."""


@dataclass(frozen=True, slots=True)
class Talk:
    """A remark, and what can be said to it."""

    kind: Remark
    answers: tuple[str, ...]
    """`{name}` is the assistant's name."""

    def answer(self, text: str, name: str) -> str:
        """Chooses one of the answers: always the same one for the same words."""
        return self.answers[crc32(text.encode()) % len(self.answers)].format(name=name)


_PART: Final = re.compile(r"<(\w+)>")


@cache
def _remarks() -> tuple[tuple[re.Pattern[str], Talk], ...]:
    """Reads small_talk.yaml, which says what it is made of."""
    raw = yaml.safe_load(resources.files(__package__).joinpath("small_talk.yaml").read_text(encoding="utf-8"))
    parts: dict[str, str] = {}
    for name, pattern in raw["parts"].items():
        parts[name] = _PART.sub(lambda part: parts[part[1]], pattern)
    return tuple(
        (
            re.compile("|".join(_PART.sub(lambda part: parts[part[1]], said) for said in remark["said"])),
            Talk(Remark(remark.get("kind", Remark.OTHER)), tuple(remark.get("answers", ()))),
        )
        for remark in raw["remarks"]
    )


_OPENING: Final = re.compile(
    r"(?:(?:hey|hi|hello|oh|so|well|and|ok|okay|um+|uh+|please|antiphon|computer|assistant|by the way|just) )+"
)


def find(words: str) -> Talk | None:
    """Returns what can be said to a remark, or to two of them; None if it is something else. `words` is lower case,
    without punctuation or contractions."""
    if len(words) > MAX_CHARS:
        return None
    if (one := _find_one(words)) is not None:
        return one
    parts = words.split()
    for at in range(1, len(parts)):
        first = _find_one(" ".join(parts[:at]))
        second = None if first is None else _find_one(" ".join(parts[at:]))
        if first is not None and second is not None:
            return (
                second if second.kind is not Remark.OTHER or first.answers[0].startswith(("Hello", "Okay")) else first
            )
    return None


def _find_one(words: str) -> Talk | None:
    for said in dict.fromkeys((words, _OPENING.sub("", words, count=1) if _OPENING.match(words) else words)):
        for pattern, talk in _remarks():
            if said and pattern.fullmatch(said):
                return talk
    return None
