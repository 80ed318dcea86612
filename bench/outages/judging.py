"""What became of the turns of a call: whether the answers were heard, what was silent, and what was done twice."""

import asyncio
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from antiphon.audio.resample import resample
from antiphon.sound_format import MICROPHONE_HZ
from antiphon.speech.engines.moonshine import MoonshineRecognizer
from bench.outages.call import PATIENCE_S
from bench.outages.script import GREETING, Step
from bench.speech.words import normalize

GAP_S: Final = 0.2
"""A shorter pause within an answer is not counted: the loudspeaker's buffer would hide it."""
WHOLE: Final = 0.8
"""The share of the answer's letters that must be heard, besides its last word. Our recogniser mishears a few words."""
LETTERS: Final = 4
"""Fewer equal letters in a row may be chance."""
RUN: Final = 3
"""So many words in a row are a part of the answer. If they are heard twice, it was repeated."""
SILENCE_MS: Final = 250


class Piece(Struct, frozen=True):
    at_s: float
    """When it began to be heard, after the end of the question."""
    bytes: int
    hz: int

    @property
    def ends_s(self) -> float:
        return self.at_s + self.bytes / 2 / self.hz


class Heard(Struct, frozen=True):
    """What a contender reports of a turn."""

    name: str
    audio: str
    """The file with its audio."""
    pieces: Sequence[Piece]
    orders: Sequence[str]
    """All that was ordered until then."""


class Report(Struct, frozen=True):
    versions: dict[str, str]
    turns: Sequence[Heard]
    """The first one is the greeting."""
    problems: Sequence[str]


class Verdict(Struct, frozen=True):
    name: str
    outcome: str
    """"whole", "cut" or "lost"."""
    heard: str
    silence_s: float
    """From the end of the question until the answer begins, and the gaps within it; the person's patience if lost."""
    first_s: float | None
    gaps_s: Sequence[float]
    longest_gap_s: float
    """The longest pause of the loudspeaker within the answer, however short."""
    repeated: bool
    """Whether a part of the answer was said twice."""
    greeted: bool
    orders: int
    """How often the tool ran for this question."""


async def judge(recognizer: MoonshineRecognizer, steps: Sequence[Step], report: Report) -> list[Verdict]:
    verdicts = []
    for step, heard in zip(steps, report.turns[1:], strict=True):
        text = await read_back(recognizer, heard)
        # A call that is repeated after its turn runs later, so it is counted over the whole conversation.
        orders = report.turns[-1].orders.count(step.topping) if step.topping else 0
        verdicts.append(_judge_turn(step, heard, text, orders))
    return verdicts


async def read_back(recognizer: MoonshineRecognizer, heard: Heard) -> str:
    """Returns what our recogniser hears in the audio, without its gaps."""
    if not heard.pieces:
        return ""
    silence = bytes(2 * MICROPHONE_HZ * SILENCE_MS // 1000)
    pcm = await asyncio.to_thread(Path(heard.audio).read_bytes)
    return await recognizer.recognize(silence + resample(pcm, heard.pieces[0].hz, MICROPHONE_HZ) + silence)


def _judge_turn(step: Step, heard: Heard, text: str, orders: int) -> Verdict:
    wanted, found = normalize(step.answer), normalize(text)
    blocks = SequenceMatcher(None, wanted, found, autojunk=False).get_matching_blocks()
    after = [piece for piece in heard.pieces if piece.ends_s > 0.0]
    is_whole = _share_of_letters(wanted, found) >= WHOLE and wanted[-1] in found
    outcome = "whole" if is_whole else "cut" if any(block.size >= RUN for block in blocks) else "lost"
    first_s = max(0.0, after[0].at_s) if after else None
    pauses_s = [max(0.0, piece.at_s - before.ends_s) for before, piece in pairwise(after)]
    gaps_s = [pause_s for pause_s in pauses_s if pause_s > GAP_S]
    silence_s = PATIENCE_S if outcome == "lost" or first_s is None else first_s + sum(gaps_s)
    return Verdict(
        name=step.name,
        outcome=outcome,
        heard=text,
        silence_s=round(silence_s, 3),
        first_s=first_s and round(first_s, 3),
        gaps_s=[round(gap_s, 3) for gap_s in gaps_s],
        longest_gap_s=round(max(pauses_s, default=0.0), 3),
        repeated=_repeats(found),
        greeted=_contains(found, normalize(GREETING)),
        orders=orders,
    )


def _share_of_letters(wanted: Sequence[str], found: Sequence[str]) -> float:
    """Compares letters, since our recogniser may hear "Francis" for "France is"."""
    letters = "".join(wanted)
    blocks = SequenceMatcher(None, letters, "".join(found), autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks if block.size >= LETTERS) / len(letters)


def _repeats(words: Sequence[str]) -> bool:
    runs = [tuple(words[at : at + RUN]) for at in range(len(words) - RUN + 1)]
    return len(runs) != len(set(runs))


def _contains(words: Sequence[str], wanted: Sequence[str]) -> bool:
    return f" {' '.join(wanted[-3:])} " in f" {' '.join(words)} "


def decode(line: bytes) -> Report:
    return msgspec.json.decode(line, type=Report)
