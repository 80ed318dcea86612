"""A model connection: it connects in the background, and accepts commands at any time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from antiphon.models.base import ModelError
from antiphon.models.live import (
    Closed,
    CloseKind,
    GoAway,
    LiveContext,
    ModelFactory,
    OutputText,
    ResumptionUpdate,
    ToolCalls,
    TurnFailed,
    Usage,
)
from antiphon.session.connection import (
    CONNECT_DEADLINE_S,
    ConnectFailed,
    ConnectionState,
    FromModel,
    ModelConnection,
    Opened,
)
from antiphon.session.models import SessionModels
from antiphon.tools.spec import Mode
from antiphon.transcript import Transcript
from tests.fakes.scripted_live import PROFILE, Say, ScriptedLive

CONTEXT = LiveContext("", Transcript(), (), (), Mode.VOICE)


class Distant(ScriptedLive):
    """A model that is slow to connect, and closes with the given kind."""

    def __init__(self, script: Any = (), *, connects_s: float = 0.0, error: ModelError | None = None) -> None:
        super().__init__(script)
        self._connects_s = connects_s
        self._error = error

    async def connect(self, context: LiveContext, resume: str | None = None) -> None:
        await asyncio.sleep(self._connects_s)
        if self._error is not None:
            raise self._error
        await super().connect(context, resume)


class Posted:
    """The events posted to the mailbox."""

    def __init__(self) -> None:
        self.items: list[FromModel] = []
        self.connections: list[ModelConnection] = []

    def connect(self, model: ScriptedLive, **rest: Any) -> ModelConnection:
        factory = ModelFactory(PROFILE, lambda: model)
        self.connections.append(ModelConnection(factory, CONTEXT, self.items.append, **rest))
        return self.connections[-1]

    @property
    def events(self) -> list[Any]:
        return [item.event for item in self.items]


@pytest.fixture
async def posted() -> AsyncIterator[Posted]:
    posted = Posted()
    yield posted
    for connection in posted.connections:
        connection.close()
        await connection.wait_closed()


async def test_commands_sent_while_connecting_are_carried_out_once_open(posted: Posted) -> None:
    model = Distant([Say("Hello.")], connects_s=3)
    connection = posted.connect(model)
    connection.respond("s1", "hi")
    assert connection.state is ConnectionState.CONNECTING
    await asyncio.sleep(1)
    assert posted.events == []
    await asyncio.sleep(3)
    assert connection.was_opened
    assert model.texts == ["hi"]
    assert posted.events[0] == Opened()
    assert any(isinstance(event, OutputText) for event in posted.events)


async def test_a_turn_interrupted_while_connecting_is_not_requested(posted: Posted) -> None:
    model = Distant([Say("Hello.")], connects_s=3)
    connection = posted.connect(model)
    connection.respond("s1", "hi")
    connection.respond("s2", "ho")
    connection.interrupt("s1", None)
    await asyncio.sleep(4)
    assert model.texts == ["ho"]


async def test_a_connection_that_never_opens_fails_at_its_deadline(posted: Posted) -> None:
    connection = posted.connect(Distant(connects_s=1e9))
    await asyncio.sleep(CONNECT_DEADLINE_S - 0.5)
    assert posted.events == []
    await asyncio.sleep(1)
    (failed,) = posted.events
    assert isinstance(failed, ConnectFailed)
    assert "could not be reached within 10 seconds" in str(failed.error)
    assert connection.state is ConnectionState.LOST


@pytest.mark.parametrize("error", [ModelError("no key", retryable=False), ModelError("busy", rate_limited=True)])
async def test_a_refusal_is_posted_unchanged(posted: Posted, error: ModelError) -> None:
    posted.connect(Distant(error=error))
    await asyncio.sleep(0.1)
    assert posted.events == [ConnectFailed(error)]


@pytest.mark.parametrize("kind", CloseKind)
async def test_the_kind_of_close_is_kept_and_reported(posted: Posted, kind: CloseKind) -> None:
    model = Distant()
    connection = posted.connect(model)
    await asyncio.sleep(0.1)
    model._emit(Closed("gone", kind))
    model._end()
    await asyncio.sleep(0.1)
    assert (connection.state, connection.close_kind) == (ConnectionState.LOST, kind)
    assert posted.events[-1] == Closed("gone", kind)


async def test_connection_events_stay_within_the_connection(posted: Posted) -> None:
    model = Distant()
    connection = posted.connect(model)
    await asyncio.sleep(0.1)
    for event in (ResumptionUpdate("h1"), ResumptionUpdate(None), GoAway(5_000), Usage("m1", 10, 20)):
        model._emit(event)
    await asyncio.sleep(0.1)
    assert (connection.resume_handle, connection.go_away) == ("h1", GoAway(5_000))
    assert posted.events == [Opened()]


async def test_a_command_the_model_refuses_fails_its_turn(posted: Posted) -> None:
    model = Distant()
    connection = posted.connect(model)
    await asyncio.sleep(0.1)
    model.context = None
    connection.respond("s1", "hi")
    failed = posted.events[-1]
    assert isinstance(failed, TurnFailed)
    assert failed.turn == "s1"


async def test_nothing_is_posted_after_close(posted: Posted) -> None:
    model = Distant([Say("Hello.")])
    connection = posted.connect(model)
    connection.respond("s1", "hi")
    await asyncio.sleep(0)
    connection.close()
    await asyncio.sleep(1)
    assert not any(isinstance(event, OutputText | ToolCalls) for event in posted.events)
    assert model.closed


def factories(*models: ScriptedLive) -> tuple[SessionModels, Callable[[], list[FromModel]]]:
    made, items = iter(models), list[FromModel]()
    only = {Mode.VOICE: ModelFactory(PROFILE, lambda: next(made))}
    return SessionModels(only, lambda profile, mode: CONTEXT, items.append), lambda: items


async def test_the_newest_handle_is_passed_to_the_next_connection() -> None:
    first, second = Distant(), Distant()
    models, _ = factories(first, second)
    models.connect(Mode.VOICE)
    await asyncio.sleep(0.1)
    first._emit(ResumptionUpdate("h1"))
    await asyncio.sleep(0.1)
    models.close()
    models.connect(Mode.VOICE)
    await asyncio.sleep(0.1)
    assert second.resumed_with == "h1"
    models.close()
    await models.wait_closed()


async def test_a_rejected_handle_is_not_used_again() -> None:
    first, second = Distant(), Distant()
    models, _ = factories(first, second)
    models.connect(Mode.VOICE)
    await asyncio.sleep(0.1)
    first._emit(ResumptionUpdate("h1"))
    first._emit(Closed("expired", CloseKind.DEAD_HANDLE))
    first._end()
    await asyncio.sleep(0.1)
    models.close()
    models.connect(Mode.VOICE)
    await asyncio.sleep(0.1)
    assert (second.context, second.resumed_with) == (CONTEXT, None)
    models.close()
    await models.wait_closed()


def test_a_mode_without_a_model_is_reported() -> None:
    models, _ = factories()
    with pytest.raises(ModelError, match="no model for text"):
        models.connect(Mode.TEXT)
