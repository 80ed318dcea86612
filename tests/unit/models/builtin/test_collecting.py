"""What was heard is read back, and a yes, a no or a correction settles it."""

import pytest

from antiphon.models.builtin.collecting import AskAgain, ReadBack, Settled, find_question, pending, read, resolve
from antiphon.models.expectation import Expectation
from antiphon.transcript import AssistantMessage, Message, UserMessage

DIGITS, SPELLING, EMAIL, NAME = Expectation.DIGITS, Expectation.SPELLING, Expectation.EMAIL, Expectation.NAME
NUMBER = ReadBack(DIGITS, "5551234")


def dialogue(question: str, answer: str) -> list[Message]:
    return [UserMessage("the beginning"), AssistantMessage(question), UserMessage(answer)]


@pytest.mark.parametrize(
    ("kind", "said", "question"),
    [
        (DIGITS, "five five five one two three four", "That's 5 5 5, 1 2 3 4, right?"),
        (SPELLING, "S M I T H", "That's S, M, I, T, H, right?"),
        (EMAIL, "ann at example dot com", "That's ann at example dot com, right?"),
        (NAME, "my name is ann smith", "That's Ann Smith, right?"),
        (DIGITS, "bananas", "Sorry. Please say the number again, digit by digit."),
    ],
)
def test_an_answer_is_read_back_or_asked_for_again(kind: Expectation, said: str, question: str) -> None:
    assert read(kind, said).question == question


@pytest.mark.parametrize(
    "asked",
    [
        NUMBER,
        ReadBack(DIGITS, "+15551234567"),
        ReadBack(SPELLING, "smith"),
        ReadBack(EMAIL, "ann.smith@example.com"),
        ReadBack(NAME, "Ann Smith"),
        *(AskAgain(kind) for kind in (DIGITS, SPELLING, EMAIL, NAME)),
    ],
)
def test_a_question_is_recognised_by_its_words(asked: ReadBack | AskAgain) -> None:
    assert find_question(asked.question) == asked
    assert find_question(f"All right. {asked.question}") == asked
    assert pending(dialogue(asked.question, "yes")) == asked


@pytest.mark.parametrize("text", ["", "That's right.", "You said: That's 5 5 5, right? No.", "It is noon, right?"])
def test_other_sentences_are_no_such_question(text: str) -> None:
    assert find_question(text) is None
    assert resolve(dialogue(text, "yes")) is None


@pytest.mark.parametrize("yes", ["yes", "Yeah.", "That's right.", "five five five one two three four"])
def test_a_yes_settles_the_value(yes: str) -> None:
    assert resolve(dialogue(NUMBER.question, yes)) == Settled(DIGITS, "5551234")


def test_a_no_asks_again() -> None:
    assert resolve(dialogue(NUMBER.question, "No.")) == AskAgain(DIGITS)
    assert resolve(dialogue(AskAgain(DIGITS).question, "five five six one two three four")) == ReadBack(
        DIGITS, "5561234"
    )


@pytest.mark.parametrize(
    ("said", "corrected"),
    [
        ("no, five five six one two three four", "5561234"),
        ("5561234", "5561234"),
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
    assert resolve(dialogue(NUMBER.question, said)) == ReadBack(DIGITS, corrected)


@pytest.mark.parametrize(
    ("asked", "said", "corrected"),
    [
        (ReadBack(SPELLING, "smith"), "no, S M Y T H", "smyth"),
        (ReadBack(EMAIL, "ann@example.com"), "no, anna at example dot com", "anna@example.com"),
        (ReadBack(NAME, "Ann Smith"), "no, Anna Smith", "Anna Smith"),
    ],
)
def test_words_and_addresses_are_corrected_as_a_whole(asked: ReadBack, said: str, corrected: str) -> None:
    assert resolve(dialogue(asked.question, said)) == ReadBack(asked.kind, corrected)


@pytest.mark.parametrize("said", ["no, that's a strange thing", "no, five not nine"])
def test_a_denial_that_cannot_be_read_asks_again(said: str) -> None:
    assert resolve(dialogue(NUMBER.question, said)) == AskAgain(DIGITS)


def test_something_else_is_not_an_answer() -> None:
    assert resolve(dialogue(NUMBER.question, "what's the weather like")) is None
    assert resolve(dialogue(AskAgain(DIGITS).question, "never mind")) is None


def test_after_a_call_nothing_is_pending() -> None:
    assert pending([UserMessage("hello")]) is None
    assert pending([]) is None
