"""Endpointing: detects frame by frame when the user begins to speak, pauses, continues and has finished.

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
"""The threshold while the user is speaking is lower, because words trail off."""
ONSET_FRAMES: Final = 3
"""How many frames of speech begin a turn. A click or a door is shorter."""
RESUME_FRAMES: Final = 2
PAUSE_FRAMES: Final = 2
"""How many frames of silence are a pause, in which it is worth recognising what was said. Within fluent speech there is
hardly ever one: once in 20 sentences of synthetic voices. With another frame it is once in 80, and all answers that
were not ready during the silence come 32 ms later."""
MAX_DROP_FRAMES: Final = 5
"""How long a drop in loudness may be taken for the end of speech while the VAD still hears speech. If it lasts longer,
it is soft speech. In 160 sentences that were over, it was 4 frames at most."""
TAIL_FRAMES: Final = 5
"""How many frames of silence after the last word are part of the sentence. The turn detector works best with these."""
MIN_SPEECH_FRAMES: Final = 5
"""A turn with less speech than this is a noise."""
PREROLL_FRAMES: Final = 9
"""How much audio before the first frame of speech is part of the turn. With less than a fifth of a second the
recogniser loses first words."""
ECHO_PREROLL_FRAMES: Final = 3
"""The same while the microphone hears the answer, whose last words would become the first ones of the turn. With two
frames, every third "stop" lost its "s"; with four, more of them began with a word of the answer."""
RING_FRAMES: Final = 30
"""How much audio is kept between turns. It holds the pre-roll of speech that was noticed late, during an answer."""


class Signal(Enum):
    STARTED = auto()
    PAUSED = auto()
    """The turn may be over."""
    RESUMED = auto()
    ENDED = auto()
    REOPENED = auto()
    """The user went on after the end, before the turn was settled: it is the same turn."""
    DISCARDED = auto()
    """The turn was only a noise."""


class _State(Enum):
    SPEAKING = auto()
    PAUSING = auto()
    ENDED = auto()


def enough_frames(silence_ms: int) -> int:
    """Returns the number of frames that make up this much silence."""
    return max(PAUSE_FRAMES, round(silence_ms / FRAME_MS))


class _Speech:
    """The audio of one turn."""

    def __init__(self, required: int) -> None:
        self.state = _State.SPEAKING
        self.audio = bytearray()
        self.spoken = 0
        """How many frames are speech."""
        self.silent = 0
        """How many frames came since the last one with speech."""
        self.detector = SilenceDetector()
        self.dropped = 0
        """For how many frames the sound has been far below the speech before it, whatever the VAD says."""
        self.required = required
        """How many frames of silence end the turn."""

    @property
    def silence(self) -> list[bytes]:
        """The frames of silence at its end."""
        starts = range(len(self.audio) - self.silent * FRAME_BYTES, len(self.audio), FRAME_BYTES)
        return [bytes(self.audio[at : at + FRAME_BYTES]) for at in starts]


class Endpointer:
    """Finds the turns in the audio of one session, and keeps the audio of the turn under way."""

    def __init__(self, usual_silence_ms: int) -> None:
        """The usual silence ends a turn unless `require_silence` sets another for the pause."""
        self._usual = enough_frames(usual_silence_ms)
        self._recent: deque[bytes] = deque(maxlen=RING_FRAMES)
        """The last frames outside of a turn, or after its end."""
        self._run = 0
        """How many frames of speech there were in a row, up to this one."""
        self._speech: _Speech | None = None
        """The turn under way, or one that has ended and may still go on."""

    @property
    def audio(self) -> bytes:
        """The turn's audio so far: pre-roll, speech, and the silence up to its end."""
        return b"" if self._speech is None else bytes(self._speech.audio)

    @property
    def sentence(self) -> bytes:
        """The turn's audio so far, with no more silence than belongs to a sentence."""
        if self._speech is None:
            return b""
        audio = self._speech.audio
        return bytes(audio[: len(audio) - max(0, self._speech.silent - TAIL_FRAMES) * FRAME_BYTES])

    @property
    def audio_ms(self) -> int:
        return 0 if self._speech is None else len(self._speech.audio) // 32

    @property
    def resumed_at(self) -> int:
        """Where the pre-roll of speech begins that has just been noticed, in bytes of the turn's audio."""
        return max(0, len(self.audio) - (self._run + PREROLL_FRAMES) * FRAME_BYTES)

    @property
    def silence_ms(self) -> int:
        return 0 if self._speech is None else self._speech.silent * FRAME_MS

    @property
    def is_open(self) -> bool:
        """Whether the user is in the middle of a turn."""
        return self._speech is not None and self._speech.state is not _State.ENDED

    @property
    def is_speaking(self) -> bool:
        return self._speech is not None and self._speech.state is _State.SPEAKING

    @property
    def has_sound_stopped(self) -> bool:
        """Whether the user makes no sound at the moment, though it may be too soon to call that a pause."""
        speech = self._speech
        return speech is not None and (speech.silent > 0 or 0 < speech.dropped <= MAX_DROP_FRAMES)

    def hear(self, probability: float, frame: bytes, *, may_start: bool = True) -> Signal | None:
        """Takes a frame and the probability that it is speech. `may_start`: whether that is enough to begin a turn."""
        speech = self._speech
        is_speaking = speech is not None and speech.state is _State.SPEAKING
        self._run = self._run + 1 if probability >= (STILL_SPEECH if is_speaking else SPEECH) else 0
        if speech is None or speech.state is _State.ENDED:
            self._recent.append(frame)
            return self.start() if may_start and self._run >= ONSET_FRAMES else None
        speech.audio += frame
        speech.spoken += self._run > 0
        speech.dropped = speech.dropped + 1 if speech.detector.is_silent(frame) else 0
        speech.silent = 0 if self._run and is_speaking else speech.silent + 1
        if is_speaking:
            return self._pause(speech) if speech.silent >= PAUSE_FRAMES else None
        return self._go_on(speech, Signal.RESUMED) if self._run >= RESUME_FRAMES else self._end_if_due(speech)

    def start(self, frames: int | None = None) -> Signal:
        """Begins a turn with the last frames of speech and the pre-roll before them, or reopens one that has ended.

        The silence in between is left out, so that a turn does not grow while it waits for its answer. With `frames`,
        only so many frames and a little before them are of the speaker: what is older was the loudspeaker.
        """
        signal = Signal.STARTED if self._speech is None else Signal.REOPENED
        speech = self._speech = self._speech or _Speech(self._usual)
        kept = min(len(self._recent), self._run + PREROLL_FRAMES)
        if frames is not None:
            kept = min(kept, frames + ECHO_PREROLL_FRAMES)
            speech.audio += bytes(PREROLL_FRAMES * FRAME_BYTES)
        speech.audio += b"".join(list(self._recent)[-kept:])
        speech.spoken += self._run
        self._recent.clear()
        return self._go_on(speech, signal)

    def require_silence(self, silence_ms: int) -> Signal | None:
        """Sets how much silence ends the turn, judged by what was said before this pause."""
        if self._speech is None:
            return None
        self._speech.required = enough_frames(silence_ms)
        return self._end_if_due(self._speech) if self._speech.state is _State.PAUSING else None

    def end(self) -> Signal | None:
        """Ends the turn, because no more audio comes. Returns None if there is no turn."""
        return self._end(self._speech) if self._speech is not None and self.is_open else None

    def drop_oldest(self, size_bytes: int) -> None:
        """Drops the beginning of the turn's audio, which has been recognised."""
        if self._speech is not None:
            del self._speech.audio[:size_bytes]

    def settle(self) -> None:
        """Closes the turn when it is answered. Later speech is another turn; the silence between belongs to both."""
        if self._speech is not None:
            self._recent = deque([*self._speech.silence, *self._recent], maxlen=RING_FRAMES)
            self._speech = None

    def _pause(self, speech: _Speech) -> Signal:
        speech.state = _State.PAUSING
        speech.required = self._usual
        return Signal.PAUSED

    @staticmethod
    def _go_on(speech: _Speech, signal: Signal) -> Signal:
        speech.state = _State.SPEAKING
        speech.silent = speech.dropped = 0
        return signal

    def _end_if_due(self, speech: _Speech) -> Signal | None:
        return self._end(speech) if speech.silent >= speech.required else None

    def _end(self, speech: _Speech) -> Signal:
        if speech.spoken < MIN_SPEECH_FRAMES:
            self.settle()
            return Signal.DISCARDED
        speech.state = _State.ENDED
        return Signal.ENDED
