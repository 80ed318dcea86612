"""What a session may expect of every `LiveModel`."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import pytest

from antiphon.models.base import ModelError, OutputText
from antiphon.models.builtin import BuiltinModel
from antiphon.models.live import (
    GenerationComplete,
    InputTranscript,
    LiveContext,
    LiveEvent,
    LiveModel,
    OutputAudio,
    ToolCalls,
    TurnComplete,
)
from antiphon.models.text_live import TextLiveModel
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, Message, ToolMessage, UserMessage
from tests.fakes.paced import Listener, Paced, listening, results_of
from tests.fakes.scripted import ScriptedModel
from tests.fakes.scripted_live import Call, Hear, Say, ScriptedLive, Step
from tests.fakes.talking_tools import Box, talking_tools
from tests.fakes.voice import Body, Tones

ANSWER: Final = [OutputText, GenerationComplete, TurnComplete]
CALL: Final = ToolCall("call_0123456789", "get_time", {"timezone": "Tokyo"})
FRAME: Final = bytes(640)
"""20 ms of a microphone."""
SECOND: Final = 50 * FRAME


class Turn(StrEnum):
    """What a user says, by what comes of it."""

    WORDS = "hello"
    CALL = "what time is it in Tokyo?"


@dataclass
class Subject:
    model: LiveModel
    given: Callable[[], Sequence[Message]]
    """The conversation as the brain behind it was last given it, or has it."""
    speech: Callable[[str], bytes] = lambda text: SECOND
    """A text as a microphone hears it. What does not listen to it may hear anything."""


Make = Callable[..., Subject]


def make_paced(*turns: Turn) -> Paced:
    script: list[str | list[ToolCall]] = []
    for turn in turns:
        script += ["Hello there, my friend."] if turn is Turn.WORDS else [[CALL], "It's noon over there."]
    return Paced(ScriptedModel(script))


def make_text(*turns: Turn) -> Subject:
    paced = make_paced(*turns)
    return Subject(TextLiveModel(paced), lambda: paced.prompts[-1].messages)


def make_builtin(*turns: Turn) -> Subject:
    paced = Paced(BuiltinModel(Box(talking_tools())))
    return Subject(TextLiveModel(paced), lambda: paced.prompts[-1].messages)


def make_scripted(*turns: Turn) -> Subject:
    script: list[Step] = []
    for turn in turns:
        script += [Hear(turn)]
        script += [Call(CALL.name, CALL.args)] if turn is Turn.CALL else []
        script += [Say("Hello there, my friend.")]
    model = ScriptedLive(script)
    return Subject(model, lambda: model.messages)


def make_cascade(*turns: Turn) -> Subject:
    body, paced = Body(), make_paced(*turns)
    model = body.cascade(paced, Tones())
    return Subject(model, lambda: paced.prompts[-1].messages, lambda text: SECOND + body.words.say(text))


MODELS: Final[dict[str, Make]] = {
    "text": make_text,
    "builtin": make_builtin,
    "scripted": make_scripted,
    "cascade": make_cascade,
}


@pytest.fixture(params=MODELS)
def make(request: pytest.FixtureRequest) -> Make:
    return MODELS[request.param]


async def ask_for_a_tool(talk: Listener) -> None:
    await talk.ask(Turn.CALL)
    assert talk.events[-1] == talk.calls


def after_the_first_turn(talk: Listener) -> list[LiveEvent]:
    return talk.events[talk.events.index(TurnComplete()) + 1 :]


async def test_an_answer_is_text_then_made_then_over(make: Make) -> None:
    async with listening(make(Turn.WORDS).model) as talk:
        await talk.ask(Turn.WORDS)
        assert [kind for kind in talk.kinds if kind is not OutputAudio][-3:] == ANSWER
        assert talk.text


async def test_calls_wait_for_their_results(make: Make) -> None:
    async with listening(make(Turn.CALL).model) as talk:
        await talk.ask(Turn.CALL)
        assert talk.kinds == [ToolCalls]
        assert talk.calls.calls[0].name == "get_time"


async def test_the_answer_goes_on_with_the_results(make: Make) -> None:
    async with listening(make(Turn.CALL).model) as talk:
        await ask_for_a_tool(talk)
        await talk.give_results()
        assert talk.text
        assert talk.events[-2:] == [GenerationComplete(), TurnComplete()]


async def test_results_are_taken_once(make: Make) -> None:
    async with listening(make(Turn.CALL).model) as talk:
        await ask_for_a_tool(talk)
        await talk.give_results()
        before = list(talk.events)
        await talk.give_results()
        assert talk.events == before


async def test_results_that_nobody_asked_for_change_nothing(make: Make) -> None:
    async with listening(make(Turn.CALL).model) as talk:
        await ask_for_a_tool(talk)
        other = ToolCalls((ToolCall("call_another_one", "tell_joke", {}),))
        await talk.model.send_tool_results(results_of(other))
        await talk.settle()
        assert talk.kinds == [ToolCalls]


async def test_two_turns_follow_each_other(make: Make) -> None:
    async with listening(make(Turn.WORDS, Turn.CALL).model) as talk:
        await talk.ask(Turn.WORDS)
        await ask_for_a_tool(talk)
        await talk.give_results()
        assert talk.events.count(TurnComplete()) == talk.events.count(GenerationComplete()) == 2


async def test_an_interrupted_answer_is_over_at_once(make: Make) -> None:
    async with listening(make(Turn.WORDS).model) as talk:
        await talk.model.send_text(Turn.WORDS)
        await talk.model.interrupt()
        await talk.settle()
        assert talk.events == [TurnComplete()]


async def test_nothing_comes_of_calls_that_were_interrupted(make: Make) -> None:
    async with listening(make(Turn.CALL).model) as talk:
        await ask_for_a_tool(talk)
        await talk.model.interrupt()
        await talk.give_results()
        assert after_the_first_turn(talk) == []


async def test_an_interrupted_answer_does_not_spoil_the_next(make: Make) -> None:
    async with listening(make(Turn.CALL, Turn.WORDS).model) as talk:
        await ask_for_a_tool(talk)
        await talk.model.interrupt()
        await talk.ask(Turn.WORDS)
        assert talk.text
        assert after_the_first_turn(talk)[-2:] == [GenerationComplete(), TurnComplete()]


async def test_an_interrupt_between_answers_does_nothing(make: Make) -> None:
    async with listening(make(Turn.WORDS).model) as talk:
        await talk.model.interrupt()
        await talk.ask(Turn.WORDS)
        before = list(talk.events)
        await talk.model.interrupt()
        await talk.settle()
        assert talk.events == before
        assert talk.events.count(TurnComplete()) == 1


def answers_among(messages: Sequence[Message]) -> list[str]:
    """The words of the assistant, message by message."""
    return [message.text.strip() for message in messages if isinstance(message, AssistantMessage)]


async def test_what_was_not_heard_of_the_last_answer_is_forgotten(make: Make) -> None:
    subject = make(Turn.WORDS, Turn.CALL)
    async with listening(subject.model) as talk:
        await talk.ask(Turn.WORDS)
        heard = " ".join(talk.text.split()[:2])
        await subject.model.interrupt(heard)
        await talk.ask(Turn.CALL)
        assert answers_among(subject.given()) == [heard]


async def test_what_was_not_heard_of_the_answer_under_way_is_forgotten(make: Make) -> None:
    subject = make(Turn.WORDS, Turn.CALL)
    async with listening(subject.model) as talk:
        await talk.model.send_text(Turn.WORDS)
        await asyncio.sleep(0.25)
        assert talk.text
        heard = talk.text.split()[0]
        await subject.model.interrupt(heard)
        await talk.ask(Turn.CALL)
        assert answers_among(subject.given()) == [heard]


async def test_an_answer_of_which_nothing_was_heard_is_forgotten_whole(make: Make) -> None:
    subject = make(Turn.WORDS, Turn.CALL)
    async with listening(subject.model) as talk:
        await talk.ask(Turn.WORDS)
        await subject.model.interrupt("")
        await talk.ask(Turn.CALL)
        assert list(subject.given()) == [UserMessage(Turn.WORDS), UserMessage(Turn.CALL)]


async def test_what_was_read_as_it_came_is_remembered(make: Make) -> None:
    subject = make(Turn.WORDS, Turn.CALL)
    async with listening(subject.model) as talk:
        await talk.ask(Turn.WORDS)
        said = talk.text
        await subject.model.interrupt(None)
        await talk.ask(Turn.CALL)
        assert answers_among(subject.given()) == [said]


async def test_what_tools_did_is_remembered_though_nothing_was_heard(make: Make) -> None:
    subject = make(Turn.CALL, Turn.CALL)
    async with listening(subject.model) as talk:
        await ask_for_a_tool(talk)
        await talk.give_results()
        assert talk.text
        await subject.model.interrupt("")
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
        await subject.model.interrupt("")
        await talk.ask(Turn.WORDS)
        await subject.model.interrupt("")
        await talk.ask(Turn.CALL)
        assert answers_among(subject.given()) == ["Hello Ada."]


async def test_a_voice_may_be_set_at_any_time(make: Make) -> None:
    model = make(Turn.WORDS).model
    model.set_voice("nobody", 0.5)
    async with listening(model) as talk:
        model.set_voice(None, 2.0)
        await talk.ask(Turn.WORDS)
        assert talk.text


async def test_text_during_an_answer_ends_it_and_is_answered(make: Make) -> None:
    async with listening(make(Turn.CALL, Turn.WORDS).model) as talk:
        await ask_for_a_tool(talk)
        await talk.ask(Turn.WORDS)
        assert talk.kinds[:2] == [ToolCalls, TurnComplete]
        assert after_the_first_turn(talk)[-2:] == [GenerationComplete(), TurnComplete()]


async def test_of_texts_that_come_at_once_each_turn_is_over_once(make: Make) -> None:
    async with listening(make(Turn.WORDS, Turn.WORDS, Turn.WORDS).model) as talk:
        await asyncio.gather(*(talk.model.send_text(Turn.WORDS) for _ in range(3)))
        await talk.settle()
        assert talk.events.count(TurnComplete()) == 3
        assert talk.events.count(GenerationComplete()) == 1


async def test_the_conversation_so_far_is_given_to_the_model(make: Make) -> None:
    subject = make(Turn.WORDS)
    history = (UserMessage("I am Ada."), AssistantMessage("Hello Ada."))
    async with listening(subject.model, *history) as talk:
        await talk.ask(Turn.WORDS)
        assert tuple(subject.given()[:2]) == history


async def test_it_must_be_connected_before_it_is_used(make: Make) -> None:
    with pytest.raises(ModelError, match="not connected"):
        await make(Turn.WORDS).model.send_text(Turn.WORDS)


async def test_nothing_is_said_before_the_user_speaks(make: Make) -> None:
    async with listening(make(Turn.WORDS).model) as talk:
        await talk.settle()
        assert talk.events == []


@pytest.mark.parametrize("turn", list(Turn))
async def test_close_ends_the_events_in_the_middle_of_an_answer(make: Make, turn: Turn) -> None:
    async with listening(make(turn).model) as talk:
        await talk.model.send_text(turn)
        await asyncio.sleep(0.12)
        await talk.model.close()
        await asyncio.wait_for(talk.reading, 1)
        assert TurnComplete() not in talk.events


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
            await talk.model.send_text(Turn.WORDS)


async def test_what_comes_late_to_a_closed_model_is_dropped(make: Make) -> None:
    async with listening(make(Turn.CALL).model) as talk:
        await ask_for_a_tool(talk)
        await talk.model.close()
        await talk.give_results()
        await talk.model.interrupt()
        assert talk.kinds == [ToolCalls]


@pytest.mark.parametrize("turn", list(Turn))
async def test_no_task_is_left_of_an_answer_that_was_closed(make: Make, turn: Turn) -> None:
    before = asyncio.all_tasks()
    async with listening(make(turn).model) as talk:
        await talk.model.send_text(turn)
        await asyncio.sleep(0.12)
        assert len(asyncio.all_tasks() - before - {talk.reading}) <= 1
    assert asyncio.all_tasks() == before


async def test_its_profile_names_schemas_that_tools_are_built_with(make: Make) -> None:
    profile = make().model.profile
    assert profile.name
    assert profile.tool_schemas in {"openai_chat", "openai_realtime", "gemini"}
    assert (profile.output_hz > 0) is profile.speaks


WITH_EARS: Final = [name for name, make in MODELS.items() if make().model.profile.hears]
WITHOUT_EARS: Final = [name for name in MODELS if name not in WITH_EARS]
WITH_A_VOICE: Final = [name for name, make in MODELS.items() if make().model.profile.speaks]


@pytest.mark.parametrize("name", WITHOUT_EARS)
async def test_a_model_without_ears_says_so(name: str) -> None:
    async with listening(MODELS[name]().model) as talk:
        with pytest.raises(ModelError, match="cannot hear"):
            talk.model.send_audio(FRAME)
        await talk.model.end_audio()


def hear(talk: Listener, pcm: bytes) -> None:
    for at in range(0, len(pcm), len(FRAME)):
        talk.model.send_audio(pcm[at : at + len(FRAME)], playing=False)


async def answer(talk: Listener) -> InputTranscript:
    """Gives back what was heard, if the model waits for it."""
    await talk.settle()
    (final,) = [event for event in talk.events if isinstance(event, InputTranscript) and event.is_final]
    if talk.model.profile.waits_to_answer:
        assert OutputText not in talk.kinds
        await talk.ask(final.text)
    return final


@pytest.mark.parametrize("name", WITH_EARS)
async def test_what_was_heard_is_final_before_it_is_answered(name: str) -> None:
    subject = MODELS[name](Turn.WORDS)
    async with listening(subject.model) as talk:
        hear(talk, subject.speech(Turn.WORDS) + SECOND)
        final = await answer(talk)
        assert final == InputTranscript(Turn.WORDS, is_final=True)
        assert talk.events.index(final) < talk.events.index(next(e for e in talk.events if type(e) is OutputText))


@pytest.mark.parametrize("name", WITH_EARS)
async def test_the_end_of_the_audio_ends_the_users_turn(name: str) -> None:
    subject = MODELS[name](Turn.WORDS)
    async with listening(subject.model) as talk:
        hear(talk, subject.speech(Turn.WORDS)[-len(SECOND) // 2 :])
        await talk.model.end_audio()
        final = await answer(talk)
        assert final == InputTranscript(Turn.WORDS, is_final=True)
        assert not any(isinstance(event, TurnComplete) for event in talk.events[: talk.events.index(final)])
        assert talk.events[-1] == TurnComplete()


@pytest.mark.parametrize("name", WITH_EARS)
async def test_what_was_said_is_part_of_the_conversation_once(name: str) -> None:
    subject = MODELS[name](Turn.WORDS)
    async with listening(subject.model) as talk:
        hear(talk, subject.speech(Turn.WORDS) + SECOND)
        await answer(talk)
        assert list(subject.given()).count(UserMessage(Turn.WORDS)) == 1


@pytest.mark.parametrize("name", WITH_EARS)
async def test_if_nothing_was_heard_the_end_of_the_audio_ends_the_turn(name: str) -> None:
    async with listening(MODELS[name](Turn.WORDS).model) as talk:
        await talk.model.end_audio()
        await talk.settle()
        assert talk.events == [TurnComplete()]


@pytest.mark.parametrize("name", WITH_A_VOICE)
async def test_the_audio_is_whole_samples_and_says_the_text(name: str) -> None:
    async with listening(MODELS[name](Turn.WORDS).model) as talk:
        await talk.ask(Turn.WORDS)
        audio = [event for event in talk.events if isinstance(event, OutputAudio)]
        assert all(piece.pcm and len(piece.pcm) % 2 == 0 for piece in audio)
        assert "".join(piece.text for piece in audio).strip() == talk.text
        assert not any(piece.last for piece in audio[:-1])


async def test_a_model_may_be_connected_in_either_mode(make: Make) -> None:
    subject = make(Turn.WORDS)
    await subject.model.connect(LiveContext("", (), (), Mode.VOICE))
    listener = Listener(subject.model)
    await listener.ask(Turn.WORDS)
    await subject.model.close()
    await listener.reading
    assert listener.text
