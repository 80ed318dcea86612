"""Wake words, said by flite's voices and by espeak-ng's, which are no people but independent of each other."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from antiphon.audio import AudioError
from antiphon.audio.pcm import level_dbfs
from antiphon.audio.resample import resample
from antiphon.audio.wake_word import WAKE_WORDS, WakeWord
from antiphon.audio.wav import read_wav
from antiphon.sound_format import MICROPHONE_HZ
from antiphon.speech.engines.moonshine import MoonshineRecognizer
from antiphon.speech.workers import Workers

PIECE_BYTES = 640
SILENCE = np.random.default_rng(1).normal(0, 8, MICROPHONE_HZ).astype(np.int16).tobytes()
"""A second of a good microphone's noise."""


def say(text: str, voice: str) -> bytes:
    spoken = subprocess.run(
        ["flite", "-voice", voice, "-o", "/dev/stdout", "-t", text], check=True, capture_output=True
    ).stdout
    return SILENCE + resample(*read_wav(spoken), MICROPHONE_HZ) + SILENCE


def following(wake_word: WakeWord, pcm: bytes) -> bytes | None:
    """What follows the wake word, if it is heard."""
    for at in range(0, len(pcm), PIECE_BYTES):
        begun = wake_word.hear(pcm[at : at + PIECE_BYTES])
        if begun is not None:
            return begun + pcm[at + PIECE_BYTES :]
    return None


def hears(wake_word: WakeWord, pcm: bytes) -> bool:
    return following(wake_word, pcm) is not None


@pytest.mark.parametrize("voice", ["slt", "rms", "awb"])
@pytest.mark.parametrize("name", WAKE_WORDS)
def test_a_wake_word_is_heard(name: str, voice: str) -> None:
    wake_word = WakeWord(name)
    assert hears(wake_word, say(wake_word.phrase, voice))


@pytest.mark.parametrize("name", WAKE_WORDS)
@pytest.mark.parametrize("text", ["What time is it in Tokyo?", "Hey, could you turn on the lights in the kitchen?"])
def test_other_words_do_not_wake_it(name: str, text: str) -> None:
    assert not hears(WakeWord(name), say(text, "slt"))


def test_after_a_reset_it_is_heard_again_and_only_then() -> None:
    wake_word = WakeWord("hey_jarvis")
    said = say("hey jarvis", "slt")
    assert hears(wake_word, said)
    wake_word.reset()
    assert not hears(wake_word, SILENCE)
    assert hears(wake_word, said)


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("name", "voice", "said", "recognized"),
    [
        ("hey_jarvis", "slt", "Hey Jarvis, turn on the lights", "Turn on the lights."),
        ("okay_nabu", "awb", "Okay Nabu what time is it in Tokyo", "What time is it in Tokyo?"),
        ("okay_nabu", "slt", "Okay Nabu tell me a joke", "Tell me a joke."),
    ],
)
async def test_a_request_right_after_the_wake_word_has_its_first_word(
    name: str, voice: str, said: str, recognized: str, models_dir: Path
) -> None:
    workers = Workers(1)
    heard = following(WakeWord(name), say(said, voice))
    assert heard is not None
    assert await MoonshineRecognizer(models_dir, workers).recognize(heard) == recognized
    await workers.aclose()


@pytest.mark.parametrize("name", WAKE_WORDS)
def test_after_a_pause_nothing_of_the_wake_word_is_left(name: str) -> None:
    wake_word = WakeWord(name)
    said = following(wake_word, say(wake_word.phrase, "slt"))
    assert said is not None
    assert level_dbfs(said) < -50


def test_it_takes_pieces_of_any_length() -> None:
    said = say("okay nabu what time is it", "rms")
    at_once = WakeWord("okay_nabu").hear(said)
    assert at_once == following(WakeWord("okay_nabu"), said)


def test_an_unknown_wake_word_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(AudioError, match=r"no wake word \"hey_you\".*alexa, hey_jarvis"):
        WakeWord("hey_you")


def test_a_file_that_is_missing_is_named() -> None:
    with pytest.raises(AudioError, match=r"nowhere\.json cannot be read"):
        WakeWord("nowhere.json")
