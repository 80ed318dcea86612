"""Ears, mind and mouth together: who speaks when, and what the text model is told of it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from structlog.testing import capture_logs

from antiphon.models.base import ModelError, OutputText
from antiphon.models.cascade.cascade import Cascade
from antiphon.models.live import (
    Closed,
    GenerationComplete,
    InputTranscript,
    Interrupted,
    LiveContext,
    OutputAudio,
    Timings,
    ToolCalls,
    TurnComplete,
    TurnFailed,
)
from antiphon.speech.base import SpeechBusy, SpeechError
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, Message, ToolMessage, UserMessage
from tests.fakes.paced import PACE_S, Paced, results_of
from tests.fakes.scripted import ScriptedModel
from tests.fakes.voice import CERTAIN, Body, Caller, Tones, calling, hum, wave

CALL = ToolCall("call_0123456789", "read_it", {})
LONG_ANSWER = "It is going to be sunny today, with some clouds in the evening. It will be warm. Take a hat with you."


@dataclass
class Call:
    body: Body
    model: Paced
    tones: Tones
    cascade: Cascade
    caller: Caller

    @property
    def asked(self) -> list[Message]:
        """The last message of each prompt."""
        return [prompt.messages[-1] for prompt in self.model.prompts]

    @property
    def told(self) -> list[Message]:
        """The conversation as the model was last given it."""
        return list(self.model.prompts[-1].messages)

    async def wait_for(self, happened: Callable[[], object]) -> None:
        async with asyncio.timeout(30):
            while not happened():
                await self.caller.be_silent(20)

    async def wait_for_event(self, kind: type[object], times: int = 1) -> None:
        await self.wait_for(lambda: sum(isinstance(event, kind) for event in self.caller.events) >= times)


@asynccontextmanager
async def talk(
    *script: str | list[ToolCall], speaks: bool = True, answers: bool = True, thinks_ahead: bool = True
) -> AsyncIterator[Call]:
    body, model, tones = Body(), Paced(ScriptedModel(list(script))), Tones()
    body.recognizer.tells_interim = False
    before = asyncio.all_tasks()
    cascade = body.cascade(model, tones if speaks else None, thinks_ahead=thinks_ahead)
    async with calling(cascade, body.words.say, answers=answers) as caller:
        await caller.be_silent(500)
        yield Call(body, model, tones, cascade, caller)
    assert model.open == tones.open == 0
    await body.hearing.aclose()
    assert asyncio.all_tasks() == before


# One turn.


async def test_what_is_said_is_heard_answered_and_spoken() -> None:
    async with talk("It is noon.") as call:
        await call.caller.speak("what time is it")
        await call.wait_for_event(TurnComplete)
        assert call.caller.kinds == [
            InputTranscript,
            Timings,
            InputTranscript,
            OutputText,
            OutputAudio,
            GenerationComplete,
            TurnComplete,
        ]
        assert call.caller.finals == [InputTranscript("what time is it", is_final=True)]
        assert call.caller.text == "It is noon."


async def test_it_waits_until_it_is_given_back_what_it_heard() -> None:
    async with talk("It is noon.", answers=False) as call:
        await call.caller.speak("what time is it")
        await call.caller.be_silent(3_000)
        assert OutputText not in call.caller.kinds
        await call.cascade.send_text("what time is it")
        await call.caller.settle()
        assert call.caller.text == "It is noon."


async def test_a_model_that_has_its_price_is_asked_when_the_turn_is_over_and_once() -> None:
    async with talk("It is noon.", thinks_ahead=False) as call:
        await call.caller.speak("what time")
        await call.caller.be_silent(400)
        await call.caller.speak("is it")
        await call.caller.be_silent(700)
        assert call.asked == []
        await call.wait_for_event(TurnComplete)
        assert call.asked == [UserMessage("what time is it")]
        assert call.caller.text == "It is noon."


async def test_the_model_thinks_while_it_is_not_sure_that_the_turn_is_over() -> None:
    async with talk("It is noon.") as call:
        said_s = await call.caller.speak("what time is it")
        await call.wait_for_event(TurnComplete)
        assert call.asked == [UserMessage("what time is it")]
        thought_s = 0.064 + 0.08 + PACE_S
        assert thought_s < 0.9
        assert call.caller.when(OutputText) - said_s == pytest.approx(0.9, abs=0.05)


async def test_of_a_wrong_guess_nothing_comes() -> None:
    async with talk("One thing.", "Another thing.") as call:
        await call.caller.speak("what time")
        await call.caller.be_silent(430)
        assert call.model.open == 1
        await call.caller.speak("is it")
        assert call.model.open == 0
        await call.wait_for_event(TurnComplete)
        assert call.caller.text == "Another thing."
        assert call.asked == [UserMessage("what time"), UserMessage("what time is it")]


async def test_no_tool_is_called_before_the_turn_is_final() -> None:
    async with talk([CALL], "It is noon.") as call:
        await call.caller.speak("what time is it")
        await call.wait_for_event(ToolCalls)
        assert call.caller.events.index(call.caller.finals[0]) < call.caller.events.index(ToolCalls((CALL,)))
        await call.cascade.send_tool_results(results_of(call.caller.calls))
        await call.wait_for_event(TurnComplete)
        assert call.caller.text == "It is noon."


async def test_without_a_voice_the_answer_is_text() -> None:
    async with talk("It is noon.", "It is one.", speaks=False) as call:
        assert not call.cascade.profile.speaks
        await call.caller.speak("what time is it")
        await call.wait_for_event(TurnComplete)
        assert call.caller.kinds[-3:] == [OutputText, GenerationComplete, TurnComplete]
        await call.caller.speak("and now")
        await call.wait_for_event(TurnComplete, 2)
        assert [final.goes_on for final in call.caller.finals] == [False, False]


async def test_a_voice_is_chosen_for_the_answers_after_it() -> None:
    async with talk("It is noon.", "It is one.") as call:
        call.cascade.set_voice("anna", 1.5)
        await call.caller.ask("what time is it")
        call.cascade.set_voice(None, 1.0)
        await call.caller.ask("and now")
        assert call.tones.asked == [("It is noon.", "anna", 1.5), ("It is one.", "joe", 1.0)]


async def test_it_speaks_of_its_own_accord() -> None:
    async with talk() as call:
        await call.cascade.say("Hello! What can I do for you?")
        await call.caller.settle()
        assert call.caller.kinds == [OutputText, OutputAudio, GenerationComplete, TurnComplete]
        assert call.asked == []
        await call.caller.ask("nothing")
        assert call.told == [AssistantMessage("Hello! What can I do for you?"), UserMessage("nothing")]


async def test_what_it_says_of_its_own_accord_ends_what_it_was_saying() -> None:
    async with talk(LONG_ANSWER) as call:
        await call.cascade.send_text("what will the weather be")
        await call.wait_for_event(OutputAudio)
        await call.cascade.say("Your tea is ready.")
        await call.caller.settle()
        assert call.caller.events.count(TurnComplete()) == 2
        first = call.caller.events.index(TurnComplete())
        spoken = [event.text for event in call.caller.events[first:] if isinstance(event, OutputAudio)]
        assert "".join(spoken).split() == ["Your", "tea", "is", "ready."]


# A turn that goes on.


async def test_who_goes_on_before_the_first_sound_of_the_answer_is_in_the_same_turn() -> None:
    async with talk("It is noon.", "It is nine in Tokyo.") as call:
        call.tones.delay_s = 1.0
        await call.caller.speak("what time is it")
        await call.wait_for(lambda: call.caller.finals)
        await call.caller.be_silent(100)
        await call.caller.speak("in Tokyo")
        await call.wait_for_event(TurnComplete, 2)
        assert call.caller.finals == [
            InputTranscript("what time is it", is_final=True),
            InputTranscript("what time is it in Tokyo", is_final=True, goes_on=True),
        ]
        assert call.told == [UserMessage("what time is it in Tokyo")]
        spoken = "".join(event.text for event in call.caller.events if isinstance(event, OutputAudio))
        assert spoken.split() == ["It", "is", "nine", "in", "Tokyo."]
        assert call.caller.events.count(Interrupted()) == 1


async def test_the_answer_to_the_longer_turn_is_thought_ahead_too() -> None:
    async with talk("It is noon.", "It is nine in Tokyo.") as call:
        call.tones.delay_s = 1.0
        await call.caller.speak("what time is it")
        await call.wait_for(lambda: call.caller.finals)
        await call.caller.speak("in Tokyo")
        await call.wait_for_event(TurnComplete, 2)
        assert call.asked == [UserMessage("what time is it"), UserMessage("what time is it in Tokyo")]


async def test_a_session_that_is_slow_to_give_back_the_first_part_changes_nothing() -> None:
    async with talk("It is noon.", "It is nine in Tokyo.", "The end.", answers=False) as call:
        await call.caller.speak("what time is it")
        await call.wait_for(lambda: call.caller.finals)
        await call.caller.speak("in Tokyo")
        await call.cascade.send_text("what time is it")
        await call.cascade.interrupt("")
        await call.wait_for(lambda: len(call.caller.finals) == 2)
        await call.cascade.send_text("what time is it in Tokyo")
        await call.caller.settle()
        assert call.told == [UserMessage("what time is it in Tokyo")]
        assert call.caller.events.count(TurnComplete()) == 2


async def test_not_even_if_it_gives_back_both_at_the_end() -> None:
    async with talk("It is noon.", "It is nine.", "The end.", answers=False) as call:
        await call.caller.speak("what time is it")
        await call.wait_for(lambda: call.caller.finals)
        await call.caller.speak("in Tokyo")
        await call.wait_for(lambda: len(call.caller.finals) == 2)
        for final in call.caller.finals:
            await call.cascade.send_text(final.text)
        await call.caller.settle()
        assert call.told == [UserMessage("what time is it in Tokyo")]


async def test_earlier_turns_stay_as_they_are() -> None:
    async with talk("Yes?", "It is noon.", "It is nine in Tokyo.") as call:
        await call.caller.speak("hello")
        await call.wait_for_event(TurnComplete)
        await asyncio.sleep(5)
        call.body.recognizer.delay_s = 2.0
        await call.caller.speak("what time is it")
        await call.caller.be_silent(1_500)
        assert len(call.caller.finals) == 1
        call.body.recognizer.delay_s = 0.1
        await call.caller.speak("in Tokyo")
        await call.wait_for_event(TurnComplete, 2)
        assert [final.goes_on for final in call.caller.finals] == [False, False]
        assert call.told == [
            UserMessage("hello"),
            AssistantMessage("Yes? "),
            UserMessage("what time is it in Tokyo"),
        ]


async def test_what_is_typed_in_the_meantime_is_not_a_part_of_what_was_spoken() -> None:
    async with talk("It is noon.", "It is raining.", "In Tokyo, too.", answers=False) as call:
        await call.caller.speak("what time is it")
        await call.wait_for(lambda: call.caller.finals)
        await call.cascade.send_text("what time is it")
        await call.cascade.send_text("and what is the weather")
        await call.caller.be_silent(100)
        await call.caller.speak("in Tokyo")
        await call.wait_for(lambda: len(call.caller.finals) == 2)
        assert call.caller.finals[-1] == InputTranscript("in Tokyo", is_final=True)


async def test_the_same_words_typed_after_they_were_spoken_are_another_turn() -> None:
    async with talk("One.", "Two.", "Three.") as call:
        await call.caller.speak("next")
        await call.wait_for_event(TurnComplete)
        await call.caller.ask("next")
        assert call.told == [UserMessage("next"), AssistantMessage("One. "), UserMessage("next")]


# Who speaks over an answer.


async def test_after_the_first_sound_of_the_answer_speech_is_another_turn() -> None:
    async with talk(LONG_ANSWER, "As you like.") as call:
        await call.caller.speak("what will the weather be")
        await call.wait_for_event(OutputAudio)
        await call.caller.be_silent(300)
        began_s = asyncio.get_running_loop().time()
        await call.caller.speak("stop that please")
        assert call.caller.when(Interrupted) - began_s <= 0.2
        await call.wait_for_event(TurnComplete, 2)
        assert call.caller.finals[-1] == InputTranscript("stop that please", is_final=True)
        assert [type(message) for message in call.told] == [UserMessage, UserMessage]


@pytest.mark.parametrize("is_made", [False, True], ids=["while it is made", "while it is only said"])
async def test_of_an_answer_that_is_spoken_over_only_the_end_is_told(is_made: bool) -> None:
    async with talk(LONG_ANSWER, answers=False) as call:
        await call.cascade.send_text("what will the weather be")
        await call.wait_for_event(OutputAudio)
        if is_made:
            call.tones.delay_s = 1.0
            await call.wait_for(lambda: call.model.open == 0)
        await call.caller.speak("stop")
        assert call.tones.open == call.model.open == 0
        await call.caller.be_silent(300)
        at = call.caller.events.index(Interrupted())
        assert [event for event in call.caller.events[at:] if not isinstance(event, InputTranscript)] == [
            Interrupted(),
            TurnComplete(),
        ]


@pytest.mark.parametrize("sound", [wave(32, CERTAIN), hum(400)], ids=["click", "hum"])
async def test_a_noise_does_not_make_it_think_again_about_what_was_said(sound: bytes) -> None:
    async with talk("It is noon.") as call:
        call.tones.delay_s = 1.0
        await call.caller.speak("what time is it")
        await call.wait_for(lambda: call.caller.finals)
        await call.caller.sound(sound)
        await call.wait_for_event(TurnComplete)
        assert Interrupted() not in call.caller.events
        assert len(call.caller.finals) == len(call.asked) == 1


async def test_an_answer_that_is_whole_and_still_playing_is_interrupted_too() -> None:
    async with talk(LONG_ANSWER, answers=False) as call:
        call.tones.delay_s = 0.0
        await call.cascade.send_text("what will the weather be")
        await call.wait_for_event(TurnComplete)
        await call.caller.speak("stop")
        assert call.caller.events.count(Interrupted()) == call.caller.events.count(TurnComplete()) == 1


async def test_an_answer_that_the_client_still_plays_is_interrupted_too() -> None:
    async with talk("Noon.", answers=False) as call:
        await call.cascade.send_text("what time is it")
        await call.caller.settle()
        call.caller.playing = True
        await call.caller.speak("stop")
        assert call.caller.events.count(Interrupted()) == 1


@pytest.mark.parametrize("sound", [wave(32, CERTAIN), hum(400)], ids=["click", "hum"])
async def test_a_noise_does_not_end_an_answer_that_is_being_thought(sound: bytes) -> None:
    async with talk(LONG_ANSWER, answers=False) as call:
        await call.cascade.send_text("what will the weather be")
        await call.caller.sound(sound)
        await call.caller.be_silent(500)
        assert Interrupted() not in call.caller.events


async def test_while_somebody_may_be_speaking_no_more_of_the_answer_is_sent() -> None:
    async with talk(LONG_ANSWER, answers=False) as call:
        call.tones.piece_ms = 100
        await call.cascade.send_text("what will the weather be")
        await call.wait_for_event(OutputAudio)
        began_s = asyncio.get_running_loop().time()
        await call.caller.sound(hum(500))
        assert call.caller.when(OutputAudio, -1) <= began_s + 0.2
        await call.wait_for_event(TurnComplete)
        assert Interrupted() not in call.caller.events
        spoken = [event.text for event in call.caller.events if isinstance(event, OutputAudio)]
        assert "".join(spoken).split() == LONG_ANSWER.split()


async def test_a_tool_that_runs_is_spoken_over_and_its_result_is_not_lost() -> None:
    async with talk([CALL], "As you like.", "As you like.") as call:
        await call.cascade.send_text("look it up")
        await call.wait_for_event(ToolCalls)
        await call.caller.speak("never mind")
        assert call.caller.events[-2:] == [Interrupted(), TurnComplete()]
        await call.cascade.send_tool_results(results_of(call.caller.calls))
        await call.wait_for_event(TurnComplete, 2)
        assert call.caller.text == "As you like."
        assert any(isinstance(message, ToolMessage) and message.content == "noon" for message in call.told)


async def test_an_answer_that_begins_while_somebody_speaks_gives_way_at_the_end_of_the_turn() -> None:
    async with talk(LONG_ANSWER, "Yes.", "The end.", answers=False) as call:
        await call.caller.speak("I would like")
        await call.cascade.send_text("typed")
        await call.caller.speak("to say something as well")
        await call.wait_for(lambda: call.caller.finals)
        assert call.caller.finals[0].text == "I would like to say something as well"
        before = call.caller.events[: call.caller.events.index(call.caller.finals[0])]
        assert Interrupted() in before


async def test_an_interrupt_is_silence_and_what_follows_is_another_turn() -> None:
    async with talk("It is noon.", "In Tokyo it is nine.", answers=False) as call:
        await call.caller.speak("what time is it")
        await call.wait_for(lambda: call.caller.finals)
        await call.cascade.send_text("what time is it")
        await call.cascade.interrupt("")
        await call.caller.speak("in Tokyo")
        await call.wait_for(lambda: len(call.caller.finals) == 2)
        assert call.caller.finals[-1] == InputTranscript("in Tokyo", is_final=True)
        assert call.caller.events.count(TurnComplete()) == 1
        assert OutputAudio not in call.caller.kinds


# The end of the audio.


async def test_the_end_of_the_audio_in_mid_speech_is_a_turn() -> None:
    async with talk("It is noon.") as call:
        await call.caller.speak("what time is it")
        await call.cascade.end_audio()
        await call.caller.settle()
        assert call.caller.finals == [InputTranscript("what time is it", is_final=True)]
        assert call.caller.events.count(TurnComplete()) == 1
        assert call.caller.interims == []
        assert call.asked == [UserMessage("what time is it")]


@pytest.mark.parametrize("sound", [b"", wave(100, CERTAIN), hum(700)], ids=["nothing", "noise", "hum"])
async def test_the_end_of_audio_without_words_is_told_once(sound: bytes) -> None:
    async with talk() as call:
        await call.caller.sound(sound)
        await call.cascade.end_audio()
        await call.caller.settle()
        assert call.caller.events == [TurnComplete()]
        await call.caller.sound(wave(100, CERTAIN))
        await call.caller.be_silent(2_000)
        assert call.caller.events == [TurnComplete()]


@pytest.mark.parametrize("silence_ms", [0, 100, 200, 500, 850, 900, 950, 1_000])
async def test_whenever_the_audio_ends_a_turn_is_told_and_answered_once(silence_ms: int) -> None:
    async with talk("It is noon.") as call:
        call.body.recognizer.delay_s = call.tones.delay_s = 0.3
        await call.caller.speak("what time is it")
        await call.caller.be_silent(silence_ms)
        await call.cascade.end_audio()
        await call.caller.settle()
        assert call.caller.finals == [InputTranscript("what time is it", is_final=True)]
        assert call.caller.events.count(TurnComplete()) == 1
        assert call.caller.events[-1] == TurnComplete()
        assert call.caller.text == "It is noon."


async def test_the_end_of_audio_that_cannot_be_understood_fails_and_is_over() -> None:
    async with talk() as call:
        call.body.recognizer.error = SpeechBusy("Too many people are talking.")
        await call.caller.speak("what time is it")
        await call.cascade.end_audio()
        await call.caller.settle()
        assert call.caller.events == [TurnFailed("Too many people are talking."), TurnComplete()]


async def test_after_what_cannot_be_understood_listening_goes_on() -> None:
    async with talk("It is noon.") as call:
        call.body.recognizer.error = SpeechBusy("Too many people are talking.")
        await call.caller.speak("what time is it")
        await call.wait_for_event(TurnFailed)
        call.body.recognizer.error = None
        await call.caller.speak("what time is it")
        await call.wait_for_event(TurnComplete)
        assert call.caller.text == "It is noon."


# What goes wrong.


async def test_an_answer_that_cannot_be_spoken_can_be_read() -> None:
    async with talk(LONG_ANSWER, "It works again.") as call:
        call.tones.error, call.tones.fails_at = SpeechError("The voice is gone."), "clouds"
        await call.caller.ask("what will the weather be")
        assert call.caller.text == LONG_ANSWER
        assert call.caller.events[-2:] == [TurnFailed("The voice is gone."), TurnComplete()]
        call.tones.error = None
        await call.caller.ask("and now")
        assert call.caller.events[-2:] == [GenerationComplete(), TurnComplete()]


async def test_what_breaks_the_voice_ends_it_in_so_many_words(monkeypatch: pytest.MonkeyPatch) -> None:
    async with talk("It is noon.") as call:
        assert call.cascade._mouth is not None
        monkeypatch.setattr(call.cascade._mouth, "say", lambda text: 1 / 0)
        with capture_logs() as logs:
            await call.caller.ask("what time is it")
        assert isinstance(call.caller.events[-1], Closed)
        assert call.caller.reading.done(), "nobody waits for more"
        assert "voice_failed" in [log["event"] for log in logs]


# The beginning and the end.


@pytest.mark.parametrize("at_ms", [0, 200, 500, 1_000, 1_300, 2_000, 6_000])
async def test_it_can_be_closed_at_any_time(at_ms: int) -> None:
    async with talk(LONG_ANSWER) as call:
        call.body.recognizer.tells_interim = True
        await call.caller.speak("what will the weather be")
        await call.caller.be_silent(at_ms)
        await call.cascade.close()
        before = list(call.caller.events)
        await call.caller.speak("hello")
        await call.cascade.end_audio()
        await call.caller.settle()
        assert call.caller.events == before


async def test_a_closed_one_is_not_connected_again() -> None:
    cascade = Body().cascade(Paced(ScriptedModel([])), Tones())
    await cascade.close()
    with pytest.raises(ModelError, match="is closed"):
        await cascade.connect(LiveContext("", (), (), Mode.VOICE))


async def test_audio_before_it_is_connected_is_nothing() -> None:
    cascade = Body().cascade(Paced(ScriptedModel([])), Tones())
    cascade.send_audio(bytes(640))
    await cascade.end_audio()
    await cascade.interrupt()
    await cascade.close()
    assert [event async for event in cascade.events()] == []


@pytest.mark.parametrize("size", [0, 1, 3, 641, 100_001])
async def test_sound_of_any_size_is_taken(size: int) -> None:
    async with talk("It is noon.") as call:
        call.cascade.send_audio(bytes(size - size % 2))
        call.cascade.send_audio(bytes(size))
        call.cascade.send_audio(bytes(size % 2))
        await call.caller.be_silent(2_000)
        await call.caller.speak("what time is it")
        await call.wait_for_event(TurnComplete)
        assert call.caller.text == "It is noon."


async def test_two_callers_do_not_hear_each_other() -> None:
    body = Body()
    models = [Paced(ScriptedModel(["One."])), Paced(ScriptedModel(["Two."]))]
    cascades = [body.cascade(model, Tones()) for model in models]
    async with (
        calling(cascades[0], body.words.say) as first,
        calling(cascades[1], body.words.say) as second,
    ):
        await asyncio.gather(first.be_silent(500), second.be_silent(700))
        await asyncio.gather(first.speak("this is one"), second.speak("and this is two"))
        await asyncio.gather(first.be_silent(2_000), second.be_silent(2_000))
        await first.settle()
        assert (first.finals[0].text, first.text) == ("this is one", "One.")
        assert (second.finals[0].text, second.text) == ("and this is two", "Two.")
    await body.hearing.aclose()
