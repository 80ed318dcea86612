"""A model connection while it is connecting: its commands wait, its deadline runs, and nothing else is blocked."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from math import inf

import pytest
from antiphon.session.connection import (
    CONNECT_DEADLINE_S,
    ConnectFailed,
    ConnectionState,
    FromModel,
    ModelConnection,
    Opened,
)

from antiphon.models.base import FailureKind, ModelError
from antiphon.models.live import (
    Closed,
    CloseKind,
    LiveContext,
    ModelFactory,
    OutputText,
    ResumptionUpdate,
    TurnComplete,
    TurnFailed,
)
from antiphon.tools.spec import Mode
from antiphon.transcript import Transcript
from tests.fakes.scripted_live import Fail, GoAwayIn, HangUp, Hear, Mishear, Resumable, Say, ScriptedLive, Use

HELLO = Say("Hello.", audio_ms=0)


class Session:
    """The session's side of a connection: what was posted, and when."""

    def __init__(self, model: ScriptedLive, resume: str | None = None) -> None:
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        self.posted: list[object] = []
        self.at_s: list[float] = []

        def post(item: FromModel) -> None:
            self.posted.append(item.event)
            self.at_s.append(loop.time() - begun_s)

        context = LiveContext("", Transcript(), (), (), Mode.VOICE)
        factory = ModelFactory(model.profile, lambda: model)
        self.health = factory.health
        self.connection = ModelConnection(factory, context, post, resume=resume, voice=("amy", 1.5))

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.posted if isinstance(event, OutputText))


@asynccontextmanager
async def connecting(model: ScriptedLive, resume: str | None = None) -> AsyncIterator[Session]:
    session = Session(model, resume)
    yield session
    session.connection.close()
    await session.connection.wait_closed()


async def test_connecting_is_abandoned_at_the_deadline() -> None:
    async with connecting(ScriptedLive(connect_s=inf)) as session:
        await asyncio.sleep(CONNECT_DEADLINE_S - 0.1)
        assert session.posted == []
        await asyncio.sleep(0.2)
        assert session.connection.state is ConnectionState.LOST
        (failed,) = session.posted
        assert isinstance(failed, ConnectFailed)
        assert failed.error.kind is FailureKind.TIMEOUT
        assert failed.error.retryable
        assert "scripted could not be reached within 10 seconds" in str(failed.error)


async def test_requests_made_while_connecting_are_carried_out_once_connected() -> None:
    model = ScriptedLive([HELLO], connect_s=3)
    async with connecting(model) as session:
        session.connection.respond("one", "hi")
        assert model.texts == []
        await asyncio.sleep(5)
        assert session.posted[0] == Opened()
        assert session.at_s[0] == pytest.approx(3, abs=0.1)
        assert (model.texts, session.text) == (["hi"], "Hello.")
        assert model.voice == ("amy", 1.5)


async def test_requests_made_while_connecting_are_carried_out_in_order() -> None:
    model = ScriptedLive([HELLO, HELLO], connect_s=3)
    async with connecting(model) as session:
        session.connection.respond("one", "hi")
        session.connection.respond("two", "ho")
        await asyncio.sleep(5)
        assert model.texts == ["hi", "ho"]
        assert TurnComplete("one") in session.posted


async def test_a_request_interrupted_while_connecting_is_not_sent() -> None:
    model = ScriptedLive([HELLO], connect_s=3)
    async with connecting(model) as session:
        session.connection.respond("one", "hi")
        session.connection.respond("two", "ho")
        session.connection.interrupt("one", "")
        await asyncio.sleep(5)
        assert model.texts == ["ho"]
        assert model.interrupts == []


async def test_audio_is_not_accepted_before_the_model_is_connected() -> None:
    model = ScriptedLive([Hear("hi", after_ms=20)], connect_s=3)
    async with connecting(model) as session:
        assert not session.connection.send_audio(bytes(640), playing=False)
        await asyncio.sleep(4)
        assert session.connection.send_audio(bytes(640), playing=False)
        assert model.audio_bytes == 640


async def test_a_refused_connection_is_reported_lost_with_its_reason() -> None:
    error = ModelError("Too many.", rate_limited=True, retry_after_s=7)
    async with connecting(ScriptedLive(refuses=error, connect_s=1)) as session:
        session.connection.respond("one", "hi")
        await asyncio.sleep(2)
        assert session.connection.state is ConnectionState.LOST
        (failed,) = session.posted
        assert isinstance(failed, ConnectFailed)
        assert failed.error is error


async def test_a_connection_can_be_closed_while_it_is_being_made() -> None:
    model = ScriptedLive([HELLO], connect_s=inf)
    async with connecting(model) as session:
        session.connection.respond("one", "hi")
        session.connection.close()
        await asyncio.wait_for(session.connection.wait_closed(), 1)
        assert session.connection.is_closed
        assert model.closed
        await asyncio.sleep(CONNECT_DEADLINE_S + 1)
        assert session.posted == []


