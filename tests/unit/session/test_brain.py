"""Which of a model's events still matter."""

from collections.abc import AsyncIterator

import pytest

from antiphon.models.base import ModelError
from antiphon.models.live import LiveContext
from antiphon.session import events as e
from antiphon.session.brain import Brain, FromModel, Work
from antiphon.tools.spec import Mode
from tests.fakes.scripted_live import ScriptedLive


class Desk:
    """A brain, and what it has posted."""

    def __init__(self) -> None:
        self.model = ScriptedLive()
        self.posted: list[FromModel | Work] = []
        context = LiveContext("", (), (), Mode.VOICE)
        self.brain = Brain(
            lambda mode: self.model if mode is Mode.VOICE else None, lambda model, mode: context, self.posted.append
        )

    def admits(self, event: e.Event) -> bool:
        return self.brain.admits(FromModel(self.model, event))


@pytest.fixture
async def deps() -> AsyncIterator[Desk]:
    deps = Desk()
    await deps.brain.wake(Mode.VOICE)
    yield deps
    await deps.brain.close()


async def test_nothing_of_a_void_answer_matters_up_to_its_end(deps: Desk) -> None:
    await deps.brain.ask("hi")
    await deps.brain.interrupt("")
    await deps.brain.ask("ho")
    late = (e.Said("old"), e.Voiced(b"\0\0", 1, "old"), e.Made(), e.TurnOver())
    assert [deps.admits(event) for event in late] == [False] * 4
    assert deps.admits(e.Said("new"))


async def test_what_the_user_says_matters_always(deps: Desk) -> None:
    await deps.brain.ask("hi")
    await deps.brain.interrupt("")
    assert deps.admits(e.Heard("stop", is_final=True))
    assert deps.admits(e.BargedIn())


async def test_the_loss_of_the_model_matters_though_the_answer_is_void(deps: Desk) -> None:
    await deps.brain.ask("hi")
    await deps.brain.interrupt("")
    assert not deps.admits(e.Failed("late"))
    assert deps.admits(e.Lost("gone"))


async def test_an_earlier_model_does_not_matter(deps: Desk) -> None:
    assert not deps.brain.admits(FromModel(ScriptedLive(), e.Said("old")))


async def test_without_a_model_there_is_no_name_and_nobody_hears(deps: Desk) -> None:
    assert deps.brain.name == "scripted"
    await deps.brain.close()
    assert deps.brain.name is None
    assert not deps.brain.hear(b"\0\0", False)


async def test_a_mode_without_a_model_says_so() -> None:
    with pytest.raises(ModelError, match="no model for text"):
        await Desk().brain.wake(Mode.TEXT)
