"""The interface of the store of images that tools have made."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class ImageRecord(Struct, frozen=True):
    """What is known about an image."""

    name: str
    """The last part of its address. Whoever knows it can see the image."""
    user: str
    prompt: str
    model: str
    at_ms: int
    """Unix time in milliseconds."""
    media_type: str


class ImageStore(Protocol):
    async def add(self, record: ImageRecord, content: bytes) -> None:
        """Raises `StorageError` if there is an image with this name."""
        ...

    async def read(self, name: str) -> tuple[ImageRecord, bytes] | None: ...

    async def list(self, user: str) -> Sequence[ImageRecord]:
        """Returns the images of a user without their contents, the oldest first."""
        ...

    async def delete(self, user: str, names: Sequence[str] | None = None) -> int:
        """Deletes the images of a user, all or those with these names. Returns how many there were."""
        ...

    async def delete_before(self, at_ms: int) -> int:
        """Deletes the images that were made earlier, and returns how many there were."""
        ...
