import pytest

from antiphon.speech.base import SpeechError, is_silent, needs_extra


@pytest.mark.parametrize("text", ["", " \n\t", "…", "...", " - ", "?!", "“”", "\x00\u200b", "\ud83d"])
def test_blanks_and_punctuation_make_no_sound(text: str) -> None:
    assert is_silent(text)


@pytest.mark.parametrize("text", ["a", "…and?", "7", "€", "+", "東京", "ß."])
def test_letters_numbers_and_symbols_are_said(text: str) -> None:
    assert not is_silent(text)


def test_a_missing_package_is_told_with_what_installs_it() -> None:
    told = r"^openai:m needs the package no_such_package, .*'antiphon\[openai\]'$"
    with pytest.raises(SpeechError, match=told), needs_extra("openai", "openai:m"):
        import no_such_package.part  # type: ignore[import-not-found]  # noqa: F401


def test_a_mistake_in_our_own_imports_stays_one() -> None:
    with pytest.raises(ModuleNotFoundError), needs_extra("openai", "openai:m"):
        import antiphon.no_such_module  # type: ignore[import-not-found]  # noqa: F401


def test_what_is_there_is_used() -> None:
    with needs_extra("local", "piper"):
        import json
    assert json.loads("1") == 1
