"""The full-text index of the knowledge base in SQLite's FTS5.

The index has no text of its own: the text is in the tables, and the index must be told which words it forgets.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, bindparam, text

NAME: Final = "kb_index"

_CREATE: Final = (
    f"CREATE VIRTUAL TABLE {NAME} USING fts5("
    "title, text, tags, content='', tokenize='porter unicode61 remove_diacritics 2')",
    # A word in the title or in a tag tells more about a passage than a word in its text.
    f"INSERT INTO {NAME}({NAME}, rank) VALUES ('rank', 'bm25(4.0, 1.0, 2.0)')",
)
_OF_RECORDS: Final = "FROM kb_passages p JOIN kb_records r ON r.seq = p.record_seq"
_ADD: Final = f"INSERT INTO {NAME}(rowid, title, text, tags) SELECT p.seq, r.title, p.text, r.tags {_OF_RECORDS}"
_ADD_RECORDS: Final = text(f"{_ADD} WHERE r.seq IN :records").bindparams(bindparam("records", expanding=True))
_REMOVE_RECORDS: Final = text(
    f"INSERT INTO {NAME}({NAME}, rowid, title, text, tags) "
    f"SELECT 'delete', p.seq, r.title, p.text, r.tags {_OF_RECORDS} WHERE r.seq IN :records"
).bindparams(bindparam("records", expanding=True))
_FREQUENCY: Final = text(f"SELECT count(*) FROM {NAME} WHERE {NAME} MATCH :query")
_MATCH: Final = text(f"SELECT rowid FROM {NAME} WHERE {NAME} MATCH :query ORDER BY rank LIMIT :most")


def create(connection: Connection) -> None:
    for statement in _CREATE:
        connection.exec_driver_sql(statement)


def add(connection: Connection, records: Sequence[int]) -> None:
    """Adds the passages of these records, which the tables have already."""
    connection.execute(_ADD_RECORDS, {"records": records})


def remove(connection: Connection, records: Sequence[int]) -> None:
    """Removes the passages of these records, which the tables must still have."""
    connection.execute(_REMOVE_RECORDS, {"records": records})


def rebuild(connection: Connection) -> None:
    connection.exec_driver_sql(f"INSERT INTO {NAME}({NAME}) VALUES ('delete-all')")
    connection.exec_driver_sql(_ADD)


def frequency(connection: Connection, word: str) -> int:
    """Returns in how many passages a word occurs, in any of its forms."""
    return int(connection.scalar(_FREQUENCY, {"query": quote(word)}) or 0)


def match(connection: Connection, words: Sequence[str], limit: int, *, every: bool) -> list[int]:
    query = (" AND " if every else " OR ").join(map(quote, words))
    return list(connection.scalars(_MATCH, {"query": query, "most": limit})) if words else []


def quote(word: str) -> str:
    """Makes a string of the query language, in which no character has a meaning of its own."""
    return '"' + word.replace('"', '""').replace("\0", " ") + '"'
