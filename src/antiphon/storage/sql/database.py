"""Opens the database: makes the file, brings its tables up to date, and hands out the stores."""

import asyncio
import os
from pathlib import Path
from typing import Final

from sqlalchemy import make_url, text
from sqlalchemy.exc import ArgumentError

from antiphon.storage.base import StorageError
from antiphon.storage.sql.audit import SqlAuditStore
from antiphon.storage.sql.calls import SqlCallStore
from antiphon.storage.sql.confirmations import SqlConfirmationStore
from antiphon.storage.sql.connections import Connections
from antiphon.storage.sql.conversations import SqlConversationStore, SqlVoiceCallStore
from antiphon.storage.sql.people import SqlBlockStore, SqlTokenStore
from antiphon.storage.sql.sessions import SqlMessageStore, SqlSessionStore
from antiphon.storage.sql.sqlite import SqliteWorker
from antiphon.storage.sql.upgrade import upgrade

# A write that changes nothing, to a table that is always there.
_WRITE: Final = text("UPDATE alembic_version SET version_num = version_num")


class Database:
    """The stores of one database. Whoever opens it closes it."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self.calls = SqlCallStore(connections)
        self.confirmations = SqlConfirmationStore(connections)
        self.audit = SqlAuditStore(connections)
        self.voice_calls = SqlVoiceCallStore(connections)
        self.sessions = SqlSessionStore(connections)
        self.messages = SqlMessageStore(connections)
        self.conversations = SqlConversationStore(connections, self.messages)
        self.blocks = SqlBlockStore(connections)
        self.tokens = SqlTokenStore(connections)

    async def check(self) -> None:
        """Writes to the database as every turn does. Raises `StoreUnavailable` if that fails."""
        await self._connections.change(_WRITE, {})

    async def aclose(self) -> None:
        await self._connections.aclose()


async def open_database(url_or_path: str | Path) -> Database:
    """Opens a SQLite file, which is made if it is not there. Any number of processes may have it open."""
    path = find_file(url_or_path)
    await asyncio.to_thread(make_file, path)
    connections = Connections(SqliteWorker(path), str(path))
    try:
        await upgrade(connections, str(path))
    except BaseException:
        await connections.aclose()
        raise
    return Database(connections)


def find_file(url_or_path: str | Path) -> Path:
    """The path of a database that is given as a path or as a URL."""
    if isinstance(url_or_path, Path) or "://" not in url_or_path:
        return Path(url_or_path)
    try:
        url = make_url(url_or_path)
    except (ArgumentError, ValueError):
        # What cannot be read may hold a password in any place, so it is not repeated.
        raise StorageError("The database's URL cannot be read. Give a path, or sqlite:///PATH.") from None
    name = url.render_as_string()
    if url.get_backend_name() != "sqlite":
        raise StorageError(f"{name} names a database that this version does not know. Give a path, or sqlite:///PATH.")
    if url.database in (None, "", ":memory:"):
        raise StorageError(f"{name} names no file. Give a path, or sqlite:///PATH.")
    return Path(url.database)


def make_file(path: Path) -> None:
    """Makes the folder and the file for this user alone: the records hold what people said and asked for."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StorageError(
            f"The database {path} cannot be opened: {error.strerror}. Choose a path that this user may write to."
        ) from error
