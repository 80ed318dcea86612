"""Text made fit for the ear: what is written for the eye is said as a person would say it, or left out.

Only what voices read badly is rewritten. They read plain numbers, times such as "10:30", percentages and "+" well.
"""

import re
from typing import Final

from antiphon.speech.spoken.markup import speak_addresses, strip_inline, strip_lines, unlink
from antiphon.speech.spoken.quantities import speak_quantities
from antiphon.speech.spoken.symbols import drop_pictures, speak_signs, speak_titles

MAX_PASSES: Final = 6

_SPACE_BEFORE_MARK: Final = re.compile(r"\s(?=[,.;:!?](?:\s|\Z))")
_MARKS_IN_A_ROW: Final = re.compile(r"[,;:]\s?(?=[,.;:!?](?:\s|\Z))")
_NOTHING_IN_BRACKETS: Final = re.compile(r"\(\s?\)|\[\s?\]|\{\s?\}")


def speakable(text: str) -> str:
    """Without markup, and with words for signs; "" if there is nothing to say. What it gives, it leaves as it is."""
    for _ in range(MAX_PASSES):
        # Again, until nothing changes: a mark that goes may bring another to the beginning of its line.
        said = _speak(text)
        if said == text:
            break
        text = said
    return text


def _speak(text: str) -> str:
    text = strip_lines(drop_pictures(text))
    for step in (unlink, speak_addresses, strip_inline, speak_titles, speak_quantities, speak_signs, _tidy):
        # One space each, or a thousand of them would make patterns slow that begin with one.
        text = " ".join(step(text).split())
    return text if any(map(str.isalnum, text)) else ""


def _tidy(text: str) -> str:
    return _MARKS_IN_A_ROW.sub("", _SPACE_BEFORE_MARK.sub("", _NOTHING_IN_BRACKETS.sub("", text)))
