"""What a client keeps in mind of its session, message by message."""

from msgspec.structs import replace

from antiphon.client.events import Incoming, NewSession, Resumed
from antiphon.client.resuming import Bookmark
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


def read(bookmark: Bookmark, *messages: ServerMessage | SpeechFrame) -> list[Incoming]:
    return [told for message in messages for told in bookmark.take(message)]


def in_session(*messages: ServerMessage) -> Bookmark:
    """After a first connection that has brought these."""
    bookmark = Bookmark(Hello())
    bookmark.open()
    read(bookmark, numbered(1, StateChanged(State.IDLE)), numbered(2, introduction("h1")), *messages)
    return bookmark


def test_the_first_hello_asks_for_nothing_to_be_resumed() -> None:
    hello = Bookmark(Hello(token="t")).open()
    assert hello == Hello(token="t")


def test_the_next_hello_has_the_handle_and_the_last_number() -> None:
    hello = in_session(chunk(3), chunk(4)).open()
    assert (hello.resume, hello.last_n) == ("h1", 4)


def test_a_new_handle_takes_the_place_of_the_old_one() -> None:
    assert in_session(numbered(3, introduction("h2"))).handle == "h2"


def test_the_handle_of_a_go_away_is_the_newest() -> None:
    assert in_session(numbered(3, GoAway(1000, "restart", "h9"))).handle == "h9"


def test_what_was_seen_is_not_told_again() -> None:
    bookmark = in_session(chunk(3), chunk(4))
    bookmark.open()
    told = read(bookmark, numbered(7, introduction("h2", resumed=True)), chunk(4), chunk(5), chunk(6))
    assert [each.n for each in told if isinstance(each, ServerMessage)] == [7, 5, 6]


def test_the_introduction_does_not_count_before_what_it_announces_has_come() -> None:
    bookmark = in_session(chunk(3))
    bookmark.open()
    read(bookmark, numbered(9, introduction("h2", resumed=True)), chunk(4))
    assert bookmark.last_n == 4


def test_the_handle_of_a_repeated_introduction_is_not_used() -> None:
    bookmark = in_session(chunk(3))
    bookmark.open()
    told = read(bookmark, numbered(9, introduction("h3", resumed=True)), numbered(5, introduction("h2", resumed=True)))
    assert bookmark.handle == "h3"
    assert len(told) == 2


def test_resuming_is_told_before_all_that_follows() -> None:
    bookmark = in_session(chunk(3))
    bookmark.open()
    told = read(bookmark, numbered(4, StateChanged(State.IDLE)), numbered(5, introduction("h2", resumed=True)))
    assert told[0] == Resumed("s1", 5)
    assert isinstance(told[1], StateChanged)


def test_a_refusal_to_resume_is_a_new_session_with_its_reason() -> None:
    bookmark = in_session(chunk(3))
    bookmark.open()
    told = read(
        bookmark,
        numbered(1, StateChanged(State.IDLE)),
        numbered(2, Error("The handle is too old.", ErrorCode.RESUME_REJECTED)),
        numbered(3, introduction("h7", session_id="s2")),
    )
    assert told[0] == NewSession("s2", "The handle is too old.")
    assert len(told) == 4


def test_the_numbers_of_a_new_session_start_again() -> None:
    bookmark = in_session(chunk(3), chunk(40))
    bookmark.open()
    told = read(bookmark, numbered(2, introduction("h7", session_id="s2")), chunk(3))
    assert told[-1] == chunk(3)
    assert bookmark.last_n == 3


def test_binary_speech_is_counted_as_any_message() -> None:
    bookmark = in_session()
    read(bookmark, SpeechFrame(3, 1, 0, b"\0\0"))
    assert bookmark.last_n == 3


def test_a_conversation_that_is_stored_is_asked_for_in_case_the_session_is_gone() -> None:
    brought = (InitialMessage(Role.USER, "earlier"),)
    bookmark = Bookmark(Hello(initial_messages=brought))
    bookmark.open()
    read(bookmark, numbered(1, introduction("h1")))
    assert bookmark.open().initial_messages == brought
    read(bookmark, numbered(2, introduction("h2", resumed=True)), numbered(3, Transcript("hello", is_final=True)))
    hello = bookmark.open()
    assert (hello.conversation_id, hello.initial_messages) == ("c1", ())


def test_a_server_without_introductions_is_understood() -> None:
    bookmark = Bookmark(Hello())
    bookmark.open()
    basic = StateChanged(State.IDLE)
    assert read(bookmark, basic, basic) == [basic, basic]
    assert bookmark.open().resume is None


def test_what_was_held_back_is_told_when_the_connection_goes() -> None:
    bookmark = in_session()
    bookmark.open()
    error = numbered(1, Error("a valid token is required", ErrorCode.UNAUTHENTICATED))
    assert read(bookmark, error) == []
    assert list(bookmark.close()) == [error]
