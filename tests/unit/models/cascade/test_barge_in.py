"""Barge-in during an answer, and sounds that only resemble speech."""

import asyncio

import pytest

from antiphon.speech.base import SpeechError
from tests.fakes.talk import Talk
from tests.fakes.voice import CERTAIN, GAP_PEAK, hum, wave


def decided(talk: Talk) -> list[str]:
    """The events without the first suspicion."""
    return [event for event in talk.listener.events if not event.endswith("possible")]


@pytest.mark.parametrize("playing", [False, True], ids=["made here", "played there"])
async def test_speech_holds_an_answer_at_once_and_its_words_interrupt_it(talk: Talk, playing: bool) -> None:
    talk.listener.answering, talk.playing = not playing, playing
    await talk.be_silent(500)
    began_s = asyncio.get_running_loop().time()
    await talk.speak("no I meant Thursday")
    assert talk.listener.when("hold") - began_s <= 0.2
    talk.listener.answering = talk.playing = False
    await talk.be_silent(1_500)
    assert talk.listener.turns == ["no I meant Thursday"]
    assert decided(talk) == ["hold", "barge-in", "guess", "turn"]


async def test_words_interrupt_before_they_are_all_said(talk: Talk) -> None:
    talk.listener.answering = True
    await talk.be_silent(500)
    began_s = asyncio.get_running_loop().time()
    await talk.speak("tell me how long it will take to get there by train")
    assert talk.listener.when("barge-in") - began_s <= 1.6
    assert len(talk.listener.spoken) == 1


@pytest.mark.parametrize("words", ["okay", "yeah", "right okay", "uh-huh", "I see", "Thank you.", "him", "a high"])
async def test_a_word_that_wants_no_answer_lets_the_answer_go_on(talk: Talk, words: str) -> None:
    talk.listener.answering = True
    await talk.be_silent(500)
    ended_s = await talk.speak(words)
    await talk.be_silent(1_500)
    assert decided(talk) == ["hold", "release"]
    assert talk.listener.when("release") - ended_s <= 0.35
    assert talk.listener.spoken == talk.listener.turns == []


async def test_a_voice_without_words_lets_the_answer_go_on(talk: Talk) -> None:
    talk.listener.answering = True
    await talk.be_silent(500)
    await talk.sound(wave(400, CERTAIN))
    await talk.be_silent(1_500)
    assert decided(talk) == ["hold", "release"]


async def test_an_okay_is_the_reply_to_an_answer_that_asks(talk: Talk) -> None:
    talk.listener.answering = talk.listener.asking = True
    await talk.be_silent(500)
    await talk.speak("okay")
    await talk.be_silent(1_500)
    assert talk.listener.turns == ["okay"]
    assert decided(talk)[:2] == ["hold", "barge-in"]


async def test_an_okay_with_more_behind_it_is_one_turn(talk: Talk) -> None:
    talk.listener.answering = True
    await talk.be_silent(500)
    await talk.speak("okay")
    await talk.be_silent(150)
    await talk.speak("but what about tomorrow")
    await talk.be_silent(1_500)
    assert talk.listener.turns == ["okay but what about tomorrow"]
    assert "release" not in talk.listener.events


@pytest.mark.parametrize("words", ["stop", "Stop it.", "be quiet please", "that's enough"])
async def test_a_stop_interrupts_and_is_not_a_turn(talk: Talk, words: str) -> None:
    talk.listener.answering = True
    await talk.be_silent(500)
    await talk.speak(words)
    talk.listener.answering = False
    await talk.be_silent(1_500)
    assert "barge-in" in talk.listener.events
    assert talk.listener.turns == []


async def test_a_stop_with_an_object_is_a_request(talk: Talk) -> None:
    talk.listener.answering = True
    await talk.be_silent(500)
    await talk.speak("stop the timer")
    talk.listener.answering = False
    await talk.be_silent(1_500)
    assert talk.listener.turns == ["stop the timer"]


async def test_what_cannot_be_recognised_interrupts_as_it_sounds_like_speech(talk: Talk) -> None:
    talk.listener.answering = True
    talk.fakes.recognizer.error = SpeechError("The recogniser is gone.")
    await talk.be_silent(500)
    await talk.speak("what time is it")
    await talk.be_silent(1_500)
    assert [event for event in decided(talk) if event != "guess"] == ["hold", "barge-in", "failure"]


async def test_if_the_answer_is_dropped_the_sound_over_it_is_speech_like_any_other(talk: Talk) -> None:
    talk.listener.answering = True
    await talk.be_silent(500)
    await talk.speak("what")
    talk.recognizer.answer_dropped()
    assert len(talk.listener.spoken) == 1
    talk.listener.answering = False
    await talk.speak("time is it")
    await talk.be_silent(1_500)
    assert talk.listener.turns == ["what time is it"]
    assert "barge-in" not in talk.listener.events


async def test_a_single_word_in_a_noise_is_no_turn(talk: Talk) -> None:
    talk.fakes.vad.highest = 0.8
    await talk.say("two")
    assert talk.listener.turns == []
    await talk.say("two of them")
    assert talk.listener.turns == ["two of them"]


@pytest.mark.parametrize("sound", [wave(32, CERTAIN), wave(1_000, GAP_PEAK)], ids=["click", "something"])
async def test_a_noise_does_not_interrupt_an_answer(talk: Talk, sound: bytes) -> None:
    talk.listener.answering = True
    await talk.be_silent(500)
    await talk.sound(sound)
    await talk.be_silent(1_500)
    assert decided(talk) == []


async def test_possible_speech_is_reported_at_once_and_withdrawn_when_it_ends(talk: Talk) -> None:
    talk.listener.answering = True
    await talk.be_silent(500)
    began_s = asyncio.get_running_loop().time()
    ended_s = await talk.sound(hum(400))
    await talk.be_silent(1_500)
    assert talk.listener.events == ["possible", "not possible"]
    assert talk.listener.when("possible") - began_s <= 0.15
    assert talk.listener.when("not possible") - ended_s <= 0.1


async def test_a_continued_hum_counts_as_speech(talk: Talk) -> None:
    talk.listener.answering = True
    await talk.be_silent(500)
    await talk.sound(hum(1_000))
    assert talk.listener.events == ["possible", "hold", "not possible"]


async def test_possible_speech_is_withdrawn_when_the_answer_ends(talk: Talk) -> None:
    talk.listener.answering = True
    await talk.be_silent(500)
    await talk.sound(hum(200))
    talk.listener.answering = False
    await talk.sound(hum(200))
    assert talk.listener.events == ["possible", "not possible"]


async def test_interrupting_speech_keeps_all_its_words_even_if_the_answer_comes_in_chunks(talk: Talk) -> None:
    talk.listener.answering = True
    await talk.be_silent(500)
    for word in ("one", "two", "three", "four"):
        talk.recognizer.settle()
        talk.recognizer.played(bytes(2 * 22_050), 22_050)
        await talk.speak(word)
    talk.listener.answering = False
    await talk.be_silent(1_500)
    assert talk.listener.turns == ["one two three four"]


async def test_speech_without_an_answer_interrupts_nothing(talk: Talk) -> None:
    await talk.say("hello there")
    assert "barge-in" not in talk.listener.events
