"""Kokoro's network and voices. `make soak` runs it."""

import asyncio
from pathlib import Path

import pytest

from antiphon.audio.pcm import duration_ms
from antiphon.speech.base import SpeechError
from antiphon.speech.engines.kokoro import KokoroSynthesizer
from antiphon.speech.engines.moonshine import MoonshineRecognizer
from antiphon.speech.workers import Workers
from antiphon.weights.folder import State, verify
from antiphon.weights.manifest import KOKORO, KOKORO_VOICES
from tests.fakes.spoken import error_rate, for_ears

pytestmark = pytest.mark.real_time

SENTENCE = "The train to London leaves at half past seven in the morning."


def test_pulled_files_match_the_manifest(models_dir: Path) -> None:
    assert {verify(models_dir, KOKORO, file) for file in KOKORO.files} == {State.PRESENT}


def test_a_folder_without_it_is_reported_with_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(SpeechError, match="antiphon models pull kokoro"):
        KokoroSynthesizer(tmp_path, Workers(threads=1))


@pytest.mark.timeout(900)
async def test_every_voice_is_understood_and_keeps_its_speed(models_dir: Path) -> None:
    workers = Workers(threads=1)
    kokoro, moonshine = KokoroSynthesizer(models_dir, workers), MoonshineRecognizer(models_dir, workers)
    assert {voice.id for voice in kokoro.voices} == set(KOKORO_VOICES)
    assert kokoro.voices[0].id == "af_heart"
    heard = []
    for voice in kokoro.voices:
        pcm = b"".join([sound.pcm async for sound in kokoro.speak(SENTENCE, voice=voice.id)])
        assert 2_400 <= duration_ms(pcm, kokoro.output_hz) <= 5_600, voice
        heard.append((SENTENCE, await moonshine.recognize(for_ears(pcm, kokoro.output_hz))))
    fast = b"".join([sound.pcm async for sound in kokoro.speak(SENTENCE, speed=2.0)])
    usual = b"".join([sound.pcm async for sound in kokoro.speak(SENTENCE)])
    assert 0.4 <= len(fast) / len(usual) <= 0.67
    assert error_rate(heard) <= 0.05, heard
    await asyncio.gather(kokoro.aclose(), workers.aclose())
