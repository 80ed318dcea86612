"""When somebody begins to speak, pauses, goes on and has finished: one session's share of the work, frame by frame.

Time is counted in frames of audio, not by a clock: a network that stutters does not end a sentence.
"""

from collections import deque
from enum import Enum, auto
from typing import Final

from antiphon.audio.silence import SilenceDetector

FRAME_SAMPLES: Final = 512
FRAME_BYTES: Final = 2 * FRAME_SAMPLES
FRAME_MS: Final = 32

SPEECH: Final = 0.5
STILL_SPEECH: Final = 0.35
"""Once somebody speaks, less is enough: words trail off."""
ONSET_FRAMES: Final = 3
"""A click or a door is over by then."""
RESUME_FRAMES: Final = 2
PAUSE_FRAMES: Final = 2
"""So much silence makes it worth asking what was said, and whether it was all. Within fluent speech there is hardly
ever so much: once in 20 sentences of synthetic voices. With another frame it is once in 80, and all answers that were
not ready during the silence come 32 ms later."""
MOST_HUSHED_FRAMES: Final = 5
"""Then it is soft speech, if it is still taken for speech at all. In 160 sentences that were over, it was 4 at most."""
TAIL_FRAMES: Final = 5
"""Of silence belong to what somebody has said. How it ends is heard best with so much of it."""
MIN_SPEECH_FRAMES: Final = 5
"""Less than this in a whole turn is a noise, not a word."""
PREROLL_FRAMES: Final = 9
"""Before the first frame of speech: without a fifth of a second of it the recogniser loses first words."""
RING_FRAMES: Final = 30
"""What is kept between turns. It holds the pre-roll of speech that was noticed late, while an answer was playing."""


class Sign(Enum):
    STARTED = auto()
    PAUSED = auto()
    """The turn may be over: it is worth asking."""
    RESUMED = auto()
    ENDED = auto()
    REOPENED = auto()
    """Speech went on after the end, before the turn was settled: it is the same turn."""
    DISCARDED = auto()
    """It was a noise."""


class _State(Enum):
    QUIET = auto()
    SPEAKING = auto()
    PAUSING = auto()
    ENDED = auto()


_OPEN: Final = (_State.SPEAKING, _State.PAUSING)


def enough_frames(silence_ms: int) -> int:
    """How many frames are so much silence."""
    return max(PAUSE_FRAMES, round(silence_ms / FRAME_MS))


class Ear:
    def __init__(self, longest_silence_ms: int) -> None:
        """So much silence ends any turn."""
        self._longest = enough_frames(longest_silence_ms)
        self._state = _State.QUIET
        self._recent: deque[bytes] = deque(maxlen=RING_FRAMES)
        """What was heard outside of a turn, or after its end."""
        self._turn = bytearray()
        self._run = 0
        """Frames of speech without a gap, up to this one."""
        self._silent = 0
        """Frames since the last of speech."""
        self._spoken = 0
        self._hush = SilenceDetector()
        self._hushed = 0
        """Frames in which nothing was to be heard, up to this one, whatever they were taken for."""
        self._enough = self._longest
        """Frames of silence that end the turn, after what was said."""

    @property
    def turn(self) -> bytes:
        """The turn's audio so far: pre-roll, speech, and the silence up to its end."""
        return bytes(self._turn)

    @property
    def sentence(self) -> bytes:
        """The turn so far, with no more silence than a sentence has after it."""
        return bytes(self._turn[: len(self._turn) - max(0, self._silent - TAIL_FRAMES) * FRAME_BYTES])

    @property
    def turn_ms(self) -> int:
        return len(self._turn) // 32

    @property
    def silence_ms(self) -> int:
        return self._silent * FRAME_MS

    @property
    def is_quiet(self) -> bool:
        """Whether there is no turn, not even one that could go on."""
        return self._state is _State.QUIET

    @property
    def is_open(self) -> bool:
        """Whether somebody is in the middle of a turn."""
        return self._state in _OPEN

    @property
    def is_speaking(self) -> bool:
        return self._state is _State.SPEAKING

    @property
    def is_hushed(self) -> bool:
        """Whether the sound has stopped, though it may be too soon to call that a silence."""
        return self._silent > 0 or 0 < self._hushed <= MOST_HUSHED_FRAMES

    def hear(self, probability: float, frame: bytes, *, may_start: bool = True) -> Sign | None:
        """One frame, and how likely it is speech. `may_start` is false while it takes more than that to begin."""
        threshold = STILL_SPEECH if self._state is _State.SPEAKING else SPEECH
        self._run = self._run + 1 if probability >= threshold else 0
        if not self.is_open:
            self._recent.append(frame)
            return self.start() if may_start and self._run >= ONSET_FRAMES else None
        self._turn += frame
        self._spoken += self._run > 0
        self._hushed = self._hushed + 1 if self._hush.is_silent(frame) else 0
        self._silent = 0 if self._run and self.is_speaking else self._silent + 1
        if self.is_speaking:
            return self._pause() if self._silent >= PAUSE_FRAMES else None
        return self._go_on(Sign.RESUMED) if self._run >= RESUME_FRAMES else self._end_if_due()

    def start(self) -> Sign:
        """Somebody speaks, and has for the last frames: they are part of the turn, with some from before them.

        Of one that has ended they are another part. The silence between them is left out, so that a turn does not grow
        while it waits for its answer.
        """
        sign = Sign.STARTED if self.is_quiet else Sign.REOPENED
        if sign is Sign.STARTED:
            self._turn.clear()
            self._spoken = 0
            self._hush = SilenceDetector()
        kept = min(len(self._recent), self._run + PREROLL_FRAMES)
        self._turn += b"".join(list(self._recent)[-kept:])
        self._spoken += self._run
        self._recent.clear()
        return self._go_on(sign)

    def content_with(self, silence_ms: int) -> Sign | None:
        """By what was said before this pause, so much silence is enough."""
        self._enough = min(self._longest, enough_frames(silence_ms))
        return self._end_if_due() if self._state is _State.PAUSING else None

    def end(self) -> Sign | None:
        """No more audio comes: what was heard is the turn. None if there is none."""
        return self._end() if self.is_open else None

    def forget(self, size_bytes: int) -> None:
        """Lets go of the oldest part of the turn, which is known by now."""
        del self._turn[:size_bytes]

    def settle(self) -> None:
        """The turn is answered: what follows is another one. The silence between them belongs to both."""
        self._state = _State.QUIET
        starts = range(len(self._turn) - self._silent * FRAME_BYTES, len(self._turn), FRAME_BYTES)
        silence = [bytes(self._turn[at : at + FRAME_BYTES]) for at in starts]
        self._recent = deque([*silence, *self._recent], maxlen=RING_FRAMES)
        self._turn.clear()
        self._silent = 0

    def _pause(self) -> Sign:
        self._state = _State.PAUSING
        self._enough = self._longest
        return Sign.PAUSED

    def _go_on(self, sign: Sign) -> Sign:
        self._state = _State.SPEAKING
        self._silent = self._hushed = 0
        return sign

    def _end_if_due(self) -> Sign | None:
        return self._end() if self._silent >= self._enough else None

    def _end(self) -> Sign:
        if self._spoken < MIN_SPEECH_FRAMES:
            self.settle()
            return Sign.DISCARDED
        self._state = _State.ENDED
        return Sign.ENDED
