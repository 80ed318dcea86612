"""Runs work on Postgres: a few connections, each in its own thread.

The threads are those of SQLite's worker, and each keeps its connection. A pool of SQLAlchemy or of psycopg would be a
second queue behind the one of the threads, and would add a checkout and a check of the connection to every unit of
work. So one queue decides who waits, and a connection that was lost is noticed without asking the server.
"""

import select
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, cast

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from antiphon.config.quoting import hide_password
from antiphon.storage.base import StorageError, StoreUnavailable
from antiphon.storage.sql.connections import Done, reason_of, sqlstate_of
from antiphon.storage.sql.threads import Job, JobThreads

if TYPE_CHECKING:
    from antiphon.storage.sql.psycopg_connection import TimedConnection

TIMEOUT_S: Final = 5.0
"""How long work waits for a free connection."""
CONNECTIONS: Final = 8
"""How many connections a process has for its conversations."""
LONG_TIMEOUT_S: Final = 600.0
"""How long a statement may take in work that may take long: migrations and changes of the whole knowledge base."""
RETRY_S: Final = 0.5
"""How long after a failed connection the next one is tried. Meanwhile, work fails at once."""
PAUSES_S: Final = (0.05, 0.25, 0.5)
"""How long work waits before it is done again, if Postgres has ended it in favour of other work. Without a pause, it
could take the same lock again before the other work wakes up, and be in its way once more."""

_ENDED_FOR_OTHERS: Final = frozenset({"40001", "40P01"})
"""A serialization failure and a deadlock. Nothing was changed."""
_INSTALL: Final = "Postgres needs the package psycopg. Install it with: pip install 'antiphon[postgres]'"


class PostgresWorker:
    dialect: Final = "postgresql"

    def __init__(self, url: URL, name: str, connections: int = CONNECTIONS) -> None:
        engine = make_engine(url)
        outage = _Outage()
        self._threads = JobThreads(lambda: _Runner(engine, name, outage), name, connections)

    async def run(
        self, work: Callable[[Connection], Done], *, in_transaction: bool = False, is_long: bool = False
    ) -> Done:
        return await self._threads.run(work, in_transaction=in_transaction, is_long=is_long)

    async def aclose(self) -> None:
        await self._threads.aclose()


def parse_url(url: str) -> URL:
    """Reads an address such as `postgresql://user:password@host:5432/name?sslmode=require`. Raises `StorageError`."""
    _, _, rest = url.partition("://")
    try:
        return make_url(f"postgresql+psycopg://{rest}")
    except (ArgumentError, ValueError):
        # The reason would show the password.
        raise StorageError(
            'storage.url is not the address of a database. Write "postgresql://user:password@host:5432/name", and '
            "special characters of the password as %XX."
        ) from None


def name_of(url: str) -> str:
    """Returns how messages call the database: without the password and the parameters."""
    return hide_password(url.replace("postgres://", "postgresql://", 1))


