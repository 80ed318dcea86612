"""The full-text index of the knowledge base: the one of SQLite or the one of Postgres."""

from collections.abc import Sequence
from typing import Final, Protocol

from sqlalchemy import Connection

from antiphon.storage.sql import full_text_postgres, full_text_sqlite


class FullTextIndex(Protocol):
    """What each of the two modules does. Words are found in any of their forms."""

    def create(self, connection: Connection) -> None: ...

    def add(self, connection: Connection, records: Sequence[int]) -> None:
        """Adds the passages of these records, which the tables have already."""
        ...

    def remove(self, connection: Connection, records: Sequence[int]) -> None:
        """Removes the passages of these records, which the tables must still have."""
        ...

    def rebuild(self, connection: Connection) -> None: ...

    def frequency(self, connection: Connection, word: str) -> int:
        """Returns in how many passages a word occurs."""
        ...

    def match(self, connection: Connection, words: Sequence[str], limit: int, *, every: bool) -> list[int]:
        """Returns the passages with any of the words, or with every one, best first."""
        ...


NAME: Final = "kb_index"
"""Begins the names of the tables of either index, and of all that belongs to them."""


def index_of(connection: Connection) -> FullTextIndex:
    return full_text_postgres if connection.dialect.name == "postgresql" else full_text_sqlite
