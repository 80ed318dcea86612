"""hibari's own: the samples, the text, and where its voices are."""

import asyncio
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hibari import dsp  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.speech.base import SpeechError, Voice
from antiphon.speech.engines.hibari import HibariSynthesizer
from antiphon.speech.engines.hibari.synthesizer import HibariVoice, VoiceFile, find_voices
from antiphon.speech.engines.hibari.vocoder import FRAME_SAMPLES, Spectrum, synthesize
from antiphon.speech.engines.phonemes import MAX_PHONEMES, phonemizer, to_symbols
from antiphon.speech.engines.synthesis import chunks
from antiphon.speech.workers import Workers

FRAMES = 90


class Silence:
    """Noise that is none, for two implementations that draw it in different orders."""

    def standard_normal(self, shape: tuple[int, ...], dtype: type[np.float32]) -> np.ndarray:
        return np.zeros(shape, dtype)


@pytest.fixture(scope="module")
def spectrum() -> Spectrum:
    """A random one, whose voice begins and stops."""
    random = np.random.default_rng(7)
    loud, turned, noisy, more, turned_more = random.normal(-4, 1, (5, 601, FRAMES)).astype(np.float32)
    pitch_hz = np.concatenate([np.zeros(20), np.linspace(90, 240, 50), np.zeros(20)]).astype(np.float32)
    return Spectrum(loud, turned, noisy, more, turned_more, pitch_hz)


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers(threads=1)
    yield made
    asyncio.run(made.aclose())


@pytest.mark.parametrize("size", [2, 7, 24, FRAMES])
def test_the_samples_are_those_of_the_package_whatever_the_chunks(spectrum: Spectrum, size: int) -> None:
    parts = (spectrum.harmonics, spectrum.harmonic_phases, spectrum.noise, spectrum.rest, spectrum.rest_phases)
    expected = dsp.synth(*parts, spectrum.pitch_hz, Silence())
    with patch("numpy.random.default_rng", lambda seed: Silence()):
        pieces = list(synthesize(spectrum, chunks(FRAMES, repeat(size), 2)))
    ours = np.concatenate([signal for signal, _ in pieces])
    assert ours.size == FRAMES * FRAME_SAMPLES
    # The package makes the first and the last 25 ms louder, which are silence in speech.
    inside = slice(2 * FRAME_SAMPLES, -2 * FRAME_SAMPLES)
    np.testing.assert_allclose(ours[inside], expected[inside], atol=np.abs(expected).max() * 5e-3)
    assert [left for _, left in pieces][-1] == 0


def test_the_noise_is_the_same_each_time(spectrum: Spectrum) -> None:
    first, second = (next(synthesize(spectrum, iter([(0, FRAMES)])))[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_a_sentence_is_read_with_its_punctuation() -> None:
    assert phonemizer(british=False).phonemize("Hello there. Are you well?") == ["həlˈO ðˈɛɹ.", "ˌɑɹ ju wˈɛl?"]


@pytest.mark.parametrize("text", ["It leaves at 7 p.m.", "See appendix B.", "Is it 7 p.m.?", "Main St."])
def test_the_full_stop_of_an_abbreviation_ends_the_sentence(text: str) -> None:
    [phonemes] = phonemizer(british=False).phonemize(text)
    assert phonemes[-1] == text[-1]
    assert phonemes[-2].isalpha()


def test_the_accent_is_that_of_the_voice() -> None:
    assert phonemizer(british=True).phonemize("Tomato.") != phonemizer(british=False).phonemize("Tomato.")


@pytest.mark.parametrize("text", ["", "…", "?!", "— – -", "\u200b", "\x00", "\ud800", "日本語"])
def test_a_text_without_sound_has_no_phonemes(text: str) -> None:
    assert phonemizer(british=False).phonemize(text) == []


@pytest.mark.parametrize("text", ["9" * 5_000, "x" * 5_000, "word " * 1_000, "12:30 " * 200, "3.14159 " * 300])
def test_a_long_text_is_read_in_portions(text: str) -> None:
    portions = phonemizer(british=False).phonemize(text)
    assert len(portions) > 1
    assert all(0 < len(portion) <= MAX_PHONEMES for portion in portions)


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(codec="utf-8") | st.sampled_from("0123456789.,:;-/$€£%°'()[]#&@ "), max_size=60))
def test_any_text_can_be_read(text: str) -> None:
    for portion in phonemizer(british=False).phonemize(text):
        assert len(to_symbols(portion)) > 2


def test_voices_that_are_not_on_this_machine_are_not_offered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HIBARI_HOME", str(tmp_path))
    assert list(find_voices()) == ["heart"]
    (tmp_path / "bf_emma.int8.onnx").touch()
    assert [file.voice for file in find_voices().values()] == [
        Voice("heart", "Heart", "en-US"),
        Voice("emma", "Emma", "en-GB"),
    ]


@pytest.mark.parametrize("content", [None, b"", b"not a model"])
def test_a_damaged_voice_is_reported(tmp_path: Path, workers: Workers, content: bytes | None) -> None:
    model = tmp_path / "voice.onnx"
    if content is not None:
        model.write_bytes(content)
    heart = VoiceFile(Voice("heart", "Heart", "en-US"), model, is_british=False)
    with pytest.raises(SpeechError, match="The voice heart cannot be loaded"):
        HibariSynthesizer(workers, {"heart": heart}).load()


def test_every_phoneme_of_a_usual_sentence_is_known() -> None:
    [phonemes] = phonemizer(british=False).phonemize("The quick brown fox jumps over the lazy dog, doesn't it?")
    assert len(to_symbols(phonemes)) == len(phonemes) + 2


def test_a_model_of_something_else_is_reported(models_dir: Path) -> None:
    vad = models_dir / "silero-vad" / "silero_vad.onnx"
    with pytest.raises(SpeechError, match="does not work"):
        HibariVoice(VoiceFile(Voice("vad", "Vad", "en-US"), vad, is_british=False))
