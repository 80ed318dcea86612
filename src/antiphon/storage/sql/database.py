"""Opens the database: creates the file, migrates its tables, and provides the stores."""

import asyncio
import os
import time
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import OperationalError

from antiphon.storage.base import StorageError
from antiphon.storage.migrations import FOLDER, HEAD
from antiphon.storage.sql.calendar import SqlCalendarStore
from antiphon.storage.sql.connections import Connections
from antiphon.storage.sql.conversations import SqlConversationStore, SqlVoiceCallStore
from antiphon.storage.sql.knowledge import SqlKnowledgeStore
from antiphon.storage.sql.lists import SqlListStore, SqlToolValueStore
from antiphon.storage.sql.mcp_pins import SqlMcpPinStore
from antiphon.storage.sql.people import SqlBlockStore, SqlTokenStore
from antiphon.storage.sql.reminders import SqlReminderStore
from antiphon.storage.sql.sessions import SqlMessageStore, SqlSessionStore
from antiphon.storage.sql.sqlite import BUSY_TIMEOUT_S, SqliteWorker
from antiphon.storage.sql.tool_calls import SqlAuditStore, SqlCallStore, SqlConfirmationStore

# A write that changes nothing, to a table that always exists.
_WRITE: Final = text("UPDATE alembic_version SET version_num = version_num")


class Database:
    """The stores of one database. The caller that opens it must close it."""

    def __init__(self, connections: Connections, readers: Connections | None = None) -> None:
        """`readers` do what takes long and changes nothing, beside the other work."""
        self._connections = connections
        self._readers = readers
        self.stats = connections.stats
        """How long units of work take, those of the readers included."""
        self.calls = SqlCallStore(connections)
        self.confirmations = SqlConfirmationStore(connections)
        self.audit = SqlAuditStore(connections)
        self.voice_calls = SqlVoiceCallStore(connections)
        self.sessions = SqlSessionStore(connections)
        self.messages = SqlMessageStore(connections)
        self.conversations = SqlConversationStore(connections, self.messages)
        self.blocks = SqlBlockStore(connections)
        self.tokens = SqlTokenStore(connections)
        self.knowledge = SqlKnowledgeStore(connections, readers or connections)
        self.lists = SqlListStore(connections)
        self.tool_values = SqlToolValueStore(connections)
        self.reminders = SqlReminderStore(connections, self.messages)
        self.calendar = SqlCalendarStore(connections)
        self.mcp_pins = SqlMcpPinStore(connections)

    async def check(self) -> None:
        """Writes to the database, as every turn does. Raises `StoreUnavailable` if that fails."""
        await self._connections.change(_WRITE, {})

    async def aclose(self) -> None:
        if self._readers is not None:
            await self._readers.aclose()
        await self._connections.aclose()


async def open_database(path: Path) -> Database:
    """Opens a SQLite file, and creates it if necessary. Any number of processes may have it open."""
    await asyncio.to_thread(make_file, path)
    connections = Connections(SqliteWorker(path), str(path))
    try:
        await upgrade(connections, str(path))
    except BaseException:
        await connections.aclose()
        raise
    return Database(connections, Connections(SqliteWorker(path), str(path), connections.stats))


def make_file(path: Path) -> None:
    """Creates the folder and the file for this user alone, since they contain what people said."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StorageError(
            f"The database {path} cannot be opened: {error.strerror}. Choose a path that this user may write to."
        ) from error


_RETRY_S: Final = 0.02


async def upgrade(connections: Connections, name: str) -> None:
    def is_current(connection: Connection) -> bool:
        return _version(connection, name) == HEAD

    def migrate(connection: Connection) -> None:
        # The transaction keeps other processes out, so the second of two finds the work done.
        if not is_current(connection):
            _migrate(connection)

    await connections.autocommit(_write_ahead)
    if not await connections.autocommit(is_current):
        await connections.in_transaction(migrate)


def _write_ahead(connection: Connection) -> None:
    """Switches the file to write-ahead logging, which it remembers.

    The switch needs exclusive access and does not always wait for it: of four processes that opened a new file at the
    same time, one in fifteen failed with "database is locked" within 6 ms.
    """
    for retries_left in reversed(range(round(BUSY_TIMEOUT_S / _RETRY_S))):
        try:
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
            return
        except OperationalError as error:
            if "locked" not in str(error.orig) or not retries_left:
                raise
            time.sleep(_RETRY_S)


def _version(connection: Connection, name: str) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    version: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    if version is not None and version > HEAD:
        raise StorageError(
            f"{name} was written by a newer Antiphon (tables {version}, this one knows {HEAD}). "
            "Update Antiphon, or choose another database."
        )
    return version


def _migrate(connection: Connection) -> None:
    # Imported only if needed: loading alembic takes longer than opening a database that is up to date.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, HEAD)
