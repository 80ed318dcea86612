"""People are told what they said. What cannot be changed for certain is quoted."""

import pytest

from antiphon.words.reported import join, report, shorten, to_second_person


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("What time is it in Tokyo?", "you asked what time it is in Tokyo"),
        ("what is 15 % of 80", "you asked what 15 % of 80 is"),
        ("What's the capital of France?", "you asked what the capital of France is"),
        ("Is it raining in Oslo?", "you asked whether it is raining in Oslo"),
        ("Will it rain tomorrow?", "you asked whether it will rain tomorrow"),
        ("do I have any meetings today", "you asked whether you have any meetings today"),
        ("how long does it take to boil an egg", "you asked how long it takes to boil an egg"),
        ("How do I get to the station?", "you asked how to get to the station"),
        ("who wrote Hamlet", "you asked who wrote Hamlet"),
        ("how many feet are in a mile", "you asked how many feet are in a mile"),
        ("do you know what time it is", "you asked what time it is"),
        ("and what day is that", "you asked what day that is"),
        ("what is that song", "you asked what that song is"),
        ("Is there a bank near me?", "you asked whether there is a bank near you"),
    ],
)
def test_questions_are_told_in_the_order_of_a_statement(said: str, told: str) -> None:
    assert str(report(said)) == told


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("set a timer for ten minutes", "you asked me to set a timer for ten minutes"),
        ("Can you remind me to call my mother?", "you asked me to remind you to call your mother"),
        ("please tell me a joke", "you asked me to tell you a joke"),
        ("Hey, can you tell me a joke?", "you asked me to tell you a joke"),
        ("tell me what you can do", "you asked what I can do"),
        ("do it now", "you asked me to do it now"),
        ("What's your name?", "you asked what my name is"),
        ("Are you a robot?", "you asked whether I am a robot"),
        ("How are you?", "you asked how I am"),
        ("My name is Anna.", "you said your name is Anna"),
        ("I am 30 and my sister was born in May", "you said you are 30 and your sister was born in May"),
        ("What time is it in the US?", "you asked what time it is in the US"),
    ],
)
def test_persons_are_exchanged(said: str, told: str) -> None:
    assert str(report(said)) == told


@pytest.mark.parametrize(
    ("said", "act"),
    [
        ("What's the weather like in Paris tomorrow?", "you asked"),
        ("what time does the train leave", "you asked"),
        ("which is bigger, the moon or the sun", "you asked"),
        ("I think you're wrong", "you said"),
        ("two plus two", "you said"),
        ("Um wie viel Uhr fährt der Zug?", "you asked"),
        ("I live in Berlin. What's on tonight?", "you asked"),
        ("Wie spät ist es?", "you asked"),
        ("Was ist das?", "you asked"),
        ("¿Qué hora es", "you asked"),
        ("今何時ですか", "you asked"),
        ("现在几点了吗", "you asked"),
        ("Ich heiße Anna", "you said"),
    ],
)
def test_what_cannot_be_changed_for_certain_is_quoted(said: str, act: str) -> None:
    assert str(report(said)) == f"{act} “{said}”"


@pytest.mark.parametrize(
    "said", ["", " … ", "uh", "[cough]", "Hello!", "good morning", "thank you so much", "yes", "ok", "no, never mind"]
)
def test_noise_greetings_and_thanks_are_not_told(said: str) -> None:
    assert report(said) is None


def test_noise_around_a_request_is_left_out() -> None:
    assert str(report("Hi there! [cough] What time is it?")) == "you asked what time it is"


def test_a_long_text_is_quoted_in_part() -> None:
    told = str(report("I want " + "very " * 1_000_000 + "much"))
    assert len(told) <= 135
    assert told.endswith("very…”")


def test_texts_are_cut_at_the_end_of_a_word() -> None:
    assert shorten("one two three", 13) == "one two three"
    assert shorten("one two three", 12) == "one two…"
    assert shorten("one two, three", 10) == "one two…"
    assert shorten("天" * 20, 10) == "天" * 9 + "…"
    assert shorten("e\u0301" * 20, 10) == "e\u0301" * 4 + "…"


def test_clauses_are_joined() -> None:
    assert [join(["a", "b", "c"][:n]) for n in range(4)] == ["", "a", "a and b", "a, b, and c"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("call my mother", "call your mother"),
        ("I have to leave", "you have to leave"),
        ("I'm late for our meeting", "you're late for your meeting"),
        ("call your mother", "call your mother"),
        ("ask if you are free", "ask if you are free"),
        ("buy US stamps", "buy US stamps"),
    ],
)
def test_what_people_call_theirs_is_told_to_them(said: str, told: str) -> None:
    assert to_second_person(said) == told
