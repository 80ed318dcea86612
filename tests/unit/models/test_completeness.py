import pytest

from antiphon.models.completeness import can_continue, is_unfinished


@pytest.mark.parametrize(
    "text", ["remind me to", "I would like a table for.", "I was wondering,", "Because the", "well…", "Turn OFF my"]
)
def test_some_last_words_leave_a_sentence_open(text: str) -> None:
    assert is_unfinished(text)


@pytest.mark.parametrize("text", ["", "stop", "what is it for me?", "into it", "Tell me a joke."])
def test_other_last_words_do_not(text: str) -> None:
    assert not is_unfinished(text)


@pytest.mark.parametrize(
    "text",
    [
        "how many days until March?",
        "forty six plus two hundred",
        "until May.",
        "two thousand",
        "plus 200?",
        "17 times 1300",
    ],
)
def test_a_month_and_a_round_number_may_be_continued(text: str) -> None:
    assert can_continue(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ten",
        "times 10",
        "times 30",
        "plus ninety",
        "plus 105",
        "March the sixteenth",
        "plus seven",
        "maybe",
        "in Marching",
        "0",
        "two hundred and",
    ],
)
def test_other_words_are_not_expected_to_continue(text: str) -> None:
    assert not can_continue(text)
