"""Rewrites text for speech: symbols and markup are spoken as a person would say them, or left out.

Only what voices read badly is rewritten. They read plain numbers, times such as "10:30", percentages and "+" well.
"""

import re
from typing import Final

from antiphon.speech.spoken.markup import speak_addresses, strip_inline, strip_lines, unlink
from antiphon.speech.spoken.quantities import speak_quantities
from antiphon.speech.spoken.symbols import drop_emoji, speak_abbreviations, speak_symbols

MAX_PASSES: Final = 6

_SPACE_BEFORE_MARK: Final = re.compile(r"\s(?=[,.;:!?](?:\s|\Z))")
_MARKS_IN_A_ROW: Final = re.compile(r"[,;:]\s?(?=[,.;:!?](?:\s|\Z))")
_NOTHING_IN_BRACKETS: Final = re.compile(r"\(\s?\)|\[\s?\]|\{\s?\}")


def speakable(text: str) -> str:
    """Removes markup and replaces symbols by words; returns "" if nothing is left. It is idempotent."""
    for _ in range(MAX_PASSES):
        # Repeated until nothing changes: removing a mark may move another to the start of its line.
        said = _speak(text)
        if said == text:
            break
        text = said
    return text


def _speak(text: str) -> str:
    text = strip_lines(drop_emoji(text))
    for step in (unlink, speak_addresses, strip_inline, speak_abbreviations, speak_quantities, speak_symbols, _tidy):
        # Long runs of spaces would make patterns that begin with a space slow.
        text = " ".join(step(text).split())
    return text if any(map(str.isalnum, text)) else ""


def _tidy(text: str) -> str:
    return _MARKS_IN_A_ROW.sub("", _SPACE_BEFORE_MARK.sub("", _NOTHING_IN_BRACKETS.sub("", text)))
