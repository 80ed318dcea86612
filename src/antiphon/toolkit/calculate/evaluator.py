"""Arithmetic on Python's syntax tree: numbers only, and every operation bounded before it is done.

Whole numbers and decimals are exact (0.1 + 0.2 is 0.3): they are fractions until a root, a logarithm or the like
needs floating point. `eval` and similar functions are not safe to use: `3999999**3999999` alone hangs them.
"""

import ast
import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Final

Number = Fraction | float
"""Exact where possible; a float comes from an irrational function, and is always finite."""

MAX_SOURCE_CHARACTERS: Final = 2_000
"""More than the 500 characters of a question, because an expression can be longer than the words it came from."""
MAX_NODES: Final = 200
MAX_BITS: Final = 4_096
MAX_LITERAL_EXPONENT: Final = 1_233
"""Powers of ten that fit into MAX_BITS."""


class CalculationError(Exception):
    """Something that cannot be calculated. The text is a sentence for people."""


TOO_LARGE: Final = "That would be too large to work out."
TOO_LONG: Final = "That calculation is too long for me."
DIVISION_BY_ZERO: Final = "A number can't be divided by zero."


def parse(source: str) -> ast.expr:
    """Returns the syntax tree of an expression, with its literals as exact fractions. `evaluate` checks the rest."""
    source = source.strip()
    if len(source) > MAX_SOURCE_CHARACTERS:
        raise CalculationError(TOO_LONG)
    # One line of ASCII, so that a column is an index.
    if not (source.isascii() and source.isprintable()):
        raise CalculationError("I can only calculate with plain numbers and signs.")
    try:
        tree = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise CalculationError("I couldn't make sense of that as a calculation.") from None
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.expr)]
    if len(nodes) > MAX_NODES:
        raise CalculationError(TOO_LONG)
    for node in nodes:
        if isinstance(node, ast.Constant):
            text = source[node.col_offset : node.end_col_offset]
            # Python's type stubs do not allow a fraction as a constant, but our evaluator does.
            node.value = _read_literal(node.value, text)  # type: ignore[assignment]
    return tree


def _read_literal(value: object, text: str) -> Fraction:
    """Reads the literal as it was written, because Python's float has lost some of its digits."""
    if type(value) is int:
        return _bounded(Fraction(value))
    if type(value) is not float:
        raise CalculationError("I can only calculate with numbers.")
    try:
        decimal = Decimal(text)
    except InvalidOperation:
        raise CalculationError(TOO_LARGE) from None
    # Checked before the conversion to a fraction, since 1e999999999 would have a billion digits.
    if abs(decimal.adjusted()) > MAX_LITERAL_EXPONENT:
        raise CalculationError(TOO_LARGE)
    return _bounded(Fraction(decimal))


def evaluate(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=Fraction() as value):
            return value
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return evaluate(operand)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -evaluate(operand)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right) if is_percent(right) and not is_percent(left):
            # "80 plus 20 percent" is 96 to everyone who says it.
            base = evaluate(left)
            return _operate(node.op, base, _operate(ast.Mult(), base, evaluate(right)))
        case ast.BinOp(left=left, op=operator, right=right):
            return _operate(operator, evaluate(left), evaluate(right))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            return _call(name, [evaluate(arg) for arg in args])
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)):
            raise CalculationError(f'I don\'t know how to calculate with "{name}".')
        case _:
            raise CalculationError("I can only calculate with numbers.")


