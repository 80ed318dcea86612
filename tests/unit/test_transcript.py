"""The transcript keeps the order of the turns, whatever order their parts arrive in."""

from collections.abc import Callable

import msgspec
import pytest

from antiphon.transcript import (
    AssistantMessage,
    CallMade,
    Entry,
    Message,
    ToolMessage,
    Transcript,
    UserMessage,
    is_blank,
)

CALL = AssistantMessage(calls=(CallMade("c1", "get_time", {"timezone": "Tokyo"}),))
RESULT = ToolMessage("c1", "get_time", "noon", "It's noon.")


def make_transcript() -> Transcript:
    """A typed turn with a call, and a spoken one whose words are not known yet."""
    transcript = Transcript()
    transcript.set_user("one", "what time is it", at_ms=1)
    transcript.add(Entry("one", CALL))
    transcript.add(Entry("one", RESULT))
    transcript.set_answer("one", "It's noon.", at_ms=2)
    transcript.set_user("two", "", spoken=True, at_ms=3)
    transcript.set_answer("two", "Sunny.", spoken=True, at_ms=4)
    return transcript


ONE: list[Message] = [UserMessage("what time is it"), CALL, RESULT, AssistantMessage("It's noon.")]


def test_a_conversation_can_be_stored_and_read_again() -> None:
    conversation: list[Message] = [
        UserMessage("what time is it in Tokyo"),
        AssistantMessage(calls=(CallMade("c1", "get_time", {"timezone": "Tokyo"}),)),
        ToolMessage("c1", "get_time", {"error": {"type": "NOT_FOUND"}}, ok=False),
        AssistantMessage("I don't know that place."),
    ]
    stored = msgspec.json.encode(conversation)
    assert msgspec.json.decode(stored, type=list[Message]) == conversation


# The user's words.


def test_a_turn_without_words_yet_is_not_a_message() -> None:
    transcript = make_transcript()
    assert list(transcript.messages) == [*ONE, AssistantMessage("Sunny.")]
    assert transcript.user_entry("two") is not None


def test_late_words_take_their_reserved_place() -> None:
    transcript = make_transcript()
    transcript.set_user("three", "thanks")
    entry = transcript.set_user("two", "and the weather", spoken=False, at_ms=99)
    assert list(transcript.messages) == [
        *ONE,
        UserMessage("and the weather"),
        AssistantMessage("Sunny."),
        UserMessage("thanks"),
    ]
    assert (entry.spoken, entry.at_ms) == (True, 3), "the turn began when it began"


def test_late_words_come_first_in_their_turn() -> None:
    transcript = Transcript()
    transcript.add(Entry("one", CALL))
    transcript.add(Entry("one", RESULT))
    transcript.set_answer("two", "Hello.")
    transcript.set_user("one", "what time is it", spoken=True, at_ms=5)
    assert list(transcript.messages) == [UserMessage("what time is it"), CALL, RESULT, AssistantMessage("Hello.")]
    entry = transcript.user_entry("one")
    assert entry is not None
    assert (entry.spoken, entry.at_ms) == (True, 5)


def test_later_words_of_a_turn_replace_earlier_ones() -> None:
    transcript = make_transcript()
    transcript.set_user("one", "what time is it now")
    assert transcript.messages[0] == UserMessage("what time is it now")
    assert len(transcript.entries) == 6


# The answer.


def test_an_answer_is_truncated_in_place() -> None:
    transcript = make_transcript()
    entry = transcript.set_answer("one", "It's", spoken=True, at_ms=99)
    assert list(transcript.messages) == [*ONE[:-1], AssistantMessage("It's"), AssistantMessage("Sunny.")]
    assert (entry.spoken, entry.at_ms) == (False, 2)


def test_an_unheard_answer_is_removed_but_its_tool_calls_stay() -> None:
    transcript = make_transcript()
    transcript.set_answer("one", "")
    assert list(transcript.messages) == [*ONE[:-1], AssistantMessage("Sunny.")]


