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
        self._bytes = 0
        self._quiet_ms: float = PAUSE_MS
        self.has_sound = False
        """Whether anything audible came since `forget`."""

    @property
    def is_speaking(self) -> bool:
        """Whether the user may be in the middle of a sentence."""
        return self.has_sound and self._quiet_ms < PAUSE_MS

    def add(self, pcm: bytes, playing: bool) -> None:
        # Imported here, since a server without a voice has no numpy.
        from antiphon.audio.pcm import level_dbfs

        is_audible = level_dbfs(pcm) > AUDIBLE_DBFS
        self.has_sound |= is_audible
        self._quiet_ms = 0 if is_audible else self._quiet_ms + len(pcm) / BYTES_PER_MS
        self._frames.append((pcm, playing, is_audible))
        self._bytes += len(pcm)
        limit = (MAX_KEPT_MS if self.has_sound else LEAD_MS) * BYTES_PER_MS
        while self._bytes > limit and len(self._frames) > 1:
            self._bytes -= len(self._frames.popleft()[0])

    def forget(self) -> None:
        """What was said has been answered, or its words are known."""
        self._frames.clear()
        self._bytes, self.has_sound, self._quiet_ms = 0, False, PAUSE_MS

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
