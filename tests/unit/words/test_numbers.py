import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.words.numbers import parse_number, parse_ordinal, to_digits, write_digits
from antiphon.words.speech import ordinal, speak_number, spell_number


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("zero", 0),
        ("seven", 7),
        ("nineteen", 19),
        ("forty two", 42),
        ("Forty-Two", 42),
        ("a hundred", 100),
        ("one hundred and five", 105),
        ("one hundred five", 105),
        ("nine hundred ninety nine", 999),
        ("twelve hundred", 1200),
        ("twelve thousand three hundred", 12_300),
        ("two thousand and five", 2005),
        ("a million", 1_000_000),
        ("one million two hundred thousand and six", 1_200_006),
        ("three trillion", 3 * 10**12),
        ("a dozen", 12),
        ("two dozen", 24),
        ("two point five", 2.5),
        ("point five", 0.5),
        ("zero point three three", 0.33),
        ("three point one four", 3.14),
        ("three point fourteen", 3.14),
        ("one point oh five", 1.05),
        ("two point five million", 2_500_000),
        ("half", 0.5),
        ("a half", 0.5),
        ("a quarter", 0.25),
        ("three quarters", 0.75),
        ("two and a half", 2.5),
        ("two and three quarters", 2.75),
        ("two and a half million", 2_500_000),
        ("half a million", 500_000),
        ("minus three", -3),
        ("negative two point five", -2.5),
        ("42", 42),
        ("-5", -5),
        ("1,024", 1024),
        ("2.5", 2.5),
        ("2.5 million", 2_500_000),
        ("5 hundred", 500),
        ("3 point 5", 3.5),
        ("3 point 05", 3.05),
    ],
)
def test_number_words_are_read(text: str, expected: float) -> None:
    found = parse_number(text)
    assert found == expected
    assert type(found) is type(expected)


NO_NUMBERS = (
    *("", " ", "banana", "a", "and", "minus", "hundred", "million", "point", "two thousand and", "five - two", "5-"),
    *("twenty ten", "nineteen eighty four", "two bananas", "one thousand thousand", "seven.", "third", "9" * 50),
)


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_text_that_is_not_one_number_gives_none(text: str) -> None:
    assert parse_number(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("first", 1),
        ("second", 2),
        ("third", 3),
        ("tenth", 10),
        ("Twelfth", 12),
        ("twentieth", 20),
        ("twenty-first", 21),
        ("thirty first", 31),
        ("hundredth", 100),
        ("one hundred and third", 103),
        ("3rd", 3),
        ("21st", 21),
    ],
)
def test_ordinals_are_read(text: str, expected: int) -> None:
    assert parse_ordinal(text) == expected