def is_percent(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "percent"


def _operate(operator: ast.operator, left: Number, right: Number) -> Number:
    operation = OPERATIONS.get(type(operator))
    if operation is None:
        raise CalculationError("I only know plus, minus, times, divided by, remainder and power.")
    return _settle(lambda: operation(left, right))


def _call(name: str, values: list[Number]) -> Number:
    least, most, function = FUNCTIONS[name]
    if not least <= len(values) <= most:
        wanted = f"{least} to {most}" if most > least else str(least)
        raise CalculationError(f"{name} takes {wanted} {'number' if most == 1 else 'numbers'}, not {len(values)}.")
    return _settle(lambda: function(*values))


def _settle(operation: Callable[[], Number]) -> Number:
    """Returns the value of an operation. Raises `CalculationError` with a sentence if it has none."""
    try:
        value = operation()
    except ZeroDivisionError:
        raise CalculationError(DIVISION_BY_ZERO) from None
    except OverflowError:
        raise CalculationError(TOO_LARGE) from None
    except ValueError:
        raise CalculationError("That doesn't have a value.") from None
    if isinstance(value, Fraction):
        return _bounded(value)
    if not math.isfinite(value):
        raise CalculationError(TOO_LARGE)
    return value


def _bounded(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise CalculationError(TOO_LARGE)
    return value


def _multiply(left: Number, right: Number) -> Number:
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        bits = left.numerator.bit_length() + right.numerator.bit_length()
        # Only whole numbers are checked: a fraction may shrink again, and the product of two bounded numbers is small.
        if left.denominator == right.denominator == 1 and bits > MAX_BITS + 1:
            raise CalculationError(TOO_LARGE)
    return left * right


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(exponent, Fraction) and exponent.denominator == 1 and isinstance(base, Fraction):
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        # The least number of bits the result can have. For 0, 1 and -1 it is 0, whatever the exponent.
        if abs(exponent.numerator) * (bits - 1) > MAX_BITS:
            raise CalculationError(TOO_LARGE)
        return base**exponent.numerator
    if base < 0 and exponent != math.floor(exponent):
        raise CalculationError("A negative number to a fractional power has no real value.")
    return float(float(base) ** float(exponent))


def _sqrt(value: Number) -> Number:
    if value < 0:
        raise CalculationError("A negative number has no real square root.")
    if isinstance(value, Fraction):
        top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
        if top * top == value.numerator and bottom * bottom == value.denominator:
            return Fraction(top, bottom)
    return math.sqrt(value)


def _log(value: Number, base: Number = Fraction(10)) -> Number:
    if base == 1:
        raise CalculationError("A logarithm can't have a base of 1.")
    if base == 10:
        return math.log10(_positive(value))
    return math.log(_positive(value)) / math.log(_positive(base))


def _positive(value: Number) -> int | float:
    if value <= 0:
        raise CalculationError("Only a number above zero has a logarithm.")
    # math.log takes whole numbers that no float can hold.
    return value.numerator if isinstance(value, Fraction) and value.denominator == 1 else float(value)


def _average(*values: Number) -> Number:
    total = values[0]
    for value in values[1:]:
        total = _operate(ast.Add(), total, value)
    return total / len(values)


def _share(part: Number, whole: Number) -> Number:
    """Returns what percentage of the whole a part is."""
    return _operate(ast.Div(), part, whole) * 100


def _change(before: Number, after: Number) -> Number:
    """Returns by how many percent a number has grown."""
    size = before if before >= 0 else -before
    return _operate(ast.Div(), after - before, size) * 100


def _factorial(value: Number) -> Number:
    if not isinstance(value, Fraction) or value.denominator != 1 or value < 0:
        raise CalculationError("Only a whole number that is not negative has a factorial.")
    # n! has about n * log2(n / e) bits; beyond MAX_BITS there is no need for the exact figure.
    if value > MAX_BITS or math.lgamma(value.numerator + 1) / math.log(2) > MAX_BITS:
        raise CalculationError(TOO_LARGE)
    return Fraction(math.factorial(value.numerator))


def _round(value: Number, digits: Number = Fraction(0)) -> Number:
    """Rounds half away from zero, as taught in school. Python's `round` goes to the even neighbour."""
    if digits != math.floor(digits):
        raise CalculationError("I can only round to a whole number of digits.")
    step = Fraction(_power(Fraction(10), Fraction(digits)))
    scaled = math.floor(abs(Fraction(value)) * step + Fraction(1, 2)) / step
    return scaled if value >= 0 else -scaled


def _without_noise(value: float) -> float:
    """Removes rounding errors: the sine of pi is 0, not 1.2e-16."""
    return round(value, 15)


def _tan(value: Number) -> Number:
    if not _without_noise(math.cos(value)):
        raise CalculationError("A right angle doesn't have a tangent.")
    return _without_noise(math.tan(value))


CONSTANTS: Final[dict[str, Number]] = {"pi": math.pi, "e": math.e}

OPERATIONS: Final[dict[type[ast.operator], Callable[[Number, Number], Number]]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: _multiply,
    ast.Div: lambda left, right: left / right,
    ast.FloorDiv: lambda left, right: Fraction(left // right),
    ast.Mod: lambda left, right: left % right,
    ast.Pow: _power,
}

FUNCTIONS: Final[dict[str, tuple[int, int, Callable[..., Number]]]] = {
    "sqrt": (1, 1, _sqrt),
    "cbrt": (1, 1, math.cbrt),
    "abs": (1, 1, abs),
    "round": (1, 2, _round),
    "floor": (1, 1, lambda value: Fraction(math.floor(value))),
    "ceil": (1, 1, lambda value: Fraction(math.ceil(value))),
    "min": (1, MAX_NODES, lambda *values: min(values)),
    "max": (1, MAX_NODES, lambda *values: max(values)),
    "average": (1, MAX_NODES, _average),
    "sin": (1, 1, lambda value: _without_noise(math.sin(value))),
    "cos": (1, 1, lambda value: _without_noise(math.cos(value))),
    "tan": (1, 1, _tan),
    "log": (1, 2, _log),
    "ln": (1, 1, lambda value: math.log(_positive(value))),
    "log10": (1, 1, lambda value: math.log10(_positive(value))),
    "log2": (1, 1, lambda value: math.log2(_positive(value))),
    "exp": (1, 1, math.exp),
    "factorial": (1, 1, _factorial),
    "mod": (2, 2, lambda left, right: left % right),
    "percent": (1, 1, lambda value: value / 100),
    "share": (2, 2, _share),
    "change": (2, 2, _change),
}
"""For each function, the fewest and the most arguments, and the implementation. Angles are in radians."""
