"""Piper as a `Synthesizer`. Each chunk of audio is one job for the workers."""

from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import chain, repeat
from math import ceil
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np

from antiphon.audio.pcm import Signal, from_signal
from antiphon.audio.resample import Resampler
from antiphon.sound_format import SPEECH_HZ
from antiphon.speech.base import Sound, Urgency, Voice
from antiphon.speech.engines.piper.files import find_voices
from antiphon.speech.engines.piper.voice import LoadedVoice, Prior, find_speech, shape
from antiphon.speech.workers import Workers

SLOWEST: Final = 0.5
FASTEST: Final = 2.0

CHUNK_FRAMES: Final = (28, 72, 128)
"""0.33 s, 0.84 s and then 1.5 s of audio: about 40, 65 and 95 ms of work for one core. A longer first chunk delays this
listener; longer later chunks delay the first chunk of others."""
LEAST_FRAMES: Final = 24
"""0.28 s. A shorter rest is added to the chunk before it, which also keeps the final silence in one chunk."""

SENTENCE_ENDS: Final = ".!?"
SENTENCE_PAUSE_MS: Final = 220
CLAUSE_PAUSE_MS: Final = 110
"""After a comma, or where a text is cut between words. Piper itself leaves 80 to 370 ms, whatever the punctuation."""


MAX_LOADED: Final = 3
"""How many voices stay loaded, at about 130 MB each. The least recently used one is unloaded."""


class PiperSynthesizer:
    """Loads each voice at its first use, which takes a second."""

    def __init__(self, models_dir: Path, workers: Workers, *, noise_scale: float | None = None) -> None:
        """`noise_scale` overrides the voice's own. With 0 the output is deterministic.

        Raises `SpeechError` if the model folder has no voice.
        """
        self._files = find_voices(models_dir)
        self._workers = workers
        self._noise_scale = noise_scale
        self._loaded: OrderedDict[str, LoadedVoice] = OrderedDict()
        self._looking = Lock()
        self._loading = Lock()

    @property
    def name(self) -> str:
        return "piper"

    @property
    def output_hz(self) -> int:
        return SPEECH_HZ

    @property
    def voices(self) -> Sequence[Voice]:
        return tuple(file.voice for file in self._files.values())

    def load(self, voice: str | None = None) -> None:
        """Loads the voice now, in this thread. Raises `SpeechError`."""
        self._voice(self._known(voice))

    async def speak(
        self,
        text: str,
        *,
        voice: str | None = None,
        speed: float = 1.0,
        urgency: Urgency = Urgency.NOW,
        goes_on: bool = False,
    ) -> AsyncIterator[Sound]:
        sounds = self._sounds(text, self._known(voice), min(FASTEST, max(SLOWEST, speed)))
        sound = await self._workers.run(lambda _: next(sounds, None), urgency, refusable=not goes_on)
        while sound is not None:
            yield sound
            # Listeners who have heard nothing yet go first, but no sentence is broken off.
            sound = await self._workers.run(lambda _: next(sounds, None), Urgency.SOON, refusable=False)

    async def aclose(self) -> None:
        self._loaded.clear()

    def _sounds(self, text: str, id: str, speed: float) -> Iterator[Sound]:
        voice = self._voice(id)
        resampler = Resampler(voice.hz, SPEECH_HZ)
        sizes = chain(CHUNK_FRAMES, repeat(CHUNK_FRAMES[-1]))
        sentences = voice.phonemize(text)
        phonemes_left = sum(map(len, sentences))
        for phonemes in sentences:
            phonemes_left -= len(phonemes)
            prior = voice.encode(phonemes, speed, self._noise_scale)
            frame_ms = voice.frame_samples * 1_000 / voice.hz
            # Estimated from the length of this sentence.
            later_ms = phonemes_left * prior.shape[-1] * frame_ms / len(phonemes)
            pause_ms = (SENTENCE_PAUSE_MS if phonemes[-1] in SENTENCE_ENDS else CLAUSE_PAUSE_MS) / speed
            for signal, frames_left in _stretches(voice, prior, sizes, pause_ms):
                is_last = not phonemes_left and not frames_left
                pcm = resampler.push(from_signal(shape(signal, voice.gain)), last=is_last)
                if pcm:
                    yield Sound(pcm, 0 if is_last else ceil(frames_left * frame_ms + later_ms))

    def _known(self, voice: str | None) -> str:
        return voice if voice is not None and voice in self._files else next(iter(self._files))

    def _voice(self, id: str) -> LoadedVoice:
        if (voice := self._find(id)) is not None:
            return voice
        # Loaded voices stay usable meanwhile.
        with self._loading:
            if (voice := self._find(id)) is not None:
                return voice
            voice = LoadedVoice(self._files[id])
            with self._looking:
                self._loaded[id] = voice
                if len(self._loaded) > MAX_LOADED:
                    self._loaded.popitem(last=False)
            return voice

    def _find(self, id: str) -> LoadedVoice | None:
        with self._looking:
            if id in self._loaded:
                self._loaded.move_to_end(id)
            return self._loaded.get(id)


def _stretches(voice: LoadedVoice, prior: Prior, sizes: Iterator[int], pause_ms: float) -> Iterator[tuple[Signal, int]]:
    """Yields samples and the number of frames left. Silence at the ends is replaced by the pause."""
    frames = prior.shape[-1]
    pause = np.zeros(int(pause_ms * voice.hz / 1_000), np.float32)
    has_begun = False
    for first, last in _chunks(frames, sizes):
        signal = voice.decode(prior, first, last)
        speech = find_speech(signal, voice.hz)
        begin = 0 if has_begun else speech.start if speech else signal.size
        end = signal.size if last < frames else speech.stop if speech else 0
        if last == frames:
            yield np.concatenate([signal[begin:end], pause]), 0
        elif begin < end:
            yield signal[begin:end], frames - last
            has_begun = True


def _chunks(frames: int, sizes: Iterator[int]) -> Iterator[tuple[int, int]]:
    at = 0
    while at < frames:
        end = at + next(sizes)
        end = frames if frames - end < LEAST_FRAMES else end
        yield at, end
        at = end
