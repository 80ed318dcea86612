"""Decides whether the user is really speaking to the assistant while its answer plays."""

from collections import deque
from typing import Final

import numpy as np
from numpy.typing import NDArray

from antiphon.audio import AudioError
from antiphon.audio.echo import COMPARED_SAMPLES, EchoDetector
from antiphon.audio.pcm import FRAME_SAMPLES, FULL_SCALE, Samples, Signal, to_samples
from antiphon.sound_format import MICROPHONE_HZ

SPEECH_OVER: Final = 0.3
"""Below this probability of speech, the current utterance has ended."""
SPEECH: Final = 0.5
CLEAR_SPEECH: Final = 0.85
"""Coughs seldom reach this probability; speech does within a tenth of a second."""
MIN_SPEECH_FRAMES: Final = 3
"""How many frames of speech count, unless they may be a hum."""
MIN_CLEAR_FRAMES: Final = 2
"""How many frames of clear speech may be speech already."""
LONG_SPEECH_FRAMES: Final = 20
"""After this many frames (0.64 s) it counts as speech whatever it sounds like, since a hum is shorter."""
OPEN_MOUTH_DB: Final = -11.0
"""The least level that an open mouth adds, relative to the low frequencies."""
CHANGE_DB: Final = 10.0
"""A hum sounds the same from its beginning to its end. "Who is that" has the low tones of a hum, but it changes."""
FAINT_DB: Final = -24.0
"""Below this level, relative to the low frequencies, it is breath or room noise, and its changes mean nothing."""
BREATH_DROP_DB: Final = 8.0
"""The breath between the halves of an "mm-hm" sounds like an open mouth, but it is quieter by more than this."""

_Spectrum = tuple[float, float, float]


class BargeIn:
    """For one session: `hear` every frame while an answer may be playing, and `reset` before the next answer."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._echo = EchoDetector()
        self._played = 0
        self.own_frames: int | None = None
        """How many of the frames up to the last decision are somebody's speech, if those before are the answer's."""
        self._recent = deque([_SILENCE] * _COMPARED, _COMPARED)
        self._reset_speech()

    def _reset_speech(self) -> None:
        self._frames = 0
        self._clear_frames = 0
        self._max_probability = 0.0
        self._spectra: deque[_Spectrum] = deque(maxlen=LONG_SPEECH_FRAMES)

    def played(self, pcm: bytes, hz: int) -> None:
        """Adds the next piece of the answer, which may be sent long before it is played."""
        self._echo.add(pcm, hz)

    def hear(self, probability: float, frame: bytes | Samples, *, playing: bool) -> bool:
        """Whether somebody begins to speak over the answer.

        The probability is the `Vad`'s, and `playing` says whether the client was playing when it heard this frame.
        """
        samples = to_samples(frame)
        if len(samples) != FRAME_SAMPLES:
            raise AudioError(f"A frame of speech has {FRAME_SAMPLES} samples, not {len(samples)}.")
        self._recent.append(samples)
        self._played += FRAME_SAMPLES * playing
        if probability < SPEECH_OVER:
            self._reset_speech()
            return False
        self._frames += probability >= SPEECH
        self._clear_frames += probability >= CLEAR_SPEECH
        self._max_probability = max(self._max_probability, probability)
        self._spectra.append(_spectrum(samples))
        if not self.may_be_speech:
            return False
        if playing and self._echo.matches(np.concatenate(self._recent), self._played):
            self._reset_speech()
            return False
        is_long = self._frames >= LONG_SPEECH_FRAMES
        is_speech = is_long or (self._frames >= MIN_SPEECH_FRAMES and not self._may_be_noise())
        if is_speech:
            self.own_frames = len(self._spectra) if self._echo.hears_loudspeaker else None
            self._reset_speech()
        return is_speech

    def skip(self, frame: bytes | Samples) -> None:
        """Takes a frame that the client heard while it was playing, and that needs no decision."""
        self._recent.append(to_samples(frame))
        self._played += FRAME_SAMPLES

    @property
    def may_be_speech(self) -> bool:
        """Whether there is sound that is neither a click nor the answer itself."""
        return self._frames >= MIN_SPEECH_FRAMES or self._clear_frames >= MIN_CLEAR_FRAMES

    def _may_be_noise(self) -> bool:
        return self._max_probability < CLEAR_SPEECH or _is_hum(np.array(self._spectra))


def _spectrum(frame: Samples) -> _Spectrum:
    """Returns the level, and the levels of the middle and high bands relative to the low one."""
    low_db, middle_db, high_db = _to_db(_BANDS @ np.square(np.abs(np.fft.rfft(frame * _WINDOW))))
    return max(low_db, middle_db, high_db), max(FAINT_DB, middle_db - low_db), max(FAINT_DB, high_db - low_db)


def _is_hum(spectra: NDArray[np.float64]) -> bool:
    """Whether the mouth was closed in all frames, leaving out those much quieter than the loudest."""
    levels = spectra[:, 0]
    upper = spectra[levels >= levels.max() - BREATH_DROP_DB, 1:]
    return bool(upper.max() < OPEN_MOUTH_DB and np.ptp(upper, axis=0).max() < CHANGE_DB)


def _band(*corners_hz: float) -> Signal:
    """Returns the weight of each frequency: it rises between the first two corners and falls between the last two."""
    hz = np.fft.rfftfreq(FRAME_SAMPLES, 1 / MICROPHONE_HZ)
    return np.interp(hz, corners_hz, [0, 1, 1, 0]).astype(np.float32)  # type: ignore[no-any-return]


def _to_db(power: Signal) -> list[float]:
    return [float(each) for each in 10 * np.log10(power + 1e-9)]


_COMPARED: Final = COMPARED_SAMPLES // FRAME_SAMPLES
_SILENCE: Final = np.zeros(FRAME_SAMPLES, np.int16)
_WINDOW: Final = (np.hanning(FRAME_SAMPLES) / FULL_SCALE).astype(np.float32)
# What an open mouth adds to the low tones of a closed one: the first formant of most vowels, or the upper formants and
# the hiss of the other sounds. In between, a closed mouth has a formant of its own. The low tones blend into the middle
# ones, so that a hum whose overtone rises from these to those does not change at once.
_BANDS: Final = np.stack([_band(61, 62, 375, 525), _band(375, 525, 999, 1_000), _band(1_799, 1_800, 7_999, 8_000)])
