"""Converts an amount from one unit to another."""

import asyncio
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok
from antiphon.words import units
from antiphon.words.quantities import parse_quantity
from antiphon.words.speech import speak_number
from antiphon.words.units import Unit, UnitError, parse_unit

DIGITS: Final = 12
"""How many digits of a float are not noise."""
TEMPERATURE_DECIMALS: Final = 9
"""Otherwise 32 °F would be 0.00000000000006 °C."""
LARGEST_JSON_INTEGER: Final = 2**53
"""Beyond this, JavaScript loses digits."""
DIGITS_SAID: Final = 4
MILLION: Final = 6
"""As a power of ten."""
HOW_TO_ASK: Final = 'Name two units of the same kind, such as "miles" and "kilometers", or "UK pints" and "ml".'


def warm() -> None:
    units.warm()


async def execute(args: Args, context: Context) -> ToolResult:
    # In a thread, since the first conversion of a process may have to load the units.
    return await asyncio.to_thread(_convert, args) if not units.is_loaded() else _convert(args)


def _convert(args: Args) -> ToolResult:
    try:
        target = parse_unit(args["to_unit"])
        parts = [(value, parse_unit(unit)) for value, unit in parse_quantity(args["from_unit"])]
        said, source = _join(parts)
        if said is not None and args.get("value") not in (None, said):
            raise UnitError("There are two different amounts in that.")
        value = float(args.get("value", 1) if said is None else said)
        if not math.isfinite(value):
            raise UnitError("That number is too large for me.")
        found, source, target = units.convert(value, source, target)
    except UnitError as error:
        return fail(ErrorType.VALIDATION, str(error), suggestion=HOW_TO_ASK)
    value, result = _clean(value, source), _clean(found, target)
    data = {
        "value": value,
        "from_unit": source.spoken(plural=True),
        "result": result,
        "to_unit": target.spoken(plural=True),
    }
    asked = " ".join(_speak(*part) for part in parts) if len(parts) > 1 else _speak(value, source)
    return ok(data, spoken=f"{asked[:1].upper()}{asked[1:]} is {_speak_rounded(result, target)}.")


def _join(parts: Sequence[tuple[float | None, Unit]]) -> tuple[float | None, Unit]:
    """Adds up "5 feet 11 inches", in the first unit."""
    value, unit = parts[0]
    if value is None or len(parts) == 1:
        return value, unit
    if unit.is_temperature():
        raise UnitError("I can't add temperatures.")
    return value + sum(units.convert(more or 0.0, other, unit)[0] for more, other in parts[1:]), unit


def _clean(value: float, unit: Unit) -> int | float:
    """Rounds away the noise of floating point, and makes a whole number an integer."""
    rounded = round(float(value), TEMPERATURE_DECIMALS) if unit.is_temperature() else float(f"{value:.{DIGITS - 1}e}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < LARGEST_JSON_INTEGER else rounded


def _speak(value: float | None, unit: Unit) -> str:
    amount = Decimal(str(_clean(value or 0.0, unit)))
    return f"{speak_number(amount)} {unit.spoken(plural=amount != 1)}"


def _speak_rounded(value: int | float, unit: Unit) -> str:
    exact = Decimal(str(value))
    said = _round(exact, unit)
    words = speak_number(said)
    about = "" if said == exact or words.startswith("about") else "about "
    return f"{about}{words} {unit.spoken(plural=said != 1)}"


def _round(number: Decimal, unit: Unit) -> Decimal:
    """Rounds to what can be listened to: a tenth of a degree, or four digits. All digits of a whole part below a
    million are said."""
    if unit.is_temperature():
        return round(number, 1)
    decimals = DIGITS_SAID - 1 - number.adjusted()
    return round(number, decimals if number.adjusted() >= MILLION else max(0, decimals))