@pytest.mark.parametrize("text", ["", "three", "last", "banana third", "3", "half"])
def test_text_that_is_not_an_ordinal_gives_none(text: str) -> None:
    assert parse_ordinal(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("forty two times seventeen", "42 times 17"),
        ("one hundred and five plus a half of ten", "105 plus 0.5 of 10"),
        ("five minus three", "5 minus 3"),
        ("five-two", "5-2"),
        ("twenty twenty", "20 20"),
        ("I have a dog and two cats", "I have a dog and 2 cats"),
        ("3 point 5 plus 2", "3.5 plus 2"),
        ("max(1,200)", "max(1,200)"),
        ("log10(100)", "log10(100)"),
        ("one, two", "1, 2"),
        ("no numbers here", "no numbers here"),
        ("", ""),
    ],
)
def test_number_words_in_a_text_become_digits(text: str, expected: str) -> None:
    assert write_digits(text) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"),
        (-0.0, "0"),
        (7, "7"),
        (1024, "1,024"),
        (-3, "minus 3"),
        (2.5, "2.5"),
        (0.3, "0.3"),
        (0.125, "0.125"),
        (1234.5678, "1,234.5678"),
        (123456.78, "123,456.78"),
        (1 / 3, "about 0.333"),
        (-1 / 3, "about minus 0.333"),
        (3.14159265, "about 3.142"),
        (99.99999, "about 100"),
        (0.0001, "0.0001"),
        (0.00012345, "about 0.000123"),
        (999_999_999_999_999, "999,999,999,999,999"),
        (10**15, "10 to the 15"),
        (2**100, "about 1.27 times 10 to the 30"),
        (10**500 - 1, "about 10 to the 500"),
        (-2.5e20, "minus 2.5 times 10 to the 20"),
        (1e-7, "10 to the minus 7"),
        (1.234e-9, "about 1.23 times 10 to the minus 9"),
        (Decimal("2.50"), "2.5"),
        (float("inf"), "infinity"),
        (float("-inf"), "minus infinity"),
        (float("nan"), "not a number"),
    ],
)
def test_a_number_is_spoken_as_people_say_it(value: float | Decimal, expected: str) -> None:
    assert speak_number(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "zero"),
        (42, "forty-two"),
        (100, "one hundred"),
        (105, "one hundred and five"),
        (1005, "one thousand and five"),
        (1105, "one thousand one hundred and five"),
        (1_000_021, "one million and twenty-one"),
        (-7, "minus seven"),
    ],
)
def test_a_number_is_spelled_in_words(value: int, expected: str) -> None:
    assert spell_number(value) == expected


def test_a_number_too_large_for_words_is_refused() -> None:
    with pytest.raises(ValueError, match="too large"):
        spell_number(10**15)


@given(st.integers(1 - 10**15, 10**15 - 1))
def test_a_spelled_number_can_be_read_back(value: int) -> None:
    assert parse_number(spell_number(value)) == value


@given(st.integers(0, 10**15 - 1))
def test_a_spelled_number_in_a_text_becomes_its_digits(value: int) -> None:
    assert write_digits(f"say {spell_number(value)} now") == f"say {value} now"


@given(st.integers(1 - 10**15, 10**15 - 1))
def test_an_integer_below_ten_to_the_fifteenth_is_spoken_exactly(value: int) -> None:
    assert int(speak_number(value).replace("minus ", "-").replace(",", "")) == value


WORDS = ("one", "twenty", "hundred", "thousand", "million", "and", "a", "half", "quarters", "point", "oh", "7", "-")


@given(st.one_of(st.text(max_size=200), st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join)))
def test_no_text_breaks_the_readers(text: str) -> None:
    assert isinstance(write_digits(text), str)
    assert parse_number(text) is None or isinstance(parse_number(text), int | float)
    assert parse_ordinal(text) is None or isinstance(parse_ordinal(text), int)


@pytest.mark.parametrize("piece", ["one ", "9", "9 ", "point one ", "one hundred and ", "a ", "million ", "-", "oh "])
def test_long_texts_are_processed_quickly(piece: str) -> None:
    text = (piece * 5_000)[:5_000]
    began = time.perf_counter()
    write_digits(text)
    parse_number(text)
    assert time.perf_counter() - began < 1


@pytest.mark.parametrize(
    ("words", "digits"),
    [
        ("march twenty first", "march 21st"),
        ("the second of may", "the 2nd of may"),
        ("december thirty first nineteen ninety nine", "december 31st 19 99"),
        ("two thousand and six", "2006"),
        ("six thirty", "6 30"),
        ("six oh five", "6 05"),
        ("in a hundred days", "in 100 days"),
    ],
)
def test_numbers_become_digits_and_neighbours_stay_apart(words: str, digits: str) -> None:
    assert to_digits(words) == digits


@pytest.mark.parametrize("words", ["half past 6", "quarter to 7", "a second", "1 second", "an hour and a half"])
def test_halves_and_seconds_are_not_numbers(words: str) -> None:
    assert to_digits(words) == words


@pytest.mark.parametrize(
    ("number", "written"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (13, "13th"), (22, "22nd")]
)
def test_an_ordinal_has_its_ending(number: int, written: str) -> None:
    assert ordinal(number) == written
