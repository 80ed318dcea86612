"""Units of measurement as people say them, and conversion between them. pint knows the units; this knows the words.

What pint would evaluate as an expression never reaches it: names are looked up one by one, and only squares, cubes, one
"per" and products of a few units are put together here. So no text can ask for a large power or a long computation.
"""

import math
import re
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pint import UnitRegistry

MAX_UNIT_CHARS: Final = 60
MAX_FACTORS: Final = 3
MAX_SYMBOL_CHARS: Final = 4
"""The longest symbol with a prefix that is accepted, such as "kcal". pint would take "pinch" for a pico-inch."""
MIN_SPELLED_CHARS: Final = 3
"""The shortest name after a prefix that is spelled out. pint would take "kilos" for kiloseconds."""

_KNOWN_BY_OTHER_NAMES: Final = {
    **dict.fromkeys(("kilo", "kilos", "kilogramme", "kilogrammes"), "kilogram"),
    **dict.fromkeys(("gramme", "grammes"), "gram"),
    **dict.fromkeys(
        ("c", "centigrade", "celcius", "degree c", "degree celsius", "degree centigrade"), "degree_Celsius"
    ),
    **dict.fromkeys(("f", "farenheit", "degree f", "degree fahrenheit"), "degree_Fahrenheit"),
    **dict.fromkeys(("k", "degree kelvin"), "kelvin"),
    **dict.fromkeys(("calorie", "calories", "food calorie", "food calories", "big calorie"), "kilocalorie"),
    **dict.fromkeys(("gram calorie", "gram calories", "small calorie", "small calories", "cal"), "calorie"),
    **dict.fromkeys(("fl oz", "floz", "fluid oz"), "fluid_ounce"),
    **dict.fromkeys(("tonnes", "metric tonne", "metric tonnes"), "metric_ton"),
    **dict.fromkeys(("imperial ton", "imperial tons", "long tons"), "long_ton"),
    **dict.fromkeys(("kmh", "kmph", "kph", "clicks"), "kilometer_per_hour"),
    **dict.fromkeys(("amp hour", "amp hours"), "ampere_hour"),
    **dict.fromkeys(("btu", "btus"), "british_thermal_unit"),
    **dict.fromkeys(("millenia", "millennia"), "millennium"),
    "mps": "meter_per_second",
    "pounds per square inch": "psi",
    "pound per square inch": "psi",
}
_DATA_SYMBOLS: Final = {
    **{symbol: f"{prefix}byte" for symbol, prefix in (("kb", "kilo"), ("mb", "mega"), ("gb", "giga"), ("tb", "tera"))},
    # A capital letter before a small one is written with care, and means bits.
    **{symbol: f"{prefix}bit" for symbol, prefix in (("Kb", "kilo"), ("Mb", "mega"), ("Gb", "giga"), ("Tb", "tera"))},
}
_BITS_PER_SECOND: Final = re.compile(r"([kmgt])bps", re.IGNORECASE)
_REGIONS: Final = {
    **dict.fromkeys(("us", "u.s.", "american"), "us"),
    **dict.fromkeys(("uk", "u.k.", "british", "english", "imperial"), "imperial"),
}
_FUEL_ECONOMY: Final = {
    "mpg": "gallon",
    "us mpg": "gallon",
    "uk mpg": "imperial_gallon",
    "imperial mpg": "imperial_gallon",
}
_OTHER_MEANINGS: Final = {
    "ounce": "fluid_ounce",
    "pound": "force_pound",
    "degree": "degree_Fahrenheit",
    "minute": "arcminute",
    "second": "arcsecond",
}
"""What a word means instead, if the other unit cannot be compared with its usual meaning."""
_MONEY: Final = frozenset(
    ("dollar", "euro", "yen", "sterling", "franc", "rupee", "peso", "yuan", "won", "krona", "krone", "bitcoin", "cent")
)
_POWERS: Final = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cu": 3, "cubed": 3}
_NAME: Final = re.compile(r"[^\W\d_]+(?:[ _][^\W\d_]+)*")
_POWER: Final = re.compile(r"(?<=[^\W\d_])\s*(?:\^|\*\*)?\s*([23])$")
_PER: Final = re.compile(r"\s*/\s*|\s+(?:per|an?)\s+")
_HUNDRED: Final = re.compile(r"^(?:100|1|a hundred|one hundred)\s*(?=[^\W\d])")

_IRREGULAR_PLURALS: Final = {
    "foot": "feet",
    "inch": "inches",
    "century": "centuries",
    "millennium": "millennia",
    "stone": "stone",
    "hertz": "hertz",
    "horsepower": "horsepower",
    "siemens": "siemens",
    "kelvin": "kelvin",
    "lux": "lux",
    "revolutions": "revolutions",
}


_SAID_DIFFERENTLY: Final = {
    "force_pound": "pound-force",
    "kilocalorie": "food calorie",
    "pound_force_per_square_inch": "pound per square inch",
}


