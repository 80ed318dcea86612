"""What a session may expect of every `LiveModel`."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal

import pytest

from antiphon.models.base import (
    CallRequested,
    Event,
    MessageComplete,
    ModelError,
    Prompt,
    StopReason,
    TextDelta,
    TextProfile,
)
from antiphon.models.builtin import BuiltinModel
from antiphon.models.live import (
    Closed,
    GenerationComplete,
    InputTranscript,
    Interrupted,
    LiveContext,
    LiveEvent,
    LiveModel,
    LiveProfile,
    OutputAudio,
    OutputText,
    ToolAnswer,
    ToolCalls,
    TurnComplete,
    TurnStarted,
)
from antiphon.models.text_live import TextLiveModel
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, Entry, Message, ToolMessage, Transcript, UserMessage
from tests.fakes import paced
from tests.fakes.paced import Listener, Paced, results_of
from tests.fakes.scripted_live import PROFILE, WAITING, Barge, Call, GoOn, Hear, Say, ScriptedLive, Step
from tests.fakes.talking_tools import Box, talking_tools

ANSWER: Final = [OutputText, GenerationComplete, TurnComplete]
CALL: Final = ToolCall("call_0123456789", "get_time", {"timezone": "Tokyo"})
FRAME: Final = bytes(640)
"""20 ms of a microphone."""
SECOND: Final = 50 * FRAME
LONG_ANSWER: Final = "One two three four five six seven. Eight nine ten eleven twelve thirteen. And so on and so on."


class Turn(StrEnum):
    """What a user says, by what comes of it."""

    WORDS = "hello"
    CALL = "what time is it in Tokyo?"


@dataclass
class Subject:
    model: LiveModel
    given: Callable[[], Sequence[Message]]
    """The conversation as the model knew it when it last began or went on to answer."""
    speech: Callable[[str], bytes] = lambda text: SECOND
    """A text as a microphone picks it up. A model that is not listened to by a recogniser takes anything."""


Make = Callable[..., Subject]


class Clerk:
    """A text model that looks up the time if it is asked for it, and greets otherwise."""

    profile = TextProfile("clerk", needs_network=False)

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        last = prompt.messages[-1]
        if last == UserMessage(Turn.CALL):
            yield CallRequested(CALL)
            yield MessageComplete(StopReason.CALLS)
            return
        for word in ("It's noon there." if isinstance(last, ToolMessage) else "Hello there, my friend.").split():
            yield TextDelta(f"{word} ")
        yield MessageComplete(StopReason.DONE)


def make_text(*turns: Turn) -> Subject:
    paced = Paced(Clerk())
    return Subject(TextLiveModel(paced), lambda: paced.prompts[-1].messages)


def make_builtin(*turns: Turn) -> Subject:
    paced = Paced(BuiltinModel(Box(talking_tools())))
    return Subject(TextLiveModel(paced), lambda: paced.prompts[-1].messages)


def scripted(profile: LiveProfile, transcript: Literal["before", "late", "after", "never"]) -> Make:
    def make(*turns: Turn) -> Subject:
        script: list[Step] = []
        for turn in turns:
            script += [Hear(turn, transcript=transcript)]
            script += [Call(CALL.name, CALL.args, CALL.id)] if turn is Turn.CALL else []
            script += [Say("Hello there, my friend.")]
        model = ScriptedLive(script, profile=profile)
        return Subject(model, lambda: model.prompts[-1])

    return make


MODELS: Final[dict[str, Make]] = {
    "text": make_text,
    "builtin": make_builtin,
    "scripted": scripted(WAITING, "before"),
    "native": scripted(PROFILE, "late"),
}
HEARING: Final[dict[str, Make]] = {
    "scripted": scripted(WAITING, "before"),
    "native, transcript before": scripted(PROFILE, "before"),
    "native, transcript late": scripted(PROFILE, "late"),
    "native, transcript after": scripted(PROFILE, "after"),
    "native, no transcript": scripted(PROFILE, "never"),
}


@pytest.fixture(params=MODELS)
def make(request: pytest.FixtureRequest) -> Make:
    return MODELS[request.param]


@pytest.fixture(params=HEARING)
def make_hearing(request: pytest.FixtureRequest) -> Make:
    return HEARING[request.param]


@asynccontextmanager
async def listening(model: LiveModel, *history: Message, answers: bool = True) -> AsyncIterator[Listener]:
    """A connection, whose events are seen to be in order at the end of every test."""
    async with paced.listening(model, *history, answers=answers) as talk:
        yield talk
    check_order(talk.events)


def check_order(events: Sequence[LiveEvent]) -> None:
    """What holds for any events of any model."""
    begun, over = set[str](), set[str]()
    for event in events:
        turn: Any = getattr(event, "turn", None)
        if isinstance(event, InputTranscript):
            assert not event.is_final or event.text, "a final transcript has words"
        if isinstance(event, OutputAudio):
            assert event.pcm, "a piece of audio has samples"
        if turn in over:
            may_follow = isinstance(event, InputTranscript | Interrupted)
            assert may_follow, f"{event} came after the end of its turn"
        if isinstance(event, TurnStarted):
            assert turn not in begun, f"{event} came after a part of its turn"
        elif not (isinstance(event, InputTranscript) and not event.is_final):
            begun.add(turn)
        if isinstance(event, TurnComplete):
            over.add(turn)
    assert Closed not in [type(event) for event in events[:-1]]
    for counted in (TurnStarted, TurnComplete, GenerationComplete):
        turns = Counter(event.turn for event in events if isinstance(event, counted))
        assert max(turns.values(), default=0) <= 1, f"more than one {counted.__name__} of a turn"


async def ask_for_a_tool(talk: Listener) -> str:
    turn = await talk.ask(Turn.CALL)
    assert talk.events[-1] == talk.calls
    return turn


def answers_among(messages: Sequence[Message]) -> list[str]:
    """The words of the assistant, message by message."""
    return [message.text.strip() for message in messages if isinstance(message, AssistantMessage)]


# An answer.


async def test_an_answer_is_text_then_made_then_over(make: Make) -> None:
    async with listening(make(Turn.WORDS).model) as talk:
        await talk.ask(Turn.WORDS)
        assert [kind for kind in talk.kinds if kind is not OutputAudio][-3:] == ANSWER
        assert talk.text


@pytest.mark.parametrize("turn", list(Turn))
async def test_all_that_comes_of_a_turn_names_it(make: Make, turn: Turn) -> None:
    async with listening(make(turn).model) as talk:
        asked = await talk.ask(turn)
        if turn is Turn.CALL:
            await talk.give_results()
        assert talk.of(asked) == talk.events
        assert talk.events[-2:] == [GenerationComplete(asked), TurnComplete(asked)]


async def test_a_turn_that_the_session_begins_is_not_begun_again(make: Make) -> None:
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


async def test_a_second_request_voids_the_first_and_is_answered(make: Make) -> None:
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


# Exactly these words.


async def test_what_it_is_told_to_say_is_an_answer_in_these_words(make: Make) -> None:
    subject = make(Turn.WORDS)
    async with listening(subject.model) as talk:
        turn = await talk.say("Good morning, Ada.")
        assert talk.of(turn) == talk.events
        assert [kind for kind in talk.kinds if kind is not OutputAudio][-3:] == ANSWER
        assert talk.text == "Good morning, Ada."
        await talk.ask(Turn.WORDS)
        assert answers_among(subject.given()) == ["Good morning, Ada."]


async def test_what_it_is_told_to_say_voids_the_answer_under_way(make: Make) -> None:
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


async def test_the_answer_goes_on_with_the_results(make: Make) -> None:
    subject = make(Turn.CALL)
    async with listening(subject.model) as talk:
        turn = await ask_for_a_tool(talk)
        await talk.give_results()
        assert talk.text
        assert talk.events[-2:] == [GenerationComplete(turn), TurnComplete(turn)]
        assert [type(message) for message in subject.given()] == [UserMessage, AssistantMessage, ToolMessage]


async def test_results_are_taken_once(make: Make) -> None:
    async with listening(make(Turn.CALL).model) as talk:
        turn = await ask_for_a_tool(talk)
        await talk.give_results()
        before = list(talk.events)
        talk.model.send_tool_results(turn, results_of(talk.calls))
        await talk.settle()
        assert talk.events == before


async def test_results_of_calls_that_it_did_not_make_change_nothing(make: Make) -> None:
    async with listening(make(Turn.CALL).model) as talk:
        turn = await ask_for_a_tool(talk)
        other = ToolCall("call_another_one", "tell_joke", {})
        talk.model.send_tool_results(turn, [ToolAnswer(other, "ha")])
        talk.model.send_tool_results("another turn", results_of(talk.calls))
        await talk.settle()
        assert talk.kinds == [ToolCalls]


async def test_nothing_comes_of_the_results_of_a_void_turn(make: Make) -> None:
    async with listening(make(Turn.CALL).model) as talk:
        turn = await ask_for_a_tool(talk)
        talk.interrupt()
        await talk.give_results()
        assert talk.events == [talk.calls, TurnComplete(turn)]


async def test_results_of_a_void_turn_are_not_those_of_the_next(make: Make) -> None:
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


async def test_the_results_of_a_void_turn_are_known_in_the_next(make: Make) -> None:
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
async def test_calls_that_the_turn_let_run_are_known(make: Make, text: str) -> None:
    subject = make(Turn.WORDS)
    async with listening(subject.model, UserMessage("book it"), AssistantMessage("Shall I?")) as talk:
        await talk.ask(text, ran=[ToolAnswer(CALL, "noon", "It's noon.")])
        assert talk.text
        known = [type(message) for message in subject.given()]
        assert known == [UserMessage, AssistantMessage, *[UserMessage] * bool(text), AssistantMessage, ToolMessage]


# Interruptions.


async def test_an_interrupted_answer_is_over_at_once(make: Make) -> None:
    async with listening(make(Turn.WORDS).model) as talk:
        turn = talk.respond(Turn.WORDS)
        talk.interrupt()
        await talk.settle()
        assert talk.events == [TurnComplete(turn)]


async def test_an_interrupted_answer_does_not_spoil_the_next(make: Make) -> None:
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


async def test_an_interrupt_of_a_turn_that_is_over_brings_no_event(make: Make) -> None:
    async with listening(make(Turn.WORDS).model) as talk:
        await talk.ask(Turn.WORDS)
        before = list(talk.events)
        talk.interrupt("Hello")
        talk.interrupt("")
        await talk.settle()
        assert talk.events == before


async def test_an_interrupt_of_an_earlier_turn_leaves_the_one_under_way(make: Make) -> None:
    subject = make(Turn.WORDS, Turn.CALL, Turn.WORDS)
    async with listening(subject.model) as talk:
        first = await talk.ask(Turn.WORDS)
        second = await ask_for_a_tool(talk)
        talk.interrupt("Hello", first)
        await talk.give_results()
        assert talk.of(second)[-2:] == [GenerationComplete(second), TurnComplete(second)]
        await talk.ask(Turn.WORDS)
        assert answers_among(subject.given())[0] == "Hello"


async def test_what_was_not_heard_of_the_last_answer_is_forgotten(make: Make) -> None:
    subject = make(Turn.WORDS, Turn.CALL)
    async with listening(subject.model) as talk:
        await talk.ask(Turn.WORDS)
        heard = " ".join(talk.text.split()[:2])
        talk.interrupt(heard)
        await talk.ask(Turn.CALL)
        assert answers_among(subject.given()) == [heard]


async def test_what_was_not_heard_of_the_answer_under_way_is_forgotten(make: Make) -> None:
    subject = make(Turn.WORDS, Turn.CALL)
    async with listening(subject.model) as talk:
        talk.respond(Turn.WORDS)
        await asyncio.sleep(0.25)
        assert talk.text
        heard = talk.text.split()[0]
        talk.interrupt(heard)
        await talk.ask(Turn.CALL)
        assert answers_among(subject.given()) == [heard]


async def test_an_answer_of_which_nothing_was_heard_is_forgotten_whole(make: Make) -> None:
    subject = make(Turn.WORDS, Turn.CALL)
    async with listening(subject.model) as talk:
        await talk.ask(Turn.WORDS)
        talk.interrupt("")
        await talk.ask(Turn.CALL)
        assert list(subject.given()) == [UserMessage(Turn.WORDS), UserMessage(Turn.CALL)]


async def test_what_was_read_as_it_came_is_remembered(make: Make) -> None:
    subject = make(Turn.WORDS, Turn.CALL)
    async with listening(subject.model) as talk:
        await talk.ask(Turn.WORDS)
        said = talk.text
        talk.interrupt(None)
        await talk.ask(Turn.CALL)
        assert answers_among(subject.given()) == [said]


async def test_what_tools_did_is_remembered_though_nothing_was_heard(make: Make) -> None:
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


async def test_earlier_answers_are_not_cut(make: Make) -> None:
    subject = make(Turn.WORDS, Turn.CALL)
    async with listening(subject.model, UserMessage("I am Ada."), AssistantMessage("Hello Ada.")) as talk:
        await talk.ask(Turn.WORDS)
        talk.interrupt("")
        await talk.ask(Turn.CALL)
        assert answers_among(subject.given()) == ["Hello Ada."]


# What it knows of the conversation.


async def test_the_conversation_so_far_is_given_to_the_model(make: Make) -> None:
    subject = make(Turn.WORDS)
    history = (UserMessage("I am Ada."), AssistantMessage("Hello Ada."))
    async with listening(subject.model, *history) as talk:
        await talk.ask(Turn.WORDS)
        assert list(subject.given()) == [*history, UserMessage(Turn.WORDS)]


async def test_a_model_that_reads_the_transcript_sees_what_the_session_adds(make: Make) -> None:
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


async def test_its_profile_names_schemas_that_tools_are_built_with(make: Make) -> None:
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


# Before `connect`, and after `close`.


def ignored(model: LiveModel) -> None:
    """Commands that are ignored by a model that is not connected, or no longer."""
    model.set_voice(None, 1.0)
    model.send_tool_results("turn", [ToolAnswer(CALL, "noon")])
    model.interrupt("turn", "Hello")
    model.end_audio("turn")
    if model.profile.hears:
        model.send_audio(FRAME)


async def test_it_must_be_connected_before_it_is_used(make: Make) -> None:
    model = make(Turn.WORDS).model
    with pytest.raises(ModelError, match="not connected"):
        model.respond("turn", Turn.WORDS)
    with pytest.raises(ModelError, match="not connected"):
        model.say("turn", "Hello.")
    await model.close()


async def test_what_comes_before_it_is_connected_is_ignored(make: Make) -> None:
    model = make(Turn.WORDS).model
    ignored(model)
    async with listening(model) as talk:
        await talk.settle()
        assert talk.events == []


@pytest.mark.parametrize("turn", list(Turn))
async def test_close_ends_the_events_in_the_middle_of_an_answer(make: Make, turn: Turn) -> None:
    async with listening(make(turn).model) as talk:
        talk.respond(turn)
        await asyncio.sleep(0.12)
        await talk.model.close()
        await asyncio.wait_for(talk.reading, 1)
        assert TurnComplete not in talk.kinds


async def test_close_may_come_twice(make: Make) -> None:
    async with listening(make().model) as talk:
        await talk.model.close()
        await talk.model.close()
        assert [event async for event in talk.model.events()] == []


async def test_close_may_come_before_connect(make: Make) -> None:
    model = make().model
    await model.close()
    assert [event async for event in model.events()] == []


async def test_a_closed_model_takes_no_more_turns(make: Make) -> None:
    async with listening(make(Turn.WORDS).model) as talk:
        await talk.model.close()
        with pytest.raises(ModelError):
            talk.respond(Turn.WORDS)
        with pytest.raises(ModelError):
            await talk.say("Hello.")


async def test_what_comes_late_to_a_closed_model_is_dropped(make: Make) -> None:
    async with listening(make(Turn.CALL).model) as talk:
        await ask_for_a_tool(talk)
        await talk.model.close()
        await talk.give_results()
        talk.interrupt("")
        ignored(talk.model)
        await talk.settle()
        assert talk.kinds == [ToolCalls]


@pytest.mark.parametrize("turn", list(Turn))
async def test_no_task_is_left_of_an_answer_that_was_closed(make: Make, turn: Turn) -> None:
    before = asyncio.all_tasks()
    async with listening(make(turn).model) as talk:
        talk.respond(turn)
        await asyncio.sleep(0.12)
        assert len(asyncio.all_tasks() - before - {talk.reading}) <= 1
    assert asyncio.all_tasks() == before


# Audio.

WITHOUT_EARS: Final = [name for name, make in MODELS.items() if not make().model.profile.hears]
WITH_A_VOICE: Final = [name for name, make in MODELS.items() if make().model.profile.speaks]


@pytest.mark.parametrize("name", WITHOUT_EARS)
async def test_a_model_that_cannot_hear_says_so(name: str) -> None:
    model = MODELS[name]().model
    with pytest.raises(ModelError, match="cannot hear"):
        model.send_audio(FRAME)
    async with listening(model) as talk:
        with pytest.raises(ModelError, match="cannot hear"):
            model.send_audio(FRAME)
        turn = await talk.end_audio()
        assert talk.events == [TurnComplete(turn)]
    with pytest.raises(ModelError, match="cannot hear"):
        model.send_audio(FRAME)


@pytest.mark.parametrize("name", WITH_A_VOICE)
async def test_the_audio_is_whole_samples_and_says_the_text(name: str) -> None:
    async with listening(MODELS[name](Turn.WORDS).model) as talk:
        await talk.ask(Turn.WORDS)
        audio = [event for event in talk.events if isinstance(event, OutputAudio)]
        assert all(piece.pcm and len(piece.pcm) % 2 == 0 for piece in audio)
        assert "".join(piece.text for piece in audio).strip() == talk.text
        assert not any(piece.last for piece in audio[:-1])


def hear(talk: Listener, pcm: bytes) -> None:
    for at in range(0, len(pcm), len(FRAME)):
        talk.model.send_audio(pcm[at : at + len(FRAME)], playing=False)


def finals(talk: Listener) -> list[InputTranscript]:
    return [event for event in talk.events if isinstance(event, InputTranscript) and event.is_final]


def started(talk: Listener) -> list[str]:
    return [event.turn for event in talk.events if isinstance(event, TurnStarted)]


async def test_a_turn_that_it_hears_begins_with_an_event_of_its_own(make_hearing: Make) -> None:
    subject = make_hearing(Turn.WORDS)
    async with listening(subject.model) as talk:
        hear(talk, subject.speech(Turn.WORDS) + SECOND)
        await talk.settle()
        (turn,) = started(talk)
        assert talk.of(turn) == talk.events
        parts = [event for event in talk.events if not (isinstance(event, InputTranscript) and not event.is_final)]
        assert parts[0] == TurnStarted(turn)
        assert {GenerationComplete(turn), TurnComplete(turn)} <= set(parts)
        assert talk.text


async def test_what_it_hears_is_told_once_or_never(make_hearing: Make) -> None:
    subject = make_hearing(Turn.WORDS)
    async with listening(subject.model) as talk:
        hear(talk, subject.speech(Turn.WORDS) + SECOND)
        await talk.settle()
        told = finals(talk)
        assert [(each.turn, each.text) for each in told] == [(*started(talk), Turn.WORDS)] * len(told)
        assert len(told) <= 1
        assert [entry.turn for entry in talk.transcript] == started(talk) * 2
        assert [type(message) for message in talk.transcript.messages][-1] is AssistantMessage


async def test_a_model_that_waits_does_not_answer_before_it_is_asked(make_hearing: Make) -> None:
    subject = make_hearing(Turn.WORDS)
    async with listening(subject.model, answers=False) as talk:
        hear(talk, subject.speech(Turn.WORDS) + SECOND)
        await talk.settle()
        assert (OutputText in talk.kinds) is not subject.model.profile.waits_to_answer
        if subject.model.profile.waits_to_answer:
            (final,) = finals(talk)
            talk.model.respond(final.turn, final.text)
            await talk.settle()
            assert talk.of(final.turn)[-2:] == [GenerationComplete(final.turn), TurnComplete(final.turn)]


async def test_each_turn_that_it_hears_has_its_own_id(make_hearing: Make) -> None:
    subject = make_hearing(Turn.WORDS, Turn.WORDS)
    async with listening(subject.model) as talk:
        for _ in range(2):
            hear(talk, subject.speech(Turn.WORDS) + SECOND)
            await talk.settle()
        assert len(set(started(talk))) == 2
        for turn in started(talk):
            assert TurnComplete(turn) in talk.events


async def test_the_end_of_the_audio_ends_the_users_turn_under_the_sessions_id(make_hearing: Make) -> None:
    subject = make_hearing(Turn.WORDS)
    async with listening(subject.model) as talk:
        hear(talk, subject.speech(Turn.WORDS)[-len(SECOND) // 2 :])
        turn = await talk.end_audio()
        assert {final.turn for final in finals(talk)} <= {turn}
        assert {event.turn for event in talk.events if isinstance(event, OutputText | OutputAudio)} == {turn}
        assert talk.events.count(TurnComplete(turn)) == 1
        assert [event for event in talk.events if isinstance(event, TurnComplete)] == [TurnComplete(turn)]
        assert talk.text


async def test_if_nothing_was_heard_the_end_of_the_audio_ends_the_turn(make_hearing: Make) -> None:
    async with listening(make_hearing(Turn.WORDS).model) as talk:
        turn = await talk.end_audio()
        assert talk.events == [TurnComplete(turn)]


async def test_what_was_said_is_part_of_the_conversation_once(make_hearing: Make) -> None:
    subject = make_hearing(Turn.WORDS)
    async with listening(subject.model) as talk:
        hear(talk, subject.speech(Turn.WORDS) + SECOND)
        await talk.settle()
        assert list(subject.given()).count(UserMessage(Turn.WORDS)) == 1


async def test_words_that_were_typed_after_a_spoken_turn_come_after_it(make_hearing: Make) -> None:
    subject = make_hearing(Turn.WORDS, Turn.CALL)
    async with listening(subject.model) as talk:
        hear(talk, subject.speech(Turn.WORDS) + SECOND)
        await talk.settle()
        await talk.ask(Turn.CALL)
        assert [type(message) for message in subject.given()] == [UserMessage, AssistantMessage, UserMessage]
        assert subject.given()[-1] == UserMessage(Turn.CALL)


# A user who goes on, or speaks over the answer.


def speaking_user(steps: Sequence[Step], *answers: str) -> dict[str, Make]:
    """Models that hear a user who speaks again: a script for those that are scripted, answers for the rest."""

    def scripted(profile: LiveProfile) -> Subject:
        model = ScriptedLive(steps, profile=profile)
        return Subject(model, lambda: model.prompts[-1])

    return {"scripted": lambda: scripted(WAITING), "native": lambda: scripted(PROFILE)}


async def sound(talk: Listener, pcm: bytes) -> None:
    """At the pace of a microphone."""
    for at in range(0, len(pcm), len(FRAME)):
        talk.model.send_audio(pcm[at : at + len(FRAME)])
        await asyncio.sleep(0.02)


async def sound_until(talk: Listener, kind: type[LiveEvent], times: int = 1) -> None:
    """Silence, until such an event has come."""
    async with asyncio.timeout(30):
        while sum(isinstance(event, kind) for event in talk.events) < times:
            await sound(talk, FRAME)


GOES_ON: Final = speaking_user(
    [Hear("what time", after_ms=800), GoOn(40), Hear("what time is it", after_ms=300, continues=True), Say("Noon.")],
    *["It's noon."] * 4,
)
BARGES_IN: Final = speaking_user(
    [Hear("count", after_ms=800), Say(LONG_ANSWER, audio_ms=9_000), Barge(after_ms=500)], LONG_ANSWER
)


@pytest.mark.parametrize("name", GOES_ON)
async def test_a_turn_that_goes_on_names_the_turn_that_it_replaces(name: str) -> None:
    subject = GOES_ON[name]()
    async with listening(subject.model) as talk:
        await sound(talk, SECOND + subject.speech("what time"))
        await sound_until(talk, TurnStarted)
        await sound(talk, subject.speech("is it"))
        await sound_until(talk, TurnStarted, times=2)
        await sound_until(talk, GenerationComplete)
        await talk.settle()
        first, second = (event for event in talk.events if isinstance(event, TurnStarted))
        assert second.continues == first.turn
        assert first.continues is None
        assert GenerationComplete(first.turn) not in talk.events
        assert talk.events.count(TurnComplete(second.turn)) == 1
        assert [final.text for final in finals(talk)][-1] == "what time is it"
        assert [m for m in talk.transcript.messages if isinstance(m, UserMessage)] == [UserMessage("what time is it")]
        assert [m for m in subject.given() if isinstance(m, UserMessage)] == [UserMessage("what time is it")]


@pytest.mark.parametrize("name", BARGES_IN)
async def test_a_user_who_speaks_over_the_answer_voids_it(name: str) -> None:
    subject = BARGES_IN[name]()
    async with listening(subject.model) as talk:
        await sound(talk, SECOND + subject.speech("count"))
        await sound_until(talk, OutputAudio)
        await sound(talk, SECOND[: len(SECOND) // 2] + subject.speech("stop it please stop it"))
        await sound_until(talk, Interrupted)
        (turn, *_) = started(talk)
        interrupted = next(event for event in talk.events if isinstance(event, Interrupted))
        assert interrupted == Interrupted(turn)
        await talk.settle()
        after = [event for event in talk.of(turn) if talk.events.index(event) > talk.events.index(interrupted)]
        assert [type(event) for event in after if not isinstance(event, InputTranscript)] in ([], [TurnComplete])
        assert talk.events.count(TurnComplete(turn)) == 1
