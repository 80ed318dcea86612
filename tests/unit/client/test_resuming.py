"""The resume state that a client keeps, message by message."""

from msgspec.structs import replace

from antiphon.client.events import Incoming, NewSession, Resumed
from antiphon.client.resuming import ResumePosition
from antiphon.protocol.client_messages import Hello, InitialMessage, Role
from antiphon.protocol.errors import ErrorCode
from antiphon.protocol.server_messages import (
    Error,
    GoAway,
    ResponseChunk,
    ServerMessage,
    SpeechFrame,
    State,
    StateChanged,
    Transcript,
)
from tests.unit.client.scripted_server import introduction


def numbered(n: int, message: ServerMessage) -> ServerMessage:
    return replace(message, n=n)


def chunk(n: int) -> ServerMessage:
    return numbered(n, ResponseChunk(f"word {n} ", is_first=False))


def read(position: ResumePosition, *messages: ServerMessage | SpeechFrame) -> list[Incoming]:
    return [told for message in messages for told in position.take(message)]


def in_session(*messages: ServerMessage) -> ResumePosition:
    """After a first connection that has brought these."""
    position = ResumePosition(Hello())
    position.open()
    read(position, numbered(1, StateChanged(State.IDLE)), numbered(2, introduction("h1")), *messages)
    return position


def test_the_first_hello_asks_for_nothing_to_be_resumed() -> None:
    hello = ResumePosition(Hello(token="t")).open()
    assert hello == Hello(token="t")


def test_the_next_hello_has_the_handle_and_the_last_number() -> None:
    hello = in_session(chunk(3), chunk(4)).open()
    assert (hello.resume, hello.last_n) == ("h1", 4)


def test_a_new_handle_replaces_the_old_one() -> None:
    assert in_session(numbered(3, introduction("h2"))).handle == "h2"


def test_the_handle_of_a_go_away_is_the_newest() -> None:
    assert in_session(numbered(3, GoAway(1000, "restart", "h9"))).handle == "h9"


def test_messages_already_seen_are_not_delivered_again() -> None:
    position = in_session(chunk(3), chunk(4))
    position.open()
    told = read(position, numbered(7, introduction("h2", resumed=True)), chunk(4), chunk(5), chunk(6))
    assert [each.n for each in told if isinstance(each, ServerMessage)] == [7, 5, 6]


def test_the_introduction_is_not_counted_before_the_replayed_messages_arrive() -> None:
    position = in_session(chunk(3))
    position.open()
    read(position, numbered(9, introduction("h2", resumed=True)), chunk(4))
    assert position.last_n == 4


def test_the_handle_of_a_repeated_introduction_is_not_used() -> None:
    position = in_session(chunk(3))
    position.open()
    told = read(position, numbered(9, introduction("h3", resumed=True)), numbered(5, introduction("h2", resumed=True)))
    assert position.handle == "h3"
    assert len(told) == 2


def test_resuming_is_reported_before_everything_that_follows() -> None:
    position = in_session(chunk(3))
    position.open()
    told = read(position, numbered(4, StateChanged(State.IDLE)), numbered(5, introduction("h2", resumed=True)))
    assert told[0] == Resumed("s1", 5)
    assert isinstance(told[1], StateChanged)


def test_a_refusal_to_resume_is_a_new_session_with_its_reason() -> None:
    position = in_session(chunk(3))
    position.open()
    told = read(
        position,
        numbered(1, StateChanged(State.IDLE)),
        numbered(2, Error("The handle is too old.", ErrorCode.RESUME_REJECTED)),
        numbered(3, introduction("h7", session_id="s2")),
    )
    assert told[0] == NewSession("s2", "The handle is too old.")
    assert len(told) == 4


def test_the_numbers_of_a_new_session_start_again() -> None:
    position = in_session(chunk(3), chunk(40))
    position.open()
    told = read(position, numbered(2, introduction("h7", session_id="s2")), chunk(3))
    assert told[-1] == chunk(3)
    assert position.last_n == 3


def test_binary_speech_is_counted_like_any_message() -> None:
    position = in_session()
    read(position, SpeechFrame(3, 1, 0, b"\0\0"))
    assert position.last_n == 3


def test_a_stored_conversation_is_requested_in_case_the_session_is_gone() -> None:
    brought = (InitialMessage(Role.USER, "earlier"),)
    position = ResumePosition(Hello(initial_messages=brought))
    position.open()
    read(position, numbered(1, introduction("h1")))
    assert position.open().initial_messages == brought
    read(position, numbered(2, introduction("h2", resumed=True)), numbered(3, Transcript("hello", is_final=True)))
    hello = position.open()
    assert (hello.conversation_id, hello.initial_messages) == ("c1", ())


def test_a_server_without_introductions_is_understood() -> None:
    position = ResumePosition(Hello())
    position.open()
    basic = StateChanged(State.IDLE)
    assert read(position, basic, basic) == [basic, basic]
    assert position.open().resume is None


def test_held_back_messages_are_delivered_when_the_connection_is_lost() -> None:
    position = in_session()
    position.open()
    error = numbered(1, Error("a valid token is required", ErrorCode.UNAUTHENTICATED))
    assert read(position, error) == []
    assert list(position.close()) == [error]
