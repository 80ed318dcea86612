"""Goes on with the result of a calculation: "plus ten", "half of that", "plus 4.50 for delivery"."""

import re
from collections.abc import Iterable
from typing import Final

from antiphon.words.numbers import parse_number

CALCULATE: Final = "calculate"

_END: Final = r"[\s,.!?]*\Z"
_SUMMED: Final = r"(?P<x>.+?)"
_SUMS: Final = tuple(
    (re.compile(pattern + _END, re.IGNORECASE), made)
    for pattern, made in (
        (
            rf"(?:(?:that|it|the result) )?(?P<op>plus|minus|times|multiplied by|divided by|over|to the power of|"
            rf"modulo) {_SUMMED}",
            "{n} {op} {x}",
        ),
        (rf"(?:(?:add|put) (?:on )?{_SUMMED}(?: (?:to (?:that|it|the result)|on top))?)", "{n} plus {x}"),
        (
            rf"(?:subtract|take away|take off|take|deduct) {_SUMMED}(?: (?:from|off) (?:that|it|the result)| away)?",
            "{n} minus {x}",
        ),
        (rf"multiply (?:(?:that|it|the result) )?(?:by|with) {_SUMMED}", "{n} times {x}"),
        (rf"divide (?:(?:that|it|the result) )?by {_SUMMED}", "{n} divided by {x}"),
        (r"double(?: (?:that|it))?|twice (?:that|it)", "{n} times 2"),
        (r"triple(?: (?:that|it))?", "{n} times 3"),
        (r"halve(?: (?:that|it))?|(?:the )?half of (?:that|it)|half that", "{n} divided by 2"),
        (r"(?:a|one) third of (?:that|it)", "{n} divided by 3"),
        (r"(?:a|one) quarter of (?:that|it)", "{n} divided by 4"),
        (r"(?:that |it )?squared|square (?:that|it)", "{n} squared"),
        (r"(?:that |it )?cubed", "{n} cubed"),
        (r"(?:the )?square root(?: of (?:that|it))?", "square root of {n}"),
        (rf"{_SUMMED} (?:percent|per cent|%) of (?:that|it)", "{x} percent of {n}"),
        (rf"{_SUMMED} (?:percent|per cent|%) off(?: (?:that|it))?", "{x} percent off {n}"),
    )
)
_ASKED_SUM: Final = re.compile(r"(?:(?:what(?:['’]s| is)|how much is|calculate|take|now)\s+)", re.IGNORECASE)
_FOR: Final = re.compile(
    r"\s+(?:for|in|of) (?:the |a |an |my |our )?(?!that\b|it\b)[a-z]+(?: [a-z]+)?\Z", re.IGNORECASE
)
"""What an amount is for, which does not change the sum."""


def is_whole(text: str) -> bool:
    """Whether the text goes on with a sum, whatever was said before it."""
    return any(pattern.fullmatch(text.strip()) for pattern, _ in _SUMS)


def continued(texts: Iterable[str], number: str) -> str | None:
    """Returns what to calculate if one of the texts goes on with this number."""
    for text in texts:
        for said in (text, _ASKED_SUM.sub("", text, count=1)):
            for pattern, made in _SUMS:
                match = pattern.fullmatch(said.strip())
                if match is None:
                    continue
                parts = match.groupdict()
                if "x" in parts:
                    parts["x"] = _FOR.sub("", parts["x"].strip(" ,."))
                    if not _is_amount(parts["x"]):
                        continue
                shown = f"({number})" if number.startswith("-") else number
                return made.format(n=shown, **{name: part for name, part in parts.items() if part})
    return None


def _is_amount(words: str) -> bool:
    bare = re.sub(
        r"\s*(?:%|percent|per cent|dollars?|euros?|pounds?|quid|bucks)$", "", words.strip(" ,."), flags=re.IGNORECASE
    )
    return parse_number(re.sub(r"^[$€£]", "", bare)) is not None
