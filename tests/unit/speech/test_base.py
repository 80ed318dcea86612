import pytest

from antiphon.speech.base import SpeechError, is_silent, needs_extra


@pytest.mark.parametrize("text", ["", " \n\t", "…", "...", " - ", "?!", "“”", "\x00\u200b", "\ud83d"])
def test_whitespace_and_punctuation_are_silent(text: str) -> None:
    assert is_silent(text)


@pytest.mark.parametrize("text", ["a", "…and?", "7", "€", "+", "東京", "ß."])
def test_letters_numbers_and_symbols_are_spoken(text: str) -> None:
    assert not is_silent(text)


def test_a_missing_package_is_reported_with_what_installs_it() -> None:
    told = r"^openai:m needs the package no_such_package, .*'antiphon\[openai\]'$"
    with pytest.raises(SpeechError, match=told), needs_extra("openai", "openai:m"):
        import no_such_package.part  # type: ignore[import-not-found]  # noqa: F401


def test_an_error_in_our_own_imports_is_raised_unchanged() -> None:
    with pytest.raises(ModuleNotFoundError), needs_extra("openai", "openai:m"):
        import antiphon.no_such_module  # type: ignore[import-not-found]  # noqa: F401


def test_an_installed_package_is_used() -> None:
    with needs_extra("local", "piper"):
        import json
    assert json.loads("1") == 1
