"""Evidence that somebody really speaks to the assistant while its answer plays."""

from collections import deque
from typing import Final

import numpy as np
from numpy.typing import NDArray

from antiphon.audio.echo import HEARD, Echo
from antiphon.audio.pcm import FRAME_SAMPLES, FULL_SCALE, AudioError, Samples, Signal, to_samples
from antiphon.sound_format import MICROPHONE_HZ

ENDED: Final = 0.3
"""Below this probability of speech, what was heard so far is over."""
SPEECH: Final = 0.5
SURE: Final = 0.85
"""Coughs seldom come so far; speech does within a tenth of a second."""
ENOUGH: Final = 3
"""Frames of speech, unless it may be a hum."""
LONG: Final = 20
"""Frames, 0.64 s: nobody hums that long, whatever it sounds like."""
OPEN_DB: Final = -11.0
"""What an open mouth adds is at least so loud, beside the low tones."""
CHANGE_DB: Final = 10.0
"""A hum sounds the same from its beginning to its end. "Who is that" has the low tones of a hum, but it changes."""
FAINT_DB: Final = -24.0
"""What is fainter, beside the low tones, is breath or the noise of the room: that it changes means nothing."""
QUIETER_DB: Final = 8.0
"""The breath between the halves of an "mm-hm" sounds like an open mouth, but it is quieter than they are by more."""

_Colour = tuple[float, float, float]


class BargeIn:
    """For one session: `hear` every frame while an answer may be playing, and `reset` before the next answer."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._echo = Echo()
        self._played = 0
        self._recent = deque([_SILENCE] * _COMPARED, _COMPARED)
        self._forget()

    def _forget(self) -> None:
        self._frames = 0
        self._likeliest = 0.0
        self._colours: deque[_Colour] = deque(maxlen=LONG)

    def played(self, pcm: bytes, hz: int) -> None:
        """The next piece of the answer, as it is sent: it may be sent long before it is heard."""
        self._echo.add(pcm, hz)

    def hear(self, probability: float, frame: bytes | Samples, *, playing: bool) -> bool:
        """Whether to interrupt the answer.

        The probability is the `Vad`'s, and `playing` says whether the client was playing when it heard this frame.
        """
        samples = to_samples(frame)
        if len(samples) != FRAME_SAMPLES:
            raise AudioError(f"A frame of speech has {FRAME_SAMPLES} samples, not {len(samples)}.")
        self._recent.append(samples)
        self._played += FRAME_SAMPLES * playing
        if probability < ENDED:
            self._forget()
            return False
        self._frames += probability >= SPEECH
        self._likeliest = max(self._likeliest, probability)
        self._colours.append(_colour(samples))
        if not self.may_be_speech:
            return False
        if playing and self._echo.is_in(np.concatenate(self._recent), self._played):
            self._forget()
            return False
        return self._frames >= LONG or not self._may_be_noise()

    @property
    def may_be_speech(self) -> bool:
        """Whether something is being heard that is no click, and not the answer itself."""
        return self._frames >= ENOUGH

    def _may_be_noise(self) -> bool:
        return self._likeliest < SURE or _is_hum(np.array(self._colours))


def _colour(frame: Samples) -> _Colour:
    """Its level, and how loud the middle and the high tones are beside the low ones."""
    low_db, middle_db, high_db = _to_db(_BANDS @ np.square(np.abs(np.fft.rfft(frame * _WINDOW))))
    return max(low_db, middle_db, high_db), max(FAINT_DB, middle_db - low_db), max(FAINT_DB, high_db - low_db)


def _is_hum(colours: NDArray[np.float64]) -> bool:
    """Whether the mouth was closed in all frames, as far as they are not quieter than the rest."""
    levels = colours[:, 0]
    upper = colours[levels >= levels.max() - QUIETER_DB, 1:]
    return bool(upper.max() < OPEN_DB and np.ptp(upper, axis=0).max() < CHANGE_DB)


def _band(*corners_hz: float) -> Signal:
    """How much each frequency counts: it rises between the first two of four corners, and falls between the others."""
    hz = np.fft.rfftfreq(FRAME_SAMPLES, 1 / MICROPHONE_HZ)
    return np.interp(hz, corners_hz, [0, 1, 1, 0]).astype(np.float32)  # type: ignore[no-any-return]


def _to_db(power: Signal) -> list[float]:
    return [float(each) for each in 10 * np.log10(power + 1e-9)]


_COMPARED: Final = HEARD // FRAME_SAMPLES
_SILENCE: Final = np.zeros(FRAME_SAMPLES, np.int16)
_WINDOW: Final = (np.hanning(FRAME_SAMPLES) / FULL_SCALE).astype(np.float32)
# What an open mouth adds to the low tones of a closed one: the first formant of most vowels, or the upper formants and
# the hiss of the other sounds. In between, a closed mouth has a formant of its own. The low tones blend into the middle
# ones, so that a hum whose overtone rises from these to those does not change at once.
_BANDS: Final = np.stack([_band(61, 62, 375, 525), _band(375, 525, 999, 1_000), _band(1_799, 1_800, 7_999, 8_000)])
