"""Units as people say them, and amounts with units."""

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.words.quantities import parse_quantity
from antiphon.words.units import UnitError, convert, parse_unit

SLOWEST_S = 0.05


def converted(value: float, source: str, target: str) -> float:
    return convert(value, parse_unit(source), parse_unit(target))[0]


def refusal(value: float, source: str, target: str) -> str:
    with pytest.raises(UnitError) as refused:
        converted(value, source, target)
    return str(refused.value)


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    [
        (5, "miles", "kilometers", 8.04672),
        (1, "mile", "feet", 5280),
        (100, "fahrenheit", "celsius", 37.7778),
        (-40, "degrees celsius", "°F", -40),
        (300, "K", "C", 26.85),
        (1, "liter", "cups", 4.22675),
        (1, "litre", "UK pints", 1.75975),
        (20, "pounds", "kilos", 9.07185),
        (10, "stone", "lbs", 140),
        (60, "mph", "km/h", 96.5606),
        (60, "miles an hour", "kilometres per hour", 96.5606),
        (3, "square feet", "m2", 0.278709),
        (1, "m^3", "liters", 1000),
        (2, "cubic feet", "gallons", 14.961),
        (1, "meters per second squared", "ft/s²", 3.28084),
        (3, "kilowatt hours", "joules", 10_800_000),
        (10, "newton meters", "foot pounds", 7.37562),
        (1, "tablespoon", "teaspoons", 3),
        (2, "fl oz", "ml", 59.1471),
        (90, "minutes", "hours", 1.5),
        (3, "light years", "parsecs", 0.919804),
        (100, "megabits per second", "MB/s", 12.5),
        (100, "Mbps", "megabytes per second", 12.5),
        (1, "acre", "hectares", 0.404687),
    ],
)
def test_units_are_understood_as_people_say_them(value: float, source: str, target: str, result: float) -> None:
    assert converted(value, source, target) == pytest.approx(result, rel=1e-4)


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    [
        (16, "ounces", "cups", 2),
        (16, "ounces", "pounds", 1),
        (1, "ton", "kilograms", 907.185),
        (1, "tonne", "kilograms", 1000),
        (1, "long ton", "kilograms", 1016.05),
        (1, "gallon", "liters", 3.78541),
        (1, "imperial gallon", "liters", 4.54609),
        (100, "degrees", "celsius", 37.7778),
        (100, "degrees", "fahrenheit", 212),
        (500, "kilojoules", "calories", 119.503),
        (1, "kilobyte", "bytes", 1000),
        (1, "kibibyte", "bytes", 1024),
        (1, "gb", "mb", 1000),
        (1, "Gb", "MB", 125),
    ],
)
def test_ambiguous_units_have_the_documented_meaning(value: float, source: str, target: str, result: float) -> None:
    assert converted(value, source, target) == pytest.approx(result, rel=1e-4)


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    [
        (30, "mpg", "liters per 100 km", 7.84049),
        (7, "l/100km", "miles per gallon", 33.6021),
        (30, "mpg", "uk mpg", 36.0285),
        (10, "liters per 100 kilometers", "kilometers per liter", 10),
    ],
)
def test_fuel_economy_is_converted_both_ways_round(value: float, source: str, target: str, result: float) -> None:
    assert converted(value, source, target) == pytest.approx(result, rel=1e-4)


@pytest.mark.parametrize(
    ("value", "source", "target", "told"),
    [
        (1, "banana", "apples", "I don't know the unit banana."),
        (5, "dollars", "euros", "I can't convert money, since exchange rates change all the time."),
        (1, "cup", "grams", "Cups and grams can't be converted without knowing what is weighed."),
        (1, "mile", "hours", "Miles can't be converted to hours: they measure different things."),
        (-300, "celsius", "kelvin", "That would be colder than absolute zero."),
        (1e300, "light years", "angstroms", "That number is too large for me."),
        (0, "mpg", "l/100km", "I can't convert that."),
        (1, "celsius per hour", "kelvin per hour", "I can't convert that."),
        (1, " ", "km", "I need to know the unit."),
        (1, "pinch", "grams", "I don't know the unit pinch."),
    ],
)
def test_what_cannot_be_converted_is_explained(value: float, source: str, target: str, told: str) -> None:
    assert refusal(value, source, target) == told


HOSTILE = [
    "m**999999999",
    "m^999999999",
    "m^4",
    "9**9**9",
    "m/m/m/m/m",
    "km km km km km km",
    "*" * 60,
    "square square square m",
    "__import__('os').system('true')",
    "kilo" * 15,
    "per per per",
    "²³" * 30,
    "\x00" * 60,
    "(" * 60,
    "meter " * 100,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_unit_that_is_an_expression_is_refused_at_once(text: str) -> None:
    parse_unit("km")
    began = time.perf_counter()
    with pytest.raises(UnitError):
        parse_unit(text)
    assert time.perf_counter() - began < SLOWEST_S


@given(
    st.one_of(
        st.text(max_size=80), st.lists(st.sampled_from([*"mkg²^*/ 23", "per ", "square "]), max_size=30).map("".join)
    )
)
def test_no_text_breaks_it(text: str) -> None:
    for _, unit in parse_quantity(text):
        # Anything but a UnitError fails the test.
        with suppress(UnitError):
            assert convert(1.0, parse_unit(unit), parse_unit("km"))


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        ("miles", [(None, "miles")]),
        ("a mile", [(None, "mile")]),
        ("five and a half miles", [(5.5, "miles")]),
        ("half a mile", [(0.5, "mile")]),
        ("three quarters of a cup", [(0.75, "cup")]),
        ("2 1/2 cups", [(2.5, "cups")]),
        ("1,500 meters", [(1500, "meters")]),
        ("5km", [(5, "km")]),
        ("minus forty celsius", [(-40, "celsius")]),
        ("5 feet 11 inches", [(5, "feet"), (11, "inches")]),
        ("six foot two", [(6, "foot"), (2, "inches")]),
        ("12 pounds and 3 ounces", [(12, "pounds"), (3, "ounces")]),
        ("liters per 100 km", [(None, "liters per 100 km")]),
        ("7.5 l/100km", [(7.5, "l/100km")]),
        ("20 m^2", [(20, "m^2")]),
        ("5'10\"", [(5, "feet"), (10, "inches")]),
        ("6’ 2”", [(6, "feet"), (2, "inches")]),
        ("5'11", [(5, "feet"), (11, "inches")]),
        ("6'", [(6, "feet")]),
        ('27"', [(27, "inches")]),
    ],
)
def test_amounts_are_found_before_their_units(said: str, parts: list[tuple[float | None, str]]) -> None:
    assert parse_quantity(said) == parts


@pytest.mark.parametrize(
    ("said", "plural"),
    [
        ("foot", "feet"),
        ("kilos", "kilograms"),
        ("inch", "inches"),
        ("celsius", "degrees Celsius"),
        ("mph", "miles per hour"),
        ("km/h", "kilometers per hour"),
        ("m2", "square meters"),
        ("psi", "pounds per square inch"),
        ("stone", "stone"),
        ("UK pint", "imperial pints"),
        ("newton meter", "newton meters"),
        ("l/100km", "liters per 100 kilometers"),
        ("calorie", "food calories"),
        ("light year", "light years"),
    ],
)
def test_units_are_said_in_words(said: str, plural: str) -> None:
    assert parse_unit(said).spoken(plural=True) == plural
