"""Puts an expression into words, if the words are unambiguous."""

import ast
from decimal import Decimal
from fractions import Fraction
from typing import Final

from antiphon.words.speech import speak_number

from .evaluator import is_percent

MAX_SPOKEN_CHARACTERS: Final = 100
"""A longer question is not repeated, so that the answer comes soon."""

_SUM, _PRODUCT, _SIGNED, _POWER, _SINGLE = range(5)
"""Precedence, lowest first."""

_OPERATIONS: Final[dict[type[ast.operator], tuple[str, int]]] = {
    ast.Add: ("plus", _SUM),
    ast.Sub: ("minus", _SUM),
    ast.Mult: ("times", _PRODUCT),
    ast.Div: ("divided by", _PRODUCT),
    ast.Mod: ("modulo", _PRODUCT),
}
_FUNCTIONS: Final = {
    "sqrt": "the square root of {}",
    "cbrt": "the cube root of {}",
    "abs": "the absolute value of {}",
    "round": "{} rounded",
    "floor": "{} rounded down",
    "ceil": "{} rounded up",
    "sin": "the sine of {}",
    "cos": "the cosine of {}",
    "tan": "the tangent of {}",
    "log": "the logarithm of {}",
    "log10": "the logarithm of {}",
    "log2": "the logarithm to base 2 of {}",
    "ln": "the natural logarithm of {}",
    "factorial": "{} factorial",
    "percent": "{} percent",
}
_PARTS: Final = {Fraction(1, 2): "half of", Fraction(1, 4): "a quarter of", Fraction(3, 4): "three quarters of"}


class _Unclear(Exception):
    """The words would need parentheses, which cannot be heard."""


def describe(tree: ast.expr) -> str | None:
    """Returns the expression in words; None if it is a plain number, too long, or unclear without parentheses."""
    if isinstance(tree, ast.Constant | ast.Name):
        return None
    try:
        words = _say(tree, _SUM)
    except _Unclear:
        return None
    return words if len(words) <= MAX_SPOKEN_CHARACTERS else None


def answer(tree: ast.expr, value: str) -> str:
    """Returns the sentence that tells the value, with the question in it if its words are clear."""
    match tree:
        case ast.Call(func=ast.Name(id="share"), args=[ast.Constant() as part, ast.Constant() as whole]):
            return f"{_say(part, _SINGLE)} is {value} percent of {_say(whole, _SINGLE)}."
        case ast.Call(func=ast.Name(id="change"), args=[ast.Constant() as before, ast.Constant() as after]):
            grown = not value.removeprefix("about ").startswith("minus ")
            change = value if grown else value.replace("minus ", "", 1)
            way = "an increase" if grown else "a decrease"
            return f"From {_say(before, _SINGLE)} to {_say(after, _SINGLE)} is {way} of {change} percent."
    question = describe(tree)
    return f"{question[0].upper()}{question[1:]} is {value}." if question else f"That makes {value}."


def _say(node: ast.expr, tightness: int) -> str:
    words, own = _put(node)
    if own < tightness:
        raise _Unclear
    return words


def _put(node: ast.expr) -> tuple[str, int]:
    match node:
        case ast.Constant(value=Fraction() as value):
            return _put_literal(value), _SINGLE
        case ast.Name(id=name):
            return name, _SINGLE
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"minus {_say(operand, _POWER)}", _SIGNED
        case ast.BinOp(left=left, op=ast.Mult(), right=right) if is_percent(left):
            return f"{_say(left, _SINGLE)} of {_say(right, _SIGNED)}", _PRODUCT
        case ast.BinOp(left=left, op=ast.Mult(), right=right) if part := _part(left):
            return f"{part} {_say(right, _SIGNED)}", _PRODUCT
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _put_power(_say(left, _SINGLE), _say(right, _SIGNED)), _POWER
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATIONS:
            word, tightness = _OPERATIONS[type(operator)]
            return f"{_say(left, tightness)} {word} {_say(right, tightness + 1)}", tightness
        case ast.Call(func=ast.Name(id=name), args=[argument]) if name in _FUNCTIONS:
            phrase = _FUNCTIONS[name]
            # "The square root of 2 squared" could be either.
            return phrase.format(_say(argument, _SIGNED)), _SIGNED if phrase.startswith("the") else _SINGLE
        case ast.Call(func=ast.Name(id="mod"), args=[left, right]):
            return f"the remainder of {_say(left, _SINGLE)} divided by {_say(right, _SINGLE)}", _SIGNED
        case ast.Call(func=ast.Name(id="average"), args=[*others, last]) if others:
            listed = ", ".join(_say(argument, _SINGLE) for argument in others)
            return f"the average of {listed} and {_say(last, _SINGLE)}", _SIGNED
        case _:
            raise _Unclear


def _part(node: ast.expr) -> str | None:
    return _PARTS.get(node.value) if isinstance(node, ast.Constant) else None  # type: ignore[call-overload]


def _put_literal(value: Fraction) -> str:
    whole = value.denominator == 1
    words = speak_number(value.numerator if whole else Decimal(value.numerator) / Decimal(value.denominator))
    if words.startswith("about"):
        raise _Unclear
    return words


def _put_power(base: str, exponent: str) -> str:
    match exponent:
        case "2":
            return f"{base} squared"
        case "3":
            return f"{base} cubed"
        case _:
            return f"{base} to the power of {exponent}"
