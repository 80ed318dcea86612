"""Works out a calculation that was said or typed."""

from decimal import Context as DecimalContext
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok
from antiphon.words.speech import speak_number

from .evaluator import CalculationError, Number, evaluate, parse
from .money import read_bill, speak_money, strip_currency
from .phrases import read_expression
from .wording import answer

EXACT_DIGITS: Final = 15
"""How many digits of an exact decimal a client's floating point number can hold."""
FLOAT_DIGITS: Final = 12
"""The last digits of a float are noise: the square root of 2, squared, is 2.0000000000000004."""
LARGEST_JSON_INTEGER: Final = 2**53
"""Beyond this, JavaScript loses digits."""
LARGEST_JSON_EXPONENT: Final = 307

HOW_TO_ASK: Final = (
    "Write it with numbers, the signs + - * / // % ** and parentheses, functions such as sqrt(2), or in words."
)


async def execute(args: Args, context: Context) -> ToolResult:
    try:
        text, currency = strip_currency(args["expression"])
        bill = read_bill(text)
        expression = read_expression(text) if bill is None else bill.expression
        tree = parse(expression)
        value = _round(evaluate(tree))
    except CalculationError as problem:
        return fail(ErrorType.VALIDATION, str(problem), suggestion=HOW_TO_ASK)
    data: dict[str, Any] = {"expression": expression, "result": _write(value)}
    if currency is not None:
        data["currency"] = currency
    if bill is not None:
        return ok(data, spoken=bill.answer(Decimal(value), currency))
    return ok(
        data, spoken=answer(tree, speak_number(value) if currency is None else speak_money(Decimal(value), currency))
    )


def _round(value: Number) -> int | Decimal:
    """Returns a whole number unchanged, and anything else rounded to its significant digits."""
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return value.numerator
        return DecimalContext(prec=EXACT_DIGITS).divide(Decimal(value.numerator), Decimal(value.denominator))
    rounded = Decimal(f"{value:.{FLOAT_DIGITS - 1}e}").normalize()
    is_whole = rounded == rounded.to_integral_value() and abs(rounded) <= LARGEST_JSON_INTEGER
    return int(rounded) if is_whole else rounded


def _write(value: int | Decimal) -> int | float | str:
    """Returns a JSON number, or a string of digits where a client's floating point would change the value."""
    if isinstance(value, int):
        return value if abs(value) <= LARGEST_JSON_INTEGER else str(value)
    return float(value) if abs(value.adjusted()) <= LARGEST_JSON_EXPONENT else str(value)
