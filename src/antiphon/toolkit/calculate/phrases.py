"""Calculations as people say or type them, rewritten as an expression for the evaluator.

"forty two times seventeen" is "42 * 17", "15% of 80" is "percent(15) * 80", "√2" is "sqrt(2)".
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final

from antiphon.words.numbers import parse_ordinal, write_digits

from .evaluator import CONSTANTS, FUNCTIONS, MAX_SOURCE_CHARACTERS, TOO_LONG, CalculationError

_LOOK_ALIKES: Final = str.maketrans(
    dict.fromkeys("×✕✖⋅·∙∗", "*")
    | dict.fromkeys("÷∕⁄", "/")
    | dict.fromkeys("−–—‒﹣", "-")
    | {"√": " sqrt ", "∛": " cbrt ", "π": " pi ", "٪": "%", "’": "'", "٫": ".", "٬": ","}
)
_SUPERSCRIPTS: Final = {"⁻": "-"} | {
    unicodedata.lookup(f"SUPERSCRIPT {name}"): str(digit)
    for digit, name in enumerate(("ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE"))
}
_SUPERSCRIPT: Final = re.compile(f"[{''.join(_SUPERSCRIPTS)}]+")
_VULGAR_FRACTION: Final = re.compile(r"(?<!\d)(\d*+) ?([¼-¾⅐-⅞])")

# Matches only from the start of a number, without backtracking; otherwise 500 digits take 37 ms.
_NUMBER: Final = r"(?<![\d.])(?:\d++(?:\.\d*+)?|\.\d++)(?:e[+-]?\d++)?"
_SIGNED_NUMBER: Final = rf"(?:(?:minus|negative) |-)?{_NUMBER}"
_NUMBERS: Final = rf"{_SIGNED_NUMBER}(?:(?:, ?(?:and )?| and | ?& ?| ){_SIGNED_NUMBER})+(?![\w.]|\s*(?:%|per ?cent))"
"""Several numbers in a row, as in "the sum of 3, 4 and 12.5"."""
_PERCENT: Final = r"(?:%|per ?cent(?:age)?)"
_FUNCTION: Final = "|".join(sorted(FUNCTIONS, key=len, reverse=True))

_PREAMBLE: Final = re.compile(
    r"^(?:(?:please|tell me|what is|what's|whats|how much is|calculate|compute|evaluate|work out|solve)\b[\s,:]*)+"
)
_ENDINGS: Final = ("please", "equals", "equal", "equals what", "is what", "make", "makes", "again", "then", "for me")
_GROUPED_DIGITS: Final = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")

_Rewrite = str | Callable[[re.Match[str]], str]


def _change(match: re.Match[str]) -> str:
    """Rewrites "20 percent off 50"."""
    whole = match[3] if re.fullmatch(_NUMBER, match[3]) else f"({match[3]})"
    return f"{whole} {'+' if match[2].startswith('more') else '-'} {match[1]}%"


def _combine(match: re.Match[str]) -> str:
    """Rewrites the sum, product, average or difference of several numbers."""
    numbers = [re.sub("minus |negative ", "-", found) for found in re.findall(_SIGNED_NUMBER, match[2])]
    match match[1]:
        case "average" | "mean":
            return f"average({', '.join(numbers)})"
        case "difference":
            # Between 4 and 10 there are 6, whichever is named first.
            combined = " - ".join(sorted(numbers, key=Decimal, reverse=True))
        case "product" | "multiply":
            combined = " * ".join(numbers)
        case _:
            combined = " + ".join(numbers)
    return combined if match[0] == match.string else f"({combined})"


def _rounded(match: re.Match[str]) -> str:
    """Rewrites "round 3.14159 to two decimals", "round 1250 to the nearest hundred", "round 3.2 up"."""
    number = match["number"]
    if match["way"]:
        return f"{'ceil' if match['way'] == 'up' else 'floor'}({number})"
    if match["nearest"]:
        digits = {"ten": -1, "10": -1, "hundred": -2, "100": -2, "thousand": -3, "1000": -3, "tenth": 1, "hundredth": 2}
        return f"round({number}, {digits.get(match['nearest'], 0)})"
    return f"round({number}, {match['digits'] or 0})"


def _fraction(match: re.Match[str]) -> str:
    """Rewrites "two thirds", but not "3 seconds", which is not a fraction."""
    below = parse_ordinal(match[2])
    return f"({match[1] or 1}/{below})" if below and below > 2 else match[0]


def _power(match: re.Match[str]) -> str:
    exponent = parse_ordinal(match[1])
    return match[0] if exponent is None else f" ** {exponent} "


_PHRASES: Final[Sequence[tuple[re.Pattern[str], _Rewrite]]] = [
    (re.compile(pattern), rewrite)
    for pattern, rewrite in (
        (rf"\b(?:the )?(sum|total|product|average|mean|difference) (?:of|between) ({_NUMBERS})", _combine),
        (rf"^(add|add up|sum up|total|multiply) ({_NUMBERS})$", _combine),
        (rf"^add ({_SIGNED_NUMBER}) to ({_SIGNED_NUMBER})$", r"\1 + \2"),
        (rf"^subtract ({_SIGNED_NUMBER}) from ({_SIGNED_NUMBER})$", r"\2 - \1"),
        (rf"^(?:multiply|times) ({_SIGNED_NUMBER}) (?:by|with|and) ({_SIGNED_NUMBER})$", r"\1 * \2"),
        (rf"^divide ({_SIGNED_NUMBER}) by ({_SIGNED_NUMBER})$", r"\1 / \2"),
        (r"\b(?:the )?double(?: of)?\b|\btwice\b", "2 *"),
        (r"\b(?:the )?triple(?: of)?\b", "3 *"),
        (r"\b(?:the )?quadruple(?: of)?\b", "4 *"),
        (rf"^(?:what )?{_PERCENT} of ({_NUMBER}) (?:is|are|does|would be) ({_NUMBER})(?: make)?$", r"share(\2, \1)"),
        (rf"^({_NUMBER}) is (?:what|which|how many|how much) {_PERCENT} of ({_NUMBER})$", r"share(\1, \2)"),
        (rf"^({_NUMBER}) (?:as|in) (?:an? )?{_PERCENT} of ({_NUMBER})$", r"share(\1, \2)"),
        (rf"^({_NUMBER}) out of ({_NUMBER}) (?:as|in) (?:an? )?{_PERCENT}$", r"share(\1, \2)"),
        (
            rf"^(?:the )?{_PERCENT} (?:change|increase|decrease|rise|drop|difference|growth|loss) "
            rf"(?:from|between) ({_NUMBER}) (?:to|and) ({_NUMBER})$",
            r"change(\1, \2)",
        ),
        (
            rf"^(?:(?:going|a change) )?from ({_NUMBER}) to ({_NUMBER}) (?:is|are|makes|in)"
            rf"(?: (?:how many|how much|what|which))? {_PERCENT}(?: .*)?$",
            r"change(\1, \2)",
        ),
        (
            rf"\b(?:the )?remainder (?:of|when) ({_NUMBER}) (?:is |and |over )?(?:divided by )?({_NUMBER})",
            r"mod(\1, \2)",
        ),
        (
            rf"^round (?P<number>{_SIGNED_NUMBER})(?: to (?:the nearest (?P<nearest>[a-z]+(?: number)?|\d+)"
            r"|(?P<digits>\d+) (?:decimals?|digits?|places?)(?: places?)?|an? (?:whole number|integer))"
            r"| (?P<way>up|down))?$",
            _rounded,
        ),
        (r"\bthe (?=square|cube|sine|cosine|tangent|natural|log|absolute|factorial|power)", ""),
        (r"\bper ?cent\b(?!\s*\()", "%"),
        (rf"^({_NUMBER})\s*% (off|less than|more than) (.+)$", _change),
        (r"%\s*(?:tip )?(?:of|on)\b", "% *"),
        (r"\bsquare root\b", "sqrt"),
        (r"\bcube root\b", "cbrt"),
        (r"\babsolute value\b", "abs"),
        (r"\bnatural log(?:arithm)?\b", "ln"),
        (r"\blogarithm\b", "log"),
        (r"\bsine\b", "sin"),
        (r"\bcosine\b", "cos"),
        (r"\btangent\b", "tan"),
        (rf"\blog(?: to the)? base (?:of )?({_NUMBER}|e) of ({_NUMBER}|e|pi)\b", r"log(\2, \1)"),
        (rf"\b(square|cube) of ({_NUMBER})", lambda match: f"{match[2]} {match[1]}d"),
        (rf"({_NUMBER})\s*(?:!|\bfactorial\b)", r"factorial(\1)"),
        (rf"\b({_FUNCTION}) of\b", r"\1"),
        (r"\b(?:raised )?to (?:the )?power(?: of)?\b|\braised to\b|\^", " ** "),
        (r"\bto the ((?:[a-z]+|\d+)(?:st|nd|rd|th))(?: power)?\b", _power),
        (r"\bto the (?=minus|negative|-|\d)", " ** "),
        (r"\b(?:(\d+)|an?) ([a-z]{4,}?)s?\b", _fraction),
        (r"\bsquared\b", "**2"),
        (r"\bcubed\b", "**3"),
        (r"\b(?:plus|added to)\b", "+"),
        (r"\b(?:minus|negative|less|take away)\b", "-"),
        (r"\b(?:times|multiplied by)\b|(?<=[\d)])\s*(?:x|\bby)\s*(?=[\d(.])", "*"),
        (r"\b(?:divided by|over)\b", "/"),
        (r"\b(?:modulo|modulus|mod)\b(?!\s*\()", "%"),
        (r"(?<=[\d)]) of\b", " *"),
        # A percentage, unless a number follows: then it is the remainder, as programmers write it.
        (rf"({_NUMBER})\s*%(?!\s*[\w.(])", r"percent(\1)"),
    )
]

_TOKEN: Final = re.compile(
    r"(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)|(?P<name>[a-z]+\d*)|(?P<sign>\*\*|//|[-+*/%(),])|\s+|(?P<other>.)"
)


def read_expression(text: str) -> str:
    """Returns the expression that a text means. Raises `CalculationError` with what was not understood."""
    text = _strip_question(_write_plainly(" ".join(text.split())))
    if len(text) > MAX_SOURCE_CHARACTERS:
        raise CalculationError(TOO_LONG)
    # With a function in it, commas stand between arguments: max(1,200).
    if not re.search(rf"\b(?:{_FUNCTION})\s*\(", text):
        text = _GROUPED_DIGITS.sub(lambda match: match[0].replace(",", ""), text)
    text = re.sub(r"(?<=\d)_(?=\d)", "", text)
    # A recogniser may hear "what is 17" as "what a 17". The "a" of "a hundred" is part of the number by now.
    text = re.sub(r"^(?:an?|the) (?=[\d.(])", "", write_digits(text))
    for pattern, rewrite in _PHRASES:
        text = pattern.sub(rewrite, text)
    tokens = _tokenize(text)
    if not tokens:
        raise CalculationError("There is nothing to calculate in that.")
    return _join(_close_functions(_multiply_neighbours(tokens)))


def _strip_question(text: str) -> str:
    """Removes "what is" from the beginning and "equals?" from the end."""
    text = _PREAMBLE.sub("", text.strip()).rstrip(" ?=.")
    for ending in _ENDINGS:
        text = text.removesuffix(ending).rstrip(" ?=.,")
    return text


def _write_plainly(text: str) -> str:
    """Converts to lower case, with the digits and signs of other keyboards as ASCII."""
    # Before the compatibility form, which makes 5² into 52 and 2½ into 21/2.
    text = _SUPERSCRIPT.sub(lambda match: "**" + "".join(_SUPERSCRIPTS[digit] for digit in match[0]), text)
    text = _VULGAR_FRACTION.sub(_write_vulgar_fraction, text)
    text = unicodedata.normalize("NFKC", text).lower().translate(_LOOK_ALIKES)
    return "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text)


def _write_vulgar_fraction(match: re.Match[str]) -> str:
    whole = f"{match[1]}+" if match[1] else ""
    return f"({whole}{unicodedata.normalize('NFKC', match[2])})"


def _tokenize(text: str) -> list[str]:
    tokens: list[str] = []
    for match in _TOKEN.finditer(text):
        token = match[0]
        if match["other"]:
            shown = f'the sign "{token}"' if token.isprintable() else "a sign"
            raise CalculationError(f"I don't understand {shown} in that calculation.")
        if match["name"] and token not in FUNCTIONS and token not in CONSTANTS:
            raise CalculationError(f'I don\'t understand "{token[:40]}" in that calculation.')
        if match["number"]:
            # Python refuses 007.
            tokens.append(re.sub(r"^0+(?=\d)", "", token))
        elif match["name"] or match["sign"]:
            tokens.append(token)
    return tokens


def _is_number(token: str) -> bool:
    return token[0].isdigit() or token[0] == "."


def _ends_operand(token: str) -> bool:
    return _is_number(token) or token in CONSTANTS or token == ")"


def _multiply_neighbours(tokens: Sequence[str]) -> list[str]:
    """2 pi, 2(3 + 4) and 3 sqrt(2) are products; two numbers side by side are a mistake."""
    joined: list[str] = []
    for token in tokens:
        if joined and _ends_operand(joined[-1]):
            if _is_number(token):
                raise CalculationError(f"I don't know what to do with {joined[-1]} and {token} side by side.")
            if token in FUNCTIONS or token in CONSTANTS or token == "(":
                joined.append("*")
        joined.append(token)
    return joined


def _close_functions(tokens: Sequence[str]) -> list[str]:
    """Puts what follows a function into parentheses where there are none: "sqrt 2 + 2" is sqrt(2) + 2."""
    closed: list[str] = []
    waiting: list[int] = []
    depth = 0
    for token, following in zip(tokens, [*tokens[1:], ""], strict=True):
        closed.append(token)
        if token in FUNCTIONS:
            if following != "(":
                closed.append("(")
                waiting.append(depth)
        elif token == "(":
            depth += 1
        elif _ends_operand(token):
            depth -= token == ")"
            while waiting and waiting[-1] == depth:
                closed.append(")")
                waiting.pop()
    return closed


def _join(tokens: Sequence[str]) -> str:
    """Joins the tokens as a person would write them: with spaces around operators, and none after a sign."""
    text = ""
    before = "("
    for token in tokens:
        if token == ",":
            text += ", "
        elif token in ("+", "-", "*", "/", "//", "%") and _ends_operand(before):
            text += f" {token} "
        else:
            text += token
        before = token
    return text
