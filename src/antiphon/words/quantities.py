"""Parses an amount with its unit, as people say it: "five and a half miles", "5 feet 11 inches"."""

import math
import re
from typing import Final

from antiphon.words.numbers import write_digits

MAX_CHARS: Final = 200

_AMOUNT: Final = re.compile(
    r"(?<![\w^*])((?:minus|negative|[-−])\s*)?(\d[\d,]*(?:\.\d+)?|\.\d+)(?:\s*/\s*(\d+))?\s*", re.I
)
_FEET: Final = re.compile(r"(?:feet|foot|ft)$", re.IGNORECASE)
_STONE: Final = re.compile(r"stones?$", re.IGNORECASE)
_HEIGHT: Final = re.compile(
    r"(\d+)\s?(?:['’′](?!['’])(?:\s?(\d+(?:\.\d+)?)(?:\s?(?:[\"”″]|['’]{2}))?)?|[\"”″]|['’]{2})"
)
_JOINT: Final = re.compile(r"^(?:(?:of|an?|and)\s+)+|\s*(?:,|\band)\s*$", re.IGNORECASE)


def parse_quantity(said: str) -> list[tuple[float | None, str]]:
    """Splits the text into amounts with the words of their units; an amount is None if none was said.

    "half a mile" is [(0.5, "mile")], "6 foot 2" is [(6, "foot"), (2, "inches")], "11 stone 4" is in stone and "
    "pounds, "miles" is [(None, "miles")].
    """
    text = write_digits(" ".join(_HEIGHT.sub(_write_out, said[:MAX_CHARS]).split()))
    # "liters per 100 km" and "m^2" have numbers that belong to the unit.
    found = [
        match for match in _AMOUNT.finditer(text) if not re.search(r"(?:\bper|/)\s*$", text[: match.start()], re.I)
    ]
    if not found or found[0].start():
        return [(None, _JOINT.sub("", text))]
    ends = [*(match.start() for match in found[1:]), len(text)]
    parts: list[tuple[float | None, str]] = []
    whole = 0.0
    for match, end in zip(found, ends, strict=True):
        unit = _JOINT.sub("", text[match.end() : end].strip()).strip()
        value = _value(match) + whole
        whole = 0.0
        if not unit and end != len(text):
            whole = value  # "2 1/2 cups"
        elif not unit and parts and _FEET.search(parts[-1][1]):
            parts.append((value, "inches"))
        elif not unit and parts and _STONE.search(parts[-1][1]):
            parts.append((value, "pounds"))
        else:
            parts.append((value, unit))
    return parts


def _write_out(match: re.Match[str]) -> str:
    """Writes out the signs for feet and inches: 5'10"."""
    if match[0].rstrip()[-1] in '"”″' and match[2] is None:
        return f"{match[1]} inches"
    return f"{match[1]} feet" + (f" {match[2]} inches" if match[2] else "")


def _value(match: re.Match[str]) -> float:
    value = float(match[2].replace(",", ""))
    divisor = float(match[3]) if match[3] else 1.0
    value = value / divisor if divisor else math.inf
    return -value if match[1] else value
