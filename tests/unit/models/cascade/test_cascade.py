"""The whole cascade: speech is recognized, answered and spoken."""

import asyncio

import pytest
from structlog.testing import capture_logs

from antiphon.models.base import ModelError
from antiphon.models.cascade.speech_output import SpokenAnswer
from antiphon.models.live import (
    Closed,
    GenerationComplete,
    InputTranscript,
    LiveContext,
    OutputAudio,
    OutputText,
    SpeechStarted,
    ToolCalls,
    TurnComplete,
    TurnFailed,
    TurnStarted,
)
from antiphon.speech.base import SpeechBusy, SpeechError
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, Transcript, UserMessage
from tests.fakes.paced import PACE_S, Paced
from tests.fakes.scripted import ScriptedModel
from tests.fakes.spoken_call import CALL, LONG_ANSWER, talk
from tests.fakes.voice import CERTAIN, FakeEngines, Tones, calling, hum, wave

# One turn.


async def test_speech_is_recognized_answered_and_spoken() -> None:
    async with talk("It is noon.") as call:
        await call.caller.speak("what time is it")
        await call.wait_for_event(TurnComplete)
        assert call.caller.kinds == [
            InputTranscript,
            TurnStarted,
            InputTranscript,
            OutputText,
            OutputAudio,
            GenerationComplete,
            TurnComplete,
        ]
        assert call.caller.heard == ["what time is it"]
        assert call.caller.finals[0].timings is not None
        assert call.caller.text == "It is noon."
        assert {getattr(event, "turn", None) for event in call.caller.events} == {call.caller.finals[0].turn}


async def test_the_beginning_of_speech_is_told_with_the_id_of_its_turn() -> None:
    async with talk("It is noon.") as call:
        await call.caller.speak("what time is it")
        await call.wait_for_event(TurnComplete)
        assert call.caller.speech == [SpeechStarted(call.caller.finals[0].turn)]


async def test_the_cascade_waits_until_it_is_asked_to_answer() -> None:
    async with talk("It is noon.", answers=False) as call:
        await call.caller.speak("what time is it")
        await call.caller.be_silent(3_000)
        assert OutputText not in call.caller.kinds
        call.caller.answer(call.caller.finals[0])
        await call.caller.settle()
        assert call.caller.text == "It is noon."


async def test_a_paid_model_is_asked_only_once_and_only_after_the_turn_ends() -> None:
    async with talk("It is noon.", prepares_answers=False) as call:
        await call.caller.speak("what time")
        await call.caller.be_silent(400)
        await call.caller.speak("is it")
        await call.caller.be_silent(700)
        assert call.asked == []
        await call.wait_for_event(TurnComplete)
        assert call.asked == [UserMessage("what time is it")]
        assert call.caller.text == "It is noon."


async def test_the_answer_is_prepared_before_the_end_of_the_turn_is_certain() -> None:
    async with talk("It is noon.") as call:
        said_s = await call.caller.speak("what time is it")
        await call.wait_for_event(TurnComplete)
        assert call.asked == [UserMessage("what time is it")]
        prepared_s = 0.064 + 0.08 + PACE_S
        assert prepared_s < 0.9
        assert call.caller.when(OutputText) - said_s == pytest.approx(0.9, abs=0.05)


async def test_a_wrong_guess_produces_no_events() -> None:
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
        assert call.caller.calls.calls == (CALL,)
        assert call.caller.events.index(call.caller.finals[0]) < call.caller.events.index(call.caller.calls)
        call.give_results()
        await call.wait_for_event(TurnComplete)
        assert call.caller.text == "It is noon."


async def test_without_a_synthesizer_the_answer_is_text() -> None:
    async with talk("It is noon.", "It is one.", speaks=False) as call:
        assert not call.cascade.profile.speaks
        await call.caller.speak("what time is it")
        await call.wait_for_event(TurnComplete)
        assert call.caller.kinds[-3:] == [OutputText, GenerationComplete, TurnComplete]
        await call.caller.speak("and now")
        await call.wait_for_event(TurnComplete, 2)
        assert [started.continues for started in call.caller.started] == [None, None]


