"""Digits, letters and addresses as people say them and as recognisers write them."""

import pytest

from antiphon.words.spelling import (
    group_digits,
    read_digits,
    read_email,
    read_name,
    read_spelling,
    say_digits,
    say_email,
    say_spelling,
)


@pytest.mark.parametrize(
    ("said", "digits"),
    [
        ("five five five one two three four", "5551234"),
        ("5551234", "5551234"),
        ("555-1234.", "5551234"),
        ("5-5-5, 1-2-3-4", "5551234"),
        ("1,234 567", "1234567"),
        ("double five", "55"),
        ("Double-5, 6", "556"),
        ("triple zero seven", "0007"),
        ("oh one oh two", "0102"),
        ("o one", "01"),
        ("fifty five", "55"),
        ("Fifty-five, one two.", "5512"),
        ("twenty twenty", "2020"),
        ("nineteen eighty four", "1984"),
        ("eight hundred five five five", "800555"),
        ("two thousand and one", "20001"),
        ("for to too ate won", "42281"),
        ("niner niner", "99"),
        ("Free A3, 236", "383236"),
        ("A36, A44.", "836844"),
        ("For it, one, two.", "4812"),
        ("363 933 it", "3639338"),
        ("it's a six", "6"),
        ("five five six, that's it", "556"),
        ("It's 555, um, 1234.", "5551234"),
        ("my number is five six", "56"),
        ("plus one five five", "+155"),
        ("sure, the code is 1 2 3 4 please", "1234"),
    ],
)
def test_digits_are_read(said: str, digits: str) -> None:
    assert read_digits(said) == digits


@pytest.mark.parametrize(
    "said", ["", "hello there", "five five banana", "it's my number", "what time is it", "double", "+"]
)
def test_what_is_not_digits_is_not_read_as_some(said: str) -> None:
    assert read_digits(said) is None


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("S M I T H", "smith"),
        ("S-M-I-T-H.", "smith"),
        ("It's S. M. I. T. H.", "smith"),
        ("Smith, S M I T H", "smith"),
        ("SMITH", "smith"),
        ("anna", "anna"),
        ("a as in apple, double n, a", "anna"),
        ("a as in apple, n for Nancy", "an"),
        ("M as in Nancy, see, are, why", "ncry"),
        ("bee oh bee", "bob"),
        ("tea oh em", "tom"),
        ("double u, i, double l", "will"),
        ("alpha bravo x-ray", "abx"),
        ("Charlie, Hotel, Uniform, Kilo", "chuk"),
        ("capital B, oh, bee", "Bob"),
        ("upper case b lower case o b", "Bob"),
        ("oh apostrophe n e i l", "o'neil"),
        ("bravo dash two", "b-2"),
        ("a underscore b", "a_b"),
    ],
)
def test_letters_are_read_as_a_word(said: str, word: str) -> None:
    assert read_spelling(said) == word


@pytest.mark.parametrize("said", ["", "the weather was fine today", "what time was it"])
def test_a_sentence_is_not_spelling(said: str) -> None:
    assert read_spelling(said) is None


@pytest.mark.parametrize(
    ("said", "address"),
    [
        ("ann dot smith at example dot com", "ann.smith@example.com"),
        ("ann.smith@example.com", "ann.smith@example.com"),
        ("Ann.Smith at example.com.", "ann.smith@example.com"),
        ("Ann. Smith at example. com", "ann.smith@example.com"),
        ("It's A N N at gmail dot com", "ann@gmail.com"),
        ("A-N-N at g mail dot com", "ann@gmail.com"),
        ("my e-mail is j as in john, dot, miller forty two at mail dot example dot org", "j.miller42@mail.example.org"),
        ("bob underscore jones at company dash name dot co dot uk", "bob_jones@company-name.co.uk"),
        ("info at example dot org", "info@example.org"),
        ("double you at example dot com", "w@example.com"),
        ("ann two five at example dot com", "ann25@example.com"),
    ],
)
def test_an_address_is_read(said: str, address: str) -> None:
    assert read_email(said) == address


@pytest.mark.parametrize(
    "said", ["", "no idea", "ann dot smith", "meet me at noon", "at example dot com", "look at that"]
)
def test_what_is_no_address_is_not_made_one(said: str) -> None:
    assert read_email(said) is None


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("my name is ann smith", "Ann Smith"),
        ("It's Anna.", "Anna"),
        ("call me Bob", "Bob"),
        ("Mary-Jane O'Neil", "Mary-Jane O'Neil"),
        ("ludwig van Beethoven", "Ludwig Van Beethoven"),
        ("Smith, S M Y T H", "Smyth"),
        ("S-M-Y-T-H", "Smyth"),
    ],
)
def test_a_name_is_read(said: str, name: str) -> None:
    assert read_name(said) == name


@pytest.mark.parametrize("said", ["", "123", "I would rather not tell you that right now"])
def test_what_is_no_name_is_not_read(said: str) -> None:
    assert read_name(said) is None


@pytest.mark.parametrize(
    ("digits", "groups"),
    [
        ("1234", ["1234"]),
        ("12345", ["123", "45"]),
        ("123456", ["123", "456"]),
        ("5551234", ["555", "1234"]),
        ("5551234567", ["555", "123", "4567"]),
        ("15551234567", ["1", "555", "123", "4567"]),
        ("+441234", ["+441", "234"]),
    ],
)
def test_digits_are_grouped_as_they_are_written(digits: str, groups: list[str]) -> None:
    assert group_digits(digits) == groups


def test_values_are_read_aloud_piece_by_piece() -> None:
    assert say_digits("5551234") == "5 5 5, 1 2 3 4"
    assert say_spelling("o'neil") == "O, apostrophe, N, E, I, L"
    assert say_email("ann.smith@example.com") == "ann dot smith at example dot com"


@pytest.mark.parametrize("digits", ["0", "42", "5551234", "0012300", "15551234567", "+15551234567", "9" * 20])
def test_digits_read_aloud_are_read_again(digits: str) -> None:
    assert read_digits(say_digits(digits)) == digits


@pytest.mark.parametrize("address", ["ann.smith@example.com", "a_b-c@mail.example.co.uk", "bob99@example.org"])
def test_an_address_read_aloud_is_read_again(address: str) -> None:
    assert read_email(say_email(address)) == address
