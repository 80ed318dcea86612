"""A model's speech is resampled to the wire rate."""

from array import array
from dataclasses import replace

import pytest

from antiphon.continuity.connection import SpeechResampler
from antiphon.models.live import OutputAudio
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.limits import SPEECH_HZ, speech_ms
from tests.fakes.calls import Client, ScriptedServers
from tests.fakes.scripted_live import PROFILE, Barge, Hear, Say


def tone(ms: int, hz: int) -> bytes:
    return array("h", [8_000 if (n * 400 // hz) % 2 else -8_000 for n in range(hz * ms // 1000)]).tobytes()


def piece(hz: int, ms: int, text: str, *, turn: str = "m1", last: bool = False) -> OutputAudio:
    return OutputAudio(turn, tone(ms, hz), text, last)


def test_speech_at_the_wire_rate_passes_unchanged() -> None:
    resampler = SpeechResampler(SPEECH_HZ)
    only = piece(SPEECH_HZ, 100, "hi", last=True)
    assert list(resampler.push(only)) == [only]
    assert list(resampler.finish("m1")) == []


@pytest.mark.parametrize("hz", [16_000, 24_000, 48_000])
def test_other_rates_keep_their_duration_and_words(hz: int) -> None:
    resampler = SpeechResampler(hz)
    words = ["one ", "two ", "three"]
    pushed = [resampler.push(piece(hz, 300, word, last=word == "three")) for word in words]
    voiced = [each for pieces in pushed for each in pieces]
    assert sum(len(each.pcm) for each in voiced) == pytest.approx(2 * SPEECH_HZ * 0.9, abs=8)
    assert sum(speech_ms(each.pcm) for each in voiced) == pytest.approx(900, abs=5)
    assert "".join(each.text for each in voiced) == "one two three"
    assert [each.last for each in voiced][-1]


def test_words_of_a_chunk_too_short_to_emit_come_with_the_next_chunk() -> None:
    resampler = SpeechResampler(24_000)
    voiced = [*resampler.push(piece(24_000, 1, "so ")), *resampler.push(piece(24_000, 300, "it is"))]
    assert [each.text for each in voiced] == ["so it is"]


def test_the_remainder_is_emitted_even_if_no_chunk_was_marked_last() -> None:
    resampler = SpeechResampler(24_000)
    voiced = [*resampler.push(piece(24_000, 300, "it is")), *resampler.finish("m1")]
    assert sum(len(each.pcm) for each in voiced) == pytest.approx(2 * SPEECH_HZ * 0.3, abs=8)
    assert [each.last for each in voiced] == [False, True]
    assert list(resampler.finish("m1")) == []


@pytest.mark.parametrize("is_told", [True, False])
def test_no_audio_of_a_dropped_answer_leaks_into_the_next(is_told: bool) -> None:
    resampler = SpeechResampler(24_000)
    resampler.push(piece(24_000, 300, "old"))
    if is_told:
        resampler.drop("m1")
    (voiced,) = resampler.push(OutputAudio("m2", bytes(2 * 7_200), "new", last=True))
    assert voiced.text == "new"
    # The resampler dithers, so silence contains a few samples of one.
    assert max(map(abs, array("h", voiced.pcm))) < 3


async def test_a_client_receives_every_rate_at_the_wire_rate(servers: ScriptedServers) -> None:
    profile = replace(PROFILE, output_hz=44_100)
    script = [Hear("hi"), Say("Hello, my friend.", audio_ms=1_000)]
    client = await Client(servers.open(text=[], voice=script, profile=profile)).enter(audio=c.AudioForm.BINARY)
    await client.say(c.StartListening(), seconds=0.1)
    await client.speak(1)
    await client.settle(1)
    # At the sample rate that the model declares, its 22,050 samples last half a second.
    samples = sum(len(frame.pcm) for frame in client.link.audio) // 2
    assert samples == pytest.approx(SPEECH_HZ / 2, abs=8)
    assert client.states[-1] == "speaking"
    await client.say(c.PlaybackDone(turn=1))
    assert client.states[-1] == "listening"


async def test_an_answer_after_an_interrupted_one_is_complete(servers: ScriptedServers) -> None:
    profile = replace(PROFILE, output_hz=44_100)
    script = [Hear("hi"), Say("One, two, three.", audio_ms=9_000), Barge(100), Say("Yes.", audio_ms=1_000)]
    client = await Client(servers.open(text=[], voice=script, profile=profile)).enter(audio=c.AudioForm.BINARY)
    await client.say(c.StartListening(), seconds=0.1)
    await client.speak(1)
    await client.settle(1)
    assert client.states[-1] == "listening"
    await client.write("well?", seconds=1)
    turn = client.last(s.GenerationComplete).turn
    samples = sum(len(frame.pcm) // 2 for frame in client.link.audio if frame.turn == turn)
    assert samples == pytest.approx(SPEECH_HZ / 2, abs=8)
