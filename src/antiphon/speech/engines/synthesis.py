"""What the voices in this process share: long texts in portions, chunks, level and pauses of speech."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, TypeVar

import numpy as np

from antiphon.audio.pcm import Signal, from_signal
from antiphon.audio.resample import Resampler
from antiphon.sound_format import SPEECH_HZ
from antiphon.speech.base import Sound

LOUDNESS: Final = 0.1
"""The target RMS level, as a fraction of full scale: -20 dB. Piper itself normalises the peak of each sentence to full
scale, which needs the whole sentence first, and makes a single quiet word as loud as a shout."""
KNEE: Final = 0.8
"""The level, as a fraction of full scale, above which samples (at most one in 400) are compressed. Hard clipping would
crackle."""
CEILING: Final = 0.95
"""The highest level. Changing the sample rate may overshoot it a little."""
MAX_GAIN: Final = 8.0

QUIET: Final = 0.004
"""The level of silence, as a fraction of full scale, before the gain. Silence in a voice of Piper has about 0.0001, of
hibari 0.0005; the faintest consonant has 0.01."""
WINDOW_MS: Final = 5
BEFORE_MS: Final = 15
"""How much near-silence is kept before the first sound, so that none of it is lost."""
DECAY_MS: Final = 40

SENTENCE_ENDS: Final = ".!?"
SENTENCE_PAUSE_MS: Final = 220
CLAUSE_PAUSE_MS: Final = 110
"""After a comma, or where a text is cut between words. The voices themselves leave 80 to 700 ms, whatever the
punctuation."""

SAMPLE: Final = "It is half past ten in the morning, and the weather is going to be sunny today."
"""What a voice says to find out how loud it is."""

_STOPS: Final = (".!?", ",;:", " ")
"""Where a long text is cut, the best first."""

Text = TypeVar("Text", str, list[str])


Stretches = Iterator[tuple[Signal, int]]
"""An utterance that is being synthesised: samples, and how many frames are left after them."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How loud a voice is, and how fast."""

    gain: float
    """What brings it to the target loudness."""
    phoneme_ms: float


def measure(sample: Signal, phonemes: int, hz: int) -> Manner:
    """Measures a voice by a sample of so many phonemes."""
    speech = sample[find_speech(sample, hz) or slice(0)]
    if not speech.size:
        return Manner(1.0, 0.0)
    gain = min(MAX_GAIN, LOUDNESS / float(np.sqrt(np.mean(speech**2))))
    return Manner(gain, speech.size * 1_000 / hz / phonemes)


def join(
    sentences: Sequence[Text],
    render: Callable[[Text], Stretches],
    *,
    hz: int,
    frame_ms: float,
    manner: Manner,
    speed: float,
) -> Iterator[Sound]:
    """Renders sentences, which are phonemes, one after the other, with pauses and at the level of speech."""
    resampler = Resampler(hz, SPEECH_HZ)
    phonemes_left = sum(map(len, sentences))
    for phonemes in sentences:
        phonemes_left -= len(phonemes)
        later_ms = phonemes_left * manner.phoneme_ms / speed
        pause_ms = (SENTENCE_PAUSE_MS if phonemes[-1] in SENTENCE_ENDS else CLAUSE_PAUSE_MS) / speed
        for signal, frames_left in with_pause(render(phonemes), hz, pause_ms):
            is_last = not phonemes_left and not frames_left
            pcm = resampler.push(from_signal(shape(signal, manner.gain)), last=is_last)
            if pcm:
                yield Sound(pcm, 0 if is_last else ceil(frames_left * frame_ms + later_ms))


def shape(signal: Signal, gain: float) -> Signal:
    """Applies the gain and a soft limiter, sample by sample, so that pieces fit together."""
    louder = signal * np.float32(gain)
    size = np.abs(louder)
    room = CEILING - KNEE
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


def with_pause(stretches: Stretches, hz: int, pause_ms: float) -> Stretches:
    """Replaces the silence at both ends of an utterance by the pause.

    Silence is held back until speech follows it, so that none is left at the end.
    """
    pause = np.zeros(int(pause_ms * hz / 1_000), np.float32)
    held = np.zeros(0, np.float32)
    has_begun = False
    for signal, frames_left in stretches:
        speech = find_speech(signal, hz)
        if speech is not None:
            begin = 0 if has_begun else speech.start
            end = np.zeros(0, np.float32) if frames_left else pause
            yield np.concatenate([held, signal[begin : speech.stop], end]), frames_left
            held, has_begun = signal[speech.stop :], True
        elif not frames_left:
            yield pause, 0
        elif has_begun:
            held = np.concatenate([held, signal])


def chunks(frames: int, sizes: Iterator[int], least: int) -> Iterator[tuple[int, int]]:
    """Yields where each chunk begins and ends. A rest that is shorter than `least` is added to the one before it."""
    at = 0
    while at < frames:
        end = at + next(sizes)
        end = frames if frames - end < least else end
        yield at, end
        at = end


def portions(text: Text, most: int) -> Iterator[Text]:
    """Splits the text into as few parts as possible, after the last and strongest punctuation of each."""
    while len(text) > most:
        # Not in the first half: short words before an endless one would be cut into many pieces.
        places = range(most - 1, most // 2, -1)
        cut = next((at for marks in _STOPS for at in places if text[at] in marks), most - 1) + 1
        yield text[:cut]
        text = text[cut:]
    if text:
        yield text


def encodable(text: str) -> str:
    """Returns the text on one line, without what cannot be encoded: half a surrogate pair, or a zero byte."""
    return " ".join(text.split()).replace("\0", "").encode("utf-8", "ignore").decode()
