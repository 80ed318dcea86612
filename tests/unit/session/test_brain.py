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
async def desk() -> AsyncIterator[Desk]:
    desk = Desk()
    await desk.brain.wake(Mode.VOICE)
    yield desk
    await desk.brain.close()


async def test_nothing_of_a_void_answer_matters_up_to_its_end(desk: Desk) -> None:
    await desk.brain.ask("hi")
    await desk.brain.interrupt("")
    await desk.brain.ask("ho")
    late = (e.Said("old"), e.Voiced(b"\0\0", 1, "old"), e.Made(), e.TurnOver())
    assert [desk.admits(event) for event in late] == [False] * 4
    assert desk.admits(e.Said("new"))


async def test_what_the_user_says_matters_always(desk: Desk) -> None:
    await desk.brain.ask("hi")
    await desk.brain.interrupt("")
    assert desk.admits(e.Heard("stop", is_final=True))
    assert desk.admits(e.BargedIn())


async def test_the_loss_of_the_model_matters_though_the_answer_is_void(desk: Desk) -> None:
    await desk.brain.ask("hi")
    await desk.brain.interrupt("")
    assert not desk.admits(e.Failed("late"))
    assert desk.admits(e.Lost("gone"))


async def test_an_earlier_model_does_not_matter(desk: Desk) -> None:
    assert not desk.brain.admits(FromModel(ScriptedLive(), e.Said("old")))


async def test_without_a_model_there_is_no_name_and_nobody_hears(desk: Desk) -> None:
    assert desk.brain.name == "scripted"
    await desk.brain.close()
    assert desk.brain.name is None
    assert not desk.brain.hear(b"\0\0", False)


async def test_a_mode_without_a_model_says_so() -> None:
    with pytest.raises(ModelError, match="no model for text"):
        await Desk().brain.wake(Mode.TEXT)