class UnitError(Exception):
    """The units cannot be converted. The text is a sentence for the user."""


@dataclass(frozen=True, slots=True)
class Unit:
    powers: tuple[tuple[str, int], ...]
    """pint's names, each with its power."""
    scale: float = 1.0
    """How many of these units it is: a liter per 100 kilometers is a hundredth of a liter per kilometer."""
    name: str | None = None
    """How it is said, if not by pint's names."""

    def is_temperature(self) -> bool:
        return len(self.powers) == 1 and self.powers[0][0] in _TEMPERATURES

    def spoken(self, plural: bool) -> str:
        if self.name is not None:
            return self.name
        factors = [(name, power) for name, power in self.powers if power > 0]
        # Only the last one is in the plural: "newton meters".
        above = [_speak_factor(*factor, plural and factor is factors[-1]) for factor in factors]
        below = [_speak_factor(name, -power, plural=False) for name, power in self.powers if power < 0]
        return " per ".join([" ".join(above), *below])


_TEMPERATURES: Final = frozenset({"degree_Celsius", "degree_Fahrenheit", "kelvin", "degree_Rankine", "degree_Reaumur"})


@cache
def _registry() -> "UnitRegistry[Any]":
    # Imported here: together they take half a second.
    from pint import UnitRegistry

    return UnitRegistry()


def warm() -> None:
    """Loads the units, which takes half a second, so that the first conversion is as quick as all others."""
    convert(1.0, parse_unit("mile"), parse_unit("kilometer"))


def is_loaded() -> bool:
    return _registry.cache_info().currsize > 0


def parse_unit(said: str) -> Unit:
    """Parses a unit: "miles", "km/h", "square feet", "UK pints", "degrees celsius". Raises `UnitError`."""
    text = _tidy(said)
    if not text or len(text) > MAX_UNIT_CHARS:
        raise _unknown(said)
    if text.casefold() in _FUEL_ECONOMY:
        return Unit((("mile", 1), (_FUEL_ECONOMY[text.casefold()], -1)), name=_speak_mpg(text.casefold()))
    text = _BITS_PER_SECOND.sub(lambda match: f"{match[1].upper()}b/second", text)
    whole = _find(text)
    if whole is not None:
        return Unit(((whole, 1),))
    above, *below = _PER.split(text)
    if len(below) > 1:
        raise _unknown(said)
    powers = _factors(above, said)
    scale, name = 1.0, None
    if below:
        hundred = _HUNDRED.match(below[0])
        if hundred and hundred[0].strip() != "1":
            scale = 0.01
        under = _factors(below[0][hundred.end() :] if hundred else below[0], said)
        powers += [(unit, -power) for unit, power in under]
        if scale != 1.0:
            name = f"{_speak_factor(*powers[0], plural=True)} per 100 {_speak_factor(*under[0], plural=True)}"
    merged: dict[str, int] = {}
    for unit, power in powers:
        merged[unit] = merged.get(unit, 0) + power
    return Unit(tuple((unit, power) for unit, power in merged.items() if power), scale, name)


def convert(value: float, source: Unit, target: Unit) -> tuple[float, Unit, Unit]:
    """Returns the value in the other unit, and both units as they were understood. Raises `UnitError`.

    A word with several meanings gets the one that fits the other unit: an ounce of volume is a fluid ounce.
    """
    source, target = _fit(source, target), _fit(target, source)
    pint = _registry()
    one, other = _units(source), _units(target)
    try:
        amount = pint.Quantity(value * source.scale, one)
        if one.is_compatible_with(other):
            _check_temperature(amount, source)
            found = amount.to(other).magnitude
        elif (1 / one).is_compatible_with(other) and _is_fuel(source) and _is_fuel(target):
            found = (1 / amount).to(other).magnitude
        else:
            raise _mismatch(source, target)
        result = float(found) / target.scale
        if not math.isfinite(result):
            raise UnitError("That number is too large for me.")
    except (ArithmeticError, ValueError, TypeError):
        # pint fails at degrees Celsius per hour, for example, or at nothing per gallon.
        raise UnitError("I can't convert that.") from None
    return result, source, target


def _fit(unit: Unit, other: Unit) -> Unit:
    if len(unit.powers) != 1 or unit.powers[0][1] != 1 or unit.powers[0][0] not in _OTHER_MEANINGS:
        return unit
    mine, theirs = _units(unit), _units(other)
    if mine.is_compatible_with(theirs):
        return unit
    meaning = _OTHER_MEANINGS[unit.powers[0][0]]
    if meaning == "degree_Fahrenheit" and other.powers[0][0] == meaning:
        meaning = "degree_Celsius"  # "what is 100 degrees in fahrenheit"
    fitting = replace(unit, powers=((meaning, 1),))
    return fitting if _units(fitting).is_compatible_with(theirs) else unit


def _check_temperature(amount: Any, unit: Unit) -> None:
    if unit.is_temperature() and amount.to("kelvin").magnitude < -1e-9:
        raise UnitError("That would be colder than absolute zero.")


