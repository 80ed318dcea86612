"""SQLite: one connection in a thread of its own."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, Generic

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import OperationalError

from antiphon.storage.base import StorageError
from antiphon.storage.sql.connections import Done

BUSY_TIMEOUT_S: Final = 5.0
"""How long a statement waits for another process to finish writing."""
STUCK_TIMEOUT_S: Final = 0.1
"""How long it waits after another statement has waited in vain, until a write succeeds. Otherwise all work in the queue
would wait for the full time, one after the other."""


class _Job(Generic[Done]):
    """A unit of work, what came of it, and who waits for that."""

    __slots__ = ("done", "error", "result", "work")

    def __init__(self, work: Callable[[Connection], Done], done: asyncio.Future[None]) -> None:
        self.work = work
        self.done = done
        self.result: Done
        self.error: BaseException | None = None


class SqliteWorker:
    """A thread with a fair queue in front of it.

    SQLite has one writer at a time whatever the number of connections. More of them would meet in its busy handler,
    which polls (after 1 ms, then at up to 100 ms) and lets late ones go first; now only other processes meet there.

    Storing a turn takes 0.17 ms of the processor: 0.10 in SQLAlchemy and SQLite, the rest on the way. A way to the
    thread and back for every statement took 1.15. Work that waits could share one commit, but that saves only 0.02.
    """

    dialect: Final = "sqlite"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._engine = _make_engine(path)
        self._connection: Connection | None = None
        self._changes_when_stuck: int | None = None
        """None while no other program keeps the file locked."""
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._open = True
        # A program that ends without closing it is not held up: what was committed is safe, and the rest never was.
        self._thread = Thread(target=self._serve, name=f"sqlite {path.name}", daemon=True)
        self._thread.start()

    async def run(self, work: Callable[[Connection], Done], *, together: bool = False) -> Done:
        if not self._open:
            raise StorageError(f"The database {self._path} was closed. Open it again to use it.")
        job = _Job(_in_transaction(work) if together else work, self._loop.create_future())
        self._jobs.put(job)
        try:
            await asyncio.shield(job.done)
        except asyncio.CancelledError:
            await asyncio.wait([job.done])
            raise
        if job.error is not None:
            raise job.error
        return job.result

    async def aclose(self) -> None:
        """When all that was asked for is done."""
        self._open = False
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._perform(job)
            # A program may have ended its loop with somebody still waiting; then there is nobody to be told.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(job.done.set_result, None)
        if self._connection is not None:
            self._connection.close()

    def _perform(self, job: _Job[Any]) -> None:
        try:
            if self._connection is None:
                self._connection = self._engine.connect()
            job.result = job.work(self._connection)
        except BaseException as error:
            job.error = error
        if self._connection is not None:
            self._adapt(self._connection, _is_locked(job.error))

    def _adapt(self, connection: Connection, is_locked: bool) -> None:
        """Decides how long the next statement waits for other programs."""
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        if is_locked and self._changes_when_stuck is None:
            self._changes_when_stuck = driver.total_changes
            _set_busy_timeout(driver, STUCK_TIMEOUT_S)
        elif self._changes_when_stuck is not None and driver.total_changes > self._changes_when_stuck:
            self._changes_when_stuck = None
            _set_busy_timeout(driver, BUSY_TIMEOUT_S)


def _is_locked(error: BaseException | None) -> bool:
    driver_error = error.orig if isinstance(error, OperationalError) else None
    # The lower byte is the error; the higher ones say more of it.
    return isinstance(driver_error, sqlite3.Error) and driver_error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def _set_busy_timeout(driver: sqlite3.Connection, timeout_s: float) -> None:
    driver.execute(f"PRAGMA busy_timeout = {round(timeout_s * 1000)}").close()


def _in_transaction(work: Callable[[Connection], Done]) -> Callable[[Connection], Done]:
    def run(connection: Connection) -> Done:
        # Other writers are waited for here. A transaction that begins with a look could not wait later, but would fail.
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            done = work(connection)
            connection.exec_driver_sql("COMMIT")
        except BaseException:
            # The driver's own does nothing if SQLite has already given the transaction up, as it does on a full disk.
            connection.connection.rollback()
            raise
        return done

    return run


def _make_engine(path: Path) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        skip_autocommit_rollback=True,
        # The parameters are what people said, and hashes of secrets: neither belongs into an error, nor into the log.
        hide_parameters=True,
        connect_args={"timeout": BUSY_TIMEOUT_S},
    )
    event.listen(engine, "connect", _set_pragmas)
    return engine


def _set_pragmas(connection: DBAPIConnection, _record: object) -> None:
    cursor = connection.cursor()
    # In WAL mode NORMAL hands each commit to the system at once, and leaves the fsync to the next checkpoint. So a
    # process that is killed loses nothing that it was told is stored: neither a "started" record nor an audit line. A
    # machine that loses power keeps a sound database, but may lack the last commits; a call whose record is among them
    # could run again, if its provider sends it again to the restarted server. FULL would close that gap, and make every
    # call of every tool wait for the disk, and all sessions with it: start and finish took 8 ms here instead of 0.13
    # (medians on a busy machine with a virtual disk).
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()
