"""Picks one of several options at random."""

import re
from typing import Final

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok

MIN_OPTIONS: Final = 2
MAX_OPTIONS: Final = 50
MAX_OPTION_CHARS: Final = 200

_BETWEEN: Final = re.compile(r"\s*[,;\n]\s*(?:(?:or|and)\s+)?|\s+or\s+", re.IGNORECASE)
_ASKED: Final = re.compile(
    r"[\s,;.]+(?:(?:so |please |just )*(?:you (?:pick|choose|decide)|(?:pick|choose|decide)(?: one)?(?: for (?:me|"
    r"us))?|surprise me|"
    r"what do you (?:think|say)|which one|your (?:choice|pick)))[\s.?!]*\Z",
    re.IGNORECASE,
)
"""What asks for the choice once more."""
_OR: Final = re.compile(r"\bor\b", re.IGNORECASE)
_AND: Final = re.compile(r"\s+and\s+", re.IGNORECASE)


async def execute(args: Args, context: Context) -> ToolResult:
    given = args["options"]
    options = distinct(split_options(given) if isinstance(given, str) else given)
    if len(options) < MIN_OPTIONS:
        return fail(
            ErrorType.VALIDATION,
            "I need at least two different things to choose from.",
            suggestion="Give the options as a list.",
        )
    if len(options) > MAX_OPTIONS or any(len(option) > MAX_OPTION_CHARS for option in options):
        return fail(ErrorType.VALIDATION, f"I can choose from up to {MAX_OPTIONS} things with short names.")
    picked = context.rng.choice(options)
    return ok({"picked": picked, "options": options}, spoken=f"I pick {picked}.")


def split_options(said: str) -> list[str]:
    """Splits at commas and "or". "And" separates only if nothing else does: "fish and chips or pizza" has two."""
    parts = [part for part in _BETWEEN.split(_ASKED.sub("", said.strip())) if part]
    if len(parts) > 1 and _OR.search(said) is None:
        # "Sam, Alex and Kim" are three.
        return [*parts[:-1], *_AND.split(parts[-1])]
    return _AND.split(parts[0]) if len(parts) == 1 else parts


def distinct(options: list[str]) -> list[str]:
    """Removes blank options and those that differ only in case or spaces from an earlier one."""
    tidy = (" ".join(option.split()).strip(" .?!") for option in options)
    return list({option.casefold(): option for option in reversed([each for each in tidy if each])}.values())[::-1]
