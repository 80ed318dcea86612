"""A model's speech at the wire's rate."""

from array import array
from dataclasses import replace

import pytest

from antiphon.models.live import OutputAudio
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.limits import SPEECH_HZ
from antiphon.session.events import Voiced
from antiphon.session.speech import Speech
from tests.fakes.calls import Client, House
from tests.fakes.scripted_live import PROFILE, Barge, Hear, Say


def tone(ms: int, hz: int) -> bytes:
    return array("h", [8_000 if (n * 400 // hz) % 2 else -8_000 for n in range(hz * ms // 1000)]).tobytes()


def some(*pieces: Voiced | None) -> list[Voiced]:
    return [piece for piece in pieces if piece is not None]


def test_speech_at_the_wires_rate_passes_as_it_is() -> None:
    pcm = tone(100, SPEECH_HZ)
    assert Speech(SPEECH_HZ).take(OutputAudio(pcm, "hi", last=True)) == Voiced(pcm, 100, "hi", last=True)
    assert Speech(SPEECH_HZ).finish() is None


@pytest.mark.parametrize("hz", [16_000, 24_000, 48_000])
def test_other_rates_keep_their_length_and_their_words(hz: int) -> None:
    speech = Speech(hz)
    words = ["one ", "two ", "three"]
    pieces = [OutputAudio(tone(300, hz), word, last=word == "three") for word in words]
    voiced = some(*(speech.take(piece) for piece in pieces))
    assert sum(len(piece.pcm) for piece in voiced) == pytest.approx(2 * SPEECH_HZ * 0.9, abs=8)
    assert sum(piece.ms for piece in voiced) == pytest.approx(900, abs=5)
    assert "".join(piece.text for piece in voiced) == "one two three"
    assert [piece.last for piece in voiced][-1]


def test_words_of_a_piece_too_short_to_come_out_are_said_with_the_next() -> None:
    speech = Speech(24_000)
    voiced = some(
        speech.take(OutputAudio(tone(1, 24_000), "so ")), speech.take(OutputAudio(tone(300, 24_000), "it is"))
    )
    assert [piece.text for piece in voiced] == ["so it is"]


def test_the_rest_comes_though_the_model_never_said_which_piece_was_the_last() -> None:
    speech = Speech(24_000)
    voiced = some(speech.take(OutputAudio(tone(300, 24_000), "it is")), speech.finish())
    assert sum(len(piece.pcm) for piece in voiced) == pytest.approx(2 * SPEECH_HZ * 0.3, abs=8)
    assert [piece.last for piece in voiced] == [False, True]
    assert speech.finish() is None


def test_nothing_of_a_dropped_answer_is_heard_in_the_next() -> None:
    speech = Speech(24_000)
    speech.take(OutputAudio(tone(300, 24_000), "old"))
    speech.drop()
    (voiced,) = some(speech.take(OutputAudio(bytes(2 * 7_200), "new", last=True)))
    assert voiced.text == "new"
    # A resampler rounds by chance, so silence has a few ones in it.
    assert max(map(abs, array("h", voiced.pcm))) < 3


async def test_a_client_gets_every_rate_as_the_wires_own(house: House) -> None:
    profile = replace(PROFILE, output_hz=44_100)
    script = [Hear("hi"), Say("Hello, my friend.", audio_ms=1_000)]
    client = await Client(house.open(text=[], voice=script, profile=profile)).enter(audio=c.AudioForm.BINARY)
    await client.say(c.StartListening(), seconds=0.1)
    await client.speak(1)
    await client.settle(1)
    # The model's 22,050 samples are half a second, at the rate that it claims to have.
    samples = sum(len(frame.pcm) for frame in client.link.audio) // 2
    assert samples == pytest.approx(SPEECH_HZ / 2, abs=8)
    assert client.states[-1] == "speaking"
    await client.say(c.PlaybackDone(turn=1))
    assert client.states[-1] == "listening"


async def test_an_answer_after_one_that_was_cut_is_whole(house: House) -> None:
    profile = replace(PROFILE, output_hz=44_100)
    script = [Hear("hi"), Say("One, two, three.", audio_ms=9_000), Barge(100), Say("Yes.", audio_ms=1_000)]
    client = await Client(house.open(text=[], voice=script, profile=profile)).enter(audio=c.AudioForm.BINARY)
    await client.say(c.StartListening(), seconds=0.1)
    await client.speak(1)
    await client.settle(1)
    assert client.states[-1] == "listening"
    await client.write("well?", seconds=1)
    turn = client.last(s.GenerationComplete).turn
    samples = sum(len(frame.pcm) // 2 for frame in client.link.audio if frame.turn == turn)
    assert samples == pytest.approx(SPEECH_HZ / 2, abs=8)
