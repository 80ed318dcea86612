"""The way to the database: units of work, each done in one go, and its errors in our own words."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sqlalchemy import Connection, Executable, Row, Table
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError, SQLAlchemyError

from antiphon.storage.base import StorageError, StoreUnavailable

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

Params = Mapping[str, Any]
Done = TypeVar("Done")


class KeyTakenError(StorageError):
    """A unique key of the row is held by another row; nothing was changed."""


class Worker(Protocol):
    """Does units of work on a connection. Each is a plain function, so that all of it is one trip from the loop."""

    @property
    def dialect(self) -> str: ...

    async def run(self, work: Callable[[Connection], Done], *, together: bool = False) -> Done:
        """Each statement of the work commits by itself, or all of them `together` at its end.

        Work is never cut short: a caller that is cancelled waits for it.
        """
        ...

    async def aclose(self) -> None: ...


class Connections:
    def __init__(self, worker: Worker, name: str) -> None:
        self._worker = worker
        self._name = name

    async def fetch(self, statement: Executable, params: Params) -> Sequence[Row[*tuple[Any, ...]]]:
        return await self.each(lambda connection: connection.execute(statement, params).fetchall())

    async def change(self, statement: Executable, params: Params) -> int:
        """Runs it, and says how many rows it touched. Raises `KeyTakenError`."""
        return await self.each(lambda connection: connection.execute(statement, params).rowcount)

    async def change_all(self, statement: Executable, params: Sequence[Params]) -> None:
        """Runs it for each of the parameters: for all of them, or for none."""
        await self.together(lambda connection: connection.execute(statement, params).close())

    async def each(self, work: Callable[[Connection], Done]) -> Done:
        """Every statement of the work commits by itself."""
        return await self._do(work, together=False)

    async def together(self, work: Callable[[Connection], Done]) -> Done:
        """What the work does on the connection takes effect at its end; if it raises something, nothing does."""
        return await self._do(work, together=True)

    def insert(self, table: Table) -> "sqlite.Insert | postgresql.Insert":
        return insert_into(table, self._worker.dialect)

    async def aclose(self) -> None:
        await self._worker.aclose()

    async def _do(self, work: Callable[[Connection], Done], *, together: bool) -> Done:
        try:
            return await self._worker.run(work, together=together)
        except SQLAlchemyError as error:
            raise explain(error, self._name) from error
        except (OverflowError, UnicodeEncodeError) as error:
            # What a driver says of a number or of half a character that its database has no room for.
            raise StorageError(f"The database {self._name} cannot hold such a value: {error}.") from error


def insert_into(table: Table, dialect: str) -> "sqlite.Insert | postgresql.Insert":
    """An INSERT that knows ON CONFLICT, which SQLAlchemy has only among the words of each dialect."""
    if dialect == "postgresql":
        from sqlalchemy.dialects.postgresql import insert as insert_into_postgresql

        return insert_into_postgresql(table)
    from sqlalchemy.dialects.sqlite import insert as insert_into_sqlite

    return insert_into_sqlite(table)


def explain(error: SQLAlchemyError, name: str) -> StorageError:
    reason = str(error.orig) if isinstance(error, DBAPIError) else type(error).__name__
    if isinstance(error, IntegrityError):
        return KeyTakenError(f"The database {name} already has such a row: {reason}.")
    if not isinstance(error, DBAPIError) or isinstance(error, ProgrammingError | DataError):
        return StorageError(
            f"The database {name} does not understand a statement: {reason}. This is a fault of Antiphon."
        )
    if "not a database" in reason:
        advice = "Move it away, or choose another path."
        return StoreUnavailable(f"{name} is a file of another kind, not a database. {advice}")
    return StoreUnavailable(
        f"The database {name} cannot be used: {reason}. "
        "Check that its disk has room, that this user may write there, and that no other program keeps it locked."
    )
