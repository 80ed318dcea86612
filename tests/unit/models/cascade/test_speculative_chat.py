"""Answers that are started before the end of the turn is certain."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from antiphon.models.base import CallRequested, Event, ModelError, Prompt, TextDelta, TextModel, TextProfile
from antiphon.models.cascade.speculative_chat import SpeculativeChat
from antiphon.models.live import (
    GenerationComplete,
    LiveContext,
    LiveEvent,
    OutputText,
    ToolAnswer,
    ToolCalls,
    TurnComplete,
    TurnFailed,
)
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.transcript import Message, Transcript, UserMessage
from tests.fakes.paced import LONG_S, PACE_S, Paced, results_of
from tests.fakes.scripted import ScriptedModel

CALL = ToolCall("call_0123456789", "read_it", {})
TURN = "t1"


class Speculator:
    """A chat with its transcript and events."""

    def __init__(self, model: TextModel) -> None:
        self.events: list[LiveEvent] = []
        self.first_clauses: list[str] = []
        self.prefetched: list[Sequence[ToolCall]] = []
        self.content: str | None = "noon"
        """What calls will give; None if that cannot be known."""
        self.transcript = Transcript()
        self.chat = SpeculativeChat(model, self.events.append, self.first_clauses.append)

    async def connect(self) -> None:
        self.chat.connect(LiveContext("", self.transcript, (), (), Mode.VOICE, self.prefetch))

    async def prefetch(self, calls: Sequence[ToolCall]) -> list[ToolAnswer] | None:
        self.prefetched.append(calls)
        return None if self.content is None else results_of(ToolCalls(TURN, tuple(calls)), self.content)

    def prepare(self, text: str) -> None:
        self.chat.prepare(TURN, text)

    def respond(self, text: str) -> None:
        self.transcript.set_user(TURN, text)
        self.chat.respond(TURN)

    def give_results(self, content: str = "noon") -> None:
        self.chat.send_tool_results(TURN, results_of(ToolCalls(TURN, (CALL,)), content))

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, OutputText)).strip()

    async def settle(self) -> None:
        await asyncio.sleep(LONG_S)


class Scripted(Speculator):
    def __init__(self, *script: str | list[ToolCall]) -> None:
        self.model = Paced(ScriptedModel(list(script)))
        super().__init__(self.model)

    @property
    def asked(self) -> list[Message]:
        """The last message of each prompt."""
        return [prompt.messages[-1] for prompt in self.model.prompts]


@asynccontextmanager
async def speculating(*script: str | list[ToolCall]) -> AsyncIterator[Scripted]:
    speculator = Scripted(*script)
    await speculator.connect()
    try:
        yield speculator
    finally:
        await speculator.chat.close()
        assert speculator.model.open == 0


async def test_a_prepared_answer_is_available_at_once() -> None:
    async with speculating("It is noon.") as chat:
        chat.prepare("what time is it")
        await asyncio.sleep(1)
        assert chat.events == []
        chat.respond("what time is it")
        await asyncio.sleep(0.01)
        assert chat.text == "It is noon."
        assert chat.events[-2:] == [GenerationComplete(TURN), TurnComplete(TURN)]
        assert chat.asked == [UserMessage("what time is it")]


async def test_an_answer_still_being_prepared_continues_where_it_is() -> None:
    async with speculating("It is noon now.") as chat:
        chat.prepare("what time is it")
        await asyncio.sleep(2.5 * PACE_S)
        chat.respond("what time is it")
        await asyncio.sleep(0.01)
        assert chat.text == "It is"
        await chat.settle()
        assert chat.text == "It is noon now."
        assert len(chat.asked) == 1


async def test_the_same_guess_is_not_prepared_twice() -> None:
    async with speculating("It is noon.") as chat:
        chat.prepare("what time is it")
        chat.prepare("what time is it")
        await chat.settle()
        assert len(chat.asked) == 1


async def test_another_guess_replaces_the_first() -> None:
    async with speculating("One thing.", "Another thing.") as chat:
        chat.prepare("what")
        await asyncio.sleep(PACE_S / 2)
        chat.prepare("what time is it")
        await asyncio.sleep(PACE_S / 2)
        assert chat.model.open == 1
        chat.respond("what time is it")
        await chat.settle()
        assert chat.text == "Another thing."


async def test_only_one_of_many_consecutive_guesses_is_prepared() -> None:
    async with speculating(*["Words and words."] * 5) as chat:
        for number in range(5):
            chat.prepare(f"what {number}")
        await asyncio.sleep(PACE_S / 2)
        assert chat.model.open == 1


async def test_a_wrong_guess_is_dropped_and_the_model_is_asked_again() -> None:
    async with speculating("One thing.", "Another thing.") as chat:
        chat.prepare("what")
        await asyncio.sleep(PACE_S / 2)
        chat.respond("what time is it")
        await asyncio.sleep(PACE_S / 2)
        assert chat.model.open == 1
        await chat.settle()
        assert chat.text == "Another thing."
        assert chat.asked == [UserMessage("what"), UserMessage("what time is it")]


async def test_a_dropped_speculation_is_stopped() -> None:
    async with speculating("One thing.") as chat:
        chat.prepare("what")
        await asyncio.sleep(PACE_S / 2)
        chat.chat.drop()
        await asyncio.sleep(PACE_S / 2)
        assert chat.model.open == 0
        chat.chat.drop()
        assert chat.events == []


async def test_no_call_is_made_before_the_turn_is_final() -> None:
    async with speculating([CALL], "It is noon.") as chat:
        chat.prepare("what time is it")
        await chat.settle()
        assert chat.events == []
        chat.respond("what time is it")
        await asyncio.sleep(0.01)
        assert chat.events == [ToolCalls(TURN, (CALL,))]
        chat.give_results()
        await chat.settle()
        assert chat.text == "It is noon."


class Failing:
    """Says a word, and breaks."""

    profile = TextProfile("failing", needs_network=True)

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.asked = 0

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        self.asked += 1
        yield TextDelta("Well, ")
        await asyncio.sleep(PACE_S)
        raise self.error


@pytest.mark.parametrize("error", [ModelError("It is gone."), ValueError("a mistake")], ids=["expected", "mistake"])
async def test_a_failed_speculation_matters_only_when_it_is_used(error: Exception) -> None:
    model = Failing(error)
    chat = Speculator(model)
    await chat.connect()
    with capture_logs():
        chat.prepare("hello")
        await asyncio.sleep(1)
        assert chat.events == []
        chat.respond("hello")
        await asyncio.sleep(1)
    assert model.asked == 1
    assert [type(event) for event in chat.events] == [OutputText, TurnFailed, TurnComplete]
    await chat.chat.close()


async def test_a_failed_speculation_that_is_never_used_has_no_effect() -> None:
    chat = Speculator(Failing(ModelError("It is gone.")))
    await chat.connect()
    chat.prepare("hello")
    await asyncio.sleep(1)
    await chat.chat.close()
    assert chat.events == []


async def test_a_prepared_answer_can_be_interrupted() -> None:
    async with speculating("It is noon in many places.") as chat:
        chat.prepare("what time is it")
        await asyncio.sleep(1.5 * PACE_S)
        chat.respond("what time is it")
        await asyncio.sleep(PACE_S)
        assert chat.chat.stop() == TURN
        await asyncio.sleep(0.001)
        assert chat.model.open == 0, "the model goes on for nobody"


async def test_speculation_ends_with_the_chat() -> None:
    async with speculating("It is noon.") as chat:
        chat.prepare("what time is it")
        await asyncio.sleep(PACE_S / 2)
        assert chat.model.open == 1


async def test_an_unconnected_chat_raises_an_error() -> None:
    with pytest.raises(ModelError, match="not connected"):
        Scripted().prepare("hello")


async def test_a_stopped_answer_emits_nothing() -> None:
    async with speculating("It is noon in many places.") as chat:
        chat.respond("what time is it")
        await asyncio.sleep(1.5 * PACE_S)
        assert chat.chat.stop() == TURN
        said = list(chat.events)
        await chat.settle()
        assert chat.events == said


async def test_stopping_a_finished_answer_does_nothing() -> None:
    async with speculating("Noon.") as chat:
        assert chat.chat.stop() is None
        chat.respond("what time is it")
        await chat.settle()
        assert chat.chat.stop() is None
        assert chat.events.count(TurnComplete(TURN)) == 1


async def test_a_guess_for_a_continued_turn_replaces_its_first_words() -> None:
    async with speculating("It is noon.", "In Tokyo it is nine.") as chat:
        chat.respond("what time is it")
        await asyncio.sleep(PACE_S)
        chat.chat.stop()
        chat.prepare("what time is it in Tokyo")
        await chat.settle()
        chat.transcript.continue_as(TURN, "t2")
        chat.transcript.set_user("t2", "what time is it in Tokyo")
        chat.chat.respond("t2")
        await asyncio.sleep(0.01)
        assert chat.text == "In Tokyo it is nine."
        assert chat.model.prompts[-1].messages == (UserMessage("what time is it in Tokyo"),)


async def test_a_guess_with_calls_and_text_keeps_their_order() -> None:
    class Mixed:
        profile = TextProfile("mixed", needs_network=False)

        async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
            yield TextDelta("Let me look.")
            yield CallRequested(CALL)

    chat = Speculator(Mixed())
    await chat.connect()
    chat.prepare("look")
    await asyncio.sleep(1)
    chat.respond("look")
    await asyncio.sleep(1)
    assert chat.events == [OutputText(TURN, "Let me look."), ToolCalls(TURN, (CALL,))]
    await chat.chat.close()


# What tools would say.


async def test_an_answer_that_needs_tools_is_prepared_to_its_end() -> None:
    async with speculating([CALL], "It is noon.") as chat:
        chat.prepare("what time is it")
        await chat.settle()
        assert chat.prefetched == [[CALL]]
        assert chat.events == []
        assert len(chat.asked) == 2
        chat.respond("what time is it")
        await asyncio.sleep(0.01)
        assert chat.events == [ToolCalls(TURN, (CALL,))]
        chat.give_results()
        await asyncio.sleep(0.01)
        assert chat.text == "It is noon."
        assert len(chat.asked) == 2


async def test_a_tool_result_that_differs_from_the_prefetched_one_is_used() -> None:
    async with speculating([CALL], "It is noon.", "It is one.") as chat:
        chat.prepare("what time is it")
        await chat.settle()
        chat.respond("what time is it")
        await asyncio.sleep(0.01)
        chat.give_results("one")
        await chat.settle()
        assert chat.text == "It is one."
        assert chat.model.open == 0


async def test_calls_that_cannot_be_prefetched_end_the_speculation() -> None:
    async with speculating([CALL], "It is noon.") as chat:
        chat.content = None
        chat.prepare("what time is it")
        await chat.settle()
        assert len(chat.asked) == 1
        assert chat.first_clauses == []


async def test_an_answer_with_calls_requested_during_preparation_is_generated_once() -> None:
    async with speculating([CALL], "It is noon now.") as chat:
        chat.prepare("what time is it")
        await asyncio.sleep(PACE_S / 2)
        chat.respond("what time is it")
        await asyncio.sleep(3 * PACE_S)
        chat.give_results()
        await chat.settle()
        assert chat.text == "It is noon now."
        assert len(chat.asked) == 2


async def test_a_dropped_speculation_stops_its_tool_calls_too() -> None:
    async with speculating([CALL], "It is noon.", "Another thing.") as chat:
        chat.prepare("what time is it")
        await asyncio.sleep(2.5 * PACE_S)
        chat.chat.drop()
        await asyncio.sleep(PACE_S / 2)
        assert chat.model.open == 0


# How an answer begins.


async def test_the_beginning_of_an_answer_is_reported_once_and_early() -> None:
    async with speculating("It is noon in Tokyo, and it is midnight in New York. Good night.") as chat:
        chat.prepare("what time is it")
        await asyncio.sleep(8 * PACE_S)
        assert chat.first_clauses == ["It is noon in Tokyo,"]
        await chat.settle()
        assert chat.first_clauses == ["It is noon in Tokyo,"]


async def test_the_reported_beginning_after_a_call_is_based_on_its_result() -> None:
    async with speculating([CALL], "It is noon.") as chat:
        chat.prepare("what time is it")
        await chat.settle()
        assert chat.first_clauses == ["It is noon."]