class _Outage:
    """What the threads know together about a server that cannot be reached.

    Without it, each of them would wait for the full time-out again and again, and all work in the queue with them.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._error: StorageError | None = None
        self._next_attempt_at = 0.0

    def check(self) -> None:
        """Raises the error of the last attempt, unless this thread is to make the next one."""
        with self._lock:
            if self._error is None:
                return
            now = time.monotonic()
            if now < self._next_attempt_at:
                raise type(self._error)(str(self._error))
            self._next_attempt_at = now + TIMEOUT_S + RETRY_S

    def begin(self, error: StorageError) -> None:
        with self._lock:
            self._error = error
            self._next_attempt_at = time.monotonic() + RETRY_S

    def end(self) -> None:
        with self._lock:
            self._error = None


class _Runner:
    """One connection. It is made when it is needed, and again after it was lost."""

    def __init__(self, engine: Engine, name: str, outage: _Outage) -> None:
        self._engine = engine
        self._name = name
        self._outage = outage
        self._connection: Connection | None = None

    def perform(self, job: Job[Any]) -> None:
        try:
            waited_s = time.monotonic() - job.queued_at
            if waited_s > TIMEOUT_S:
                raise StoreUnavailable(
                    f"The database {self._name} is too slow: work has waited {waited_s:.0f} s for a free connection. "
                    "Check what the server does, and whether it can be reached without delay."
                )
            job.result = self._repeat(job)
        except BaseException as error:
            job.error = error
        if self._connection is not None and _is_lost(self._connection):
            self.close()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.close()

    def _repeat(self, job: Job[Any]) -> Any:
        """Does the work, again if it was ended in favour of other work. That is safe, since nothing was changed then,
        and work is a function of the connection alone."""
        for pause_s in PAUSES_S:
            try:
                return self._run(job)
            except DBAPIError as error:
                if sqlstate_of(error) not in _ENDED_FOR_OTHERS:
                    raise
            time.sleep(pause_s)
        return self._run(job)

    def _run(self, job: Job[Any]) -> Any:
        connection = self._connect()
        if job.is_long:
            _set_timeout(connection, LONG_TIMEOUT_S)
        try:
            return _in_transaction(job.work, connection) if job.in_transaction else job.work(connection)
        finally:
            if job.is_long:
                _set_timeout(connection, TIMEOUT_S)

    def _connect(self) -> Connection:
        # A server sends nothing to an idle connection, except when it ends it or when its settings change.
        if self._connection is not None and (_is_lost(self._connection) or _has_input(self._connection)):
            self.close()
        if self._connection is None:
            self._outage.check()
            try:
                self._connection = self._engine.connect()
            except SQLAlchemyError as error:
                explained = explain_connecting(error, self._name)
                self._outage.begin(explained)
                raise explained from None
            self._outage.end()
        return self._connection


def explain_connecting(error: SQLAlchemyError, name: str) -> StorageError:
    reason = reason_of(error)
    if "invalid connection option" in reason or ("invalid" in reason and "value" in reason):
        return StorageError(f"storage.url has a parameter that Postgres does not know: {reason}. Correct it.")
    if "authentication" in reason or "no password supplied" in reason or "pg_hba" in reason:
        advice = "Check the user and the password in storage.url, or set PGPASSWORD."
    elif "does not exist" in reason:
        advice = "Create it first, with createuser and createdb, or correct storage.url."
    elif "too many" in reason or "remaining connection slots" in reason:
        advice = f"Each server needs up to {CONNECTIONS + 2} connections; raise max_connections of Postgres."
    else:
        advice = "Check that Postgres runs there, that it can be reached from here, and that storage.url is right."
    return StoreUnavailable(f"The database {name} cannot be reached: {reason}. {advice}")


def _in_transaction(work: Callable[[Connection], Done], connection: Connection) -> Done:
    connection.exec_driver_sql("BEGIN")
    try:
        done = work(connection)
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        if not _is_lost(connection):
            connection.exec_driver_sql("ROLLBACK")
        raise
    return done


def _driver(connection: Connection) -> "TimedConnection | None":
    """Returns the connection of psycopg, or None if SQLAlchemy has found that it was lost."""
    if connection.closed or connection.invalidated:
        return None
    driver: Any = connection.connection.driver_connection
    return cast("TimedConnection", driver)


def _is_lost(connection: Connection) -> bool:
    driver = _driver(connection)
    return driver is None or driver.closed


def _has_input(connection: Connection) -> bool:
    driver = _driver(connection)
    if driver is None:
        return False
    poll = select.poll()
    poll.register(driver.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _set_timeout(connection: Connection, timeout_s: float) -> None:
    driver = _driver(connection)
    if driver is not None and not driver.closed:
        driver.set_timeout(timeout_s)


def make_engine(url: URL) -> Engine:
    try:
        from antiphon.storage.sql.psycopg_connection import connect
    except ImportError:
        # Either psycopg is missing, or the library of Postgres that it needs.
        raise StorageError(_INSTALL) from None
    engine = create_engine(
        url,
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        skip_autocommit_rollback=True,
        # The parameters include what people said and hashes of secrets, which must not appear in errors or logs.
        hide_parameters=True,
        # An INSERT returns its key, and without this its number of rows is forgotten.
        execution_options={"preserve_rowcount": True},
    )
    event.listen(engine, "do_connect", connect)
    return engine
