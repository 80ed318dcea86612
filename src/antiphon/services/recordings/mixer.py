"""Puts both sides of a call on one time line: the user on the left channel, the assistant on the right."""

from collections import deque
from typing import Any, Final

import numpy as np

from antiphon.audio.pcm import Samples, level_dbfs, to_samples
from antiphon.audio.resample import Resampler
from antiphon.sound_format import MICROPHONE_HZ, SPEECH_HZ

HZ: Final = 24_000
"""The rate of a recording: the lowest one of Opus that keeps all of the assistant's speech."""

TOLERANCE_S: Final = 0.06
"""How far microphone audio may be from its time before silence is added or quiet frames are left out."""
MAX_STALL_S: Final = 1.0
"""Microphone audio that comes later than this is placed where it came. What comes after a shorter stall of the network
belongs to the time before it."""
MAX_AHEAD_S: Final = 10.0
"""Microphone audio that is further ahead of its time is left out."""
QUIET_DBFS: Final = -50.0
QUIET_DROP_DB: Final = 20.0
"""How far below the recent level a frame must be to count as quiet in a noisy room."""
LEVEL_DECAY_DB: Final = 0.05
"""How much the recent level falls with each frame."""
MAX_UNPLAYED_S: Final = 600.0
"""How much speech may wait to be played. What is more is not recorded: the memory for it would be too large."""


class Track:
    """One channel at its own rate. What was taken from it is final; where nothing was placed is silence."""

    def __init__(self, hz: int) -> None:
        self.hz = hz
        self.taken = 0
        """How many samples were taken."""
        self.end = 0
        """The position after the last sample that was placed."""
        self._chunks: deque[tuple[int, Samples]] = deque()

    def place(self, samples: Samples, at: int) -> int:
        """Places samples at a position, or after those that are there already. Returns where they begin."""
        start = max(at, self.end, self.taken)
        self._chunks.append((start, samples))
        self.end = start + len(samples)
        return start

    def cut(self, at: int) -> list[Samples]:
        """Removes what comes after a position, as far as it was not taken, and returns it."""
        at = max(at, self.taken)
        removed: deque[Samples] = deque()
        while self._chunks and self._chunks[-1][0] + len(self._chunks[-1][1]) > at:
            start, samples = self._chunks.pop()
            kept = max(0, at - start)
            removed.appendleft(samples[kept:])
            if kept:
                self._chunks.append((start, samples[:kept]))
        self.end = min(self.end, at)
        return list(removed)

    def take(self, until: int) -> Samples:
        """Returns everything up to a position."""
        taken = np.zeros(max(0, until - self.taken), np.int16)
        while self._chunks and self._chunks[0][0] < until:
            start, samples = self._chunks.popleft()
            if start + len(samples) > until:
                self._chunks.appendleft((until, samples[until - start :]))
                samples = samples[: until - start]
            taken[start - self.taken : start - self.taken + len(samples)] = samples
        self.taken = max(self.taken, until)
        return taken


class Mixer:
    """Times are seconds since the beginning of the recording, in the order in which things happened."""

    def __init__(self) -> None:
        self._user = Track(MICROPHONE_HZ)
        self._has_heard = False
        self._level_db = QUIET_DBFS
        self._speech = Track(SPEECH_HZ)
        self._turn = 0
        self._spans: list[tuple[int, int]] = []
        """Where the pieces of the turn's speech begin, and how long they are."""
        self._held: list[Samples] | None = None
        """The speech that the client holds back, if it does."""
        self._resamplers = (Resampler(MICROPHONE_HZ, HZ), Resampler(SPEECH_HZ, HZ))
        self._rest = [b"", b""]
        """What one channel has more than the other."""

    def hear(self, pcm: bytes, at_s: float) -> None:
        """Places microphone audio that has come at this time.

        The clock of a microphone is not ours, and a network delays. Frames therefore follow each other without gaps,
        and are brought back to their time where it cannot be heard: in quiet moments.
        """
        samples = to_samples(pcm)
        track = self._user
        wanted = round(at_s * track.hz) - len(samples)
        late_s = (wanted - track.end) / track.hz
        is_quiet = self._is_quiet(samples)
        if not self._has_heard or late_s > MAX_STALL_S or (late_s > TOLERANCE_S and is_quiet):
            track.place(samples, wanted)
        elif late_s >= -TOLERANCE_S or (late_s >= -MAX_AHEAD_S and not is_quiet):
            track.place(samples, track.end)
        self._has_heard = True

    def _is_quiet(self, samples: Samples) -> bool:
        level_db = level_dbfs(samples)
        self._level_db = max(level_db, self._level_db - LEVEL_DECAY_DB)
        return level_db < max(QUIET_DBFS, self._level_db - QUIET_DROP_DB)

    def play(self, turn: int, pcm: bytes, at_s: float) -> None:
        """Places speech that was sent at this time. The client plays it after what it has."""
        if turn != self._turn:
            self._turn, self._spans = turn, []
        samples = to_samples(pcm)
        if self._held is not None:
            self._held.append(samples)
        else:
            self._play(samples, at_s)

    def _play(self, samples: Samples, at_s: float) -> None:
        track = self._speech
        at = round(at_s * track.hz)
        if track.end - at < MAX_UNPLAYED_S * track.hz:
            self._spans.append((track.place(samples, at), len(samples)))

    def hold(self, at_s: float) -> None:
        """The client stops playing, and keeps the rest."""
        if self._held is None:
            self._held = self._cut(round(at_s * self._speech.hz))

    def resume(self, at_s: float) -> None:
        """The client goes on playing."""
        held, self._held = self._held, None
        for samples in held or ():
            self._play(samples, at_s)

    def interrupt(self, played_ms: float | None, at_s: float) -> None:
        """The client drops what it has not played. `played_ms` is how much of the turn it has, if that is known."""
        self._held = None
        now = round(at_s * self._speech.hz)
        self._cut(now if played_ms is None else min(now, self._position(played_ms)))

    def _position(self, played_ms: float) -> int:
        """Returns where the client was when it had played this much of the turn."""
        left = round(played_ms * self._speech.hz / 1000)
        for start, length in self._spans:
            if left <= length:
                return start + left
            left -= length
        return self._speech.end

    def _cut(self, at: int) -> list[Samples]:
        removed = self._speech.cut(at)
        at = max(at, self._speech.taken)
        self._spans = [(start, min(length, at - start)) for start, length in self._spans if start < at]
        return removed

    def read(self, until_s: float, *, last: bool = False) -> Any:
        """Returns the frames up to a time, of two samples each. They are final: what is placed there later is not
        recorded. `last`: the recording ends there."""
        for number, (track, resampler) in enumerate(zip((self._user, self._speech), self._resamplers, strict=True)):
            pcm = track.take(round(until_s * track.hz)).tobytes()
            self._rest[number] += resampler.push(pcm, last=last)
        length = (max if last else min)(map(len, self._rest))
        channels = [to_samples(each[:length].ljust(length, b"\0")) for each in self._rest]
        self._rest = [each[length:] for each in self._rest]
        return np.column_stack(channels)
