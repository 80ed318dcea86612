"""Wake words, said by flite's voices and by espeak-ng's, which are no people but independent of each other."""

import subprocess

import numpy as np
import pytest

from antiphon.audio import AudioError
from antiphon.audio.resample import resample
from antiphon.audio.wake_word import WAKE_WORDS, WakeWord
from antiphon.audio.wav import read_wav
from antiphon.sound_format import MICROPHONE_HZ

PIECE_BYTES = 640
SILENCE = np.random.default_rng(1).normal(0, 8, MICROPHONE_HZ).astype(np.int16).tobytes()
"""A second of a good microphone's noise."""


def say(text: str, voice: str) -> bytes:
    spoken = subprocess.run(
        ["flite", "-voice", voice, "-o", "/dev/stdout", "-t", text], check=True, capture_output=True
    ).stdout
    return SILENCE + resample(*read_wav(spoken), MICROPHONE_HZ) + SILENCE


def hears(wake_word: WakeWord, pcm: bytes) -> int:
    """Counts the pieces after which it reports its word."""
    return sum(wake_word.hear(pcm[at : at + PIECE_BYTES]) for at in range(0, len(pcm), PIECE_BYTES))


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


def test_an_unknown_wake_word_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(AudioError, match=r"no wake word \"hey_you\".*alexa, hey_jarvis"):
        WakeWord("hey_you")


def test_a_file_that_is_missing_is_named() -> None:
    with pytest.raises(AudioError, match=r"nowhere\.json cannot be read"):
        WakeWord("nowhere.json")
