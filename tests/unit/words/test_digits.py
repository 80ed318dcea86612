import pytest

from antiphon.words.digits import ordinal, to_digits


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
def test_halves_and_seconds_are_no_numbers(words: str) -> None:
    assert to_digits(words) == words


@pytest.mark.parametrize(
    ("number", "written"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (13, "13th"), (22, "22nd")]
)
def test_an_ordinal_has_its_ending(number: int, written: str) -> None:
    assert ordinal(number) == written
