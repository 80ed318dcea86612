"""A loaded voice: it turns text into phonemes, phonemes into a prior, and parts of the prior into samples."""

from collections.abc import Iterator
from functools import cache
from itertools import chain, repeat
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray
from piper.phonemize_espeak import EspeakPhonemizer

from antiphon.audio.inference import Session, open_session
from antiphon.audio.pcm import Signal
from antiphon.speech.base import Sound, SpeechError
from antiphon.speech.engines.piper.files import DECODER, ENCODER, FLOW, SPEAKER, Plan, VoiceFile, open_parts
from antiphon.speech.engines.synthesis import SAMPLE, Manner, Stretches, chunks, encodable, join, measure, portions

CHUNK_FRAMES: Final = (28, 72, 128)
"""0.33 s, 0.84 s and then 1.5 s of audio: about 40, 65 and 95 ms of work for one core. A longer first chunk delays this
listener; longer later chunks delay the first chunk of others."""
LEAST_FRAMES: Final = 24
"""0.28 s. A shorter rest is added to the chunk before it."""
MAX_CHARS: Final = 800
"""espeak holds the GIL while it works: 5,000 characters at once would stop everything else for 15 to 40 ms."""
MAX_PHONEMES: Final = 300
"""The encoder's memory grows with their square, and a number of 200 digits has thousands."""
ROUNDED_UP: Final = 0.22
"""A measured correction. Without it, speed 2 would be 1.65, and 0.5 would be 0.57."""

_BETWEEN, _BEGIN, _END = "_", "^", "$"
_STEP_FRAMES: Final = 128
"""How many frames of the sample are decoded at a time. onnxruntime keeps the memory of the longest run: 45 MB more if
the whole sample were decoded at once."""

# There is one espeak in a process, and it has a current voice: choosing it and using it belong together.
_espeak_lock: Final = Lock()

Prior = NDArray[np.float32]
"""The encoder's output for an utterance: (1, channels, frames)."""


class PiperVoice:
    """A loaded voice. Raises `SpeechError`."""

    def __init__(self, file: VoiceFile, noise_scale: float | None = None) -> None:
        """`noise_scale` overrides the voice's own. With 0 the output is deterministic."""
        self.hz = file.config.audio.sample_rate
        self._config = file.config
        self._noise_scale = noise_scale
        self._speaker = {SPEAKER: np.zeros(1, np.int64)} if file.config.num_speakers > 1 else {}
        self._plan, self._encoder, self._flow, self._decoder = open_parts(file.model, file.cache_dir, _open)
        try:
            self._manner = self._measure()
        except Exception as error:  # onnxruntime's errors have no common ancestor below this one, espeak's is bare.
            raise SpeechError(f"The voice {file.model} does not work: {error}") from error

    @property
    def frame_samples(self) -> int:
        return self._plan.frame_samples

    def speak(self, text: str, speed: float) -> Iterator[Sound]:
        sizes = chain(CHUNK_FRAMES, repeat(CHUNK_FRAMES[-1]))

        def render(phonemes: list[str]) -> Stretches:
            return self._stretches(self.encode(phonemes, speed, self._noise_scale), sizes)

        frame_ms = self.frame_samples * 1_000 / self.hz
        return join(self.phonemize(text), render, hz=self.hz, frame_ms=frame_ms, manner=self._manner, speed=speed)

    def phonemize(self, text: str) -> list[list[str]]:
        """Returns a list per sentence, each ending in its punctuation; none for a text without sound."""
        espeak = self._config.espeak.voice
        clusters = set(self._config.vowel_clusters) or None
        sentences: list[list[str]] = []
        for part in portions(encodable(text), MAX_CHARS):
            with _espeak_lock:
                sentences += _espeak().phonemize(espeak, part, clusters)
        known = ([each for each in sentence if each in self._config.phoneme_id_map] for sentence in sentences)
        return [portion for sentence in known if _is_audible(sentence) for portion in portions(sentence, MAX_PHONEMES)]

    def encode(self, phonemes: list[str], speed: float = 1.0, noise_scale: float | None = None) -> Prior:
        """Encodes phonemes. With noise 0 the result is deterministic."""
        own = self._config.inference
        ids = self._config.phoneme_id_map
        between = ids[_BETWEEN]
        symbols = [*ids[_BEGIN], *between, *(id for each in phonemes for id in (*ids[each], *between)), *ids[_END]]
        noise, noise_w = (own.noise_scale, own.noise_w) if noise_scale is None else (noise_scale, noise_scale)
        (prior,) = self._encoder.run(
            None,
            {
                "input": np.array([symbols], np.int64),
                "input_lengths": np.array([len(symbols)], np.int64),
                "scales": np.array([noise, own.length_scale * _length_scale(speed), noise_w], np.float32),
                **self._speaker,
            },
        )
        return prior

    def decode(self, prior: Prior, first: int, last: int) -> Signal:
        """Returns the samples of the frames from `first` to `last`, exactly as in the whole utterance."""
        frames = prior.shape[-1]
        begin, end = _with_context(first, last, self._plan.decoder_context_frames, frames)
        flow_begin, flow_end = _with_context(begin, end, self._plan.flow_context_frames, frames)
        around = np.ascontiguousarray(prior[..., flow_begin:flow_end])
        mask = np.ones((1, 1, around.shape[-1]), np.float32)
        (latent,) = self._flow.run(None, {self._plan.prior: around, self._plan.mask: mask, **self._speaker})
        latent = np.ascontiguousarray(latent[..., begin - flow_begin : end - flow_begin])
        (audio,) = self._decoder.run(None, {self._plan.latent: latent, **self._speaker})
        return audio.reshape(-1)[(first - begin) * self.frame_samples : (last - begin) * self.frame_samples]

    def _stretches(self, prior: Prior, sizes: Iterator[int]) -> Stretches:
        frames = prior.shape[-1]
        for first, last in chunks(frames, sizes, LEAST_FRAMES):
            yield self.decode(prior, first, last), frames - last

    def _measure(self) -> Manner:
        sentences = self.phonemize(SAMPLE)
        sounds = [
            self.decode(prior, first, first + _STEP_FRAMES)
            for prior in (self.encode(phonemes, noise_scale=0.0) for phonemes in sentences)
            for first in range(0, prior.shape[-1], _STEP_FRAMES)
        ]
        return measure(np.concatenate(sounds), sum(map(len, sentences)), self.hz)


def _open(folder: Path, plan: Plan) -> tuple[Plan, Session, Session, Session]:
    encoder, flow, decoder = (open_session(folder / part) for part in (ENCODER, FLOW, DECODER))
    return plan, encoder, flow, decoder


@cache
def _espeak() -> EspeakPhonemizer:
    return EspeakPhonemizer()


def _length_scale(speed: float) -> float:
    """Every symbol lasts a whole number of frames, rounded up, so part of the length does not scale."""
    return (1 / speed - ROUNDED_UP) / (1 - ROUNDED_UP)


def _with_context(first: int, last: int, context: int, length: int) -> tuple[int, int]:
    return max(0, first - context), min(length, last + context)


def _is_audible(phonemes: list[str]) -> bool:
    return any(each.isalpha() for each in phonemes)
