"""The models of a session: how one connection follows another."""

import asyncio

import pytest
from antiphon.session.connection import FromModel

from antiphon.models.base import ModelError
from antiphon.models.live import Closed, CloseKind, LiveContext, LiveEvent, ModelFactory, ResumptionUpdate
from antiphon.session.models import SessionModels
from antiphon.tools.spec import Mode
from antiphon.transcript import Transcript
from tests.fakes.scripted_live import PROFILE, HangUp, Resumable, ScriptedLive, Step

CONTEXT = LiveContext("", Transcript(), (), (), Mode.VOICE)


def make_models(*models: ScriptedLive) -> tuple[SessionModels, list[LiveEvent | object]]:
    """The session's models, one after another, and the events that they post."""
    made, events = iter(models), list[LiveEvent | object]()

    def post(item: FromModel) -> None:
        events.append(item.event)

    only = {Mode.VOICE: ModelFactory(PROFILE, lambda: next(made))}
    return SessionModels(only, lambda profile, mode: CONTEXT, post), events


async def connect_twice(*script: Step) -> tuple[ScriptedLive, list[LiveEvent | object]]:
    """Connects a model with this script, gives it up, and returns the next one with the events of both."""
    first, second = ScriptedLive(script), ScriptedLive()
    models, events = make_models(first, second)
    for _ in range(2):
        models.connect(Mode.VOICE)
        await asyncio.sleep(0.1)
        models.close()
    await models.wait_closed()
    return second, events


async def test_the_newest_handle_is_passed_to_the_next_connection() -> None:
    second, events = await connect_twice(Resumable("h1"), Resumable("h2"))
    assert second.resumed_with == "h2"
    assert not any(isinstance(event, ResumptionUpdate) for event in events)


async def test_a_rejected_handle_is_not_used_again() -> None:
    second, events = await connect_twice(Resumable("h1"), HangUp("expired", kind=CloseKind.DEAD_HANDLE))
    assert (second.context, second.resumed_with) == (CONTEXT, None)
    assert Closed("expired", CloseKind.DEAD_HANDLE) in events


def test_a_mode_without_a_model_is_reported() -> None:
    models, _ = make_models()
    with pytest.raises(ModelError, match="no model for text"):
        models.connect(Mode.TEXT)
