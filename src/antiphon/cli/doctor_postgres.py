"""What `antiphon doctor` finds out about a Postgres database, without changing anything."""

import time
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from antiphon.cli.findings import Finding, Findings

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from antiphon.config import Settings
    from antiphon.storage.sql.vector_index import VectorSupport

SLOW_MS: Final = 20.0
"""A turn takes a few statements, one after another. Above this, the way to the database delays every answer."""
FEW_CONNECTIONS: Final = 20


class PostgresState(Struct):
    version: str
    """The version of the Postgres server."""
    round_trip_ms: float
    connections_left: int
    pgvector: "VectorSupport"
    tables: str | None = None
    """The version of the tables; None if there are none yet."""
    tokens: int = 0
    records: int = 0
    passages: int = 0
    vectors: int = 0


def inspect_postgres(url: str) -> PostgresState:
    """Raises `StorageError`."""
    from sqlalchemy import inspect

    from antiphon.clock import SystemClock
    from antiphon.storage.sql.copying import opened
    from antiphon.storage.sql.vector_index import find_support

    with opened(url) as connection:

        def ask(query: str) -> Any:
            return connection.exec_driver_sql(query).scalar()

        state = PostgresState(
            version=ask("SHOW server_version"),
            round_trip_ms=_measure(connection),
            connections_left=ask(
                "SELECT current_setting('max_connections')::int"
                " - current_setting('superuser_reserved_connections')::int"
                " - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')"
            ),
            pgvector=find_support(connection),
        )
        if inspect(connection).has_table("alembic_version"):
            state.tables = ask("SELECT version_num FROM alembic_version")
            now_ms = SystemClock().now_ms()
            state.tokens = ask(f"SELECT count(*) FROM tokens WHERE expires_ms IS NULL OR expires_ms > {now_ms}")
            state.records = ask("SELECT count(*) FROM kb_records WHERE batch = ''")
            state.passages = ask("SELECT count(*) FROM kb_passages")
            state.vectors = ask("SELECT count(vector) FROM kb_passages")
        return state


def _measure(connection: "Connection") -> float:
    """Returns the shortest of a few round trips, since the others were delayed by something else."""
    taken = []
    for _ in range(5):
        began_s = time.perf_counter()
        connection.exec_driver_sql("SELECT 1")
        taken.append(time.perf_counter() - began_s)
    return min(taken) * 1000


def check_postgres(settings: "Settings") -> Findings:
    from antiphon.storage.base import StorageError
    from antiphon.storage.migrations import HEAD
    from antiphon.storage.sql.postgres import CONNECTIONS

    name = f"database: {settings.database_name}"
    try:
        state = inspect_postgres(settings.storage.url)
    except StorageError as error:
        yield Finding(False, f"database: {error}")
        return
    if state.tables is None:
        tables = "its tables will be made"
    elif state.tables > HEAD:
        yield Finding(False, f"{name} was written by a newer Antiphon (tables {state.tables}). Update Antiphon.")
        return
    else:
        tables = f"tables {state.tables}" + ("" if state.tables == HEAD else f", to be migrated to {HEAD}")
    yield Finding(True, f"{name} (Postgres {state.version}, {tables}, {state.round_trip_ms:.1f} ms away)")
    if state.round_trip_ms > SLOW_MS:
        yield Finding(False, f"database: a round trip takes {state.round_trip_ms:.0f} ms, which delays every answer.")
    if state.connections_left < FEW_CONNECTIONS:
        advice = f"A server uses up to {CONNECTIONS + 3}; raise max_connections of Postgres."
        yield Finding(False, f"database: Postgres has only {state.connections_left} connections left. {advice}")
    if state.vectors:
        yield Finding(True, f"database: {_describe_pgvector(state.pgvector)}")


def _describe_pgvector(support: "VectorSupport") -> str:
    from antiphon.storage.sql.vector_index import OLDEST, Extension

    name = f"pgvector {support.version}"
    in_memory = "each server keeps the vectors of the knowledge base in its memory"
    oldest = ".".join(map(str, OLDEST))
    told = {
        Extension.USED: f"{name} searches the vectors of the knowledge base",
        Extension.USABLE: f"{name} is not used yet, so {in_memory}. Run: antiphon kb reindex",
        Extension.NOT_CREATED: f"{name} is not used, so {in_memory}. Run CREATE EXTENSION vector in the database, "
        "then: antiphon kb reindex",
        Extension.TOO_OLD: f"{name} is older than {oldest} and not used, so {in_memory}",
        Extension.MISSING: f"the server has no pgvector, so {in_memory}",
    }
    return told[support.extension]
