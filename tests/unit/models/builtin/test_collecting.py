"""What was heard is read back, and a yes, a no or a correction settles it."""

import pytest

from antiphon.models.builtin.collecting import ReadBack, Settled, Wanted, ask_again, resolve
from antiphon.models.expectation import Expectation

DIGITS, SPELLING, EMAIL, NAME = Expectation.DIGITS, Expectation.SPELLING, Expectation.EMAIL, Expectation.NAME
NUMBER = ReadBack(DIGITS, "5551234")
Step = Settled | ReadBack | Wanted | None


def spoken(asked: Wanted | ReadBack, said: str) -> Step:
    return resolve(asked, said, is_spoken=True)


def typed(asked: Wanted | ReadBack, said: str) -> Step:
    return resolve(asked, said, is_spoken=False)


@pytest.mark.parametrize(
    ("kind", "said", "question"),
    [
        (DIGITS, "five five five one two three four", "That's 5 5 5, 1 2 3 4, right?"),
        (SPELLING, "S M I T H", "That's S, M, I, T, H, right?"),
        (EMAIL, "ann at example dot com", "That's ann at example dot com, right?"),
        (NAME, "my name is ann smith", "That's Ann Smith, right?"),
    ],
)
def test_a_spoken_value_is_read_back(kind: Expectation, said: str, question: str) -> None:
    step = spoken(Wanted(kind), said)
    assert isinstance(step, ReadBack)
    assert step.question == question


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (DIGITS, "(555) 123-4567", "5551234567"),
        (DIGITS, "five five five", "555"),
        (SPELLING, "McDuff", "McDuff"),
        (SPELLING, "s m i t h", "smith"),
        (EMAIL, "Ann.O'Neil@Example.com.", "Ann.O'Neil@Example.com"),
        (EMAIL, "ann at example dot com", "ann@example.com"),
        (NAME, "ann van der Berg", "ann van der Berg"),
    ],
)
def test_a_typed_value_is_exact(kind: Expectation, text: str, value: str) -> None:
    assert typed(Wanted(kind), text) == Settled(value)


@pytest.mark.parametrize(
    ("kind", "said"), [(DIGITS, "bananas"), (EMAIL, "ann"), (NAME, "I would rather not tell you that"), (NAME, "yes")]
)
def test_what_is_no_such_value_is_not_read(kind: Expectation, said: str) -> None:
    assert spoken(Wanted(kind), said) is None
    assert typed(Wanted(kind), said) is None


@pytest.mark.parametrize("yes", ["yes", "Yeah.", "That's right.", "Right.", "yes, that's it"])
def test_a_yes_settles_the_value(yes: str) -> None:
    assert spoken(NUMBER, yes) == Settled("5551234")


@pytest.mark.parametrize("no", ["No.", "nope", "No, that's wrong.", "That is not right.", "no, it isn't", "it's not"])
def test_a_no_asks_for_the_value_again(no: str) -> None:
    step = spoken(NUMBER, no)
    assert step == Wanted(DIGITS)
    assert isinstance(step, Wanted)
    assert step.question == "Sorry. Please say the number again, digit by digit."


@pytest.mark.parametrize(
    ("said", "corrected"),
    [
        ("no, five five six one two three four", "5561234"),
        ("5561234", "5561234"),
        ("five five five one two three four", "5551234"),
        ("no, one two three five", "5551235"),
        ("no, 5 5 6", "5561234"),
        ("No. It's 5-5-6.", "5561234"),
        ("no, 1 2 4 4", "5551244"),
        ("no, the last one is five", "5551235"),
        ("no, the last two are six seven", "5551267"),
        ("the first three are 5 5 6", "5561234"),
        ("no, nine not three", "5551294"),
        ("no, double five six", "5561234"),
    ],
)
def test_a_correction_is_read_back(said: str, corrected: str) -> None:
    assert spoken(NUMBER, said) == ReadBack(DIGITS, corrected)


@pytest.mark.parametrize(
    ("value", "said", "whole"),
    [
        ("555", "one two three four", "5551234"),
        ("5551234", "five six seven", "5551234567"),
        ("020", "seven nine four six", "0207946"),
        ("555", "five five six", "556"),
        ("555", "no, one two three four", "1234"),
        ("5551234", "five five six one two three four", "5561234"),
    ],
)
def test_the_rest_of_a_number_after_a_long_pause_is_added_to_it(value: str, said: str, whole: str) -> None:
    assert spoken(ReadBack(DIGITS, value), said) == ReadBack(DIGITS, whole)


@pytest.mark.parametrize(
    ("asked", "said", "corrected"),
    [
        (ReadBack(SPELLING, "smith"), "no, S M Y T H", "smyth"),
        (ReadBack(SPELLING, "smith"), "S M Y T H", "smyth"),
        (ReadBack(EMAIL, "ann@example.com"), "no, anna at example dot com", "anna@example.com"),
        (ReadBack(NAME, "Ann Smith"), "no, Anna Smith", "Anna Smith"),
    ],
)
def test_words_and_addresses_are_corrected_as_a_whole(asked: ReadBack, said: str, corrected: str) -> None:
    assert spoken(asked, said) == ReadBack(asked.kind, corrected)


@pytest.mark.parametrize(
    ("value", "said", "corrected"),
    [
        ("8407280000", "no, eight four zero, seven two eight", "840728"),
        ("84072800001234", "no, eight four one, seven nine nine", "841799"),
        ("5551234567", "no, one two three, four five six eight", "5551234568"),
    ],
)
def test_all_of_a_number_of_which_too_much_was_heard_takes_its_place(value: str, said: str, corrected: str) -> None:
    assert spoken(ReadBack(DIGITS, value), said) == ReadBack(DIGITS, corrected)


@pytest.mark.parametrize("said", ["no, that's a strange thing", "no, five not nine", "no, five five five"])
def test_a_denial_that_cannot_be_read_asks_again(said: str) -> None:
    assert spoken(NUMBER, said) is None
    assert ask_again(NUMBER, said) == Wanted(DIGITS, failures=1)


@pytest.mark.parametrize("asked", [NUMBER, ReadBack(SPELLING, "smith"), ReadBack(NAME, "Ann")])
@pytest.mark.parametrize("said", ["what's the weather like", "never mind", "thanks"])
def test_something_else_is_not_an_answer(asked: ReadBack, said: str) -> None:
    assert spoken(asked, said) is None


def test_an_unclear_answer_to_a_value_that_was_read_back_repeats_it() -> None:
    again = ask_again(NUMBER, "hmm, purple")
    assert again == ReadBack(DIGITS, "5551234", failures=1)
    assert isinstance(again, ReadBack)
    assert again.question == NUMBER.question


@pytest.mark.parametrize("asked", [Wanted(DIGITS, failures=1), ReadBack(DIGITS, "5551234", failures=1)])
def test_after_two_answers_that_cannot_be_read_it_is_not_asked_again(asked: Wanted | ReadBack) -> None:
    assert ask_again(asked, "bananas") is None
