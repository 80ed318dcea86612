"""The client against a server on a real socket: turns, lost connections, refusals."""

import asyncio
from typing import Any
from urllib.parse import urlsplit

import pytest

from antiphon.client import (
    Backoff,
    Disconnected,
    Incoming,
    NewSession,
    Reconnecting,
    Resumed,
    Session,
    TurnLost,
    connect,
)
from antiphon.client.connection import dial
from antiphon.protocol import codec
from antiphon.protocol.client_messages import AudioFrame, Confirm, Hello, Mode, Ping, TextMessage
from antiphon.protocol.closing import BLOCKED, FULL, NORMAL, RESTARTING, TAKEN_OVER, UNAUTHENTICATED, Close
from antiphon.protocol.errors import ErrorCode
from antiphon.protocol.server_messages import (
    Error,
    GoAway,
    Notice,
    NoticeKind,
    Pong,
    Response,
    ResponseChunk,
    SpeechFrame,
    State,
    StateChanged,
)
from tests.unit.client.scripted_server import Caller, introduction, play

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(20)]

SOON = Backoff(first_s=0.01, longest_s=0.02)


async def converse(caller: Caller) -> None:
    """Greets, and answers each message with its own words."""
    await caller.greet()
    while True:
        heard = await caller.hear()
        assert isinstance(heard, TextMessage)
        await caller.answer(heard.text)


async def one_turn(session: Session, text: str) -> list[Incoming]:
    return [message async for message in session.type(text)]


async def read_into(told: list[Incoming], session: Session) -> None:
    async for message in session.messages():
        told.append(message)


def answers(told: list[Incoming]) -> list[str]:
    return [message.text for message in told if isinstance(message, Response)]


def kinds(told: list[Incoming]) -> list[str]:
    return [type(message).__name__ for message in told]


# A connection that holds.


async def test_a_turn_ends_when_the_server_is_idle_again() -> None:
    async with play(converse) as server, connect(server.url) as session:
        first = await one_turn(session, "one")
        second = await one_turn(session, "two")
    assert answers(first) == ["one"]
    assert kinds(second) == ["StateChanged", "ResponseChunk", "Response", "StateChanged"]


@pytest.mark.parametrize(
    ("wanted", "mode"),
    [
        ({}, Mode.TEXT),
        ({"mode": Mode.VOICE}, Mode.VOICE),
        ({"hello": Hello(mode=Mode.VOICE)}, Mode.VOICE),
        ({"hello": Hello(mode=Mode.VOICE), "mode": Mode.TEXT}, Mode.TEXT),
    ],
    ids=["nothing", "mode", "hello", "both"],
)
async def test_a_session_is_in_text_unless_voice_is_requested(wanted: dict[str, Any], mode: Mode) -> None:
    async with play(converse) as server:
        async with connect(server.url, **wanted) as session:
            await one_turn(session, "hi")
        assert [hello.mode for hello in server.hellos] == [mode]


async def test_hello_has_the_token_and_what_the_caller_wants() -> None:
    async with play(converse) as server:
        async with connect(server.url, token="apn_x", hello=Hello(mode=Mode.TEXT)) as session:
            await one_turn(session, "hi")
        [hello] = server.hellos
    assert (hello.token, hello.mode, hello.resume) == ("apn_x", Mode.TEXT, None)
    assert hello.client is not None
    assert hello.client.startswith("antiphon-python/")


async def test_the_handle_and_the_last_number_are_remembered() -> None:
    async with play(converse) as server, connect(server.url) as session:
        await one_turn(session, "hi")
        assert (session.handle, session.last_n, session.conversation_id) == ("h1", 6, "c1")


async def test_leaving_says_goodbye() -> None:
    async with play(converse) as server:
        async with connect(server.url) as session:
            await one_turn(session, "hi")
        await asyncio.sleep(0.05)
        assert server.close_codes == [NORMAL.code]


async def test_an_error_before_the_answer_has_begun_ends_the_turn() -> None:
    async def refuse(caller: Caller) -> None:
        await caller.greet()
        await caller.hear()
        await caller.say(Error("I am still working on your last message.", "busy", retryable=True))
        await caller.stay()

    async with play(refuse) as server, connect(server.url) as session:
        told = await one_turn(session, "hi")
    assert isinstance(told[-1], Error)


async def test_an_error_within_an_answer_is_followed_to_the_state() -> None:
    async def fail(caller: Caller) -> None:
        await caller.greet()
        await caller.hear()
        error = Error("The model is busy.", ErrorCode.MODEL_FAILED)
        await caller.say(StateChanged(State.PROCESSING), error, StateChanged(State.IDLE))
        await caller.stay()

    async with play(fail) as server, connect(server.url) as session:
        told = await one_turn(session, "hi")
    assert kinds(told)[-2:] == ["Error", "StateChanged"]


