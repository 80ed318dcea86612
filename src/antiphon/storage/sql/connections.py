"""Runs units of work on the database, and translates its errors."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from sqlalchemy import Connection, Executable, Row, Table
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError, SQLAlchemyError

from antiphon.storage.base import StorageError, StoreUnavailable
from antiphon.telemetry.metrics import StoreStats

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

Params = Mapping[str, Any]
Done = TypeVar("Done")


class KeyTakenError(StorageError):
    """Another row has a unique key of this row. Nothing was changed."""


class Worker(Protocol):
    """Runs units of work on a connection. Each is a plain function, so that the loop hands it over once."""

    @property
    def dialect(self) -> str: ...

    async def run(
        self, work: Callable[[Connection], Done], *, in_transaction: bool = False, is_long: bool = False
    ) -> Done:
        """Runs the work. Each statement commits by itself, or all of them at the end if it is `in_transaction`.

        Work is never interrupted: a caller that is cancelled waits for it. It may be done again from its beginning if
        the database ended it in favour of other work, so it must depend on the connection alone, and if it changes
        anything, it is one statement or `in_transaction`. Work that `is_long` has more time.
        """
        ...

    async def aclose(self) -> None: ...


class Connections:
    def __init__(self, worker: Worker, name: str, stats: StoreStats | None = None) -> None:
        self._worker = worker
        self._name = name
        self.stats = stats or StoreStats()

    @property
    def dialect(self) -> str:
        return self._worker.dialect

    async def fetch(self, statement: Executable, params: Params) -> Sequence[Row[*tuple[Any, ...]]]:
        return await self.autocommit(lambda connection: connection.execute(statement, params).fetchall())

    async def change(self, statement: Executable, params: Params) -> int:
        """Runs a statement, and returns how many rows it changed. Raises `KeyTakenError`."""
        return await self.autocommit(lambda connection: connection.execute(statement, params).rowcount)

    async def change_all(self, statement: Executable, params: Sequence[Params]) -> None:
        """Runs a statement for each of the parameters, for all of them or for none."""
        await self.in_transaction(lambda connection: connection.execute(statement, params).close())

    async def autocommit(self, work: Callable[[Connection], Done]) -> Done:
        """Runs work in which every statement commits by itself."""
        return await self._do(work, in_transaction=False)

    async def in_transaction(self, work: Callable[[Connection], Done], *, is_long: bool = False) -> Done:
        """Runs work in one transaction. If it raises an error, nothing is changed."""
        return await self._do(work, in_transaction=True, is_long=is_long)

    def insert(self, table: Table) -> "sqlite.Insert | postgresql.Insert":
        return insert_into(table, self._worker.dialect)

    async def aclose(self) -> None:
        await self._worker.aclose()

    async def _do(self, work: Callable[[Connection], Done], *, in_transaction: bool, is_long: bool = False) -> Done:
        started_s = time.perf_counter()
        try:
            done = await self._worker.run(work, in_transaction=in_transaction, is_long=is_long)
            kind = "transaction" if in_transaction else "statement"
            self.stats.durations.add((time.perf_counter() - started_s) * 1_000, kind)
            return done
        except SQLAlchemyError as error:
            explained = explain(error, self._name)
            if not isinstance(explained, KeyTakenError):
                self.stats.note_error(explained.code)
            # Errors of Postgres quote rows, in which there is what people said.
            raise explained from (None if self.dialect == "postgresql" else error)
        except StorageError as error:
            self.stats.note_error(error.code)
            raise
        except (OverflowError, UnicodeEncodeError) as error:
            # How a driver reports a number that is too large, or half of a surrogate pair.
            raise _cannot_store(self._name, str(error)) from error


def insert_into(table: Table, dialect: str) -> "sqlite.Insert | postgresql.Insert":
    """Makes an INSERT with ON CONFLICT, which SQLAlchemy has only in its dialects."""
    if dialect == "postgresql":
        from sqlalchemy.dialects.postgresql import insert as insert_into_postgresql

        return insert_into_postgresql(table)
    from sqlalchemy.dialects.sqlite import insert as insert_into_sqlite

    return insert_into_sqlite(table)


def sqlstate_of(error: SQLAlchemyError) -> str | None:
    """Returns the code of an error of Postgres; None if it has none, or is of SQLite."""
    return getattr(error.orig, "sqlstate", None) if isinstance(error, DBAPIError) else None


def reason_of(error: SQLAlchemyError) -> str:
    """Returns what the driver said, on one line and without the rows that Postgres quotes in the details."""
    if not isinstance(error, DBAPIError):
        return type(error).__name__
    primary = getattr(getattr(error.orig, "diag", None), "message_primary", None)
    return " ".join(str(primary or error.orig).split()).rstrip(".")


def explain(error: SQLAlchemyError, name: str) -> StorageError:
    reason, sqlstate = reason_of(error), sqlstate_of(error)
    if isinstance(error, IntegrityError):
        return KeyTakenError(f"The database {name} already has such a row: {reason}.")
    if isinstance(error, DataError):
        return _cannot_store(name, reason)
    is_of_operator = sqlstate in _OF_OPERATOR
    if not isinstance(error, DBAPIError) or (isinstance(error, ProgrammingError) and not is_of_operator):
        return StorageError(f"The database {name} rejected a statement: {reason}. This is an error in Antiphon.")
    if "not a database" in reason:
        advice = "Move it away, or choose another path."
        return StoreUnavailable(f"{name} is not a database. {advice}")
    return StoreUnavailable(
        f"The database {name} cannot be used: {reason}. "
        + (_POSTGRES_ADVICE if name.startswith("postgresql:") else _SQLITE_ADVICE)
    )


_OF_OPERATOR: Final = frozenset({"42501", "42P01", "42703", "3F000"})
"""Missing rights, tables, columns and schemas. Postgres counts them among the mistakes of the statement."""
_SQLITE_ADVICE: Final = (
    "Check that its disk has room, that this user may write there, and that no other program keeps it locked."
)
_POSTGRES_ADVICE: Final = (
    "Check that the server runs and can be reached, that its disk has room, that its user may write, and that no other "
    "program keeps the tables locked."
)


def _cannot_store(name: str, reason: str) -> StorageError:
    return StorageError(f"The database {name} cannot store such a value: {reason}.")
