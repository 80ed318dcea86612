"""What a session may expect of every `LiveModel`."""

import asyncio

import pytest

from antiphon.models.base import ModelError
from antiphon.models.live import (
    GenerationComplete,
    LiveContext,
    LiveModel,
    ToolAnswer,
    ToolCalls,
    TurnComplete,
    TurnStarted,
)
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, Entry, ToolMessage, Transcript, UserMessage
from tests.contract.live_models import (
    ANSWER,
    BESIDE,
    CALL,
    FRAME,
    MODELS,
    Make,
    Turn,
    answers_among,
    ask_for_a_tool,
    listening,
)
from tests.fakes.paced import Listener, results_of


@pytest.fixture(params=MODELS)
def make(request: pytest.FixtureRequest) -> Make:
    return MODELS[request.param]


# Answers.


async def test_an_answer_is_text_then_generation_complete_then_turn_complete(make: Make) -> None:
    async with listening(make(Turn.WORDS).model) as talk:
        await talk.ask(Turn.WORDS)
        assert [kind for kind in talk.kinds if kind not in BESIDE][-3:] == ANSWER
        assert talk.text


@pytest.mark.parametrize("turn", list(Turn))
async def test_every_event_of_a_turn_carries_its_id(make: Make, turn: Turn) -> None:
    async with listening(make(turn).model) as talk:
        asked = await talk.ask(turn)
        if turn is Turn.CALL:
            await talk.give_results()
        assert talk.of(asked) == talk.events
        assert talk.events[-2:] == [GenerationComplete(asked), TurnComplete(asked)]


async def test_a_turn_started_by_the_session_is_not_announced_again(make: Make) -> None:
    async with listening(make(Turn.WORDS).model) as talk:
        await talk.ask(Turn.WORDS)
        assert TurnStarted not in talk.kinds


async def test_nothing_is_said_before_the_user_speaks(make: Make) -> None:
    async with listening(make(Turn.WORDS).model) as talk:
        await talk.settle()
        assert talk.events == []


async def test_two_turns_follow_each_other(make: Make) -> None:
    async with listening(make(Turn.WORDS, Turn.CALL).model) as talk:
        first = await talk.ask(Turn.WORDS)
        second = await ask_for_a_tool(talk)
        await talk.give_results()
        assert [*talk.of(first), *talk.of(second)] == talk.events
        for turn in (first, second):
            assert talk.of(turn)[-2:] == [GenerationComplete(turn), TurnComplete(turn)]


async def test_a_second_request_cancels_the_first_and_is_answered(make: Make) -> None:
    async with listening(make(Turn.WORDS, Turn.WORDS, Turn.WORDS).model) as talk:
        first, second = talk.respond(Turn.WORDS), talk.respond(Turn.WORDS)
        third = await talk.ask(Turn.WORDS)
        assert talk.of(first) == [TurnComplete(first)]
        assert talk.of(second) == [TurnComplete(second)]
        assert talk.of(third)[-2:] == [GenerationComplete(third), TurnComplete(third)]


async def test_text_during_an_answer_ends_it_and_is_answered(make: Make) -> None:
    async with listening(make(Turn.CALL, Turn.WORDS).model) as talk:
        first = await ask_for_a_tool(talk)
        second = await talk.ask(Turn.WORDS)
        assert talk.events[:2] == [talk.calls, TurnComplete(first)]
        assert talk.of(second)[-2:] == [GenerationComplete(second), TurnComplete(second)]


# Saying given words.


async def test_say_produces_an_answer_in_exactly_the_given_words(make: Make) -> None:
    subject = make(Turn.WORDS)
    async with listening(subject.model) as talk:
        turn = await talk.say("Good morning, Ada.")
        assert talk.of(turn) == talk.events
        assert [kind for kind in talk.kinds if kind not in BESIDE][-3:] == ANSWER
        assert talk.text == "Good morning, Ada."
        await talk.ask(Turn.WORDS)
        assert answers_among(subject.given()) == ["Good morning, Ada."]


async def test_say_cancels_the_current_answer(make: Make) -> None:
    async with listening(make(Turn.CALL).model) as talk:
        first = await ask_for_a_tool(talk)
        second = await talk.say("Goodbye.")
        assert talk.of(first) == [talk.calls, TurnComplete(first)]
        assert talk.of(second)[-2:] == [GenerationComplete(second), TurnComplete(second)]
        assert talk.text == "Goodbye."


