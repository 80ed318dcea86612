"""An answer as a live model makes it: clause by clause, as text and as audio, at given times."""

import re
from array import array
from typing import Final

from antiphon.models.live import OutputAudio, OutputText

OUTPUT_HZ: Final = 22_050
TEXT_GAP_MS: Final = 20
"""The time between two clauses of an answer's text."""
REAL_TIME_FACTOR: Final = 0.2
"""How many seconds it takes to make a second of speech."""

# A ramp, so that a test can see which part of an answer it holds.
_SECOND_OF_AUDIO: Final = array("h", range(OUTPUT_HZ)).tobytes()


def timeline(
    turn: str, text: str, *, first_text_ms: int, first_audio_ms: int, audio_ms: int, ends: bool
) -> list[tuple[float, OutputText | OutputAudio]]:
    """The pieces of an answer and their times, in their order. If the answer ends with them, the last audio says so."""
    clauses = re.split(r"(?<=[,.;:!?]\s)", text)
    made: list[tuple[float, OutputText | OutputAudio]] = [
        (first_text_ms + place * TEXT_GAP_MS, OutputText(turn, clause)) for place, clause in enumerate(clauses)
    ]
    if audio_ms:
        chars, at_ms = 0, float(first_audio_ms)
        for place, clause in enumerate(clauses):
            begin, end = (audio_ms * part // max(len(text), 1) for part in (chars, chars + len(clause)))
            chars += len(clause)
            at_ms = max(at_ms + (REAL_TIME_FACTOR * (end - begin) if place else 0), made[place][0])
            last = ends and place == len(clauses) - 1
            made.append((at_ms, OutputAudio(turn, _ramp(begin, end), clause, last)))
    return sorted(made, key=lambda each: each[0])


def _ramp(begin_ms: int, end_ms: int) -> bytes:
    """The samples between two moments of an answer: lengths add up, however it is divided."""
    begin, end = begin_ms * OUTPUT_HZ // 1000, end_ms * OUTPUT_HZ // 1000
    seconds = end // OUTPUT_HZ + 1
    return (_SECOND_OF_AUDIO * seconds)[2 * begin : 2 * end]
