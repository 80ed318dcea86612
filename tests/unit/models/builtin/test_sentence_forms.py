"""The form of a sentence tells whether it asks for something."""

import pytest

from antiphon.models.builtin.sentence_forms import is_cut_off, is_declined, read_form


@pytest.mark.parametrize(
    ("text", "writes"),
    [
        ("how do I lock the door", False),
        ("tomorrow I'll remind him about the rent", False),
        ("I wonder whether the heating should be on", False),
        ("we might turn the heating on", False),
        ("add milk to the list", True),
        ("remind me to call Ann", True),
        ("remind me what alarms are set", None),
        ("the lights please", None),
        ("I could do with a timer", None),
        ("I'll need a timer for ten minutes", None),
    ],
)
def test_only_some_sentences_can_ask_for_a_change(text: str, writes: bool | None) -> None:
    assert read_form(text, text).writes is writes


@pytest.mark.parametrize(("text", "declined"), [("please don't set an alarm", True), ("don't let me forget", False)])
def test_what_is_not_to_be_done_is_recognised(text: str, declined: bool) -> None:
    assert is_declined(text) is declined


@pytest.mark.parametrize(("text", "cut_off"), [("turn on the", True), ("turn the light on", False), ("add", False)])
def test_a_sentence_that_needs_another_word_is_cut_off(text: str, cut_off: bool) -> None:
    assert is_cut_off(text) is cut_off
