"""Barge-in during an answer, and sounds that only resemble speech."""

import asyncio

import pytest

from tests.fakes.talk import Talk
from tests.fakes.voice import CERTAIN, GAP_PEAK, hum, wave


@pytest.mark.parametrize("playing", [False, True], ids=["made here", "played there"])
async def test_speech_interrupts_an_answer(talk: Talk, playing: bool) -> None:
    talk.listener.answering, talk.playing = not playing, playing
    await talk.be_silent(500)
    began_s = asyncio.get_running_loop().time()
    await talk.speak("stop that now")
    assert talk.listener.when("barge-in") - began_s <= 0.2
    talk.listener.answering = talk.playing = False
    await talk.be_silent(1_500)
    assert talk.listener.turns == ["stop that now"]
    assert talk.listener.events == ["barge-in", "guess", "turn"]


@pytest.mark.parametrize("sound", [wave(32, CERTAIN), wave(1_000, GAP_PEAK)], ids=["click", "something"])
async def test_a_noise_does_not_interrupt_an_answer(talk: Talk, sound: bytes) -> None:
    talk.listener.answering = True
    await talk.be_silent(500)
    await talk.sound(sound)
    await talk.be_silent(1_500)
    assert talk.listener.events == []


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
    assert talk.listener.events == ["possible", "not possible", "barge-in"]


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