async def test_a_new_voice_applies_to_later_answers() -> None:
    async with talk("It is noon.", "It is one.") as call:
        call.cascade.set_voice("anna", 1.5)
        await call.caller.ask("what time is it")
        call.cascade.set_voice(None, 1.0)
        await call.caller.ask("and now")
        assert call.tones.asked == [("It is noon.", "anna", 1.5), ("It is one.", "joe", 1.0)]


async def test_the_cascade_can_speak_unprompted() -> None:
    async with talk() as call:
        await call.caller.say("Hello! What can I do for you?")
        assert call.caller.kinds == [OutputText, OutputAudio, GenerationComplete, TurnComplete]
        assert call.asked == []
        await call.caller.ask("nothing")
        assert call.prompt == [AssistantMessage("Hello! What can I do for you?"), UserMessage("nothing")]


async def test_unprompted_speech_replaces_the_current_answer() -> None:
    async with talk(LONG_ANSWER) as call:
        turn = call.caller.respond("what will the weather be")
        await call.wait_for_event(OutputAudio)
        said = await call.caller.say("Your tea is ready.")
        ends = [event for event in call.caller.events if isinstance(event, TurnComplete)]
        assert ends == [TurnComplete(turn), TurnComplete(said)]
        first = call.caller.events.index(TurnComplete(turn))
        spoken = [event.text for event in call.caller.events[first:] if isinstance(event, OutputAudio)]
        assert "".join(spoken).split() == ["Your", "tea", "is", "ready."]


# The end of the audio.


async def test_the_end_of_the_audio_in_mid_speech_ends_a_turn() -> None:
    async with talk("It is noon.") as call:
        await call.caller.speak("what time is it")
        turn = await call.caller.end_audio()
        assert [(final.turn, final.text) for final in call.caller.finals] == [(turn, "what time is it")]
        assert call.caller.started == [TurnStarted(turn)]
        assert call.caller.events.count(TurnComplete(turn)) == 1
        assert call.caller.interims == []
        assert call.asked == [UserMessage("what time is it")]


@pytest.mark.parametrize("sound", [b"", wave(100, CERTAIN), hum(700)], ids=["nothing", "noise", "hum"])
async def test_the_end_of_audio_without_words_is_reported_once(sound: bytes) -> None:
    async with talk() as call:
        await call.caller.sound(sound)
        turn = await call.caller.end_audio()
        assert call.caller.events == [TurnComplete(turn)]
        await call.caller.sound(wave(100, CERTAIN))
        await call.caller.be_silent(2_000)
        assert call.caller.events == [TurnComplete(turn)]


@pytest.mark.parametrize("silence_ms", [0, 100, 200, 500, 850, 900, 950, 1_000])
async def test_a_turn_is_reported_and_answered_once_whenever_the_audio_ends(silence_ms: int) -> None:
    async with talk("It is noon.") as call:
        call.fakes.recognizer.delay_s = call.tones.delay_s = 0.3
        await call.caller.speak("what time is it")
        await call.caller.be_silent(silence_ms)
        await call.caller.end_audio()
        assert call.caller.heard == ["what time is it"]
        ends = [event.turn for event in call.caller.events if isinstance(event, TurnComplete)]
        assert len(set(ends)) == len(ends), "each turn ends once"
        assert ends[-1] == call.caller.finals[0].turn
        assert call.caller.text == "It is noon."


async def test_a_recognition_failure_at_the_end_of_the_audio_ends_the_turn() -> None:
    async with talk() as call:
        call.fakes.recognizer.error = SpeechBusy("Too many people are talking.")
        await call.caller.speak("what time is it")
        turn = await call.caller.end_audio()
        assert call.caller.events == [TurnFailed(turn, "Too many people are talking."), TurnComplete(turn)]


async def test_listening_continues_after_a_recognition_failure() -> None:
    async with talk("It is noon.") as call:
        call.fakes.recognizer.error = SpeechBusy("Too many people are talking.")
        await call.caller.speak("what time is it")
        await call.wait_for_event(TurnFailed)
        assert call.caller.events == [TurnFailed(None, "Too many people are talking.")]
        call.fakes.recognizer.error = None
        await call.caller.speak("what time is it")
        await call.wait_for_event(TurnComplete)
        assert call.caller.text == "It is noon."


