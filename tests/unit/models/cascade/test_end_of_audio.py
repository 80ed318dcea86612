"""A client that says it sends no more for now is told a turn, or that there is none: one of them, and once."""

import asyncio

import pytest

from antiphon.models.cascade.listening import STALLED_S, TELLING_S
from antiphon.speech.base import Urgency
from tests.fakes.talk import TOLERANCE_S, Talk
from tests.fakes.voice import CERTAIN, HZ, hum, wave


async def test_the_end_of_the_audio_ends_the_turn(talk: Talk) -> None:
    await talk.be_silent(500)
    await talk.speak("what time is it")
    await talk.listening.end()
    await asyncio.sleep(5)
    assert talk.told.what == ["turn"]
    assert talk.told.turns == ["what time is it"]
    assert talk.body.recognizer.asked(Urgency.NOW) == ["what time is it"]


async def test_at_the_end_of_the_audio_the_guess_of_the_pause_is_used(talk: Talk) -> None:
    await talk.be_silent(500)
    await talk.speak("what time is it")
    await talk.be_silent(300)
    await talk.listening.end()
    await asyncio.sleep(5)
    assert talk.told.what == ["guess", "turn"]
    assert len(talk.body.recognizer.heard) == 1


async def test_no_guess_comes_after_the_end_of_the_audio(talk: Talk) -> None:
    talk.body.recognizer.delay_s = 1.0
    await talk.be_silent(500)
    await talk.speak("what time is it")
    await talk.be_silent(300)
    await talk.listening.end()
    await asyncio.sleep(5)
    assert talk.told.what == ["turn"]


async def test_the_second_turn_is_not_told_with_the_words_of_the_first(talk: Talk) -> None:
    await talk.say("what time is it", silence_ms=1_200)
    talk.listening.settle()
    await talk.speak("and in Tokyo")
    await talk.listening.end()
    await asyncio.sleep(5)
    assert talk.told.turns == ["what time is it", "and in Tokyo"]


@pytest.mark.parametrize("heard_ms", [0, 10, 2_000])
async def test_if_nothing_was_said_the_end_of_the_audio_is_told_so(talk: Talk, heard_ms: int) -> None:
    await talk.be_silent(heard_ms)
    await talk.listening.end()
    await asyncio.sleep(5)
    assert talk.told.what == ["nothing"]


async def test_a_noise_is_nothing(talk: Talk) -> None:
    await talk.be_silent(500)
    await talk.sound(wave(100, CERTAIN))
    await talk.listening.end()
    await asyncio.sleep(5)
    assert talk.told.what == ["nothing"]


async def test_a_voice_without_words_is_nothing(talk: Talk) -> None:
    await talk.be_silent(500)
    await talk.sound(hum(700))
    await talk.listening.end()
    await asyncio.sleep(5)
    assert talk.told.what == ["nothing"]


@pytest.mark.parametrize("sound", [wave(100, CERTAIN), hum(700)], ids=["noise", "hum"])
async def test_nobody_is_told_of_nothing_who_did_not_end_the_audio(talk: Talk, sound: bytes) -> None:
    await talk.be_silent(500)
    await talk.sound(sound)
    await talk.be_silent(2_000)
    assert talk.told.what == []


async def test_the_end_of_the_audio_while_the_text_is_waited_for_tells_one_turn(talk: Talk) -> None:
    talk.body.recognizer.delay_s = 2.0
    await talk.say("what time is it", silence_ms=1_200)
    await talk.listening.end()
    await asyncio.sleep(5)
    assert talk.told.what == ["turn"]


async def test_if_that_turn_has_no_words_it_is_told_so(talk: Talk) -> None:
    talk.body.recognizer.delay_s = 2.0
    await talk.be_silent(500)
    await talk.sound(hum(700))
    await talk.be_silent(1_200)
    await talk.listening.end()
    await asyncio.sleep(5)
    assert talk.told.what == ["nothing"]


async def test_the_end_of_the_audio_right_after_a_turn_adds_nothing(talk: Talk) -> None:
    """The turn is on its way to whoever has ended the audio."""
    await talk.say("what time is it", silence_ms=1_000)
    assert talk.told.what == ["guess", "turn"]
    await talk.listening.end()
    await asyncio.sleep(5)
    assert talk.told.what == ["guess", "turn"]


async def test_a_turn_that_nobody_has_answered_is_not_waited_for_for_ever(talk: Talk) -> None:
    await talk.say("what time is it", silence_ms=1_000)
    await asyncio.sleep(TELLING_S)
    await talk.listening.end()
    assert talk.told.what == ["guess", "turn", "nothing"]


async def test_a_microphone_that_falls_silent_in_mid_speech_ends_the_turn(talk: Talk) -> None:
    await talk.be_silent(500)
    said_s = await talk.speak("what time is it")
    await asyncio.sleep(5)
    assert talk.told.turns == ["what time is it"]
    assert talk.told.when("turn") - said_s == pytest.approx(STALLED_S + 0.08, abs=TOLERANCE_S)


async def test_a_burst_that_ends_in_mid_speech_ends_the_turn_too(talk: Talk) -> None:
    talk.listening.push(bytes(HZ) + talk.body.words.say("what time is it"), playing=False)
    await asyncio.sleep(5)
    assert talk.told.turns == ["what time is it"]


async def test_a_microphone_that_stutters_does_not_end_the_turn(talk: Talk) -> None:
    await talk.be_silent(500)
    speech = talk.body.words.say("what time is it in Tokyo")
    half = len(speech) // 2
    await talk.sound(speech[:half])
    await asyncio.sleep(0.9 * STALLED_S)
    await talk.sound(speech[half:])
    await talk.be_silent(1_500)
    assert talk.told.turns == ["what time is it in Tokyo"]


async def test_ears_that_are_late_do_not_end_the_turn(talk: Talk) -> None:
    talk.body.hearing._thread.delay_s = 0.05  # type: ignore[attr-defined]
    await talk.be_silent(500)
    words = " ".join(f"word{number}" for number in range(20))
    await talk.speak(words)
    await talk.be_silent(8_000)
    assert talk.told.turns == [words]
    assert "goes on" not in talk.told.what
