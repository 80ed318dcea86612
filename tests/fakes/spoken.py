"""Sentences that people say to an assistant, as speech, and how well they were understood."""

import random
import re
from collections.abc import Iterable, Sequence
from typing import Final

from rapidfuzz.distance import Levenshtein

from antiphon.audio.resample import resample
from antiphon.sound_format import MICROPHONE_HZ
from antiphon.speech.base import Synthesizer
from antiphon.words.numbers import to_digits

TEMPLATES: Final = (
    "What time is it in {city}?",
    "Set a timer for {number} minutes, please.",
    "What will the weather be like in {city} on {day}?",
    "Remind me to call my {person} on {day} morning.",
    "How many days are there until {day}?",
    "What is {number} times {small}?",
    "Please write a message to my {person} and say that I will be late.",
    "Can you turn down the lights in the {room}?",
)
WORDS: Final = {
    "city": ("Tokyo", "London", "Paris", "Berlin", "New York", "Chicago"),
    "number": ("ten", "twelve", "fifteen", "twenty", "thirty", "forty five"),
    "small": ("three", "four", "five", "seven", "nine"),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Sunday"),
    "person": ("mother", "father", "sister", "brother", "doctor"),
    "room": ("kitchen", "bedroom", "living room", "bathroom", "office"),
}
QUIET: Final = bytes(MICROPHONE_HZ * 2 * 3 // 10)
"""Before and after speech: recognisers lose first words without it."""


def make_sentences(seed: int) -> list[str]:
    """One sentence of each kind, chosen by the seed."""
    chance = random.Random(seed)
    chosen = [{name: chance.choice(words) for name, words in WORDS.items()} for _ in TEMPLATES]
    return [template.format(**words) for template, words in zip(TEMPLATES, chosen, strict=True)]


async def record(synthesizer: Synthesizer, text: str) -> bytes:
    """The text as audio for a recognizer."""
    return for_ears(b"".join([each.pcm async for each in synthesizer.speak(text)]), synthesizer.output_hz)


def for_ears(pcm: bytes, hz: int) -> bytes:
    return QUIET + resample(pcm, hz, MICROPHONE_HZ) + QUIET


def to_words(text: str) -> list[str]:
    """Without case and punctuation, and with numbers in digits: how they are written says nothing about the hearing."""
    return re.findall(r"[a-z0-9']+", to_digits(text.replace("-", " ")).lower())


def error_rate(pairs: Iterable[tuple[str, str]]) -> float:
    """How many words are wrong, missing or too many, of all that were said. A pair is what was said, and heard."""
    split: Sequence[tuple[list[str], list[str]]] = [(to_words(said), to_words(heard)) for said, heard in pairs]
    return sum(Levenshtein.distance(said, heard) for said, heard in split) / sum(len(said) for said, _ in split)