# Tools.


async def test_calls_wait_for_their_results(make: Make) -> None:
    async with listening(make(Turn.CALL).model) as talk:
        await talk.ask(Turn.CALL)
        assert talk.kinds == [ToolCalls]
        assert talk.calls.calls[0].name == "get_time"


async def test_the_answer_continues_with_the_results(make: Make) -> None:
    subject = make(Turn.CALL)
    async with listening(subject.model) as talk:
        turn = await ask_for_a_tool(talk)
        await talk.give_results()
        assert talk.text
        assert talk.events[-2:] == [GenerationComplete(turn), TurnComplete(turn)]
        assert [type(message) for message in subject.given()] == [UserMessage, AssistantMessage, ToolMessage]


async def test_results_are_accepted_once(make: Make) -> None:
    async with listening(make(Turn.CALL).model) as talk:
        turn = await ask_for_a_tool(talk)
        await talk.give_results()
        before = list(talk.events)
        talk.model.send_tool_results(turn, results_of(talk.calls))
        await talk.settle()
        assert talk.events == before


async def test_results_of_unknown_calls_change_nothing(make: Make) -> None:
    async with listening(make(Turn.CALL).model) as talk:
        turn = await ask_for_a_tool(talk)
        other = ToolCall("call_another_one", "tell_joke", {})
        talk.model.send_tool_results(turn, [ToolAnswer(other, "ha")])
        talk.model.send_tool_results("another turn", results_of(talk.calls))
        await talk.settle()
        assert talk.kinds == [ToolCalls]


async def test_results_of_a_cancelled_turn_produce_no_events(make: Make) -> None:
    async with listening(make(Turn.CALL).model) as talk:
        turn = await ask_for_a_tool(talk)
        talk.interrupt()
        await talk.give_results()
        assert talk.events == [talk.calls, TurnComplete(turn)]


async def test_results_of_a_cancelled_turn_are_not_used_for_the_next(make: Make) -> None:
    async with listening(make(Turn.CALL, Turn.CALL).model) as talk:
        first = await ask_for_a_tool(talk)
        late = results_of(talk.calls)
        await ask_for_a_tool(talk)
        talk.add_runs(first, late)
        talk.model.send_tool_results(first, late)
        await talk.settle()
        assert talk.kinds == [ToolCalls, TurnComplete, ToolCalls]
        await talk.give_results()
        assert talk.kinds[-1] is TurnComplete


async def test_results_of_a_cancelled_turn_are_known_in_the_next(make: Make) -> None:
    subject = make(Turn.CALL, Turn.WORDS)
    async with listening(subject.model) as talk:
        await ask_for_a_tool(talk)
        talk.interrupt("")
        await talk.give_results()
        await talk.ask(Turn.WORDS)
        assert [type(message) for message in subject.given()] == [
            UserMessage,
            AssistantMessage,
            ToolMessage,
            UserMessage,
        ]


@pytest.mark.parametrize("text", [Turn.WORDS, ""])
async def test_calls_approved_by_the_turn_are_known_to_the_model(make: Make, text: str) -> None:
    subject = make(Turn.WORDS)
    async with listening(subject.model, UserMessage("book it"), AssistantMessage("Shall I?")) as talk:
        await talk.ask(text, ran=[ToolAnswer(CALL, "noon", "It's noon.")])
        assert talk.text
        known = [type(message) for message in subject.given()]
        assert known == [UserMessage, AssistantMessage, *[UserMessage] * bool(text), AssistantMessage, ToolMessage]


# Interruptions.


async def test_an_interrupted_answer_ends_at_once(make: Make) -> None:
    async with listening(make(Turn.WORDS).model) as talk:
        turn = talk.respond(Turn.WORDS)
        talk.interrupt()
        await talk.settle()
        assert talk.events == [TurnComplete(turn)]


async def test_an_interrupted_answer_does_not_affect_the_next(make: Make) -> None:
    async with listening(make(Turn.CALL, Turn.WORDS).model) as talk:
        await ask_for_a_tool(talk)
        talk.interrupt()
        turn = await talk.ask(Turn.WORDS)
        assert talk.text
        assert talk.of(turn)[-2:] == [GenerationComplete(turn), TurnComplete(turn)]