async def test_what_came_before_a_turn_does_not_end_it() -> None:
    async def warn(caller: Caller) -> None:
        await caller.greet()
        await caller.say(StateChanged(State.PROCESSING), Error("busy", "busy"), StateChanged(State.IDLE))
        await converse_on(caller)

    async def converse_on(caller: Caller) -> None:
        heard = await caller.hear()
        assert isinstance(heard, TextMessage)
        await caller.answer(heard.text)
        await caller.stay()

    async with play(warn) as server, connect(server.url) as session:
        await asyncio.sleep(0.1)
        assert answers(await one_turn(session, "hi")) == ["hi"]


async def test_messages_of_unknown_types_are_skipped() -> None:
    async def surprise(caller: Caller) -> None:
        await caller.greet()
        await caller.connection.send('{"type":"hologram","n":3}')
        await caller.connection.send("not even JSON")
        caller.n = 3
        await caller.say(Pong(7))
        await caller.close(NORMAL)

    async with play(surprise) as server, connect(server.url) as session:
        told = [message async for message in session.messages()]
    assert kinds(told) == ["StateChanged", "Session", "Pong"]


async def test_binary_audio_comes_as_speech_frames() -> None:
    async def speak(caller: Caller) -> None:
        await caller.greet()
        await caller.connection.send(codec.encode_audio(3, 1, 0, b"\1\0\2\0"))
        await caller.close(NORMAL)

    async with play(speak) as server, connect(server.url) as session:
        told = [message async for message in session.messages()]
    assert told[-1] == SpeechFrame(3, 1, 0, b"\1\0\2\0")


async def test_audio_confirmations_and_other_messages_are_sent() -> None:
    heard: list[object] = []

    async def listen(caller: Caller) -> None:
        heard.append(codec.decode(await caller.connection.recv()))
        heard.extend([await caller.hear(), await caller.hear()])
        await caller.close(NORMAL)

    async with play(listen) as server, connect(server.url) as session:
        await session.send_audio(b"\1\0", playing=True)
        await session.confirm("apc_1", approved=False)
        await session.send(Ping(5))
        assert [message async for message in session.messages()] == []
    assert heard == [AudioFrame(True, b"\1\0"), Confirm("apc_1", False), Ping(5)]


# A connection that goes, and the caller has not asked to come back.


@pytest.mark.parametrize(("close", "come_back"), [(RESTARTING, True), (UNAUTHENTICATED, False), (TAKEN_OVER, False)])
async def test_a_close_is_an_error_that_says_whether_to_retry(close: Close, come_back: bool) -> None:
    async with play(lambda caller: caller.close(close)) as server, connect(server.url) as session:
        with pytest.raises(Disconnected, match=close.reason) as caught:
            [message async for message in session.messages()]
    assert (caught.value.close_code, caught.value.come_back) == (close.code, come_back)


async def test_the_end_of_the_session_in_the_middle_of_a_turn_is_an_error() -> None:
    async def end(caller: Caller) -> None:
        await caller.greet()
        await caller.hear()
        await caller.close(NORMAL)

    async with play(end) as server, connect(server.url) as session:
        with pytest.raises(Disconnected):
            await one_turn(session, "hi")


async def test_nothing_can_be_sent_after_the_end() -> None:
    async with play(lambda caller: caller.close(RESTARTING)) as server, connect(server.url) as session:
        with pytest.raises(Disconnected):
            [message async for message in session.messages()]
        with pytest.raises(Disconnected):
            await session.send(Ping(1))
        with pytest.raises(Disconnected):
            await session.send_audio(b"\0\0")


async def test_an_address_without_a_server_is_reported_in_one_clear_sentence() -> None:
    with pytest.raises(Disconnected, match=r"no server can be reached at ws://127\.0\.0\.1:9/ws") as caught:
        await dial("ws://127.0.0.1:9/ws")
    assert caught.value.come_back


async def test_an_invalid_address_is_reported_in_one_clear_sentence() -> None:
    with pytest.raises(Disconnected, match="An address looks like") as caught:
        await dial("ftp://127.0.0.1:8000/ws")
    assert not caught.value.come_back


@pytest.mark.parametrize("form", ["ws://{}/ws", "ws://{}", "http://{}", "http://{}/", "http://{}/ws"])
async def test_every_address_announced_by_a_server_works(form: str) -> None:
    async with play(converse) as server:
        socket = await dial(form.format(urlsplit(server.url).netloc))
        assert socket.request is not None
        assert socket.request.path == "/ws"
        await socket.close()


