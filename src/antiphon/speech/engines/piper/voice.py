"""A loaded voice: it turns text into phonemes, phonemes into a prior, and parts of the prior into samples."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from piper.phonemize_espeak import EspeakPhonemizer

from antiphon.audio.inference import Session, open_session
from antiphon.audio.pcm import Signal
from antiphon.speech.base import SpeechError
from antiphon.speech.engines.piper.files import DECODER, ENCODER, FLOW, SPEAKER, Plan, VoiceFile, open_parts

LOUDNESS: Final = 0.1
"""The target RMS level, as a fraction of full scale: -20 dB. Piper itself normalises the peak of each sentence to full
scale, which needs the whole sentence first, and makes a single quiet word as loud as a shout."""
KNEE: Final = 0.8
"""The level, as a fraction of full scale, above which samples (at most one in 400) are compressed. Hard clipping would
crackle."""
MAX_GAIN: Final = 8.0

QUIET: Final = 0.004
"""The level of silence, as a fraction of full scale, before the gain. Silence in a voice has about 0.0001, the faintest
consonant 0.01."""
WINDOW_MS: Final = 5
BEFORE_MS: Final = 15
"""How much near-silence is kept before the first sound, so that none of it is lost."""
DECAY_MS: Final = 40


def gain_for(sample: Signal, hz: int) -> float:
    """Returns the gain that brings this sample to the target loudness."""
    speech = sample[find_speech(sample, hz) or slice(0)]
    return min(MAX_GAIN, LOUDNESS / float(np.sqrt(np.mean(speech**2)))) if speech.size else 1.0


def shape(signal: Signal, gain: float) -> Signal:
    """Applies the gain and a soft limiter, sample by sample, so that pieces fit together."""
    louder = signal * np.float32(gain)
    size = np.abs(louder)
    room = 1 - KNEE
    bent = np.sign(louder) * (KNEE + room * np.tanh((size - KNEE) / room))
    return np.where(size > KNEE, bent, louder).astype(np.float32)


def find_speech(signal: Signal, hz: int) -> slice | None:
    """Returns where speech begins and ends; None if everything is silence."""
    window = hz * WINDOW_MS // 1_000
    windows = signal[: signal.size - signal.size % window].reshape(-1, window)
    loud = np.flatnonzero(np.mean(windows**2, axis=1) > QUIET**2)
    if not loud.size:
        return None
    first = int(loud[0]) * window - hz * BEFORE_MS // 1_000
    last = int(loud[-1] + 1) * window + hz * DECAY_MS // 1_000
    return slice(max(0, first), min(signal.size, last))


MAX_CHARS: Final = 800
"""espeak holds the GIL while it works: 5,000 characters at once would stop everything else for 15 to 40 ms."""
MAX_PHONEMES: Final = 300
"""The encoder's memory grows with their square, and a number of 200 digits has thousands."""
ROUNDED_UP: Final = 0.22
"""A measured correction. Without it, speed 2 would be 1.65, and 0.5 would be 0.57."""

_BETWEEN, _BEGIN, _END = "_", "^", "$"
_STOPS: Final = (".!?", ",;:", " ")
"""Where a long text is cut, the best first."""
_SAMPLE: Final = "It is half past ten in the morning, and the weather is going to be sunny today."
_STEP_FRAMES: Final = 128
"""How many frames of the sample are decoded at a time. onnxruntime keeps the memory of the longest run: 45 MB more if
the whole sample were decoded at once."""

# There is one espeak in a process, and it has a current voice: choosing it and using it belong together.
_espeak_lock: Final = Lock()

Prior = NDArray[np.float32]
"""The encoder's output for an utterance: (1, channels, frames)."""
Text = TypeVar("Text", str, list[str])


class LoadedVoice:
    """A loaded voice. It is thread-safe. Raises `SpeechError`."""

    def __init__(self, file: VoiceFile) -> None:
        self.hz = file.config.audio.sample_rate
        self._config = file.config
        self._speaker = {SPEAKER: np.zeros(1, np.int64)} if file.config.num_speakers > 1 else {}
        self._plan, self._encoder, self._flow, self._decoder = open_parts(file.model, file.cache_dir, _open)
        try:
            self.gain = self._measure_gain()
        except Exception as error:  # onnxruntime's errors have no common ancestor below this one, espeak's is bare.
            raise SpeechError(f"The voice {file.model} does not work: {error}") from error

    @property
    def frame_samples(self) -> int:
        return self._plan.frame_samples

    def phonemize(self, text: str) -> list[list[str]]:
        """Returns a list per sentence, each ending in its punctuation; none for a text without sound."""
        espeak = self._config.espeak.voice
        clusters = set(self._config.vowel_clusters) or None
        sentences: list[list[str]] = []
        for part in _portions(" ".join(text.split()).replace("\0", ""), MAX_CHARS):
            # Half a surrogate pair cannot be encoded.
            plain = part.encode("utf-8", "ignore").decode()
            with _espeak_lock:
                sentences += _espeak().phonemize(espeak, plain, clusters)
        known = ([each for each in sentence if each in self._config.phoneme_id_map] for sentence in sentences)
        return [portion for sentence in known if _is_audible(sentence) for portion in _portions(sentence, MAX_PHONEMES)]

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

    def _measure_gain(self) -> float:
        sounds = [
            self.decode(prior, first, first + _STEP_FRAMES)
            for prior in (self.encode(phonemes, noise_scale=0.0) for phonemes in self.phonemize(_SAMPLE))
            for first in range(0, prior.shape[-1], _STEP_FRAMES)
        ]
        return gain_for(np.concatenate(sounds), self.hz) if sounds else 1.0


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


def _portions(text: Text, most: int) -> Iterator[Text]:
    """Splits the text into as few parts as possible, after the last and strongest punctuation of each."""
    while len(text) > most:
        # Not in the first half: short words before an endless one would be cut into many pieces.
        places = range(most - 1, most // 2, -1)
        cut = next((at for marks in _STOPS for at in places if text[at] in marks), most - 1) + 1
        yield text[:cut]
        text = text[cut:]
    if text:
        yield text