@pytest.mark.parametrize(
    "order",
    [
        lambda connection: connection.respond("one", "hi"),
        lambda connection: connection.say("one", "hi"),
        lambda connection: connection.send_tool_results("one", []),
        lambda connection: connection.end_audio("one"),
        lambda connection: connection.interrupt("one", None),
    ],
)
async def test_a_closed_connection_accepts_no_more_commands(
    order: Callable[[ModelConnection], None],
) -> None:
    model = ScriptedLive([HELLO])
    async with connecting(model) as session:
        await asyncio.sleep(1)
        session.connection.close()
        order(session.connection)
        await session.connection.wait_closed()
        order(session.connection)
        assert session.posted == [Opened()]
        assert (model.texts, model.said, model.interrupts) == ([], [], [])


async def test_a_command_the_model_refuses_fails_its_turn() -> None:
    model = ScriptedLive([HangUp()])
    async with connecting(model) as session:
        session.connection.respond("one", "hi")
        await asyncio.sleep(1)
        assert any(isinstance(event, TurnFailed) and event.turn == "one" for event in session.posted)


async def test_a_resumption_handle_is_passed_on_and_the_newest_is_kept() -> None:
    model = ScriptedLive([Resumable("two"), Resumable(None)])
    async with connecting(model, resume="one") as session:
        await asyncio.sleep(1)
        assert model.resumed_with == "one"
        assert session.connection.resume_handle == "two"
        assert not any(isinstance(event, ResumptionUpdate) for event in session.posted)


@pytest.mark.parametrize("kind", CloseKind)
async def test_a_connection_closed_by_the_model_reports_the_reason(kind: CloseKind) -> None:
    model = ScriptedLive([HELLO, HangUp("over", kind, retry_after_s=3)])
    async with connecting(model, resume="one") as session:
        session.connection.respond("one", "hi")
        await asyncio.sleep(2)
        assert session.posted[-1] == Closed("over", kind, 3)
        assert session.connection.state is ConnectionState.LOST
        assert session.connection.close_kind is kind
        expected = None if kind is CloseKind.DEAD_HANDLE else "one"
        assert session.connection.resume_handle == expected


async def test_an_announced_close_is_known_in_advance() -> None:
    async with connecting(ScriptedLive([Resumable("two"), GoAwayIn(5_000)])) as session:
        await asyncio.sleep(1)
        assert session.connection.go_away is not None
        assert session.connection.go_away.time_left_ms == 5_000
        assert session.connection.state is ConnectionState.OPEN
        await asyncio.sleep(5)
        assert session.posted[-1] == Closed("the time was over", CloseKind.GO_AWAY)
        assert session.connection.resume_handle == "two"


# The health of the model.


async def test_an_answer_shows_that_the_model_is_well() -> None:
    async with connecting(ScriptedLive([Fail("It is overloaded.", kind=FailureKind.SERVER_ERROR), HELLO])) as session:
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
    async with connecting(ScriptedLive([Fail("It is overloaded.", kind=FailureKind.SERVER_ERROR)])) as session:
        session.connection.respond("t1", "hi")
        await asyncio.sleep(1)
        session.connection.say("t2", "Good morning.")
        await asyncio.sleep(3)
        assert session.text == "Good morning."
        assert session.health.last_failure is not None


async def test_a_turn_that_was_not_understood_is_no_failure_of_the_model() -> None:
    async with connecting(ScriptedLive([Mishear()])) as session:
        await asyncio.sleep(0.1)
        session.connection.send_audio(bytes(32_000), playing=False)
        await asyncio.sleep(1)
        assert [type(event) for event in session.posted] == [Opened, TurnFailed]
        assert session.health.last_failure is None


async def test_a_refused_connection_is_a_failure_of_the_model() -> None:
    refusal = ModelError("The key is wrong.", kind=FailureKind.REFUSED, status=401)
    async with connecting(ScriptedLive(refuses=refusal)) as session:
        await asyncio.sleep(1)
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
    async with connecting(ScriptedLive([HangUp(kind=kind)])) as session:
        await asyncio.sleep(1)
        assert (session.health.last_failure and session.health.last_failure.kind) == failure


async def test_tokens_are_counted() -> None:
    async with connecting(ScriptedLive([HELLO, Use(12, 3), HELLO, Use(20, 4)])) as session:
        for turn in ("t1", "t2"):
            session.connection.respond(turn, "hi")
            await asyncio.sleep(1)
        assert (session.health.input_tokens, session.health.output_tokens) == (32, 7)
