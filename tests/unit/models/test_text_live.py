"""A text model behind a session: the prompts that it gets, and the handling of answers that fail."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from antiphon.models.base import (
    CallRequested,
    Event,
    FailureKind,
    ModelError,
    Prompt,
    TextDelta,
    TextProfile,
    TokensUsed,
)
from antiphon.models.bounded import MAX_TURN_S
from antiphon.models.live import (
    GenerationComplete,
    OutputText,
    ToolAnswer,
    ToolCalls,
    TurnComplete,
    TurnFailed,
    Usage,
)
from antiphon.models.text_chat import MAX_MESSAGES
from antiphon.models.text_live import TextLiveModel
from antiphon.tools.call import ToolCall
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage
from tests.fakes.paced import LONG_S, PACE_S, Listener, Paced, listening, results_of
from tests.fakes.scripted import ScriptedModel

READ = ToolCall("call_0123456789", "read_it", {"page": 1})
READ_MADE = CallMade("call_0123456789", "read_it", {"page": 1})
READ_TOLD = ToolMessage("call_0123456789", "read_it", "noon", "It's noon.")
NAMELESS = ToolCall(None, "read_it", {})


class Mixed:
    """Each item is one message, as its events; an exception among them is raised."""

    profile = TextProfile("mixed", needs_network=True)

    def __init__(self, *messages: list[Event | Exception]) -> None:
        self._messages = list(messages)

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        for event in self._messages.pop(0):
            if isinstance(event, Exception):
                raise event
            yield event


def scripted(*script: Any) -> Paced:
    return Paced(ScriptedModel(list(script)))


def mixed(*messages: list[Event | Exception]) -> Paced:
    return Paced(Mixed(*messages))


def told(model: Paced) -> list[Message]:
    """The conversation as the model was last given it."""
    return list(model.prompts[-1].messages)


async def test_the_answer_is_part_of_the_conversation() -> None:
    model = scripted("Hello there.")
    async with listening(TextLiveModel(model)) as talk:
        await talk.ask("hi")
        await talk.ask("and?")
    assert told(model) == [UserMessage("hi"), AssistantMessage("Hello there."), UserMessage("and?")]


def failure_of(talk: Listener) -> TurnFailed:
    (failure,) = [event for event in talk.events if isinstance(event, TurnFailed)]
    return failure


async def test_an_empty_answer_is_not_stored_as_a_message() -> None:
    model = mixed([], [])
    async with listening(TextLiveModel(model)) as talk:
        await talk.ask("hi")
        await talk.ask("and?")
        assert talk.kinds == [TurnFailed, TurnComplete] * 2
    assert told(model) == [UserMessage("hi"), UserMessage("and?")]


async def test_calls_and_results_are_sent_back_to_the_model_with_its_text() -> None:
    model = mixed([TextDelta("Let me look."), CallRequested(READ)], [TextDelta("It is noon.")])
    async with listening(TextLiveModel(model)) as talk:
        await talk.ask("read it")
        await talk.give_results()
    assert told(model) == [UserMessage("read it"), AssistantMessage("Let me look.", (READ_MADE,)), READ_TOLD]


async def test_a_call_without_an_id_is_still_matched_to_its_result() -> None:
    model = scripted([NAMELESS, NAMELESS], "Done.")
    async with listening(TextLiveModel(model)) as talk:
        await talk.ask("read it twice")
        await talk.give_results()
    _, made, *results = told(model)
    assert isinstance(made, AssistantMessage)
    assert [call.id for call in made.calls] == ["call_step0_0", "call_step0_1"]
    assert [result.call_id for result in results if isinstance(result, ToolMessage)] == ["call_step0_0", "call_step0_1"]


async def test_the_calls_of_a_message_are_emitted_together_and_numbered() -> None:
    async with listening(TextLiveModel(scripted([NAMELESS, READ, NAMELESS]))) as talk:
        turn = await talk.ask("read it twice")
        assert talk.events == [ToolCalls(turn, (NAMELESS, READ, ToolCall(None, "read_it", {}, occurrence=1)))]


async def test_extra_content_of_a_call_is_sent_back_with_it() -> None:
    model = scripted([ToolCall("call_0123456789", "read_it", {}, extra={"signature": "x"})], "Done.")
    async with listening(TextLiveModel(model)) as talk:
        await talk.ask("read it")
        await talk.give_results()
    made = told(model)[1]
    assert isinstance(made, AssistantMessage)
    assert made.calls[0].extra == {"signature": "x"}


async def test_a_failed_call_is_reported_as_failed() -> None:
    model = scripted([READ], "It failed.")
    async with listening(TextLiveModel(model)) as talk:
        turn = await talk.ask("read it")
        talk.model.send_tool_results(turn, [ToolAnswer(READ, {"error": {"type": "TRANSIENT"}}, ok=False)])
        await talk.settle()
    failed = ToolMessage("call_0123456789", "read_it", {"error": {"type": "TRANSIENT"}}, ok=False)
    assert told(model)[-1] == failed


async def test_the_model_continues_only_after_the_last_result() -> None:
    model = scripted([READ, NAMELESS], "Done.")
    async with listening(TextLiveModel(model)) as talk:
        turn = await talk.ask("read both")
        first, second = results_of(talk.calls)
        talk.model.send_tool_results(turn, [first])
        await talk.settle()
        assert talk.kinds == [ToolCalls]
        talk.model.send_tool_results(turn, [second])
        await talk.settle()
        assert talk.text == "Done."


async def test_the_calls_of_each_message_wait_for_their_own_results() -> None:
    async with listening(TextLiveModel(scripted([NAMELESS], [READ], "Done."))) as talk:
        turn = await talk.ask("read one after the other")
        await talk.give_results()
        assert talk.events == [ToolCalls(turn, (NAMELESS,)), ToolCalls(turn, (READ,))]


async def test_a_model_that_never_stops_calling_tools_is_stopped() -> None:
    model = scripted(*[[NAMELESS]] * (MAX_MESSAGES + 1))
    async with listening(TextLiveModel(model)) as talk:
        await talk.ask("read it")
        for _ in range(MAX_MESSAGES):
            await talk.give_results()
        assert talk.kinds[-2:] == [TurnFailed, TurnComplete]
        assert "without answering" in failure_of(talk).message
    assert len(model.prompts) == MAX_MESSAGES


async def test_an_empty_answer_fails_with_a_message() -> None:
    async with listening(TextLiveModel(mixed([TextDelta(" \n")]))) as talk:
        turn = await talk.ask("hi")
        assert talk.kinds == [OutputText, TurnFailed, TurnComplete]
        assert failure_of(talk) == TurnFailed(
            turn, "mixed said nothing. Please ask again, or in other words.", kind=FailureKind.EMPTY
        )


async def test_tool_results_are_used_when_the_model_says_nothing_about_them() -> None:
    model = mixed([CallRequested(READ)], [], [TextDelta("Yes.")])
    async with listening(TextLiveModel(model)) as talk:
        await talk.ask("read it")
        await talk.give_results()
        assert (talk.text, talk.kinds[-2:]) == ("It's noon.", [GenerationComplete, TurnComplete])
        await talk.ask("really?")
    assert told(model)[1:] == [
        AssistantMessage("", (READ_MADE,)),
        READ_TOLD,
        AssistantMessage("It's noon."),
        UserMessage("really?"),
    ]


async def test_a_model_that_spoke_before_its_calls_may_stay_silent_after_them() -> None:
    async with listening(TextLiveModel(mixed([TextDelta("Goodbye!"), CallRequested(READ)], []))) as talk:
        await talk.ask("bye")
        await talk.give_results()
        assert (talk.text, talk.kinds[-2:]) == ("Goodbye!", [GenerationComplete, TurnComplete])


class Drip:
    """Emits one letter per second, forever."""

    profile = TextProfile("drip", needs_network=True)

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        while True:
            await asyncio.sleep(1)
            yield TextDelta("x")


async def test_a_turn_has_a_deadline_however_slowly_it_progresses() -> None:
    async with listening(TextLiveModel(Drip())) as talk:
        await talk.ask("hi")
        assert talk.kinds == [OutputText]
        await talk.settle()
        assert talk.kinds == [OutputText, TurnFailed, TurnComplete]
        assert failure_of(talk).message == "drip took longer than 110 seconds, so I stopped waiting for it."


async def test_tool_time_does_not_count_against_the_model() -> None:
    async with listening(TextLiveModel(scripted([READ], "It is noon."))) as talk:
        await talk.ask("read it")
        await asyncio.sleep(MAX_TURN_S)
        await talk.give_results()
        assert talk.kinds[-2:] == [GenerationComplete, TurnComplete]


async def test_usage_is_passed_on() -> None:
    async with listening(TextLiveModel(mixed([TextDelta("Hi."), TokensUsed(20, 2)]))) as talk:
        turn = await talk.ask("hi")
        assert Usage(turn, 20, 2) in talk.events


async def test_an_interrupted_answer_emits_only_its_end() -> None:
    async with listening(TextLiveModel(scripted("Once upon a time there was"))) as talk:
        turn = talk.respond("tell me a story")
        await asyncio.sleep(PACE_S * 2.5)
        talk.interrupt()
        await talk.settle()
        assert talk.events == [OutputText(turn, "Once "), OutputText(turn, "upon "), TurnComplete(turn)]


async def test_an_interruption_closes_the_reply() -> None:
    model = scripted("Once upon a time there was")
    async with listening(TextLiveModel(model)) as talk:
        talk.respond("tell me a story")
        await asyncio.sleep(PACE_S * 2.5)
        assert model.open == 1
        talk.interrupt()
        await asyncio.sleep(0.001)
        assert model.open == 0


async def test_an_interruption_of_an_earlier_turn_does_not_affect_the_answer() -> None:
    async with listening(TextLiveModel(scripted("Hello.", "Once upon a time."))) as talk:
        earlier = await talk.ask("hi")
        turn = talk.respond("tell me a story")
        talk.model.interrupt(earlier, "")
        await talk.settle()
        assert talk.of(turn)[-2:] == [GenerationComplete(turn), TurnComplete(turn)]


async def test_consecutive_questions_each_end_once_and_the_last_is_answered() -> None:
    async with listening(TextLiveModel(scripted("Yes."))) as talk:
        *void, last = [talk.respond(text) for text in ("one", "two", "three")]
        await talk.settle()
        assert talk.events[:2] == [TurnComplete(turn) for turn in void]
        assert talk.events[2:] == [OutputText(last, "Yes. "), GenerationComplete(last), TurnComplete(last)]


async def test_an_abandoned_answer_emits_nothing_even_if_its_model_does_not_stop() -> None:
    class Stubborn:
        profile = TextProfile("stubborn", needs_network=True)

        async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
            try:
                await asyncio.sleep(LONG_S)
            except asyncio.CancelledError:
                yield TextDelta("As I was saying")

    async with listening(TextLiveModel(Stubborn())) as talk:
        turn = talk.respond("hi")
        await asyncio.sleep(PACE_S)
        talk.interrupt()
        await talk.settle()
        assert talk.events == [TurnComplete(turn)]


async def test_the_prompt_is_the_transcript_at_the_time_of_the_request() -> None:
    model = scripted([READ], "It is noon.")
    async with listening(TextLiveModel(model)) as talk:
        turn = await talk.ask("read it")
        talk.transcript.set_user("other", "typed in the meantime")
        talk.model.send_tool_results(turn, results_of(talk.calls))
        await talk.settle()
    assert told(model) == [UserMessage("read it"), AssistantMessage("", (READ_MADE,)), READ_TOLD]


async def test_results_of_another_turn_are_ignored() -> None:
    async with listening(TextLiveModel(scripted([READ], [READ]))) as talk:
        void = await talk.ask("read it")
        await talk.ask("read it again")
        before = list(talk.events)
        talk.model.send_tool_results(void, results_of(talk.calls))
        await talk.settle()
        assert talk.events == before


async def test_calls_approved_by_the_message_come_after_it() -> None:
    model = scripted("It is read.")
    async with listening(TextLiveModel(model)) as talk:
        await talk.ask("yes", results_of(ToolCalls("", (READ,))))
    assert told(model) == [UserMessage("yes"), AssistantMessage("", (READ_MADE,)), READ_TOLD]


async def test_an_approval_without_text_adds_no_user_message() -> None:
    model = scripted("It is read.")
    async with listening(TextLiveModel(model)) as talk:
        await talk.ask("", results_of(ToolCalls("", (READ,))))
        assert talk.text == "It is read."
    assert told(model) == [AssistantMessage("", (READ_MADE,)), READ_TOLD]


async def test_the_result_of_an_approved_call_is_used_when_the_model_says_nothing() -> None:
    async with listening(TextLiveModel(mixed([]))) as talk:
        await talk.ask("", results_of(ToolCalls("", (READ,))))
        assert talk.text == "It's noon."


async def test_a_failure_ends_the_turn_with_its_reason() -> None:
    busy = ModelError("The model is busy.", rate_limited=True, retry_after_s=30)
    async with listening(TextLiveModel(mixed([busy]))) as talk:
        turn = await talk.ask("hi")
        failed = TurnFailed(
            turn,
            "The model is busy.",
            retryable=True,
            rate_limited=True,
            retry_after_s=30,
            kind=FailureKind.REFUSED,
        )
        assert talk.events == [failed, TurnComplete(turn)]


async def test_text_emitted_before_a_failure_is_kept() -> None:
    model = mixed([TextDelta("Once upon"), ModelError("The line is dead.")], [TextDelta("a time.")])
    async with listening(TextLiveModel(model)) as talk:
        await talk.ask("tell me a story")
        await talk.ask("go on")
        assert talk.text == "Once upona time."
    assert told(model)[1:] == [AssistantMessage("Once upon"), UserMessage("go on")]


async def test_calls_of_a_message_that_failed_are_not_made() -> None:
    async with listening(TextLiveModel(mixed([CallRequested(READ), ModelError("The line is dead.")]))) as talk:
        await talk.ask("read it")
        assert talk.kinds == [TurnFailed, TurnComplete]


async def test_an_unexpected_model_error_ends_the_turn_without_its_details(capsys: pytest.CaptureFixture[str]) -> None:
    async with listening(TextLiveModel(mixed([ValueError("secret")]))) as talk:
        turn = await talk.ask("hi")
        message = "mixed failed unexpectedly. Please try again."
        assert talk.events == [TurnFailed(turn, message, kind=FailureKind.UNEXPECTED), TurnComplete(turn)]
    logged = "".join(capsys.readouterr())
    assert "model_failed_unexpectedly" in logged
    assert "ValueError" in logged


async def test_its_profile_is_the_text_models_without_audio_input_or_output() -> None:
    profile = TextLiveModel(mixed()).profile
    assert (profile.name, profile.needs_network) == ("mixed", True)
    assert not profile.hears
    assert not profile.speaks