@pytest.mark.parametrize("heard", [None, ""])
async def test_an_interrupt_of_an_unknown_turn_does_nothing(make: Make, heard: str | None) -> None:
    async with listening(make(Turn.WORDS).model) as talk:
        talk.model.interrupt("unknown", heard)
        turn = talk.respond(Turn.WORDS)
        talk.model.interrupt("unknown", heard)
        await talk.settle()
        assert talk.of(turn) == talk.events
        assert talk.events[-2:] == [GenerationComplete(turn), TurnComplete(turn)]


async def test_an_interrupt_of_a_finished_turn_emits_no_event(make: Make) -> None:
    async with listening(make(Turn.WORDS).model) as talk:
        await talk.ask(Turn.WORDS)
        before = list(talk.events)
        talk.interrupt("Hello")
        talk.interrupt("")
        await talk.settle()
        assert talk.events == before


async def test_an_interrupt_of_an_earlier_turn_leaves_the_current_one(make: Make) -> None:
    subject = make(Turn.WORDS, Turn.CALL, Turn.WORDS)
    async with listening(subject.model) as talk:
        first = await talk.ask(Turn.WORDS)
        second = await ask_for_a_tool(talk)
        talk.interrupt("Hello", first)
        await talk.give_results()
        assert talk.of(second)[-2:] == [GenerationComplete(second), TurnComplete(second)]
        await talk.ask(Turn.WORDS)
        assert answers_among(subject.given())[0] == "Hello"


async def test_the_unheard_part_of_the_last_answer_is_forgotten(make: Make) -> None:
    subject = make(Turn.WORDS, Turn.CALL)
    async with listening(subject.model) as talk:
        await talk.ask(Turn.WORDS)
        heard = " ".join(talk.text.split()[:2])
        talk.interrupt(heard)
        await talk.ask(Turn.CALL)
        assert answers_among(subject.given()) == [heard]


async def test_the_unheard_part_of_the_current_answer_is_forgotten(make: Make) -> None:
    subject = make(Turn.WORDS, Turn.CALL)
    async with listening(subject.model) as talk:
        talk.respond(Turn.WORDS)
        await asyncio.sleep(0.25)
        assert talk.text
        heard = talk.text.split()[0]
        talk.interrupt(heard)
        await talk.ask(Turn.CALL)
        assert answers_among(subject.given()) == [heard]


async def test_an_entirely_unheard_answer_is_forgotten(make: Make) -> None:
    subject = make(Turn.WORDS, Turn.CALL)
    async with listening(subject.model) as talk:
        await talk.ask(Turn.WORDS)
        talk.interrupt("")
        await talk.ask(Turn.CALL)
        assert list(subject.given()) == [UserMessage(Turn.WORDS), UserMessage(Turn.CALL)]


async def test_an_answer_read_as_text_is_remembered(make: Make) -> None:
    subject = make(Turn.WORDS, Turn.CALL)
    async with listening(subject.model) as talk:
        await talk.ask(Turn.WORDS)
        said = talk.text
        talk.interrupt(None)
        await talk.ask(Turn.CALL)
        assert answers_among(subject.given()) == [said]


async def test_tool_results_are_remembered_even_if_nothing_was_heard(make: Make) -> None:
    subject = make(Turn.CALL, Turn.CALL)
    async with listening(subject.model) as talk:
        await ask_for_a_tool(talk)
        await talk.give_results()
        assert talk.text
        talk.interrupt("")
        await talk.ask(Turn.CALL)
        assert [type(message) for message in subject.given()] == [
            UserMessage,
            AssistantMessage,
            ToolMessage,
            UserMessage,
        ]


async def test_earlier_answers_are_not_truncated(make: Make) -> None:
    subject = make(Turn.WORDS, Turn.CALL)
    async with listening(subject.model, UserMessage("I am Ada."), AssistantMessage("Hello Ada.")) as talk:
        await talk.ask(Turn.WORDS)
        talk.interrupt("")
        await talk.ask(Turn.CALL)
        assert answers_among(subject.given()) == ["Hello Ada."]


# Knowledge of the conversation.


async def test_the_conversation_so_far_is_given_to_the_model(make: Make) -> None:
    subject = make(Turn.WORDS)
    history = (UserMessage("I am Ada."), AssistantMessage("Hello Ada."))
    async with listening(subject.model, *history) as talk:
        await talk.ask(Turn.WORDS)
        assert list(subject.given()) == [*history, UserMessage(Turn.WORDS)]


