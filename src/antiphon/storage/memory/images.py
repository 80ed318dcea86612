"""Images, in memory."""

from collections.abc import Callable, Sequence

from antiphon.storage.base import StorageError
from antiphon.storage.images import ImageRecord


class MemoryImageStore:
    def __init__(self) -> None:
        self._images: dict[str, tuple[ImageRecord, bytes]] = {}

    async def add(self, record: ImageRecord, content: bytes) -> None:
        if record.name in self._images:
            raise StorageError(f"There is an image {record.name} already.")
        self._images[record.name] = (record, content)

    async def read(self, name: str) -> tuple[ImageRecord, bytes] | None:
        return self._images.get(name)

    async def list(self, user: str) -> Sequence[ImageRecord]:
        owned = [record for record, _ in self._images.values() if record.user == user]
        return sorted(owned, key=lambda record: (record.at_ms, record.name))

    async def delete(self, user: str, names: Sequence[str] | None = None) -> int:
        return self._delete(lambda each: each.user == user and (names is None or each.name in names))

    async def delete_before(self, at_ms: int) -> int:
        return self._delete(lambda each: each.at_ms < at_ms)

    def _delete(self, matches: Callable[[ImageRecord], bool]) -> int:
        deleted = [record.name for record, _ in self._images.values() if matches(record)]
        for name in deleted:
            del self._images[name]
        return len(deleted)
