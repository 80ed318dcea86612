"""Generated sounds that are not speech to an assistant."""

import numpy as np

from antiphon.audio.pcm import Signal
from antiphon.sound_format import MICROPHONE_HZ
from tests.unit.audio.conftest import silence


def murmur(seed: int) -> Signal:
    """Generates a hum of one or two syllables, with random nasal formants and breath.

    These hums were not used to choose the constants of the rule.
    """
    chance = np.random.default_rng(seed)
    pitch_hz, cutoff_hz, steepness = chance.uniform(75, 300), chance.uniform(250, 450), chance.choice([4, 6, 8])
    formants = [(hz, 10 ** (chance.uniform(*db) / 20)) for hz, db in ((1_000, (-45, -18)), (2_200, (-50, -25)))]
    bumps = []
    for _ in range(chance.integers(1, 3)):
        seconds = np.arange(round(chance.uniform(0.12, 0.3) * MICROPHONE_HZ)) / MICROPHONE_HZ
        phase = 2 * np.pi * pitch_hz * np.cumsum(1 + chance.uniform(-0.2, 0.25) * seconds / seconds[-1]) / MICROPHONE_HZ
        tones = silence(len(seconds) / MICROPHONE_HZ)
        for overtone in range(1, int(4_000 / pitch_hz)):
            hz = overtone * pitch_hz
            low = 1 / overtone / np.sqrt(1 + (hz / cutoff_hz) ** steepness)
            upper = (gain / (1 + ((hz - at_hz) / (0.13 * at_hz)) ** 2) for at_hz, gain in formants)
            tones += np.float32(max(low, *upper)) * np.cos(overtone * phase).astype(np.float32)
        bumps += [tones * np.sqrt(np.hanning(len(tones))), silence(chance.uniform(0.02, 0.08))]
    sound = np.concatenate(bumps)
    breath = np.fft.rfft(chance.normal(0, 1, len(sound)) * np.hanning(len(sound)))
    breath /= 1 + (np.fft.rfftfreq(len(sound), 1 / MICROPHONE_HZ) / chance.uniform(800, 3_000)) ** 2
    hiss = np.fft.irfft(breath, len(sound))
    loudness = np.sqrt(np.square(sound).mean() / np.square(hiss).mean()) * 10 ** (chance.uniform(-50, -12) / 20)
    return (sound + loudness * hiss).astype(np.float32)  # type: ignore[no-any-return]


def slam(seed: int) -> Signal:
    """Generates the sound of a door: a click, and a thud of a few low tones."""
    chance = np.random.default_rng(seed)
    seconds = np.arange(round(0.35 * MICROPHONE_HZ)) / MICROPHONE_HZ
    sound = chance.normal(0, 1, len(seconds)) * np.exp(-seconds / 0.004)
    for hz, decay_s in zip(chance.uniform(50, 260, 5), chance.uniform(0.02, 0.07, 5), strict=True):
        sound += np.sin(2 * np.pi * hz * seconds) * np.exp(-seconds / decay_s)
    return sound.astype(np.float32)


def type_keys(seed: int) -> Signal:
    chance = np.random.default_rng(seed)
    sound = silence(1.2)
    seconds = np.arange(round(0.03 * MICROPHONE_HZ)) / MICROPHONE_HZ
    for at_s in np.cumsum(chance.uniform(0.07, 0.22, 5)):
        key = chance.normal(0, 1, len(seconds)) * np.exp(-seconds / 0.004)
        key += 0.3 * np.sin(2 * np.pi * chance.uniform(200, 900) * seconds) * np.exp(-seconds / 0.01)
        sound[round(at_s * MICROPHONE_HZ) :][: len(key)] += key.astype(np.float32)
    return sound
