"""Amounts of money, tips and bills that are split: "15 percent tip on 48 dollars 50", "split 120 euros four ways"."""

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from antiphon.words.numbers import write_digits
from antiphon.words.speech import speak_number

from .evaluator import CalculationError

DEFAULT_TIP: Final = "15"
"""The percentage for "how much should I tip on 60 dollars"."""

_CURRENCIES: Final = {
    "dollars": r"dollars?|bucks?|usd",
    "euros": r"euros?|eur",
    "pounds": r"pounds?|quid|gbp",
    "francs": r"francs?|chf",
    "yen": r"yen|jpy",
    "rupees": r"rupees?|inr",
    "crowns": r"crowns?|kron(?:a|er|or)",
}
_SIGNS: Final = {"$": "dollars", "€": "euros", "£": "pounds", "¥": "yen", "₹": "rupees"}
_MENTIONED: Final = re.compile(rf"[{''.join(_SIGNS)}]|\b(?:{'|'.join(_CURRENCIES.values())})\b", re.IGNORECASE)
_MOST: Final = 10**15
_WHOLE_ONLY: Final = frozenset({"yen"})
_WORD: Final = "|".join(_CURRENCIES.values())
# Matches only from the start of a number, without backtracking, for the sake of very long ones.
_NUMBER: Final = r"(?<![\d.,])\d++(?:,\d{3})*+(?:\.\d++)?"
_SIGNED: Final = re.compile(rf"([$€£¥₹])\s?({_NUMBER})|({_NUMBER})\s?([$€£¥₹])")
_SAID: Final = re.compile(
    rf"({_NUMBER})[ -]({_WORD})\b(?:(?: and)? (\d\d)(?: cents?| pence|p)?\b(?! ?(?:%|per|ways?|people|of us|friends)))?"
)

_AMOUNT: Final = (
    rf"(?:an? |the |my |our )?(?:bill |check |total |meal |dinner |lunch )?(?:of )?({_NUMBER})(?: bill| check| meal)?"
)
_PERCENT: Final = rf"({_NUMBER}) ?(?:%|per ?cent)"
_PEOPLE: Final = r"(?:the )?(\d{1,3})(?: (?:people|persons|friends|guests|of us|ways?|parts?|equally))*"
_TIP_OR_SPLIT: Final = re.compile(r"\b(?:tip|split|share|divide)\b", re.IGNORECASE)
_TIPS: Final = (
    (re.compile(rf"(?:an? |the )?{_PERCENT} tip (?:on|for|of) {_AMOUNT}"), (2, 1)),
    (re.compile(rf"tip {_PERCENT} (?:on|for|of) {_AMOUNT}"), (2, 1)),
    (re.compile(rf"(?:an? |the )?tip (?:on|for|of) {_AMOUNT}(?: (?:at|of|with) {_PERCENT})?"), (1, 2)),
)
_SPLIT: Final = re.compile(
    rf"(?:split|share|divide(?=.* (?:between|among))) {_AMOUNT}"
    rf"(?: (?:with|plus|and|including) (?:an? )?{_PERCENT} tip)?"
    rf"(?: equally)?(?: (?:between|among|amongst|by|for|with|into))? {_PEOPLE}"
    rf"(?: (?:with|plus|and|including) (?:an? )?{_PERCENT} tip)?"
)


@dataclass(frozen=True, slots=True)
class Bill:
    """A tip, a bill that is split, or both."""

    amount: str
    tip_percent: str | None
    people: int | None

    @property
    def expression(self) -> str:
        """What one person pays; for a tip alone, the tip."""
        if self.people is None:
            return f"percent({self.tip_percent}) * {self.amount}"
        return (
            f"({self.amount} + percent({self.tip_percent})) / {self.people}"
            if self.tip_percent
            else (f"{self.amount} / {self.people}")
        )

    def answer(self, value: Decimal, currency: str | None) -> str:
        told = speak_money(value, currency)
        if self.people is not None:
            return f"That's {told} each{', with the tip' if self.tip_percent else ''}."
        total = speak_money(Decimal(self.amount) + value, currency)
        article = "An" if re.match(r"8|1[18](?!\d)", self.tip_percent or "") else "A"
        return f"{article} {self.tip_percent} percent tip is {told}, which makes {total} in all."


def strip_currency(text: str) -> tuple[str, str | None]:
    """Returns the text with plain numbers for amounts of money, and their currency; None if none is named.

    Raises `CalculationError` if there are several.
    """
    if _MENTIONED.search(text) is None:
        return text, None
    plain = write_digits(" ".join(text.split()))
    found: list[str] = []

    def from_sign(match: re.Match[str]) -> str:
        found.append(_SIGNS[match[1] or match[4]])
        return match[2] or match[3]

    def from_word(match: re.Match[str]) -> str:
        found.append(next(name for name, words in _CURRENCIES.items() if re.fullmatch(words, match[2])))
        return f"{match[1]}.{match[3]:0>2}" if match[3] and "." not in match[1] else match[1]

    plain = _SAID.sub(from_word, _SIGNED.sub(from_sign, plain.lower()))
    if len(set(found)) > 1:
        raise CalculationError("I can't calculate with different currencies, since I don't know their rates.")
    return (plain, found[0]) if found else (text, None)


def read_bill(text: str) -> Bill | None:
    """Reads a tip or a split from text without currencies; None if it is neither."""
    if _TIP_OR_SPLIT.search(text) is None:
        return None
    plain = write_digits(text.strip().lower().rstrip(" ?.!"))
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", plain)
    for pattern, (amount, percent) in _TIPS:
        if match := pattern.fullmatch(plain):
            return Bill(match[amount], match[percent] or DEFAULT_TIP, None)
    if match := _SPLIT.fullmatch(plain):
        return Bill(match[1], match[2] or match[4], int(match[3])) if int(match[3]) else None
    return None


def speak_money(value: Decimal, currency: str | None) -> str:
    """Phrases an amount to the cent: "7.28 dollars", "1 dollar", "30"."""
    if abs(value) >= _MOST:
        return speak_number(value)
    whole = value == value.to_integral_value() or currency in _WHOLE_ONLY
    step = Decimal(1) if whole else Decimal("0.01")
    said = value.quantize(step, ROUND_HALF_UP)
    unit = "" if currency is None else f" {currency.removesuffix('s')}" if said == 1 else f" {currency}"
    sign = "minus " if said < 0 else ""
    return f"{sign}{abs(said):,}{unit}"
