"""What a microphone, a room and a line do to speech, and recordings of people from Debian's packages."""

import gzip
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Final

import numpy as np

from antiphon.audio.pcm import Signal, from_signal, to_signal
from antiphon.audio.resample import resample
from antiphon.audio.wav import read_wav
from antiphon.sound_format import MICROPHONE_HZ
from bench.speech.clips import Clip

Change = Callable[[Signal, np.random.Generator], Signal]

PHONE_HZ: Final = 8_000
PHONE_BAND_HZ: Final = (300, 3_400)
ROOM_S: Final = 0.5
"""The reverberation time of a furnished room."""

_ACTIVE: Final = 1e-3
_FRAME: Final = MICROPHONE_HZ // 50


def add_noise(signal: Signal, noise: Signal, ratio_db: float) -> Signal:
    """Adds noise. The ratio is that of the speech while somebody speaks: pauses do not count."""
    power = np.mean(np.square(signal[: len(signal) // _FRAME * _FRAME].reshape(-1, _FRAME)), axis=1)
    speech = float(np.mean(power[power > power.max() * _ACTIVE]))
    scale = np.sqrt(speech / 10 ** (ratio_db / 10) / float(np.mean(np.square(noise))))
    noisy: Signal = (signal + noise * scale).astype(np.float32)
    return noisy


def coloured(length: int, chance: np.random.Generator, slope: float) -> Signal:
    """Returns noise whose power falls with this power of the frequency: 0 is white, 1 pink, 2 brown."""
    spectrum = np.fft.rfft(chance.normal(size=length))
    frequencies = np.fft.rfftfreq(length)
    frequencies[0] = frequencies[1]
    return np.fft.irfft(spectrum * frequencies ** (-slope / 2), length).astype(np.float32)


def kitchen(length: int, chance: np.random.Generator) -> Signal:
    """Returns an extractor fan with its hum, running water that comes and goes, and dishes."""
    at_s = np.arange(length) / MICROPHONE_HZ
    fan = coloured(length, chance, 1.5)
    hum = sum(np.sin(2 * np.pi * 100 * part * at_s + chance.uniform(0, 6)) / part for part in (1, 2, 3, 5))
    water = coloured(length, chance, 0.3) * (1 + 0.5 * np.sin(2 * np.pi * 0.4 * at_s + chance.uniform(0, 6)))
    sound = fan / fan.std() + 0.5 * np.asarray(hum) + 0.7 * water / water.std()
    for start in chance.integers(0, max(1, length - MICROPHONE_HZ // 2), size=max(1, length // MICROPHONE_HZ)):
        ring_s = np.arange(min(MICROPHONE_HZ // 4, length - int(start))) / MICROPHONE_HZ
        pitches = chance.uniform(1_500, 5_500, size=3)
        ring = sum(np.sin(2 * np.pi * pitch * ring_s) for pitch in pitches) * np.exp(-ring_s * 25)
        sound[int(start) : int(start) + len(ring_s)] += 2.5 * np.asarray(ring)
    loud: Signal = sound.astype(np.float32)
    return loud


def telephone(signal: Signal, chance: np.random.Generator) -> Signal:
    narrow = to_signal(resample(from_signal(signal), MICROPHONE_HZ, PHONE_HZ))
    spectrum = np.fft.rfft(narrow)
    frequencies = np.fft.rfftfreq(len(narrow), 1 / PHONE_HZ)
    spectrum[(frequencies < PHONE_BAND_HZ[0]) | (frequencies > PHONE_BAND_HZ[1])] = 0
    narrow = np.fft.irfft(spectrum, len(narrow)).astype(np.float32)
    return to_signal(resample(from_signal(narrow), PHONE_HZ, MICROPHONE_HZ))


def reverberate(signal: Signal, chance: np.random.Generator) -> Signal:
    """Puts the speaker two metres away: half of the sound comes from the walls."""
    at_s = np.arange(int(ROOM_S * MICROPHONE_HZ)) / MICROPHONE_HZ
    room = chance.normal(size=len(at_s)) * 10 ** (-3 * at_s / ROOM_S)
    room *= 0.5 / np.sqrt(np.sum(np.square(room)))
    room[0] += 1
    heard = np.convolve(signal, room)[: len(signal)]
    level = np.sqrt(np.mean(np.square(signal)) / np.mean(np.square(heard)))
    echoing: Signal = (heard * level).astype(np.float32)
    return echoing


def quieten(signal: Signal, chance: np.random.Generator) -> Signal:
    return to_signal(from_signal((signal * np.float32(10 ** (-30 / 20))).astype(np.float32)))


def _noise(slope: float, ratio_db: float) -> Change:
    return lambda signal, chance: add_noise(signal, coloured(len(signal), chance, slope), ratio_db)


CLEAN: Final = "clean"
CONDITIONS: Final[dict[str, Change]] = {
    CLEAN: lambda signal, chance: signal,
    "white noise, 20 dB": _noise(0.0, 20),
    "white noise, 10 dB": _noise(0.0, 10),
    "pink noise, 10 dB": _noise(1.0, 10),
    "brown noise, 10 dB": _noise(2.0, 10),
    "kitchen, 10 dB": lambda signal, chance: add_noise(signal, kitchen(len(signal), chance), 10),
    "telephone": telephone,
    "reverberation": reverberate,
    "quiet, -30 dB": quieten,
}


def read_recordings(folder: Path, count: int) -> list[Clip]:
    """Reads `VOICE/NN.wav` of each voice that `texts.json` names: `{voice: [the text of each number]}`."""
    texts: dict[str, list[str]] = json.loads((folder / "texts.json").read_text())
    clips = []
    for number in range(max(map(len, texts.values()))):
        for voice, said in sorted(texts.items()):
            path = folder / voice / f"{number:02d}.wav"
            if number < len(said) and path.is_file():
                clips.append(Clip(said[number], voice, resample(*read_wav(path), MICROPHONE_HZ)))
    return clips[:count]


ASTERISK: Final = Path("/usr/share/asterisk/sounds/en")
ASTERISK_TEXTS: Final = Path("/usr/share/doc/asterisk-core-sounds-en/core-sounds-en.txt.gz")
SPHINX: Final = Path("/usr/share/pocketsphinx/test/data")
PEOPLE: Final = "people"


def read_people(count: int, seed: int) -> list[Clip]:
    """Reads sentences that people recorded for Asterisk (an actress) and PocketSphinx (readers of LibriVox and others).

    Raises `OSError` if Debian's asterisk-core-sounds-en-g722 or pocketsphinx-testdata is not installed.
    """
    spoken = [*_sphinx()]
    prompts = list(_asterisk())
    return spoken + Random(seed).sample(prompts, min(count, len(prompts)))


def _asterisk() -> Iterator[Clip]:
    for line in gzip.decompress(ASTERISK_TEXTS.read_bytes()).decode().splitlines():
        name, _, text = line.partition(": ")
        path = ASTERISK / f"{name}.g722"
        # Single words, descriptions of sounds and menus of half a minute are left out.
        if 4 <= len(text.split()) <= 20 and "[" not in text and path.is_file():
            decode = [
                "ffmpeg",
                "-v",
                "error",
                "-i",
                str(path),
                "-f",
                "s16le",
                "-ac",
                "1",
                "-ar",
                str(MICROPHONE_HZ),
                "-",
            ]
            yield Clip(text.strip(), PEOPLE, subprocess.run(decode, check=True, capture_output=True).stdout)


def _sphinx() -> Iterator[Clip]:
    for texts in (SPHINX / "librivox/transcription", SPHINX / "cards/cards.transcription"):
        for text, name in re.findall(r"<s> (.+?) *</s> \((.+)\)", texts.read_text()):
            yield Clip(text, PEOPLE, resample(*read_wav(texts.parent / f"{name}.wav"), MICROPHONE_HZ))
