"""Images. An image of the largest size takes a database long, so it is written as long work, and read by a connection
that no conversation waits for."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import asdict
from sqlalchemy import bindparam, insert, select

from antiphon.storage.images import ImageRecord
from antiphon.storage.sql.connections import Connections
from antiphon.storage.sql.pruning import PARENT_ROWS, delete_in_batches, delete_some
from antiphon.storage.sql.tables import images

_DESCRIBED: Final = [column for column in images.c if column is not images.c.content]
_OWNED: Final = images.c.user == bindparam("owner")
_NAMED: Final = images.c.name.in_(bindparam("names", expanding=True))

_ADD: Final = insert(images)
_READ: Final = select(images).where(images.c.name == bindparam("image"))
_LIST: Final = select(*_DESCRIBED).where(_OWNED).order_by(images.c.at_ms, images.c.name)
# Deleting an image of 20 MB costs as much as deleting a conversation.
_DELETE_ALL: Final = delete_some(images, _OWNED, PARENT_ROWS)
_DELETE_NAMED: Final = delete_some(images, _OWNED & _NAMED, PARENT_ROWS)
_DELETE_BEFORE: Final = delete_some(images, images.c.at_ms < bindparam("before_ms"), PARENT_ROWS)


class SqlImageStore:
    def __init__(self, connections: Connections, readers: Connections) -> None:
        self._connections = connections
        self._readers = readers

    async def add(self, record: ImageRecord, content: bytes) -> None:
        row = {**asdict(record), "content": content}
        await self._connections.in_transaction(lambda connection: connection.execute(_ADD, row).close(), is_long=True)

    async def read(self, name: str) -> tuple[ImageRecord, bytes] | None:
        for *described, content in await self._readers.fetch(_READ, {"image": name}):
            return ImageRecord(*described), bytes(content)
        return None

    async def list(self, user: str) -> Sequence[ImageRecord]:
        return [ImageRecord(*row) for row in await self._connections.fetch(_LIST, {"owner": user})]

    async def delete(self, user: str, names: Sequence[str] | None = None) -> int:
        if names is None:
            return await delete_in_batches(self._connections, _DELETE_ALL, {"owner": user})
        return await delete_in_batches(self._connections, _DELETE_NAMED, {"owner": user, "names": [*names]})

    async def delete_before(self, at_ms: int) -> int:
        return await delete_in_batches(self._connections, _DELETE_BEFORE, {"before_ms": at_ms})