def test_a_message_with_calls_is_not_the_answer() -> None:
    transcript = Transcript([Entry("one", CALL), Entry("one", RESULT)])
    assert transcript.answer_entry("one") is None
    transcript.set_answer("one", "It's noon.")
    assert list(transcript.messages) == [CALL, RESULT, AssistantMessage("It's noon.")]


def test_additions_to_an_earlier_turn_come_at_its_end() -> None:
    transcript = Transcript()
    transcript.set_user("one", "book it")
    transcript.set_user("two", "hello")
    transcript.add(Entry("one", CALL))
    transcript.add(Entry("one", RESULT))
    assert list(transcript.messages) == [UserMessage("book it"), CALL, RESULT, UserMessage("hello")]


@pytest.mark.parametrize(
    ("message", "blank"),
    [
        (UserMessage(""), True),
        (UserMessage("hi"), False),
        (AssistantMessage(""), True),
        (AssistantMessage("hi"), False),
        (CALL, False),
        (ToolMessage("c1", "get_time", ""), False),
    ],
)
def test_a_message_is_blank_if_it_says_and_does_nothing(message: Message, blank: bool) -> None:
    assert is_blank(message) is blank
    assert (not Transcript([Entry("one", message)]).messages) is blank


# A turn that goes on under another id.


def test_a_continued_turn_comes_last_and_keeps_its_time() -> None:
    transcript = make_transcript()
    transcript.continue_as("one", "three")
    entry = transcript.set_user("three", "what time is it in Tokyo")
    assert entry.message == UserMessage("what time is it in Tokyo")
    assert entry.at_ms == 1
    assert [entry.turn for entry in transcript] == ["two"] * 2 + ["three"] * 4
    assert transcript.user_entry("one") is None


def test_a_missing_turn_cannot_be_continued() -> None:
    transcript = make_transcript()
    transcript.continue_as("unknown", "three")
    assert transcript.entries == make_transcript().entries


# What a model reads.


@pytest.mark.parametrize(("turn", "text"), [("one", "really?"), ("two", "and the weather"), ("new", "hello")])
def test_a_preview_with_these_words_equals_the_later_conversation(turn: str, text: str) -> None:
    transcript = make_transcript()
    expected = transcript.with_user(turn, text)
    assert transcript.entries == make_transcript().entries, "nothing has changed yet"
    transcript.continue_as(turn, turn)
    transcript.set_user(turn, text)
    assert list(expected) == list(transcript.messages)


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        ("one", []),
        ("two", ONE),
        ("new", [*ONE, AssistantMessage("Sunny.")]),
        (None, [*ONE, AssistantMessage("Sunny.")]),
    ],
)
def test_the_conversation_before_a_turn_excludes_it(turn: str | None, expected: list[Message]) -> None:
    assert list(make_transcript().before(turn)) == expected


@pytest.mark.parametrize(
    "change",
    [
        lambda transcript: transcript.set_user("three", "hi"),
        lambda transcript: transcript.set_answer("one", ""),
        lambda transcript: transcript.add(Entry("one", RESULT)),
    ],
)
def test_messages_already_read_do_not_change(change: Callable[[Transcript], object]) -> None:
    transcript = make_transcript()
    read = transcript.messages
    before = list(read)
    change(transcript)
    assert list(read) == before


def test_the_tail_of_a_transcript_begins_with_a_turn_and_grows() -> None:
    transcript = make_transcript()
    tail = transcript.since("two")
    assert tail.messages == transcript.messages[len(transcript.before("two")) :]
    transcript.set_user("four", "and then?")
    assert tail.messages[-1] == UserMessage("and then?")
    assert tail.before("four") == tail.messages[:-1]
    assert tail.with_user("five", "bye") == (*tail.messages, UserMessage("bye"))


def test_the_tail_stays_the_same_when_its_first_turn_is_continued() -> None:
    transcript = Transcript()
    for turn in ("one", "two", "three"):
        transcript.set_user(turn, turn)
    tail = transcript.since("two")
    transcript.continue_as("two", "two again")
    assert tail.messages == (UserMessage("three"), UserMessage("two"))


def test_the_tail_from_an_unknown_turn_on_is_everything() -> None:
    transcript = make_transcript()
    assert transcript.since(None).messages == transcript.since("other").messages == transcript.messages
