"""Copies all tables of one database into another, from either engine to either engine."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, NullPool, Table, create_engine, func, inspect, select, text
from sqlalchemy.exc import SQLAlchemyError

from antiphon.storage.base import StorageError
from antiphon.storage.sql.connections import explain, reason_of
from antiphon.storage.sql.database import COPY_PROGRESS
from antiphon.storage.sql.full_text import index_of
from antiphon.storage.sql.postgres import LONG_TIMEOUT_S, explain_connecting, make_engine, name_of, parse_url
from antiphon.storage.sql.tables import LARGE_ROWS, kb_state, metadata

BATCH: Final = 500
APPLICATION: Final = "antiphon-data"
"""How Postgres calls the connections of this program, so that those of servers can be told apart."""

OnProgress = Callable[[int, int], None]
"""Called with how many rows were copied, and how many there are."""

_CREATE_PROGRESS: Final = text(
    f"CREATE TABLE IF NOT EXISTS {COPY_PROGRESS} (name TEXT PRIMARY KEY, source TEXT NOT NULL, rows BIGINT NOT NULL)"
)
_READ_PROGRESS: Final = text(f"SELECT name, source, rows FROM {COPY_PROGRESS}")
_SET_PROGRESS: Final = text(
    f"INSERT INTO {COPY_PROGRESS} (name, source, rows) VALUES (:name, :source, :rows) "
    "ON CONFLICT (name) DO UPDATE SET rows = excluded.rows"
)
_SERVERS: Final = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'antiphon'"
)


class NotEmptyError(StorageError):
    """The database that should be filled has data already."""


def copy_database(source: Path | str, target: Path | str, on_progress: OnProgress, *, replaces: bool = False) -> int:
    """Copies every row, and returns how many there are. Both databases must have the newest tables.

    The source is read as of one moment. Without `replaces`, the target must be empty, every batch is committed by
    itself, and a copy that was interrupted goes on where it ended. With `replaces`, all rows of the target are replaced
    in one transaction: if it fails, nothing has changed.
    """
    with opened(source) as reading, opened(target) as writing, _explained(target):
        _begin_snapshot(reading)
        total = sum(_count(reading, table) for table in metadata.sorted_tables)
        copying = _Copying(reading, writing, lambda done: on_progress(done, total))
        if replaces:
            writing.exec_driver_sql("BEGIN")
            for table in reversed(metadata.sorted_tables):
                writing.execute(table.delete())
            copying.copy_all()
            copying.finish()
            writing.exec_driver_sql("COMMIT")
        else:
            copying.go_on(_name(source))
        return total


def find_servers(place: str) -> int:
    """Returns how many connections of servers there are to a Postgres database."""
    with opened(place) as connection:
        return int(connection.scalar(_SERVERS) or 0)


def has_rows(place: str) -> bool:
    """Whether there is data in a Postgres database. Without tables, there is none."""
    with opened(place) as connection:
        known = inspect(connection)
        tables = [table for table in metadata.sorted_tables if table is not kb_state and known.has_table(table.name)]
        return any(connection.execute(select(1).select_from(table).limit(1)).first() for table in tables)


def _begin_snapshot(connection: Connection) -> None:
    """Begins a transaction that sees the database as of now, whatever is written meanwhile."""
    connection.exec_driver_sql("BEGIN")
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    connection.execute(select(func.count()).select_from(kb_state))


class _Copying:
    def __init__(self, reading: Connection, writing: Connection, on_progress: Callable[[int], None]) -> None:
        self._reading = reading
        self._writing = writing
        self._on_progress = on_progress
        self._done = 0

    def copy_all(self) -> None:
        for table in metadata.sorted_tables:
            for rows in self._batches(table):
                self._insert(table, rows)

    def go_on(self, source: str) -> None:
        """Copies what an earlier attempt has not, and commits each batch together with how far it has come."""
        copied = self._find_progress(source)
        for table in metadata.sorted_tables:
            rows_copied = copied.get(table.name, 0)
            self._tell(rows_copied)
            for rows in self._batches(table, rows_copied):
                self._writing.exec_driver_sql("BEGIN")
                self._insert(table, rows)
                rows_copied += len(rows)
                self._writing.execute(_SET_PROGRESS, {"name": table.name, "source": source, "rows": rows_copied})
                self._writing.exec_driver_sql("COMMIT")
        self._writing.exec_driver_sql("BEGIN")
        self.finish()
        self._writing.exec_driver_sql(f"DROP TABLE {COPY_PROGRESS}")
        self._writing.exec_driver_sql("COMMIT")

    def finish(self) -> None:
        """Makes the full-text index, and has new rows numbered after those that were copied."""
        index_of(self._writing).rebuild(self._writing)
        if self._writing.dialect.name != "postgresql":
            return
        for table in metadata.sorted_tables:
            column = table.autoincrement_column
            if column is not None and table is not kb_state:
                sequence = f"pg_get_serial_sequence('{table.name}', '{column.name}')"
                last = f'(SELECT coalesce(max("{column.name}"), 0) + 1 FROM "{table.name}")'
                self._writing.exec_driver_sql(f"SELECT setval({sequence}, {last}, false)")

    def _find_progress(self, source: str) -> Mapping[str, int]:
        """Returns how many rows of each table an earlier attempt has copied."""
        self._writing.exec_driver_sql("BEGIN")
        self._writing.execute(_CREATE_PROGRESS)
        rows = self._writing.execute(_READ_PROGRESS).all()
        others = {row.source for row in rows if row.source != source}
        if others:
            raise NotEmptyError(f"It has a part of a copy of {others.pop()}. Use an empty database.")
        if not rows:
            filled = [
                table for table in metadata.sorted_tables if table is not kb_state and _count(self._writing, table)
            ]
            if filled:
                raise NotEmptyError(f"It has data already, such as {filled[0].name}. Use an empty database.")
            # The migrations have put a row there.
            self._writing.execute(kb_state.delete())
            self._writing.execute(_SET_PROGRESS, {"name": "", "source": source, "rows": 0})
        self._writing.exec_driver_sql("COMMIT")
        return {row.name: row.rows for row in rows}

    def _batches(self, table: Table, offset: int = 0) -> Iterator[list[dict[str, Any]]]:
        """Reads a table in the order of its key, from a row on."""
        keys = list(table.primary_key.columns)
        size = table.info.get(LARGE_ROWS, BATCH)
        found = self._reading.execution_options(stream_results=True, yield_per=size).execute(
            select(table).order_by(*keys).offset(offset)
        )
        with closing(found):
            for rows in found.mappings().partitions(size):
                yield [dict(row) for row in rows]

    def _insert(self, table: Table, rows: list[dict[str, Any]]) -> None:
        self._writing.execute(table.insert(), rows)
        self._tell(len(rows))

    def _tell(self, count: int) -> None:
        self._done += count
        self._on_progress(self._done)


def _count(connection: Connection, table: Table) -> int:
    return int(connection.scalar(select(func.count()).select_from(table)) or 0)


def _name(place: Path | str) -> str:
    return str(place.absolute()) if isinstance(place, Path) else name_of(place)


@contextmanager
def opened(place: Path | str) -> Iterator[Connection]:
    """Opens a connection of its own, on which statements may take long."""
    if isinstance(place, Path):
        engine = create_engine(f"sqlite:///{place}", poolclass=NullPool, isolation_level="AUTOCOMMIT")
    else:
        engine = make_engine(parse_url(place).update_query_dict({"application_name": APPLICATION}))
    try:
        connection = engine.connect()
    except SQLAlchemyError as error:
        name = _name(place)
        raise (explain(error, name) if isinstance(place, Path) else explain_connecting(error, name)) from None
    with connection:
        driver: Any = connection.connection.driver_connection
        if not isinstance(place, Path):
            driver.set_timeout(LONG_TIMEOUT_S)
        yield connection


@contextmanager
def _explained(target: Path | str) -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        raise StorageError(f"{_name(target)} could not be filled: {reason_of(error)}.") from None
