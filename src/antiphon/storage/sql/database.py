"""Opens the database: creates the file, migrates its tables, and provides the stores."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import OperationalError

from antiphon.clock import Clock, SystemClock
from antiphon.storage.base import StorageError
from antiphon.storage.changes import Changes, LocalChanges
from antiphon.storage.migrations import FOLDER, HEAD
from antiphon.storage.sql.calendar import SqlCalendarStore
from antiphon.storage.sql.clock import DatabaseClock
from antiphon.storage.sql.commands import SqlCommandStore
from antiphon.storage.sql.connections import Connections, Worker
from antiphon.storage.sql.conversations import SqlConversationStore, SqlVoiceCallStore
from antiphon.storage.sql.images import SqlImageStore
from antiphon.storage.sql.knowledge import SqlKnowledgeStore
from antiphon.storage.sql.limits import SqlLimitStore
from antiphon.storage.sql.lists import SqlListStore, SqlToolValueStore
from antiphon.storage.sql.locks import lock
from antiphon.storage.sql.mcp_pins import SqlMcpPinStore
from antiphon.storage.sql.notifications import PostgresChanges
from antiphon.storage.sql.overview import SqlEventStore, SqlOverviewStore
from antiphon.storage.sql.people import SqlBlockStore, SqlTokenStore
from antiphon.storage.sql.postgres import PostgresWorker, name_of, parse_url
from antiphon.storage.sql.recordings import SqlRecordingStore
from antiphon.storage.sql.reminders import SqlReminderStore
from antiphon.storage.sql.sessions import SqlMessageStore, SqlSessionStore
from antiphon.storage.sql.sqlite import BUSY_TIMEOUT_S, SqliteWorker
from antiphon.storage.sql.tool_calls import SqlAuditStore, SqlCallStore, SqlConfirmationStore

# A write that changes nothing, to a table that always exists.
_WRITE: Final = text("UPDATE alembic_version SET version_num = version_num")

_TIME: Final = text("SELECT extract(epoch FROM clock_timestamp()) * 1000")


class Database:
    """The stores of one database. The caller that opens it must close it."""

    def __init__(
        self, connections: Connections, readers: Connections | None = None, changes: Changes | None = None
    ) -> None:
        """`readers` do what takes long and changes nothing, beside the other work. Without `changes`, other processes
        notice changes when they look."""
        self._connections = connections
        self._readers = readers
        self._server_clock = None if connections.dialect == "sqlite" else DatabaseClock(self._ask_time)
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
        self.commands = SqlCommandStore(connections)
        self.limits = SqlLimitStore(connections)
        self.changes = changes or LocalChanges()
        self.events = SqlEventStore(connections)
        self.overview = SqlOverviewStore(readers or connections, self.knowledge)
        self.recordings = SqlRecordingStore(connections)
        self.images = SqlImageStore(connections, readers or connections)

    @property
    def clock(self) -> Clock:
        """The clock that all processes with this database share: that of the machine, or that of the server."""
        return self._server_clock or SystemClock()

    async def start(self) -> None:
        """Begins to follow the clock of the server."""
        if self._server_clock is not None:
            await self._server_clock.start()

    async def check(self) -> None:
        """Writes to the database, as every turn does. Raises `StoreUnavailable` if that fails."""
        await self._connections.change(_WRITE, {})

    async def aclose(self) -> None:
        await self.changes.aclose()
        if self._server_clock is not None:
            await self._server_clock.aclose()
        if self._readers is not None:
            await self._readers.aclose()
        await self._connections.aclose()

    async def _ask_time(self) -> int:
        [(now_ms,)] = await self._connections.fetch(_TIME, {})
        return int(now_ms)


async def open_database(place: Path | str, *, is_partial: bool = False) -> Database:
    """Opens a SQLite file, which it creates if necessary, or the Postgres database of an address. Any number of
    processes may have it open. With `is_partial`, a copy that was interrupted may have filled it in part."""
    name, make_worker, make_reader = await _workers_for(place)
    connections = Connections(make_worker(), name)
    try:
        await upgrade(connections, name)
        if not is_partial:
            await connections.autocommit(lambda connection: _check_complete(connection, name))
        changes = None if isinstance(place, Path) else PostgresChanges(connections, parse_url(place))
        database = Database(connections, Connections(make_reader(), name, connections.stats), changes)
        await database.start()
    except BaseException:
        await connections.aclose()
        raise
    return database


COPY_PROGRESS: Final = "copy_progress"
"""The table that says how far a copy into a database has come. It is there only until the copy is complete."""
_READERS: Final = 2
"""How many connections to Postgres search the knowledge base."""


async def _workers_for(place: Path | str) -> tuple[str, Callable[[], Worker], Callable[[], Worker]]:
    """Returns the name of the database, and what makes the workers for its conversations and for its searches."""
    if isinstance(place, Path):
        await asyncio.to_thread(make_file, place)
        return str(place), lambda: SqliteWorker(place), lambda: SqliteWorker(place)
    url, name = parse_url(place), name_of(place)
    return name, lambda: PostgresWorker(url, name), lambda: PostgresWorker(url, name, _READERS)


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
    """Migrates the tables. Of several processes that start at the same time, one does it, and the others wait."""
    is_sqlite = connections.dialect == "sqlite"

    def is_current(connection: Connection) -> bool:
        return _version(connection, name) == HEAD

    def migrate(connection: Connection) -> None:
        # The transaction of SQLite keeps other processes out; that of Postgres needs a lock. So the second of two
        # processes finds the work done.
        lock(connection, "migrations")
        if not is_current(connection):
            _migrate(connection)

    await connections.autocommit(_write_ahead if is_sqlite else lambda connection: _check_encoding(connection, name))
    if not await connections.autocommit(is_current):
        await connections.in_transaction(migrate, is_long=True)


def _check_complete(connection: Connection, name: str) -> None:
    if inspect(connection).has_table(COPY_PROGRESS):
        raise StorageError(
            f"Copying into {name} was interrupted, so it has only a part of the data. "
            "Run `antiphon data migrate` again to go on."
        )


def _check_encoding(connection: Connection, name: str) -> None:
    encoding = connection.scalar(text("SHOW server_encoding"))
    if encoding != "UTF8":
        raise StorageError(
            f"The database {name} has the encoding {encoding}, which cannot hold every text. "
            "Create it with: createdb --template=template0 --encoding=UTF8"
        )


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
