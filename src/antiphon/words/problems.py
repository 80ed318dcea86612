"""Word problems, as sums in words: "the bill is 96 euros and there are three of us, how much each" is "split 96 euros 3
ways".

A problem is only read if all of its numbers have a place in the sum.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from antiphon.words.numbers import write_digits

MAX_CHARS: Final = 300

_NUMBER: Final = r"\d+(?:,\d{3})*(?:\.\d+)?"
_CURRENCY: Final = r"(?:dollars?|bucks?|usd|euros?|eur|pounds?|quid|gbp|francs?|yen|rupees?|crowns?)"
_MONEY: Final = (
    rf"(?:[$€£¥₹]\s?{_NUMBER}|{_NUMBER}(?:\s?[$€£¥₹]|\s{_CURRENCY}(?:\s(?:and\s)?\d\d(?:\scents?|\spence)?)?)?)"
)
_PERCENT: Final = rf"({_NUMBER})\s?(?:%|per ?cent)"
_PEOPLE: Final = (
    r"(?:\b(\d{1,3})\s(?:of us|people|persons|friends|guests|ways|adults|kids|diners|heads)\b|"
    r"\b(?:we(?:['’]re| are| were)|there (?:are|were)|(?:between|among|amongst|by)(?: the)?)\s(\d{1,3})\b)"
)
_EACH: Final = re.compile(
    r"\b(?:each|apiece|per (?:person|head)|a head|split|divide|share|every(?:one|body)|one person|ways)\b"
)
_TIP: Final = re.compile(r"\b(?:tip|gratuity)\b")
_ASKS: Final = re.compile(r"\b(?:what|how much|how many|work out|calculate|compute|figure out|split|tell me)\b")

Read = Callable[[str], str | None]


def read_problem(text: str) -> str | None:
    """Returns the sum of a word problem in the words of a calculator; None if it is none."""
    if len(text) > MAX_CHARS:
        return None
    plain = " ".join(write_digits(text.lower()).replace("’", "'").split()).rstrip(" .?!")
    return next((found for read in _READERS if (found := read(plain)) is not None), None)


def _shared_bill(text: str) -> str | None:
    people = re.search(_PEOPLE, text)
    if people is None or _EACH.search(text) is None:
        return None
    tip = re.search(_PERCENT, text) if _TIP.search(text) else None
    amount = _only(_MONEY, text, [people, tip])
    if amount is None:
        return None
    return f"split {amount}{f' with a {tip[1]} percent tip' if tip else ''} {people[1] or people[2]} ways"


def _tip(text: str) -> str | None:
    if _TIP.search(text) is None or _ASKS.search(text) is None:
        return None
    percent = re.search(_PERCENT, text)
    amount = _only(_MONEY, text, [percent])
    if amount is None:
        return None
    return f"{percent[1]} percent tip on {amount}" if percent else f"tip on {amount}"


def _discount(text: str) -> str | None:
    percent = re.search(rf"{_PERCENT}\s(?:off|discount|cheaper|reduction|less)\b", text) or re.search(
        rf"\b(?:reduced|discounted|marked down|down)\sby\s{_PERCENT}", text
    )
    if percent is None or _ASKS.search(text) is None:
        return None
    amount = _only(_MONEY, text, [percent])
    return None if amount is None else f"{percent[1]} percent off {amount}"


def _change(text: str) -> str | None:
    coin = rf"(?:[$€£¥₹]|\s{_CURRENCY})?"
    change = re.search(rf"\bfrom\s[$€£¥₹]?({_NUMBER}){coin}\sto\s[$€£¥₹]?({_NUMBER}){coin}", text)
    if change is None or re.search(r"%|\bper ?cent(?:age)?\b", text) is None or _numbers_outside(text, [change]):
        return None
    return f"percent change from {change[1]} to {change[2]}"


def _added_share(text: str) -> str | None:
    added = re.search(
        rf"\badd\s(?:an?\s)?{_PERCENT}(?:\s(?:tax|vat|tip|sales tax|service|interest))?\s(?:to|on|onto)\s({_MONEY})",
        text,
    )
    if added is not None and not _numbers_outside(text, [added]):
        return f"{added[2]} plus {added[1]} percent"
    added = re.search(
        rf"({_MONEY})\s(?:plus|with|and)\s(?:an?\s)?{_PERCENT}\s(?:tax|vat|sales tax|service|interest)\b", text
    )
    if added is not None and not _numbers_outside(text, [added]):
        return f"{added[1]} plus {added[2]} percent"
    share = re.search(
        rf"{_PERCENT}\s(?:tax|vat|sales tax|service|interest|commission)\s(?:on|of|for)\s({_MONEY})", text
    )
    return None if share is None or _numbers_outside(text, [share]) else f"{share[1]} percent of {share[2]}"


def _score(text: str) -> str | None:
    """A share in percent: "I got 43 out of 50, what percent is that"."""
    score = re.search(rf"({_NUMBER})\s(?:out of|of)\s({_NUMBER})", text)
    if score is None or not re.search(r"%|\bper ?cent(?:age)?\b", text) or _numbers_outside(text, [score]):
        return None
    return f"{score[1]} is what percent of {score[2]}"


def _priced(text: str) -> str | None:
    """Several things of one price: "three coffees at 4.20 each"."""
    priced = re.search(
        rf"\b({_NUMBER})\s(?:\w+\s){{1,3}}(?:at|for|costing|that cost)\s({_MONEY})\s(?:each|apiece|a piece)\b", text
    )
    if priced is None or _numbers_outside(text, [priced]):
        return None
    return f"{priced[1]} times {priced[2]}"


_OPERATIONS: Final[Sequence[tuple[re.Pattern[str], str]]] = [
    (re.compile(pattern), sum_)
    for pattern, sum_ in (
        (rf"\badd(?:ed)?(?: up| together)?\s({_NUMBER})\s(?:and|to|plus|with)\s({_NUMBER})", r"\1 plus \2"),
        (rf"\bsubtract(?:ed)?\s({_NUMBER})\sfrom\s({_NUMBER})", r"\2 minus \1"),
        (rf"\btake\s({_NUMBER})(?:\s(?:away|off))?\s(?:from|off)\s({_NUMBER})", r"\2 minus \1"),
        (rf"({_NUMBER})\s(?:take away|subtract|less)\s({_NUMBER})", r"\1 minus \2"),
        (rf"\bmultipl(?:y|ied)\s({_NUMBER})\s(?:by|with|and|times)\s({_NUMBER})", r"\1 times \2"),
        (rf"({_NUMBER})\s(?:lots of|groups of|sets of|multiplied with)\s({_NUMBER})", r"\1 times \2"),
        (rf"\bdivided?\s({_NUMBER})\s(?:by|into)\s({_NUMBER})", r"\1 divided by \2"),
        (rf"\bhow many times does\s({_NUMBER})\s(?:go|fit) into\s({_NUMBER})", r"\2 divided by \1"),
        (rf"\bhow much (?:more|bigger|larger|higher) is\s({_NUMBER})\sthan\s({_NUMBER})", r"\1 minus \2"),
    )
]
_MORE: Final = re.compile(r"\b(?:plus|minus|times|divided|percent|per ?cent|squared|root)\b|%")


def _operation(text: str) -> str | None:
    for pattern, sum_ in _OPERATIONS:
        match = pattern.search(text)
        if match is not None and not _numbers_outside(text, [match]):
            rest = text[: match.start()] + text[match.end() :]
            return None if _MORE.search(rest) else match.expand(sum_)
    return None


_READERS: Final[Sequence[Read]] = (_shared_bill, _tip, _discount, _change, _added_share, _score, _priced, _operation)


def _without(text: str, taken: Sequence[re.Match[str] | None]) -> str:
    """Returns the text with blanks where something was found."""
    for match in taken:
        if match is not None:
            text = text[: match.start()] + " " * (match.end() - match.start()) + text[match.end() :]
    return text


def _numbers_outside(text: str, taken: Sequence[re.Match[str] | None]) -> bool:
    return re.search(r"\d", _without(text, taken)) is not None


def _only(pattern: str, text: str, taken: Sequence[re.Match[str] | None]) -> str | None:
    """Returns the only match beside what was found; None if there is none, or several."""
    rest = _without(text, taken)
    found = re.search(pattern, rest)
    return None if found is None or _numbers_outside(rest, [found]) else found[0]