# What goes wrong.


async def test_an_answer_that_cannot_be_spoken_is_still_sent_as_text() -> None:
    async with talk(LONG_ANSWER, "It works again.") as call:
        call.tones.error, call.tones.fails_at = SpeechError("The voice is gone."), "clouds"
        turn = await call.caller.ask("what will the weather be")
        assert call.caller.text == LONG_ANSWER
        assert call.caller.events[-2:] == [TurnFailed(turn, "The voice is gone."), TurnComplete(turn)]
        call.tones.error = None
        turn = await call.caller.ask("and now")
        assert call.caller.events[-2:] == [GenerationComplete(turn), TurnComplete(turn)]


async def test_a_synthesizer_failure_ends_the_answer_with_an_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    async with talk("It is noon.") as call:
        monkeypatch.setattr(SpokenAnswer, "say", lambda answer, text: 1 / 0)
        with capture_logs() as logs:
            await call.caller.ask("what time is it")
        assert isinstance(call.caller.events[-1], Closed)
        assert call.caller.reading.done(), "nobody waits for more"
        assert "cascade_failed" in [log["event"] for log in logs]


# The beginning and the end.


@pytest.mark.parametrize("at_ms", [0, 200, 500, 1_000, 1_300, 2_000, 6_000])
async def test_the_cascade_can_be_closed_at_any_time(at_ms: int) -> None:
    async with talk(LONG_ANSWER) as call:
        call.fakes.recognizer.tells_interim = True
        await call.caller.speak("what will the weather be")
        await call.caller.be_silent(at_ms)
        await call.cascade.close()
        before = list(call.caller.events)
        await call.caller.speak("hello")
        await call.caller.end_audio()
        assert call.caller.events == before


async def test_a_closed_cascade_cannot_be_reconnected() -> None:
    cascade = FakeEngines().cascade(Paced(ScriptedModel([])), Tones())
    await cascade.close()
    with pytest.raises(ModelError, match="is closed"):
        await cascade.connect(LiveContext("", Transcript(), (), (), Mode.VOICE))


async def test_audio_before_connect_is_ignored() -> None:
    cascade = FakeEngines().cascade(Paced(ScriptedModel([])), Tones())
    cascade.send_audio(bytes(640))
    cascade.end_audio("t1")
    cascade.interrupt("t1")
    cascade.send_tool_results("t1", [])
    await cascade.close()
    assert [event async for event in cascade.events()] == []


@pytest.mark.parametrize("size", [0, 1, 3, 641, 100_001])
async def test_audio_chunks_of_any_size_are_accepted(size: int) -> None:
    async with talk("It is noon.") as call:
        call.cascade.send_audio(bytes(size - size % 2))
        call.cascade.send_audio(bytes(size))
        call.cascade.send_audio(bytes(size % 2))
        await call.caller.be_silent(2_000)
        await call.caller.speak("what time is it")
        await call.wait_for_event(TurnComplete)
        assert call.caller.text == "It is noon."


async def test_two_callers_do_not_hear_each_other() -> None:
    fakes = FakeEngines()
    models = [Paced(ScriptedModel(["One."])), Paced(ScriptedModel(["Two."]))]
    cascades = [fakes.cascade(model, Tones()) for model in models]
    async with (
        calling(cascades[0], fakes.words.say) as first,
        calling(cascades[1], fakes.words.say) as second,
    ):
        await asyncio.gather(first.be_silent(500), second.be_silent(700))
        await asyncio.gather(first.speak("this is one"), second.speak("and this is two"))
        await asyncio.gather(first.be_silent(2_000), second.be_silent(2_000))
        await first.settle()
        assert (first.finals[0].text, first.text) == ("this is one", "One.")
        assert (second.finals[0].text, second.text) == ("and this is two", "Two.")
    await fakes.batched_vad.aclose()
