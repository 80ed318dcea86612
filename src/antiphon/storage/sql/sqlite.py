"""Runs work on SQLite: one connection in its own thread."""

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
"""How long a statement waits after another one has timed out, until a write succeeds. Otherwise all work in the queue
would wait for the full time, one after the other."""


class _Job(Generic[Done]):
    """A unit of work, its result, and the future of its caller."""

    __slots__ = ("done", "error", "result", "work")

    def __init__(self, work: Callable[[Connection], Done], done: asyncio.Future[None]) -> None:
        self.work = work
        self.done = done
        self.result: Done
        self.error: BaseException | None = None


class SqliteWorker:
    """A thread with a fair queue.

    SQLite has one writer at a time, however many connections there are. More connections would wait in its busy
    handler, which polls (after 1 ms, then up to every 100 ms) and is not fair; now only other processes wait there.

    Storing a turn takes 0.17 ms of CPU: 0.10 ms in SQLAlchemy and SQLite, the rest for the switch between threads. With
    a switch for every statement it took 1.15 ms. Sharing a commit between waiting jobs would save only 0.02 ms.
    """

    dialect: Final = "sqlite"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._engine = _make_engine(path)
        self._connection: Connection | None = None
        self._changes_when_stuck: int | None = None
        """None unless another program keeps the file locked."""
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._open = True
        # A daemon, so that it does not delay the end of the program: what was committed is safe.
        self._thread = Thread(target=self._serve, name=f"sqlite {path.name}", daemon=True)
        self._thread.start()

    async def run(self, work: Callable[[Connection], Done], *, in_transaction: bool = False) -> Done:
        if not self._open:
            raise StorageError(f"The database {self._path} was closed. Open it again to use it.")
        job = _Job(_in_transaction(work) if in_transaction else work, self._loop.create_future())
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
        """Waits for all work in the queue, and closes the connection."""
        self._open = False
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._perform(job)
            # The loop may be closed already, and then the result is not needed.
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
        """Sets how long the next statement waits for other programs."""
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
    # The low byte is the error code; the higher ones give details.
    return isinstance(driver_error, sqlite3.Error) and driver_error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def _set_busy_timeout(driver: sqlite3.Connection, timeout_s: float) -> None:
    driver.execute(f"PRAGMA busy_timeout = {round(timeout_s * 1000)}").close()


def _in_transaction(work: Callable[[Connection], Done]) -> Callable[[Connection], Done]:
    def run(connection: Connection) -> Done:
        # This waits for other writers. A transaction that begins with a read would fail later instead of waiting.
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            done = work(connection)
            connection.exec_driver_sql("COMMIT")
        except BaseException:
            # The driver's rollback does nothing if SQLite has already ended the transaction, as it does on a full disk.
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
        # The parameters include what people said and hashes of secrets, which must not appear in errors or logs.
        hide_parameters=True,
        connect_args={"timeout": BUSY_TIMEOUT_S},
    )
    event.listen(engine, "connect", _set_pragmas)
    return engine


def _set_pragmas(connection: DBAPIConnection, _record: object) -> None:
    cursor = connection.cursor()
    # In WAL mode, NORMAL passes each commit to the system at once and leaves the fsync to the next checkpoint. So a
    # process that is killed loses nothing that was committed: neither a "started" record nor an audit line. A machine
    # that loses power keeps an intact database, but may lose the last commits; a call whose record is among them could
    # run again if its provider sends it again to the restarted server. FULL would close that gap, but every tool call,
    # and every session with it, would wait for the disk: start and finish took 8 ms instead of 0.13 ms (medians on a
    # busy machine with a virtual disk).
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()
