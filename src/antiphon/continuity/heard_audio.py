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
PAUSE_MS: Final = 700
"""How long it must be quiet until the user counts as silent."""


class HeardAudio:
    def __init__(self) -> None:
        self._frames: deque[tuple[bytes, bool, bool]] = deque()
        """Audio, whether the client was playing meanwhile, and whether it was audible."""
        self._of_turn = 0
        """How many of the frames, the oldest ones, belong to the turn under way. The rest belongs to the next one."""
        self._bytes = 0
        self._audible = 0
        """How many frames are audible."""
        self._quiet_ms: float = PAUSE_MS

    @property
    def has_sound(self) -> bool:
        """Whether anything audible is kept."""
        return self._audible > 0

    @property
    def is_speaking(self) -> bool:
        """Whether the user may be in the middle of a sentence."""
        return self.has_sound and self._quiet_ms < PAUSE_MS

    def add(self, pcm: bytes, playing: bool) -> None:
        # Imported here, since a server without a voice has no numpy.
        from antiphon.audio.pcm import level_dbfs

        is_audible = level_dbfs(pcm) > AUDIBLE_DBFS
        self._quiet_ms = 0 if is_audible else self._quiet_ms + len(pcm) / BYTES_PER_MS
        self._frames.append((pcm, playing, is_audible))
        self._bytes += len(pcm)
        self._audible += is_audible
        limit = (MAX_KEPT_MS if self.has_sound else LEAD_MS) * BYTES_PER_MS
        while self._bytes > limit and len(self._frames) > 1:
            self._drop_oldest()

    def begin_turn(self) -> None:
        """What was said so far is a turn."""
        self._of_turn = len(self._frames)

    def forget_turn(self) -> None:
        """The turn has been answered or given up, or its words are known. What the user has said since is kept."""
        while self._of_turn:
            self._drop_oldest()

    def forget(self) -> None:
        """Nothing of what was said is needed any more."""
        while self._frames:
            self._drop_oldest()
        self._quiet_ms = PAUSE_MS

    def _drop_oldest(self) -> None:
        pcm, _, is_audible = self._frames.popleft()
        self._bytes -= len(pcm)
        self._audible -= is_audible
        self._of_turn = max(0, self._of_turn - 1)

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
