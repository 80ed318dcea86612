"""The end of the audio names a turn, which gets the recognized words or is empty."""

import asyncio

import pytest

from antiphon.models.cascade.turn_recognizer import STALLED_S
from antiphon.speech.base import Urgency
from tests.fakes.talk import TOLERANCE_S, Talk
from tests.fakes.voice import CERTAIN, HZ, hum, wave


async def test_the_end_of_the_audio_ends_the_turn(talk: Talk) -> None:
    await talk.be_silent(500)
    await talk.speak("what time is it")
    talk.recognizer.end("ended")
    await asyncio.sleep(5)
    assert talk.listener.events == ["turn"]
    assert talk.listener.turns == ["what time is it"]
    assert talk.listener.ids == ["ended"]
    assert talk.fakes.recognizer.asked(Urgency.NOW) == ["what time is it"]


async def test_the_end_of_the_audio_uses_the_guess_made_at_the_pause(talk: Talk) -> None:
    await talk.be_silent(500)
    await talk.speak("what time is it")
    await talk.be_silent(300)
    talk.recognizer.end("ended")
    await asyncio.sleep(5)
    assert talk.listener.events == ["guess", "turn"]
    assert len(talk.fakes.recognizer.heard) == 1


async def test_no_guess_comes_after_the_end_of_the_audio(talk: Talk) -> None:
    talk.fakes.recognizer.delay_s = 1.0
    await talk.be_silent(500)
    await talk.speak("what time is it")
    await talk.be_silent(300)
    talk.recognizer.end("ended")
    await asyncio.sleep(5)
    assert talk.listener.events == ["turn"]


async def test_the_second_turn_does_not_contain_the_words_of_the_first(talk: Talk) -> None:
    await talk.say("what time is it", silence_ms=1_200)
    talk.recognizer.settle()
    await talk.speak("and in Tokyo")
    talk.recognizer.end("ended")
    await asyncio.sleep(5)
    assert talk.listener.turns == ["what time is it", "and in Tokyo"]


@pytest.mark.parametrize("heard_ms", [0, 10, 2_000])
async def test_the_end_of_the_audio_without_speech_is_reported_empty(talk: Talk, heard_ms: int) -> None:
    await talk.be_silent(heard_ms)
    talk.recognizer.end("ended")
    await asyncio.sleep(5)
    assert talk.listener.events == ["empty"]


async def test_a_noise_is_reported_empty(talk: Talk) -> None:
    await talk.be_silent(500)
    await talk.sound(wave(100, CERTAIN))
    talk.recognizer.end("ended")
    await asyncio.sleep(5)
    assert talk.listener.events == ["empty"]


async def test_speech_without_words_is_reported_empty(talk: Talk) -> None:
    await talk.be_silent(500)
    await talk.sound(hum(700))
    talk.recognizer.end("ended")
    await asyncio.sleep(5)
    assert talk.listener.events == ["empty"]


@pytest.mark.parametrize("sound", [wave(100, CERTAIN), hum(700)], ids=["noise", "hum"])
async def test_nothing_is_reported_for_noise_unless_the_audio_was_ended(talk: Talk, sound: bytes) -> None:
    await talk.be_silent(500)
    await talk.sound(sound)
    await talk.be_silent(2_000)
    assert talk.listener.events == []


async def test_the_end_of_the_audio_during_recognition_names_that_turn(talk: Talk) -> None:
    talk.fakes.recognizer.delay_s = 2.0
    await talk.say("what time is it", silence_ms=1_200)
    talk.recognizer.end("ended")
    await asyncio.sleep(5)
    assert talk.listener.events == ["turn"]
    assert talk.listener.ids == ["ended"]


async def test_that_turn_is_reported_empty_if_it_has_no_words(talk: Talk) -> None:
    talk.fakes.recognizer.delay_s = 2.0
    await talk.be_silent(500)
    await talk.sound(hum(700))
    await talk.be_silent(1_200)
    talk.recognizer.end("ended")
    await asyncio.sleep(5)
    assert talk.listener.events == ["empty"]


@pytest.mark.parametrize("later_s", [0, 5])
async def test_a_final_turn_keeps_its_id_and_the_end_of_the_audio_is_empty(talk: Talk, later_s: float) -> None:
    await talk.say("what time is it", silence_ms=1_000)
    await asyncio.sleep(later_s)
    talk.recognizer.end("ended")
    await asyncio.sleep(5)
    assert talk.listener.events == ["guess", "turn", "empty"]
    assert talk.listener.empty == ["ended"]
    assert "ended" not in talk.listener.ids


async def test_the_second_of_two_ends_of_the_audio_is_empty(talk: Talk) -> None:
    await talk.be_silent(500)
    await talk.speak("what time is it")
    talk.recognizer.end("first")
    talk.recognizer.end("second")
    await asyncio.sleep(5)
    assert talk.listener.ids == ["first"]
    assert talk.listener.empty == ["second"]


async def test_a_continued_turn_takes_the_id_of_the_end_of_the_audio(talk: Talk) -> None:
    await talk.say("what time is it", silence_ms=1_200)
    await talk.speak("in Tokyo")
    talk.recognizer.end("ended")
    await asyncio.sleep(5)
    first = talk.listener.ids[0]
    assert talk.listener.ids == [first, "ended"]
    assert talk.listener.continues == [None, first]
    assert talk.listener.turns[-1] == "what time is it in Tokyo"


async def test_ids_are_not_reused_in_a_conversation() -> None:
    ids: list[str] = []
    for _ in range(2):
        talk = Talk()
        for text in ("one", "two"):
            await talk.say(text, silence_ms=1_200)
            talk.recognizer.settle()
        ids += talk.listener.ids
        await talk.recognizer.close()
    assert len(set(ids)) == 4


async def test_a_microphone_that_falls_silent_in_mid_speech_ends_the_turn(talk: Talk) -> None:
    await talk.be_silent(500)
    said_s = await talk.speak("what time is it")
    await asyncio.sleep(5)
    assert talk.listener.turns == ["what time is it"]
    assert talk.listener.when("turn") - said_s == pytest.approx(STALLED_S + 0.08, abs=TOLERANCE_S)


async def test_a_burst_that_ends_in_mid_speech_ends_the_turn_too(talk: Talk) -> None:
    talk.recognizer.push(bytes(HZ) + talk.fakes.words.say("what time is it"), playing=False)
    await asyncio.sleep(5)
    assert talk.listener.turns == ["what time is it"]


async def test_a_microphone_that_stutters_does_not_end_the_turn(talk: Talk) -> None:
    await talk.be_silent(500)
    speech = talk.fakes.words.say("what time is it in Tokyo")
    half = len(speech) // 2
    await talk.sound(speech[:half])
    await asyncio.sleep(0.9 * STALLED_S)
    await talk.sound(speech[half:])
    await talk.be_silent(1_500)
    assert talk.listener.turns == ["what time is it in Tokyo"]


async def test_a_late_vad_does_not_end_the_turn(talk: Talk) -> None:
    talk.fakes.batched_vad._thread.delay_s = 0.05  # type: ignore[attr-defined]
    await talk.be_silent(500)
    words = " ".join(f"word{number}" for number in range(20))
    await talk.speak(words)
    await talk.be_silent(8_000)
    assert talk.listener.turns == [words]
    assert "continued" not in talk.listener.events
