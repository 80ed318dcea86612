"""Where arguments stand in a sentence."""

import pytest

from antiphon.words.readers import Reader, find, reads

FOUND = {
    Reader.WHEN: [
        ("pencil me in for the dentist on Tuesday at half past two", "on Tuesday at half past two"),
        ("poke me in an hour to check the oven", "in an hour"),
        ("every Monday at nine I want to be reminded of the report", "every Monday at nine"),
        ("I need waking at 6:45 on weekdays", "at 6:45 on weekdays"),
        ("let me know at six that it's time to leave", "at six"),
    ],
    Reader.DATE: [
        (
            "which day comes forty five days after the second of June",
            "forty five days after the second of June",
        ),
        ("how many sleeps are left before Christmas Eve", "Christmas Eve"),
        ("will my birthday on June 30th be on a Saturday", "on June 30th"),
    ],
    Reader.PERIOD: [
        ("have I got a gap on Thursday afternoon", "on Thursday afternoon"),
        ("find me an empty slot in the next three days", "in the next three days"),
    ],
    Reader.DURATION: [
        ("give me eight minutes for the eggs", "eight minutes"),
        ("I need to know when a quarter of an hour is up", "a quarter of an hour"),
        ("run a timer for the laundry, fifty minutes", "fifty minutes"),
    ],
    Reader.PLACE: [
        ("is it nice out in Valencia", "Valencia"),
        ("any chance of snow in Denver on Saturday", "Denver"),
        ("weather new york city tomorrow", "new york city"),
        ("what is it like in Poughkeepsie", "Poughkeepsie"),
    ],
    Reader.EXPRESSION: [
        (
            "do you know what forty five plus sixty seven is",
            "forty five plus sixty seven",
        ),
        ("take the square root of 225", "square root of 225"),
        ("I'd like 18 percent of 64 dollars", "18 percent of 64 dollars"),
    ],
    Reader.QUANTITY: [
        ("I ran ten kilometres, what is that in miles", "ten kilometres"),
        ("how many tablespoons go into a quarter cup", "a quarter cup"),
        ("turn 90 kilometres an hour into miles per hour", "90 kilometres an hour"),
    ],
    Reader.LIST: [
        ("put milk on my packing list", "packing"),
        ("read the groceries out to me", "groceries"),
        ("start a list called summer camp", "summer camp"),
    ],
    Reader.EMAIL: [("invite ann@example.org tomorrow", "ann@example.org")],
    Reader.DIGITS: [("my number is 555 12 34", "555 12 34")],
    Reader.TEXT: [('put "renew the passport" among my to dos', "renew the passport")],
}
NOT_FOUND = [
    (Reader.WHEN, "I have a dentist appointment"),
    (Reader.DURATION, "the second door on the left"),
    (Reader.PLACE, "is it nice outside"),
    (Reader.EXPRESSION, "what is the best time to visit Tokyo"),
    (Reader.EXPRESSION, "five people came to the party"),
    (Reader.QUANTITY, "how many people live here"),
    (Reader.LIST, "put it on my list"),
]


@pytest.mark.parametrize(("reader", "said", "expected"), [(r, *each) for r, all in FOUND.items() for each in all])
def test_an_argument_is_found_in_a_sentence(reader: Reader, said: str, expected: str) -> None:
    found = find(reader, said)
    assert found[0].text == expected
    assert expected in said[found[0].start : found[0].end]


@pytest.mark.parametrize(("reader", "said"), NOT_FOUND)
def test_other_words_are_no_argument(reader: Reader, said: str) -> None:
    assert find(reader, said) == []


def test_a_device_is_found_with_the_words_that_tell_which_one() -> None:
    names = {"lamp", "lights"}
    assert find(Reader.DEVICE, "I'd like the bedroom lamp at thirty percent", names)[0].text == "bedroom lamp"
    assert find(Reader.DEVICE, "please brighten lights", names)[0].text == "lights"


@pytest.mark.parametrize(
    ("reader", "said", "is_answer"),
    [
        (Reader.DURATION, "ten minutes please", True),
        (Reader.DURATION, "no idea", False),
        (Reader.WHEN, "tomorrow at nine", True),
        (Reader.WHEN, "what can you do", False),
        (Reader.TEXT, "call my mother", True),
    ],
)
def test_an_answer_is_told_from_other_words(reader: Reader, said: str, is_answer: bool) -> None:
    assert reads(reader, said) is is_answer


def test_places_in_time_do_not_take_each_others_words() -> None:
    first, second = find(Reader.DURATION, "ten minutes and then another five minutes")
    assert {first.text, second.text} == {"ten minutes", "five minutes"}
    assert not first.overlaps(second)
