"""Thinking ahead of the end of a turn, and taking a turn back."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from antiphon.models.base import CallRequested, Event, ModelError, OutputText, Prompt, TextProfile
from antiphon.models.cascade.mind import Mind
from antiphon.models.live import (
    GenerationComplete,
    LiveContext,
    LiveEvent,
    ToolAnswer,
    ToolCalls,
    TurnComplete,
    TurnFailed,
)
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, Message, UserMessage
from tests.fakes.paced import LONG_S, PACE_S, Paced, results_of
from tests.fakes.scripted import ScriptedModel

CALL = ToolCall("call_0123456789", "read_it", {})


class Thinker:
    """A mind, and what it has told."""

    def __init__(self, *script: str | list[ToolCall]) -> None:
        self.model = Paced(ScriptedModel(list(script)))
        self.events: list[LiveEvent] = []
        self.first_clauses: list[str] = []
        self.prefetched: list[Sequence[ToolCall]] = []
        self.prophecy: str | None = "noon"
        """What calls will give; None if that cannot be known."""
        self.mind = Mind(self.model, self.events.append, self.first_clauses.append)

    async def prefetch(self, calls: Sequence[ToolCall]) -> list[ToolAnswer] | None:
        self.prefetched.append(calls)
        return None if self.prophecy is None else results_of(ToolCalls(tuple(calls)), self.prophecy)

    @property
    def asked(self) -> list[Message]:
        """The last message of each prompt."""
        return [prompt.messages[-1] for prompt in self.model.prompts]

    @property
    def told(self) -> list[Message]:
        """The conversation as the model was last given it."""
        return list(self.model.prompts[-1].messages)

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, OutputText)).strip()

    async def settle(self) -> None:
        await asyncio.sleep(LONG_S)


@asynccontextmanager
async def thinking(*script: str | list[ToolCall]) -> AsyncIterator[Thinker]:
    thinker = Thinker(*script)
    await thinker.mind.connect(LiveContext("", (), (), Mode.VOICE, thinker.prefetch))
    try:
        yield thinker
    finally:
        await thinker.mind.close()
        assert thinker.model.open == 0


async def test_an_answer_that_was_thought_ahead_is_there_at_once() -> None:
    async with thinking("It is noon.") as thinker:
        thinker.mind.think_ahead("what time is it")
        await asyncio.sleep(1)
        assert thinker.events == []
        await thinker.mind.send_text("what time is it")
        await asyncio.sleep(0.01)
        assert thinker.text == "It is noon."
        assert thinker.events[-2:] == [GenerationComplete(), TurnComplete()]
        assert thinker.asked == [UserMessage("what time is it")]


async def test_an_answer_that_is_being_thought_goes_on_where_it_is() -> None:
    async with thinking("It is noon now.") as thinker:
        thinker.mind.think_ahead("what time is it")
        await asyncio.sleep(2.5 * PACE_S)
        await thinker.mind.send_text("what time is it")
        await asyncio.sleep(0.01)
        assert thinker.text == "It is"
        await thinker.settle()
        assert thinker.text == "It is noon now."
        assert len(thinker.asked) == 1


async def test_the_same_guess_again_is_not_thought_again() -> None:
    async with thinking("It is noon.") as thinker:
        thinker.mind.think_ahead("what time is it")
        thinker.mind.think_ahead("what time is it")
        await thinker.settle()
        assert len(thinker.asked) == 1


async def test_another_guess_ends_the_thoughts_about_the_first() -> None:
    async with thinking("One thing.", "Another thing.") as thinker:
        thinker.mind.think_ahead("what")
        await asyncio.sleep(PACE_S / 2)
        thinker.mind.think_ahead("what time is it")
        await asyncio.sleep(PACE_S / 2)
        assert thinker.model.open == 1
        await thinker.mind.send_text("what time is it")
        await thinker.settle()
        assert thinker.text == "Another thing."


async def test_many_guesses_in_a_row_leave_one_thought() -> None:
    async with thinking(*["Words and words."] * 5) as thinker:
        for number in range(5):
            thinker.mind.think_ahead(f"what {number}")
        await asyncio.sleep(PACE_S / 2)
        assert thinker.model.open == 1


async def test_a_wrong_guess_is_dropped_and_the_model_asked_anew() -> None:
    async with thinking("One thing.", "Another thing.") as thinker:
        thinker.mind.think_ahead("what")
        await asyncio.sleep(PACE_S / 2)
        await thinker.mind.send_text("what time is it")
        await asyncio.sleep(PACE_S / 2)
        assert thinker.model.open == 1
        await thinker.settle()
        assert thinker.text == "Another thing."
        assert thinker.asked == [UserMessage("what"), UserMessage("what time is it")]


async def test_who_says_more_ends_the_thoughts() -> None:
    async with thinking("One thing.") as thinker:
        thinker.mind.think_ahead("what")
        await asyncio.sleep(PACE_S / 2)
        thinker.mind.think_again()
        await asyncio.sleep(PACE_S / 2)
        assert thinker.model.open == 0
        thinker.mind.think_again()
        assert thinker.events == []


async def test_no_call_is_made_before_the_turn_is_final() -> None:
    async with thinking([CALL], "It is noon.") as thinker:
        thinker.mind.think_ahead("what time is it")
        await thinker.settle()
        assert thinker.events == []
        await thinker.mind.send_text("what time is it")
        await asyncio.sleep(0.01)
        assert thinker.events == [ToolCalls((CALL,))]
        await thinker.mind.send_tool_results(results_of(ToolCalls((CALL,))))
        await thinker.settle()
        assert thinker.text == "It is noon."


class Failing:
    """Says a word, and breaks."""

    profile = TextProfile("failing", needs_network=True)

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.asked = 0

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        self.asked += 1
        yield OutputText("Well, ")
        await asyncio.sleep(PACE_S)
        raise self.error


@pytest.mark.parametrize("error", [ModelError("It is gone."), ValueError("a mistake")], ids=["expected", "mistake"])
async def test_thoughts_that_fail_matter_only_when_they_are_wanted(error: Exception) -> None:
    model = Failing(error)
    events: list[LiveEvent] = []
    mind = Mind(model, events.append)
    await mind.connect(LiveContext("", (), (), Mode.VOICE))
    with capture_logs():
        mind.think_ahead("hello")
        await asyncio.sleep(1)
        assert events == []
        await mind.send_text("hello")
        await asyncio.sleep(1)
    assert model.asked == 1
    assert [type(event) for event in events] == [OutputText, TurnFailed, TurnComplete]
    await mind.close()


async def test_thoughts_that_fail_and_are_never_wanted_are_nothing() -> None:
    events: list[LiveEvent] = []
    mind = Mind(Failing(ModelError("It is gone.")), events.append)
    await mind.connect(LiveContext("", (), (), Mode.VOICE))
    mind.think_ahead("hello")
    await asyncio.sleep(1)
    await mind.close()
    assert events == []


async def test_an_answer_that_was_thought_ahead_can_be_interrupted() -> None:
    async with thinking("It is noon in many places.") as thinker:
        thinker.mind.think_ahead("what time is it")
        await asyncio.sleep(1.5 * PACE_S)
        await thinker.mind.send_text("what time is it")
        await asyncio.sleep(PACE_S)
        await thinker.mind.interrupt()
        assert thinker.model.open == 0, "the model goes on for nobody"
        assert thinker.events[-1] == TurnComplete()


async def test_thoughts_end_with_the_mind() -> None:
    async with thinking("It is noon.") as thinker:
        thinker.mind.think_ahead("what time is it")
        await asyncio.sleep(PACE_S / 2)
        assert thinker.model.open == 1


async def test_a_mind_that_is_not_connected_says_so() -> None:
    with pytest.raises(ModelError, match="not connected"):
        Thinker().mind.think_ahead("hello")


async def test_stopping_ends_the_answer_without_a_wait() -> None:
    async with thinking("It is noon in many places.") as thinker:
        await thinker.mind.send_text("what time is it")
        await asyncio.sleep(1.5 * PACE_S)
        thinker.mind.stop()
        said = list(thinker.events)
        await thinker.settle()
        assert thinker.events == [*said, TurnComplete()]


async def test_stopping_what_is_over_is_nothing() -> None:
    async with thinking("Noon.") as thinker:
        thinker.mind.stop()
        await thinker.mind.send_text("what time is it")
        await thinker.settle()
        thinker.mind.stop()
        await thinker.settle()
        assert thinker.events.count(TurnComplete()) == 1


async def test_a_turn_that_is_taken_back_was_never_said() -> None:
    async with thinking("Noon.", "In Tokyo it is nine.") as thinker:
        await thinker.mind.send_text("what time is it")
        thinker.mind.take_back("what time is it")
        await thinker.mind.interrupt("")
        await thinker.mind.send_text("what time is it in Tokyo")
        await thinker.settle()
        assert thinker.told == [UserMessage("what time is it in Tokyo")]


async def test_with_a_turn_that_is_taken_back_goes_what_nobody_heard_of_its_answer() -> None:
    async with thinking("It is noon.", "In Tokyo it is nine.") as thinker:
        await thinker.mind.send_text("what time is it")
        await asyncio.sleep(1.5 * PACE_S)
        thinker.mind.take_back("what time is it")
        thinker.mind.stop()
        await thinker.mind.interrupt("")
        await thinker.mind.send_text("what time is it in Tokyo")
        await thinker.settle()
        assert thinker.told == [UserMessage("what time is it in Tokyo")]


async def test_only_the_last_turn_with_these_words_is_taken_back() -> None:
    async with thinking("Yes?", "Yes?", "Yes?") as thinker:
        for _ in range(2):
            await thinker.mind.send_text("hello")
            await thinker.settle()
        thinker.mind.take_back("hello")
        await thinker.mind.interrupt("")
        await thinker.mind.send_text("hello there")
        await thinker.settle()
        assert thinker.told == [UserMessage("hello"), AssistantMessage("Yes? "), UserMessage("hello there")]


async def test_what_was_never_said_cannot_be_taken_back() -> None:
    async with thinking("Yes?") as thinker:
        thinker.mind.take_back("hello")
        await thinker.mind.send_text("hi")
        await thinker.settle()
        assert thinker.told == [UserMessage("hi")]


async def test_a_guess_that_calls_and_talks_keeps_the_order() -> None:
    class Mixed:
        profile = TextProfile("mixed", needs_network=False)

        async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
            yield OutputText("Let me look.")
            yield CallRequested(CALL)

    events: list[LiveEvent] = []
    mind = Mind(Mixed(), events.append)
    await mind.connect(LiveContext("", (), (), Mode.VOICE))
    mind.think_ahead("look")
    await asyncio.sleep(1)
    await mind.send_text("look")
    await asyncio.sleep(1)
    assert events == [OutputText("Let me look."), ToolCalls((CALL,))]
    await mind.close()


# What tools would say.


async def test_an_answer_that_needs_tools_is_thought_to_its_end() -> None:
    async with thinking([CALL], "It is noon.") as thinker:
        thinker.mind.think_ahead("what time is it")
        await thinker.settle()
        assert thinker.prefetched == [[CALL]]
        assert thinker.events == []
        assert len(thinker.asked) == 2
        await thinker.mind.send_text("what time is it")
        await asyncio.sleep(0.01)
        assert thinker.events == [ToolCalls((CALL,))]
        await thinker.mind.send_tool_results(results_of(ToolCalls((CALL,))))
        await asyncio.sleep(0.01)
        assert thinker.text == "It is noon."
        assert len(thinker.asked) == 2


async def test_a_tool_that_says_something_else_after_all_is_heard() -> None:
    async with thinking([CALL], "It is noon.", "It is one.") as thinker:
        thinker.mind.think_ahead("what time is it")
        await thinker.settle()
        await thinker.mind.send_text("what time is it")
        await asyncio.sleep(0.01)
        await thinker.mind.send_tool_results(results_of(ToolCalls((CALL,)), "one"))
        await thinker.settle()
        assert thinker.text == "It is one."
        assert thinker.model.open == 0


async def test_calls_that_cannot_be_prefetched_end_the_thoughts() -> None:
    async with thinking([CALL], "It is noon.") as thinker:
        thinker.prophecy = None
        thinker.mind.think_ahead("what time is it")
        await thinker.settle()
        assert len(thinker.asked) == 1
        assert thinker.first_clauses == []


async def test_what_is_thought_about_a_call_while_the_turn_becomes_real_is_not_thought_twice() -> None:
    async with thinking([CALL], "It is noon now.") as thinker:
        thinker.mind.think_ahead("what time is it")
        await asyncio.sleep(PACE_S / 2)
        await thinker.mind.send_text("what time is it")
        await asyncio.sleep(3 * PACE_S)
        await thinker.mind.send_tool_results(results_of(ToolCalls((CALL,))))
        await thinker.settle()
        assert thinker.text == "It is noon now."
        assert len(thinker.asked) == 2


async def test_who_says_more_ends_the_thoughts_about_calls_too() -> None:
    async with thinking([CALL], "It is noon.", "Another thing.") as thinker:
        thinker.mind.think_ahead("what time is it")
        await asyncio.sleep(2.5 * PACE_S)
        thinker.mind.think_again()
        await asyncio.sleep(PACE_S / 2)
        assert thinker.model.open == 0


# How an answer begins.


async def test_how_an_answer_will_begin_is_told_once_and_early() -> None:
    async with thinking("It is noon in Tokyo, and it is midnight in New York. Good night.") as thinker:
        thinker.mind.think_ahead("what time is it")
        await asyncio.sleep(8 * PACE_S)
        assert thinker.first_clauses == ["It is noon in Tokyo,"]
        await thinker.settle()
        assert thinker.first_clauses == ["It is noon in Tokyo,"]


async def test_after_a_call_the_answer_begins_with_what_comes_of_it() -> None:
    async with thinking([CALL], "It is noon.") as thinker:
        thinker.mind.think_ahead("what time is it")
        await thinker.settle()
        assert thinker.first_clauses == ["It is noon."]