# A connection that goes, and the client comes back by itself.


async def test_an_interrupted_connection_resumes_the_answer_without_repetition() -> None:
    async def cut(caller: Caller) -> None:
        await caller.greet("h1")
        await caller.hear()
        await caller.say(StateChanged(State.PROCESSING), ResponseChunk("It is ", is_first=True))
        await asyncio.sleep(0.05)
        await caller.vanish()

    async def go_on(caller: Caller) -> None:
        seen_twice = ResponseChunk("It is ", is_first=True)
        missed = ResponseChunk("noon.", is_first=False)
        await caller.resume("h2", seen_twice, missed, after_n=3, state=State.PROCESSING)
        await caller.say(Response("It is noon."), StateChanged(State.IDLE))
        await caller.stay()

    async with play(cut, go_on) as server, connect(server.url, reconnect=True, backoff=SOON) as session:
        told = await one_turn(session, "what time is it")
        assert session.handle == "h2"
    chunks = [message.text for message in told if isinstance(message, ResponseChunk)]
    assert chunks == ["It is ", "noon."]
    assert answers(told) == ["It is noon."]
    assert (server.hellos[1].resume, server.hellos[1].last_n) == ("h1", 4)
    assert [name for name in kinds(told) if name in ("Reconnecting", "Resumed")] == ["Reconnecting", "Resumed"]


async def test_two_cuts_in_a_row_lose_nothing() -> None:
    async def cut(caller: Caller) -> None:
        await caller.greet("h1")
        await caller.hear()
        await caller.say(StateChanged(State.PROCESSING))
        await caller.vanish()

    async def cut_while_repeating(caller: Caller) -> None:
        caller.n = 5
        await caller.say(introduction("h2", resumed=True))
        caller.n = 3
        await caller.say(ResponseChunk("a", is_first=True))
        await caller.vanish()

    async def go_on(caller: Caller) -> None:
        missed = ResponseChunk("b", is_first=False)
        await caller.resume("h3", missed, introduction("h2", resumed=True), after_n=4, state=State.PROCESSING)
        await caller.say(Response("ab"), StateChanged(State.IDLE))
        await caller.stay()

    scenes = (cut, cut_while_repeating, go_on)
    async with play(*scenes) as server, connect(server.url, reconnect=True, backoff=SOON) as session:
        told = await one_turn(session, "hi")
        assert session.handle == "h3"
    assert [message.text for message in told if isinstance(message, ResponseChunk)] == ["a", "b"]
    assert [(hello.resume, hello.last_n) for hello in server.hellos[1:]] == [("h1", 3), ("h2", 4)]


async def test_a_message_that_never_arrived_is_reported_lost() -> None:
    async def cut(caller: Caller) -> None:
        await caller.greet()
        await caller.hear()
        await caller.vanish()

    async def know_nothing(caller: Caller) -> None:
        await caller.resume("h2", after_n=2)
        await caller.stay()

    async with play(cut, know_nothing) as server, connect(server.url, reconnect=True, backoff=SOON) as session:
        with pytest.raises(TurnLost, match="Send it again"):
            await one_turn(session, "hi")


async def test_messages_typed_while_disconnected_are_sent_after_reconnecting() -> None:
    async def vanish(caller: Caller) -> None:
        await caller.greet("h1")
        await caller.vanish()

    async def go_on(caller: Caller) -> None:
        heard = await caller.hear()
        assert isinstance(heard, TextMessage)
        missed = (StateChanged(State.PROCESSING), Response("of old"), StateChanged(State.IDLE))
        await caller.resume("h2", *missed, after_n=2)
        await caller.answer(heard.text)
        await caller.stay()

    async with play(vanish, go_on) as server, connect(server.url, reconnect=True, backoff=SOON) as session:
        async for message in session.messages():
            if isinstance(message, Reconnecting):
                break
        assert answers(await one_turn(session, "still there?")) == ["of old", "still there?"]


async def test_a_client_that_gets_go_away_reconnects_by_itself() -> None:
    async def restart(caller: Caller) -> None:
        await caller.greet("h1")
        await caller.say(GoAway(5_000, "the server restarts"))
        await caller.close(RESTARTING)

    async def go_on(caller: Caller) -> None:
        await caller.resume("h2", after_n=3)
        await caller.say(Notice(NoticeKind.INFO, "here again"))
        await caller.stay()

    told: list[Incoming] = []
    async with play(restart, go_on) as server, connect(server.url, reconnect=True, backoff=SOON) as session:
        async for message in session.messages():
            told.append(message)
            if isinstance(message, Notice):
                break
    assert kinds(told) == [
        *("StateChanged", "Session", "GoAway"),
        *("Reconnecting", "Resumed", "Session", "StateChanged", "Notice"),
    ]


