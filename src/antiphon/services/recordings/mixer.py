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
MIN_STALL_S: Final = 0.3
"""Microphone audio that comes later than this comes after a gap: the microphone was closed, or the network stalled."""
MAX_STALL_S: Final = 4.0
"""How long a stall may be. Sound is not read before it is over."""
SETTLE_S: Final = 0.25
"""How long it takes to tell what a gap was."""
DELAY_S: Final = 1.0
"""How old sound must be to be read: a client may tell a moment later how much it has played."""
MAX_AHEAD_S: Final = 10.0
"""Microphone audio that is further ahead of its time is left out."""
KNOWN_FRAMES: Final = 50
"""How many frames it takes to know that microphone audio is late, and not only some of its frames."""
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
        self._heard_s: float | None = None
        """When the microphone has last sent something."""
        self._delayed: list[tuple[int, Samples]] = []
        """Frames that came after a gap, and the places where they came."""
        self._lates: deque[int] = deque(maxlen=KNOWN_FRAMES)
        """By how many samples the newest frames came after the place that they have."""
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
        track, lates = self._user, self._lates
        wanted = round(at_s * track.hz) - len(samples)
        late = wanted - track.end
        self._heard_s = at_s
        if self._delayed or late > MIN_STALL_S * track.hz:
            self._delayed.append((wanted, samples))
            self._place_delayed(at_s)
            return
        lates.append(late)
        is_quiet = self._is_quiet(samples)
        # A network only ever delays, so the frames that came soonest tell by how much all of them are late.
        is_known = len(lates) == lates.maxlen
        if is_quiet and is_known and min(lates) > TOLERANCE_S * track.hz:
            track.place(samples, track.end + min(lates))
            lates.clear()
        elif late < -(TOLERANCE_S if is_quiet else MAX_AHEAD_S) * track.hz:
            lates.clear()
        else:
            track.place(samples, track.end)

    def _place_delayed(self, now_s: float, *, at_once: bool = False) -> None:
        """Places the frames that came after a gap, as soon as it is known what it was.

        If the microphone was closed, they are where they came. If the network or the server was stalled, what was said
        meanwhile comes all at once, and belongs into the gap.
        """
        track, delayed = self._user, self._delayed
        if not delayed:
            return
        length = sum(len(samples) for _, samples in delayed)
        is_long = length > MAX_STALL_S * track.hz
        if not (at_once or is_long or now_s * track.hz >= delayed[0][0] + SETTLE_S * track.hz):
            return
        self._delayed = []
        gap = delayed[0][0] - track.end
        is_stall = track.end > 0 and gap <= MAX_STALL_S * track.hz and length >= gap / 2
        at = track.end if is_stall else delayed[0][0]
        for _, samples in delayed:
            at = track.place(samples, at) + len(samples)
        self._lates.clear()

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

    def read(self, now_s: float, *, last: bool = False) -> Any:
        """Returns the next frames, of two samples each. They are final: what is placed there later is not recorded.
        `last`: the recording ends now."""
        self._place_delayed(now_s, at_once=last)
        until_s = now_s if last else self._settled_s(now_s)
        for number, (track, resampler) in enumerate(zip((self._user, self._speech), self._resamplers, strict=True)):
            pcm = track.take(round(until_s * track.hz)).tobytes()
            self._rest[number] += resampler.push(pcm, last=last)
        length = (max if last else min)(map(len, self._rest))
        channels = [to_samples(each[:length].ljust(length, b"\0")) for each in self._rest]
        self._rest = [each[length:] for each in self._rest]
        return np.column_stack(channels)

    def _settled_s(self, now_s: float) -> float:
        """Returns up to which time nothing changes any more."""
        until_s = max(0.0, now_s - DELAY_S)
        if self._heard_s is not None and now_s - self._heard_s < MAX_STALL_S:
            until_s = min(until_s, self._user.end / self._user.hz)
        return until_s
