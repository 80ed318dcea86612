"""How much silence ends a turn, by its words, its melody and the question before it."""

import pytest

from antiphon.models.cascade.end_of_turn import COLLECTING_MS, LISTING_MS, Silences, end_probability, needs_melody
from antiphon.models.completeness import Completeness
from antiphon.models.expectation import Expectation

SILENCES = Silences(short_ms=200, middle_ms=700, long_ms=900, unfinished_ms=2_000)


@pytest.mark.parametrize(
    ("completeness", "melody", "silence_ms"),
    [
        (Completeness.COMPLETE, 0.0, 200),
        (Completeness.COMPLETE, 1.0, 200),
        (Completeness.EXTENDABLE, 0.98, 200),
        (Completeness.EXTENDABLE, 0.9, 700),
        (Completeness.EXTENDABLE, 0.0, 700),
        (Completeness.UNKNOWN, 0.98, 700),
        (Completeness.UNKNOWN, 0.0, 900),
        (Completeness.BRIEF, 1.0, 900),
        (Completeness.PARTIAL, 1.0, 900),
        (Completeness.LISTING, 1.0, LISTING_MS),
        (Completeness.HANGING, 1.0, 2_000),
    ],
)
def test_words_come_first_and_melody_second(completeness: Completeness, melody: float, silence_ms: int) -> None:
    assert SILENCES.after(completeness, melody) == silence_ms


@pytest.mark.parametrize("expects", COLLECTING_MS)
def test_people_who_were_asked_for_something_to_note_down_may_pause(expects: Expectation) -> None:
    assert SILENCES.after(Completeness.BRIEF, 1.0, expects) == COLLECTING_MS[expects]
    assert SILENCES.after(Completeness.COMPLETE, 1.0, expects) == 200
    assert SILENCES.after(Completeness.HANGING, 1.0, expects) == 2_000


def test_nothing_expected_changes_nothing() -> None:
    assert set(COLLECTING_MS) == set(Expectation) - {Expectation.NOTHING}


def test_a_shorter_setting_does_not_cut_off_digits() -> None:
    hasty = Silences(short_ms=100, middle_ms=100, long_ms=100, unfinished_ms=100)
    assert hasty.after(Completeness.LISTING, 1.0) == LISTING_MS


@pytest.mark.parametrize("completeness", Completeness)
def test_the_probability_grows_with_the_melody_or_does_not_need_it(completeness: Completeness) -> None:
    low, high = (end_probability(completeness, melody) for melody in (0.0, 1.0))
    assert 0 < low <= high < 1
    assert needs_melody(completeness) == (low < high)
