import pytest

from antiphon.models.completeness import (
    Completeness,
    can_continue,
    continue_request,
    ends_with_filler,
    is_hanging,
    is_listing,
    is_stem,
    is_unfinished,
)


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


@pytest.mark.parametrize(
    "text",
    [
        "What time is it in?",
        "what is fifteen plus",
        "Remind me, too.",
        "milk and",
        "my phone number is",
        "tell me about the",
        "What's the square root of?",
    ],
)
def test_some_last_words_need_another(text: str) -> None:
    assert is_hanging(text)
    assert is_unfinished(text)


@pytest.mark.parametrize(
    "text", ["What is it for?", "where are you from", "who are you talking about", "thank you, too", "Tell me a joke."]
)
def test_a_question_may_end_with_its_preposition(text: str) -> None:
    assert not is_hanging(text)


@pytest.mark.parametrize("text", ["Um.", "set an alarm for um", "I'd like, uh,", "hmm"])
def test_nobody_ends_with_a_filler(text: str) -> None:
    assert ends_with_filler(text)


@pytest.mark.parametrize(
    "text", ["Call me at 467-", "467-119", "five five five", "my code is 12 34", "milk, eggs", "Buy rice, bread."]
)
def test_digits_and_items_may_be_followed_by_more(text: str) -> None:
    assert is_listing(text)


@pytest.mark.parametrize(
    "text", ["Call me at 467-119-7308", "555-1234", "in 1998", "rice, bread and coffee", "Hello, please.", "a hum"]
)
def test_a_whole_number_and_the_last_item_end_a_list(text: str) -> None:
    assert not is_listing(text)


@pytest.mark.parametrize(
    "text",
    ["I was wondering.", "Could you read me?", "What's the capital?", "how do I", "the difference between New York"],
)
def test_some_words_only_begin_a_request(text: str) -> None:
    assert is_stem(text)


@pytest.mark.parametrize(
    "text",
    ["What's the capital of Australia?", "Split it between us.", "How do I reset my password?", "stop"],
)
def test_others_say_what_is_asked_for(text: str) -> None:
    assert not is_stem(text)


def judge(text: str) -> Completeness:
    known = {
        "what time is it": Completeness.EXTENDABLE,
        "what time is it in": Completeness.HANGING,
        "what time is it in Tokyo": Completeness.COMPLETE,
        "12 times 12": Completeness.COMPLETE,
        "12 times 12 plus ten": Completeness.COMPLETE,
        "plus one more thing": Completeness.COMPLETE,
    }
    return known.get(text, Completeness.BRIEF)


@pytest.mark.parametrize(
    ("before", "text", "joined"),
    [
        ("what time is it", "in Tokyo", "what time is it in Tokyo"),
        ("what time is it?", "In Tokyo", "what time is it in Tokyo"),
        ("what time is it in", "Tokyo", "what time is it in Tokyo"),
        ("12 times 12", "plus ten", "12 times 12 plus ten"),
        ("what time is it", "Tokyo", None),
        ("what time is it", "in the middle of it all somewhere", None),
        ("what time is it", "in a hurry", None),
        ("12 times 12", "plus one more thing", None),
        ("what time is it", "", None),
    ],
)
def test_a_few_words_may_only_complete_the_request_before_them(before: str, text: str, joined: str | None) -> None:
    assert continue_request(before, text, judge) == joined
