"""The knowledge base in memory: the SQL store on a SQLite database that exists only in this process.

A second implementation of full-text search would only be a worse one.
"""

from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection, StaticPool, create_engine

from antiphon.storage.sql.connections import Connections, Done
from antiphon.storage.sql.full_text import index_of
from antiphon.storage.sql.knowledge import SqlKnowledgeStore, first_state
from antiphon.storage.sql.tables import kb_passages, kb_records, kb_state


class InlineSqlite:
    """Runs work at once, in the thread of the caller. The database is made when it is first used."""

    dialect: Final = "sqlite"

    def __init__(self) -> None:
        self._connection: Connection | None = None

    async def run(
        self, work: Callable[[Connection], Done], *, in_transaction: bool = False, is_long: bool = False
    ) -> Done:
        connection = self._connection or self._open()
        if not in_transaction:
            return work(connection)
        connection.exec_driver_sql("BEGIN")
        try:
            done = work(connection)
            connection.exec_driver_sql("COMMIT")
        except BaseException:
            connection.exec_driver_sql("ROLLBACK")
            raise
        return done

    async def aclose(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection.engine.dispose()
            self._connection = None

    def _open(self) -> Connection:
        engine = create_engine(
            "sqlite://", poolclass=StaticPool, isolation_level="AUTOCOMMIT", skip_autocommit_rollback=True
        )
        self._connection = connection = engine.connect()
        connection.exec_driver_sql("PRAGMA foreign_keys = ON")
        for table in (kb_records, kb_passages, kb_state):
            table.create(connection)
        connection.execute(first_state())
        index_of(connection).create(connection)
        return connection


class MemoryKnowledgeStore(SqlKnowledgeStore):
    """Close it."""

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections, connections)

    async def aclose(self) -> None:
        await self._connections.aclose()


def open_knowledge() -> MemoryKnowledgeStore:
    return MemoryKnowledgeStore(Connections(InlineSqlite(), "in memory"))
