"""Misspelt words are put right, and everything else stays as it is."""

from functools import cache

import pytest

from antiphon.models.builtin.typos import Speller
from antiphon.words.lexicon import Lexicon

WORDS = (
    *("timer", "alarm", "weather", "shopping", "calendar", "coin"),
    *("coat", "base", "light", "kitchen", "remind", "time"),
)


@cache
def speller() -> Speller:
    lexicon = Lexicon.load()
    assert lexicon is not None
    return Speller(WORDS, lexicon)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("pls set a timr", "please set a timer"),
        ("what tme is it", "what time is it"),
        ("set an allarm for 5:50", "set an alarm for 5:50"),
        ("Remnid me tommorow", "remind me tomorrow"),
        ("the wheather in Berlin", "the weather in Berlin"),
        ("flip a koin", "flip a coin"),
        ("turn on the kitchn lite", "turn on the kitchen lite"),
        ("add oat milk for the bake sale", "add oat milk for the bake sale"),
        ("call Mariusz and Timr", "call Mariusz and Timr"),
        ("set two timers", "set two timers"),
        ('note "timr"', 'note "timr"'),
        ("mail allarm@example.org", "mail allarm@example.org"),
        ("", ""),
    ],
)
def test_a_word_that_is_none_becomes_one_that_requests_are_made_of(said: str, meant: str) -> None:
    assert speller().put_right(said) == meant


def test_the_lexicon_knows_inflected_forms_and_rare_words() -> None:
    lexicon = Lexicon.load()
    assert lexicon is not None
    assert all(word in lexicon for word in ("bake", "Timers", "yoghurt", "descale"))
    assert not any(word in lexicon for word in ("timr", "wheather", "tommorow", ""))
