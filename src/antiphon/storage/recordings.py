"""The interface of the store of recordings.

The sound itself is in a file of the data folder. Servers that do not share a folder share it through the store.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

PART_BYTES: Final = 256 * 1024
"""The largest part of a recording that is stored or read at once."""


class Mark(Struct, frozen=True, array_like=True):
    """Where a turn of the conversation begins in a recording."""

    seq: int
    """The number of the turn in its conversation."""
    at_ms: int
    """Milliseconds from the beginning of the recording."""


class Recording(Struct, frozen=True):
    """A recording of a call, or of a part of it. It is deleted with its conversation."""

    id: str
    conversation_id: str
    user: str
    call_id: str
    started_ms: int
    duration_ms: int | None
    """None while it is being made, and until the file is repaired if its process died."""
    channels: int
    size_bytes: int | None
    """None as long as the duration is."""
    format: str
    file: str
    """The name of the file in the folder of the recordings."""
    node: str
    """The machine whose folder has the file."""
    marks: tuple[Mark, ...] = ()
    """In the order of the turns."""
    is_stored: bool = False
    """Whether the store has all parts of the sound."""


class RecordingStore(Protocol):
    @property
    def keeps_sound(self) -> bool:
        """Whether the sound of new recordings belongs here, too, because the servers with this store do not share a
        folder."""
        ...

    async def add(self, recording: Recording) -> None:
        """Raises `ConversationGone` if there is no such conversation."""
        ...

    async def save(self, recording: Recording) -> bool:
        """Replaces the duration, the size and the marks. Returns False if the recording is gone."""
        ...

    async def get(self, id: str, user: str) -> Recording | None:
        """Returns None also if it belongs to another user."""
        ...

    async def list(self, user: str, conversation_id: str | None = None) -> Sequence[Recording]:
        """Returns the recordings of a user, of one conversation or of all, the oldest first."""
        ...

    async def find(self, files: Sequence[str]) -> Sequence[Recording]:
        """Returns the recordings with these files."""
        ...

    async def delete(
        self, user: str, *, id: str | None = None, conversation_id: str | None = None, call_id: str | None = None
    ) -> Sequence[Recording]:
        """Deletes the recordings of a user, or only one, or those of a conversation or of a call. Returns them."""
        ...

    async def delete_before(self, at_ms: int) -> Sequence[Recording]:
        """Deletes the recordings that started earlier, and returns them."""
        ...

    # The sound, in parts of at most `PART_BYTES`.

    async def add_part(self, id: str, number: int, data: bytes) -> bool:
        """Stores a part of a recording, unless it is there already. Returns False if the recording is gone."""
        ...

    async def part(self, id: str, number: int) -> bytes | None:
        """Returns a part of a recording; the first one has the number 0. None if there is no such part."""
        ...

    async def mark_stored(self, id: str) -> bool:
        """Notes that all parts are stored. Returns False if the recording is gone."""
        ...