async def test_a_model_that_reads_the_transcript_sees_messages_added_by_the_session(make: Make) -> None:
    subject = make(Turn.WORDS, Turn.CALL)
    async with listening(subject.model) as talk:
        await talk.ask(Turn.WORDS)
        talk.transcript.add(Entry("elsewhere", AssistantMessage("Your tea is ready.")))
        await talk.ask(Turn.CALL)
        assert ("Your tea is ready." in answers_among(subject.given())) is not subject.model.profile.keeps_context


async def test_a_model_may_be_connected_in_either_mode(make: Make) -> None:
    subject = make(Turn.WORDS)
    transcript = Transcript()
    await subject.model.connect(LiveContext("", transcript, (), (), Mode.VOICE))
    talk = Listener(subject.model, transcript)
    await talk.ask(Turn.WORDS)
    await subject.model.close()
    await talk.reading
    assert talk.text


async def test_its_profile_names_schemas_for_which_tools_are_built(make: Make) -> None:
    profile = make().model.profile
    assert profile.name
    assert profile.tool_schemas in {"openai_chat", "openai_realtime", "gemini"}


async def test_a_voice_may_be_set_at_any_time(make: Make) -> None:
    model = make(Turn.WORDS).model
    model.set_voice("nobody", 0.5)
    async with listening(model) as talk:
        model.set_voice(None, 2.0)
        await talk.ask(Turn.WORDS)
        assert talk.text


# Before `connect` and after `close`.


def ignored(model: LiveModel) -> None:
    """Commands that a model ignores before it is connected and after it is closed."""
    model.set_voice(None, 1.0)
    model.send_tool_results("turn", [ToolAnswer(CALL, "noon")])
    model.interrupt("turn", "Hello")
    model.end_audio("turn")
    if model.profile.hears:
        model.send_audio(FRAME)


async def test_a_model_must_be_connected_before_it_is_used(make: Make) -> None:
    model = make(Turn.WORDS).model
    with pytest.raises(ModelError, match="not connected"):
        model.respond("turn", Turn.WORDS)
    with pytest.raises(ModelError, match="not connected"):
        model.say("turn", "Hello.")
    await model.close()


async def test_commands_before_connect_are_ignored(make: Make) -> None:
    model = make(Turn.WORDS).model
    ignored(model)
    async with listening(model) as talk:
        await talk.settle()
        assert talk.events == []


@pytest.mark.parametrize("turn", list(Turn))
async def test_close_ends_the_event_stream_in_the_middle_of_an_answer(make: Make, turn: Turn) -> None:
    async with listening(make(turn).model) as talk:
        talk.respond(turn)
        await asyncio.sleep(0.12)
        await talk.model.close()
        await asyncio.wait_for(talk.reading, 1)
        assert TurnComplete not in talk.kinds


async def test_close_may_be_called_twice(make: Make) -> None:
    async with listening(make().model) as talk:
        await talk.model.close()
        await talk.model.close()
        assert [event async for event in talk.model.events()] == []


async def test_close_may_be_called_before_connect(make: Make) -> None:
    model = make().model
    await model.close()
    assert [event async for event in model.events()] == []


async def test_a_closed_model_accepts_no_more_turns(make: Make) -> None:
    async with listening(make(Turn.WORDS).model) as talk:
        await talk.model.close()
        with pytest.raises(ModelError):
            talk.respond(Turn.WORDS)
        with pytest.raises(ModelError):
            await talk.say("Hello.")


async def test_late_commands_to_a_closed_model_are_dropped(make: Make) -> None:
    async with listening(make(Turn.CALL).model) as talk:
        await ask_for_a_tool(talk)
        await talk.model.close()
        await talk.give_results()
        talk.interrupt("")
        ignored(talk.model)
        await talk.settle()
        assert talk.kinds == [ToolCalls]


@pytest.mark.parametrize("turn", list(Turn))
async def test_close_during_an_answer_leaves_no_task_behind(make: Make, turn: Turn) -> None:
    before = asyncio.all_tasks()
    async with listening(make(turn).model) as talk:
        # A provider's connection has tasks of its own, and its server runs on the same loop.
        connected = asyncio.all_tasks()
        talk.respond(turn)
        await asyncio.sleep(0.12)
        assert len(asyncio.all_tasks() - connected) <= 1
    assert asyncio.all_tasks() == before
