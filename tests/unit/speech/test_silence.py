import pytest

from antiphon.speech.silence import is_silent


@pytest.mark.parametrize("text", ["", " \n\t", "…", "...", " - ", "?!", "“”", "\x00\u200b", "\ud83d"])
def test_blanks_and_punctuation_make_no_sound(text: str) -> None:
    assert is_silent(text)


@pytest.mark.parametrize("text", ["a", "…and?", "7", "€", "+", "東京", "ß."])
def test_letters_numbers_and_symbols_are_said(text: str) -> None:
    assert not is_silent(text)