def _is_fuel(unit: Unit) -> bool:
    return [power for _, power in unit.powers] == [1, -1]


def _units(unit: Unit) -> Any:
    pint = _registry()
    return pint.Unit(pint.UnitsContainer(dict(unit.powers)))


def _tidy(said: str) -> str:
    text = said.replace("²", "^2").replace("³", "^3").replace("°", " degree ").replace("-", " ")
    text = re.sub(r"\bdegrees?\b", "degree", " ".join(text.split()), flags=re.IGNORECASE)
    return re.sub(r"^(?:an?|the|of)\s+(?=\S)", "", text.strip(" .,?!"), flags=re.IGNORECASE)


def _factors(text: str, said: str) -> list[tuple[str, int]]:
    """Reads a product: "square feet", "m^2", "newton meters"."""
    parts = [part for part in re.split(r"\s*[*·]\s*", text.strip()) if part]
    products = [_product(part) for part in parts[: MAX_FACTORS + 1]]
    found = [factor for product in products for factor in product]
    if not all(products) or not 1 <= len(found) <= MAX_FACTORS:
        raise _unknown(said)
    return found


def _product(part: str) -> list[tuple[str, int]]:
    power = 1
    if exponent := _POWER.search(part):
        part, power = part[: exponent.start()], int(exponent[1])
    words = part.split()
    for place in (0, -1):
        if len(words) > 1 and words[place].casefold() in _POWERS:
            power *= _POWERS[words.pop(place).casefold()]
    if not 1 <= power <= max(_POWERS.values()):
        return []
    name = _find(" ".join(words))
    if name is not None:
        return [(name, power)]
    each = [_find(word) for word in words]
    return [(name, power) for name in each if name is not None] if len(each) > 1 and None not in each else []


@lru_cache(maxsize=1024)
def _find(text: str) -> str | None:
    """Finds pint's name of one unit."""
    known = text.casefold()
    name = _DATA_SYMBOLS.get(text) or _DATA_SYMBOLS.get(known) or _KNOWN_BY_OTHER_NAMES.get(known)
    if name is not None:
        return name
    if not _NAME.fullmatch(text) or len(text) > MAX_UNIT_CHARS:
        return None
    region, _, rest = known.partition(" ")
    if rest and region in _REGIONS:
        return _look_up(f"imperial_{_find(rest)}") if _REGIONS[region] == "imperial" else _find(rest)
    name = text.replace(" ", "_")
    return _look_up(name) or _look_up(name.lower())


def _look_up(name: str) -> str | None:
    for prefix, unit, _ in _registry().parse_unit_name(name):
        if not prefix:
            return str(unit)
        is_spelled = name.startswith(prefix)
        if len(name) - len(prefix) >= MIN_SPELLED_CHARS if is_spelled else len(name) <= MAX_SYMBOL_CHARS:
            return f"{prefix}{unit}"
    return None


def _unknown(said: str) -> UnitError:
    words = {word.rstrip("s") for word in said.casefold().split()}
    if words & _MONEY:
        return UnitError("I can't convert money, since exchange rates change all the time.")
    shown = " ".join(said.split())
    return UnitError(f"I don't know the unit {shown[:MAX_UNIT_CHARS]}." if shown else "I need to know the unit.")


def _mismatch(source: Unit, target: Unit) -> UnitError:
    one, other = source.spoken(plural=True), target.spoken(plural=True)
    kinds = {kind for kind in map(_kind, (source, target)) if kind is not None}
    if kinds == {"volume", "weight"}:
        return UnitError(f"{_capital(one)} and {other} can't be converted without knowing what is weighed.")
    return UnitError(f"{_capital(one)} can't be converted to {other}: they measure different things.")


def _kind(unit: Unit) -> str | None:
    dimensions = dict(_units(unit).dimensionality)
    return "volume" if dimensions == {"[length]": 3} else "weight" if dimensions == {"[mass]": 1} else None


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _speak_mpg(text: str) -> str:
    return "miles per imperial gallon" if text.startswith(("uk", "imperial")) else "miles per gallon"


def _speak_factor(name: str, power: int, plural: bool) -> str:
    words = _SAID_DIFFERENTLY.get(name, name.replace("_", " ")).split()
    # "mile per hour": what is counted comes before "per"; otherwise it is the last word, or the degrees.
    counted = words.index("per") - 1 if "per" in words else 0 if words[0] == "degree" else len(words) - 1
    if plural:
        words[counted] = _plural(words[counted])
    said = " ".join(words)
    return {1: said, 2: f"square {said}", 3: f"cubic {said}"}.get(power, f"{said} to the {power}")


def _plural(word: str) -> str:
    for ending, plural in _IRREGULAR_PLURALS.items():
        if word.endswith(ending):
            return f"{word.removesuffix(ending)}{plural}"
    return word if word.endswith("s") else f"{word}s"
