"""The connection to one model: its deadline, the reason of its end, and what it tells of the model's health."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from math import inf
from typing import Any

import pytest

from antiphon.continuity.connection import CONNECT_DEADLINE_S, ConnectionState, ModelConnection
from antiphon.models.base import FailureKind, ModelError
from antiphon.models.live import (
    Closed,
    CloseKind,
    GoAway,
    LiveContext,
    LiveEvent,
    ModelFactory,
    OutputText,
    ResumptionUpdate,
    TurnComplete,
    TurnFailed,
)
from antiphon.tools.spec import Mode
from antiphon.transcript import Transcript
from tests.fakes.scripted_live import Fail, GoAwayIn, HangUp, Hear, Mishear, Resumable, Say, ScriptedLive, Use

CONTEXT = LiveContext("", Transcript(), (), (), Mode.VOICE)
HELLO = Say("Hello.", audio_ms=0)


class Session:
    """What uses a connection, and what it was told."""

    def __init__(self, model: ScriptedLive) -> None:
        self.events: list[LiveEvent] = []
        factory = ModelFactory(model.profile, lambda: model)
        self.health = factory.health
        self.connection = ModelConnection(factory, lambda _, event: self.events.append(event), voice=("amy", 1.5))

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, OutputText))

    async def close(self) -> None:
        self.connection.close()
        await self.connection.wait_closed()


@asynccontextmanager
async def connected(model: ScriptedLive, resume: str | None = None) -> AsyncIterator[Session]:
    session = Session(model)
    await session.connection.connect(CONTEXT, resume)
    yield session
    await session.close()


async def refused(model: ScriptedLive) -> tuple[Session, ModelError]:
    session = Session(model)
    with pytest.raises(ModelError) as error:
        await session.connection.connect(CONTEXT)
    await session.close()
    return session, error.value


async def test_connecting_is_abandoned_at_the_deadline() -> None:
    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    session, error = await refused(ScriptedLive(connect_s=inf))
    assert loop.time() - begun_s == pytest.approx(CONNECT_DEADLINE_S, abs=0.1)
    assert (error.kind, error.retryable) == (FailureKind.TIMEOUT, True)
    assert "scripted could not be reached within 10 seconds" in str(error)
    assert session.events == []


async def test_a_model_that_fails_unexpectedly_is_reported_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken(ScriptedLive):
        async def connect(self, context: LiveContext, resume: str | None = None) -> None:
            raise ZeroDivisionError

    _, error = await refused(Broken())
    assert error.kind is FailureKind.UNEXPECTED
    assert "ZeroDivision" not in str(error)


async def test_a_refused_connection_has_the_reason_of_the_model() -> None:
    reason = ModelError("Too many.", rate_limited=True, retry_after_s=7)
    _, error = await refused(ScriptedLive(refuses=reason, connect_s=1))
    assert error is reason


async def test_the_voice_is_set_before_the_model_is_connected() -> None:
    model = ScriptedLive()
    session = Session(model)
    assert model.voice == ("amy", 1.5)
    await session.close()


async def test_a_connection_can_be_closed_while_it_is_being_made() -> None:
    model = ScriptedLive([HELLO], connect_s=inf)
    session = Session(model)
    connecting = asyncio.create_task(session.connection.connect(CONTEXT))
    await asyncio.sleep(1)
    connecting.cancel()
    await asyncio.wait([connecting])
    await asyncio.wait_for(session.close(), 1)
    assert session.connection.is_closed
    assert model.closed
    assert session.events == []


@pytest.mark.parametrize(
    "command",
    [
        lambda connection: connection.respond("one", "hi"),
        lambda connection: connection.say("one", "hi"),
        lambda connection: connection.send_tool_results("one", []),
        lambda connection: connection.end_audio("one"),
        lambda connection: connection.interrupt("one", None),
        lambda connection: connection.send_audio(bytes(640), playing=False),
    ],
)
async def test_a_closed_connection_accepts_no_more_commands(command: Callable[[ModelConnection], Any]) -> None:
    model = ScriptedLive([Hear("hi", after_ms=20), HELLO])
    async with connected(model) as session:
        session.connection.close()
        command(session.connection)
        await session.connection.wait_closed()
        command(session.connection)
        assert session.events == []
        assert (model.texts, model.said, model.interrupts, model.audio_bytes) == ([], [], [], 0)


async def test_a_command_the_model_refuses_fails_its_turn() -> None:
    model = ScriptedLive()
    async with connected(model) as session:
        # The connection has not noticed yet that the model is gone.
        model.closed = True
        session.connection.respond("one", "hi")
        (failed,) = session.events
        assert isinstance(failed, TurnFailed)
        assert failed.turn == "one"


async def test_a_handle_is_passed_on_and_newer_ones_are_told() -> None:
    model = ScriptedLive([Resumable("two"), Resumable(None)])
    async with connected(model, resume="one") as session:
        await asyncio.sleep(1)
        assert model.resumed_with == "one"
        assert session.events == [ResumptionUpdate("two"), ResumptionUpdate(None)]


@pytest.mark.parametrize("kind", CloseKind)
async def test_a_connection_closed_by_the_model_reports_the_reason(kind: CloseKind) -> None:
    async with connected(ScriptedLive([HELLO, HangUp("over", kind, retry_after_s=3)])) as session:
        session.connection.respond("one", "hi")
        await asyncio.sleep(2)
        assert session.events[-1] == Closed("over", kind, 3)
        assert session.connection.state is ConnectionState.LOST


async def test_an_announced_close_is_told_in_advance() -> None:
    async with connected(ScriptedLive([GoAwayIn(5_000)])) as session:
        await asyncio.sleep(1)
        assert session.events == [GoAway(5_000)]
        assert session.connection.state is ConnectionState.OPEN
        await asyncio.sleep(5)
        assert session.events[-1] == Closed("the time was over", CloseKind.GO_AWAY)


async def test_events_of_a_connection_that_was_given_up_are_dropped() -> None:
    async with connected(ScriptedLive([HELLO])) as session:
        session.connection.respond("one", "hi")
        session.connection.close()
        await asyncio.sleep(2)
        assert session.events == []


# The health of the model.


async def test_an_answer_shows_that_the_model_is_well() -> None:
    async with connected(ScriptedLive([Fail("It is overloaded.", kind=FailureKind.SERVER_ERROR), HELLO])) as session:
        session.connection.respond("t1", "hi")
        await asyncio.sleep(1)
        assert session.health.last_failure is not None
        assert session.health.last_failure.kind is FailureKind.SERVER_ERROR
        session.connection.respond("t2", "hi")
        await asyncio.sleep(1)
        assert session.health.last_failure is None
        assert session.health.answers == 1
        assert session.health.failures == {FailureKind.SERVER_ERROR: 1}


async def test_words_that_the_session_gave_do_not_show_that_the_model_is_well() -> None:
    async with connected(ScriptedLive([Fail("It is overloaded.", kind=FailureKind.SERVER_ERROR)])) as session:
        session.connection.respond("t1", "hi")
        await asyncio.sleep(1)
        session.connection.say("t2", "Good morning.")
        await asyncio.sleep(3)
        assert session.text == "Good morning."
        assert TurnComplete("t2") in session.events
        assert session.health.last_failure is not None


async def test_a_turn_that_was_not_understood_is_no_failure_of_the_model() -> None:
    async with connected(ScriptedLive([Mishear()])) as session:
        session.connection.send_audio(bytes(32_000), playing=False)
        await asyncio.sleep(1)
        assert [type(event) for event in session.events] == [TurnFailed]
        assert session.health.last_failure is None


async def test_a_refused_connection_is_a_failure_of_the_model() -> None:
    refusal = ModelError("The key is wrong.", kind=FailureKind.REFUSED, status=401)
    session, _ = await refused(ScriptedLive(refuses=refusal))
    assert session.health.last_failure is not None
    assert session.health.last_failure.status == 401


@pytest.mark.parametrize(
    ("kind", "failure"),
    [
        (CloseKind.TRANSIENT, FailureKind.UNREACHABLE),
        (CloseKind.QUOTA, FailureKind.RATE_LIMITED),
        (CloseKind.CONFIGURATION, FailureKind.REFUSED),
        (CloseKind.GO_AWAY, None),
        (CloseKind.INTENDED, None),
        (CloseKind.DEAD_HANDLE, None),
    ],
)
async def test_a_close_is_a_failure_unless_it_was_to_be_expected(kind: CloseKind, failure: FailureKind | None) -> None:
    async with connected(ScriptedLive([HangUp(kind=kind)])) as session:
        await asyncio.sleep(1)
        assert (session.health.last_failure and session.health.last_failure.kind) == failure


async def test_tokens_are_counted() -> None:
    async with connected(ScriptedLive([HELLO, Use(12, 3), HELLO, Use(20, 4)])) as session:
        for turn in ("t1", "t2"):
            session.connection.respond(turn, "hi")
            await asyncio.sleep(1)
        assert (session.health.input_tokens, session.health.output_tokens) == (32, 7)