async def test_a_server_that_forgets_to_close_after_go_away_is_left() -> None:
    async def forget(caller: Caller) -> None:
        await caller.greet("h1")
        await caller.say(GoAway(50, "the server restarts", "h9"))
        await caller.stay()

    async with play(forget, converse) as server, connect(server.url, reconnect=True, backoff=SOON) as session:
        async for message in session.messages():
            if isinstance(message, Reconnecting):
                break
        await one_turn(session, "hi")
    assert server.close_codes[0] == 1001
    assert server.hellos[1].resume == "h9"


async def test_a_session_that_cannot_be_resumed_is_a_new_one() -> None:
    async def vanish(caller: Caller) -> None:
        await caller.greet("h1")
        await caller.vanish()

    async def reject(caller: Caller) -> None:
        await caller.say(StateChanged(State.IDLE), Error("The handle has expired.", ErrorCode.RESUME_REJECTED))
        await caller.say(introduction("h7", session_id="s2"))
        heard = await caller.hear()
        assert isinstance(heard, TextMessage)
        await caller.answer(heard.text)
        await caller.stay()

    async with play(vanish, reject) as server, connect(server.url, reconnect=True, backoff=SOON) as session:
        async for message in session.messages():
            if isinstance(message, NewSession):
                break
        assert message == NewSession("s2", "The handle has expired.")
        assert answers(await one_turn(session, "hello again")) == ["hello again"]


async def test_a_turn_whose_session_is_gone_is_lost() -> None:
    async def cut(caller: Caller) -> None:
        await caller.greet()
        await caller.hear()
        await caller.say(StateChanged(State.PROCESSING))
        await caller.vanish()

    async with play(cut, converse) as server, connect(server.url, reconnect=True, backoff=SOON) as session:
        with pytest.raises(TurnLost):
            await one_turn(session, "hi")


async def test_a_full_server_is_retried() -> None:
    async def be_full(caller: Caller) -> None:
        await caller.close(FULL)

    async with play(be_full, be_full, converse) as server:
        async with connect(server.url, reconnect=True, backoff=SOON) as session:
            async for message in session.messages():
                if isinstance(message, NewSession):
                    break
            assert answers(await one_turn(session, "hi")) == ["hi"]
        assert len(server.hellos) == 3


@pytest.mark.parametrize("close", [UNAUTHENTICATED, BLOCKED, TAKEN_OVER])
async def test_a_refusal_is_not_retried(close: Close) -> None:
    async with play(lambda caller: caller.close(close)) as server:
        async with connect(server.url, reconnect=True, backoff=SOON) as session:
            with pytest.raises(Disconnected, match=str(close.code)):
                [message async for message in session.messages()]
            await asyncio.sleep(0.1)
        assert len(server.hellos) == 1


async def test_a_turn_that_is_refused_ends_with_the_close_that_follows() -> None:
    async def refuse(caller: Caller) -> None:
        await caller.say(Error("a valid token is required", ErrorCode.UNAUTHENTICATED))
        await asyncio.sleep(0.1)
        await caller.close(UNAUTHENTICATED)

    async with play(refuse) as server, connect(server.url) as session:
        with pytest.raises(Disconnected, match=str(UNAUTHENTICATED.code)):
            await one_turn(session, "hi")


async def test_a_refusal_after_a_lost_connection_ends_the_session() -> None:
    async def vanish(caller: Caller) -> None:
        await caller.greet()
        await caller.vanish()

    async def refuse(caller: Caller) -> None:
        await caller.say(Error("a valid token is required", ErrorCode.UNAUTHENTICATED))
        await caller.close(UNAUTHENTICATED)

    told: list[Incoming] = []
    async with play(vanish, refuse) as server, connect(server.url, reconnect=True, backoff=SOON) as session:
        with pytest.raises(Disconnected):
            await read_into(told, session)
    assert kinds(told)[-2:] == ["Reconnecting", "Error"]


async def test_a_client_that_waits_for_its_server_can_leave() -> None:
    async def vanish(caller: Caller) -> None:
        await caller.greet()
        await caller.vanish()

    later = Backoff(first_s=60, longest_s=60)
    async with play(vanish) as server, connect(server.url, reconnect=True, backoff=later) as session:
        told = []
        async for message in session.messages():
            told.append(message)
            if isinstance(message, Reconnecting):
                break
    assert not any(isinstance(message, Resumed) for message in told)


async def test_the_first_connection_fails_at_once_without_a_server() -> None:
    with pytest.raises(Disconnected):
        async with connect("ws://127.0.0.1:9/ws", reconnect=True, backoff=SOON):
            pass
