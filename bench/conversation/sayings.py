"""The texts of the spoken benchmarks, generated at random from a seed."""

from argparse import ArgumentTypeError
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from string import Formatter
from typing import Final

from antiphon.words.speech import spell_number

REST: Final = "…"
"""Marks where the speaker pauses to think."""
MOST: Final = 200


@dataclass(frozen=True, slots=True)
class Saying:
    text: str
    voice: str
    kind: str
    """The pattern that the text was made from."""


_HESITANT: Final = (
    "What time is it … in {city}?",
    "What date is it … in {city}?",
    "Can you tell me what time it is … in {city}?",
    "What is {number} … times {number}?",
    "What is {number} plus … {number}?",
    "How many days … until {occasion}?",
    "How long is it … until {occasion}?",
    "What day of the week … is {month} the {ordinal}?",
    "What will the weather be like … in {city}?",
    "Remind me to … {chore} on {day}.",
    "Set a timer for … {number} minutes.",
    "Please wake me up … at {hour} tomorrow.",
    "Turn off the lights … in the {room}.",
    "Send a message to {person} … and say that I will be late.",
    "I would like to book a table … for {number} people.",
    "I was wondering … if you could tell me something about {topic}.",
    "Tell me something … about {topic}.",
    "Tell me a joke … about {topic}.",
    "My friend said that … {person} is coming on {day}.",
    "Do you think that … {person} would like a book about {topic}?",
)

_AFTERTHOUGHTS: Final = (
    "How many days until {month} … the {ordinal}?",
    "What is {number} plus two hundred … and {number}?",
    "Tell me the time in {city} … and in {city}.",
    "What is {number} minus {number} … plus {number}?",
)
"""Complete requests to which the speaker adds something. Nothing shows that more will follow."""

_QUESTIONS: Final = (
    "What is {number} times {number}?",
    "What is {number} plus {number}?",
    "What is {number} minus {number}?",
    "How much is {number} divided by {number}?",
    "What is {number} percent of {number}?",
    "What is the square root of {number}?",
    "What time is it in {city}?",
    "Can you tell me what time it is in {city}?",
    "What date is it in {city}?",
    "How many days until {month} the {ordinal}?",
    "How long is it until {occasion}?",
)
"""Questions that the offline assistant can answer. Its answers rarely begin with the same words."""

_REMARKS: Final = (
    "I was wondering if you could tell me something about {topic}.",
    "Remind me to {chore} on {day}.",
    "My friend said that {person} is coming on {day}.",
    "Turn off the lights in the {room}.",
    "Tell me something about {topic}.",
    "Set a timer for {number} minutes.",
    "What will the weather be like in {city}?",
    "I would like to book a table for {number} people.",
)
"""Remarks that no grammar knows: only the intonation shows that they are complete."""

_WORDS: Final = {
    "city": ("Tokyo", "London", "Paris", "Berlin", "Chicago", "Sydney", "Madrid", "Rome", "Toronto", "Cairo", "Moscow"),
    "occasion": ("Christmas", "Easter", "New Year", "Halloween", "Thanksgiving"),
    "month": ("January", "March", "April", "June", "August", "September", "October", "December"),
    "ordinal": ("first", "third", "fifth", "tenth", "twelfth", "sixteenth", "twenty first", "thirtieth"),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "hour": ("seven o'clock", "half past eight", "quarter past six", "ten thirty"),
    "chore": ("call my mother", "water the plants", "pay the rent", "buy some bread", "feed the cat"),
    "room": ("kitchen", "living room", "bedroom", "hallway", "garage"),
    "person": ("Michael", "Susan", "Peter", "Jennifer", "Robert"),
    "topic": ("Paris", "black holes", "the Roman Empire", "elephants", "the moon", "old trains"),
}
_NUMBERS: Final = range(11, 99)


def make_hesitant(count: int, voices: Sequence[str], seed: int) -> list[Saying]:
    """Makes sayings with one rest each. Every voice says every pattern once before any of them is repeated."""
    return _make(_HESITANT, count, voices, Random(f"hesitant {seed}"))


def make_afterthoughts(count: int, voices: Sequence[str], seed: int) -> list[Saying]:
    """Makes sayings with one rest each, after which nobody would expect more."""
    return _make(_AFTERTHOUGHTS, count, voices, Random(f"afterthoughts {seed}"))


def is_afterthought(saying: Saying) -> bool:
    return saying.kind in _AFTERTHOUGHTS


def make_remarks(count: int, voices: Sequence[str], seed: int) -> list[Saying]:
    return _make(_REMARKS, count, voices, Random(f"remarks {seed}"))


def make_questions(count: int, voices: Sequence[str], seed: int) -> list[Saying]:
    return _make(_QUESTIONS, count, voices, Random(f"questions {seed}"))


def how_many(text: str) -> int:
    """Parses a number of sayings, for `argparse`. The number of different ones is limited."""
    if not (text.isdecimal() and 1 <= int(text) <= MOST):
        raise ArgumentTypeError(f"{text!r} is no number from 1 to {MOST}")
    return int(text)


def _make(patterns: Sequence[str], count: int, voices: Sequence[str], chance: Random) -> list[Saying]:
    made: dict[str, Saying] = {}
    pairs = _pairs(patterns, voices, chance)
    while len(made) < count:
        pattern, voice = next(pairs)
        text = _fill(pattern, chance)
        made.setdefault(text, Saying(text, voice, pattern))
    return list(made.values())


def _pairs(patterns: Sequence[str], voices: Sequence[str], chance: Random) -> Iterator[tuple[str, str]]:
    while True:
        every = list(product(patterns, voices))
        yield from chance.sample(every, len(every))


def _fill(pattern: str, chance: Random) -> str:
    written = []
    for text, slot, _, _ in Formatter().parse(pattern):
        written += [text, _word(slot, chance) if slot else ""]
    return "".join(written)


def _word(slot: str, chance: Random) -> str:
    if slot == "number":
        return spell_number(chance.choice(_NUMBERS)).replace("-", " ")
    return chance.choice(_WORDS[slot])
