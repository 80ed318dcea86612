"""The newest microphone audio, kept in case the model that hears it is lost before it has answered."""

from collections import deque
from collections.abc import Iterator
from typing import Final

from antiphon.protocol.limits import MICROPHONE_HZ

BYTES_PER_MS: Final = 2 * MICROPHONE_HZ // 1000
MAX_KEPT_MS: Final = 15_000
"""How much audio of a turn is kept: the newest."""
AUDIBLE_DBFS: Final = -55.0
"""What is louder may be speech."""
LEAD_MS: Final = 300
"""How much of the quiet before the first sound is given to the next model."""
IGNORED_MS: Final = 3_000
"""How long it must be quiet after a sound that a model heard until it counts as none that is answered."""
PAUSE_MS: Final = 700
"""How long it must be quiet until the user counts as silent."""


class HeardAudio:
    def __init__(self) -> None:
        self._frames: deque[tuple[bytes, bool, bool]] = deque()
        """Audio, whether the client was playing meanwhile, and whether it was audible."""
        self._bytes = 0
        self._quiet_ms: float = PAUSE_MS
        self._is_gap = False
        """Whether no model listens."""
        self._of_turn = 0
        """How many of the frames belong to the turn under way. Those after them belong to the next."""
        self.has_sound = False
        """Whether anything audible is kept."""
        self.has_sound_in_gap = False
        """Whether anything audible came since `begin_gap`, while the client was silent: what is heard while it plays
        may be the answer itself."""

        self.silence_ms: float | None = None
        """How long it had been quiet after the last sound when the last turn was over; None if it was not quiet, or if
        nothing was heard."""

    @property
    def is_speaking(self) -> bool:
        """Whether the user may be in the middle of a sentence."""
        return self.has_sound and self._quiet_ms < PAUSE_MS

    def add(self, pcm: bytes, playing: bool) -> None:
        # Imported here, since a server without a voice has no numpy.
        from antiphon.audio.pcm import level_dbfs

        is_audible = level_dbfs(pcm) > AUDIBLE_DBFS
        self.has_sound |= is_audible
        self.has_sound_in_gap |= is_audible and not playing
        self._quiet_ms = 0 if is_audible else self._quiet_ms + len(pcm) / BYTES_PER_MS
        self._frames.append((pcm, playing, is_audible))
        self._bytes += len(pcm)
        limit = (MAX_KEPT_MS if self.has_sound else LEAD_MS) * BYTES_PER_MS
        while self._bytes > limit and len(self._frames) > 1:
            self._drop_first()
        if self.has_sound and self._quiet_ms >= IGNORED_MS and not self._is_gap and not self._of_turn:
            self.forget()

    def begin_turn(self) -> None:
        """A turn has been heard: what came so far belongs to it."""
        self.silence_ms = self._quiet_ms if self.has_sound and self._quiet_ms > 0 else None
        self._of_turn = len(self._frames)

    def begin_gap(self) -> None:
        """No model listens from now on."""
        self._is_gap, self.has_sound_in_gap = True, False

    def end_gap(self) -> None:
        self._is_gap = False

    def forget_turn(self) -> None:
        """The words of the turn are known. The user may be speaking again."""
        while self._of_turn:
            self._drop_first()
        self.has_sound = any(is_audible for _, _, is_audible in self._frames)

    def end_turn(self) -> None:
        """The turn is over. What the user is saying right now belongs to the next."""
        if self.is_speaking or self._is_gap:
            self.forget_turn()
        else:
            self.forget()

    def forget(self) -> None:
        self._frames.clear()
        self._bytes, self._of_turn, self.has_sound, self._quiet_ms = 0, 0, False, PAUSE_MS

    def replay(self) -> Iterator[tuple[bytes, bool]]:
        """Returns what is kept, from a moment before the first sound on; nothing if all was quiet."""
        frames = list(self._frames)
        first = next((place for place, frame in enumerate(frames) if frame[2]), None)
        if first is None:
            return
        lead = LEAD_MS * BYTES_PER_MS
        while first > 0 and lead > 0:
            first -= 1
            lead -= len(frames[first][0])
        for pcm, playing, _ in frames[first:]:
            yield pcm, playing

    def _drop_first(self) -> None:
        self._bytes -= len(self._frames.popleft()[0])
        self._of_turn = max(0, self._of_turn - 1)
