"""The full-text index of the knowledge base in Postgres: a table of tsvectors with a GIN index.

Postgres ranks without the rarity of words, so the rank is computed here: the sum of each word's rank times its rarity,
as in BM25. The configuration has no stop words, as in SQLite: which words say nothing is decided by the search.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from math import log
from typing import Any, Final

from sqlalchemy import Connection, bindparam, text

NAME: Final = "kb_index"
REBUILT_AT_ONCE: Final = 500
"""How many passages are read into memory at a time."""

_CREATE: Final = (
    f"CREATE TEXT SEARCH DICTIONARY {NAME}_stems (TEMPLATE = pg_catalog.snowball, LANGUAGE = english)",
    f"CREATE TEXT SEARCH CONFIGURATION {NAME}_words (COPY = pg_catalog.simple)",
    f"ALTER TEXT SEARCH CONFIGURATION {NAME}_words ALTER MAPPING FOR asciiword, word WITH {NAME}_stems",
    f"CREATE TABLE {NAME} ("
    "passage bigint PRIMARY KEY REFERENCES kb_passages (seq) ON DELETE CASCADE, words tsvector NOT NULL)",
    f"CREATE INDEX {NAME}_of_words ON {NAME} USING gin (words)",
)
_PASSAGES: Final = "SELECT p.seq, r.title, p.text, r.tags FROM kb_passages p JOIN kb_records r ON r.seq = p.record_seq"
_OF_RECORDS: Final = text(f"{_PASSAGES} WHERE r.seq IN :records").bindparams(bindparam("records", expanding=True))
_AFTER: Final = text(f"{_PASSAGES} WHERE p.seq > :after ORDER BY p.seq LIMIT {REBUILT_AT_ONCE}")
_ADD: Final = text(
    f"INSERT INTO {NAME} (passage, words) VALUES (:passage, "
    f"setweight(to_tsvector('{NAME}_words', :title), 'A') || setweight(to_tsvector('{NAME}_words', :tags), 'B') || "
    f"to_tsvector('{NAME}_words', :text))"
)
_COUNT: Final = text(f"SELECT count(*) FROM {NAME}")
_FREQUENCY: Final = text(f"SELECT count(*) FROM {NAME} WHERE words @@ phraseto_tsquery('{NAME}_words', :word)")
# A word in the title (A) or in a tag (B) tells more about a passage than a word in its text (D). In FTS5 it counts as
# several words of the text, of which each tells less than the one before; these weights come to about the same. With
# them, passages that are looked for by four of their words were as often the first ones: 0.95 mean reciprocal rank, and
# 0.94 in FTS5 (800 passages). With the weights of FTS5 it was 0.61, and with the length instead of its logarithm 0.60.
_RANK: Final = "ts_rank('{0.7, 0.7, 0.85, 1.0}', words, phraseto_tsquery('%s_words', :word%d), 1) * :rarity%d"
_QUERY: Final = "phraseto_tsquery('%s_words', :word%d)"
_LEAST_RARITY: Final = 1e-6
_WORD: Final = re.compile(r"[^\W_]+")


def create(connection: Connection) -> None:
    for statement in _CREATE:
        connection.exec_driver_sql(statement)


def add(connection: Connection, records: Sequence[int]) -> None:
    if records:
        _add_rows(connection, connection.execute(_OF_RECORDS, {"records": records}).all())


def remove(connection: Connection, records: Sequence[int]) -> None:
    """Does nothing: when a passage is deleted, its foreign key deletes its words."""


def rebuild(connection: Connection) -> None:
    # Records that are added or removed meanwhile wait.
    connection.exec_driver_sql(f"LOCK TABLE {NAME} IN SHARE ROW EXCLUSIVE MODE")
    connection.exec_driver_sql(f"DELETE FROM {NAME}")
    after = 0
    while rows := connection.execute(_AFTER, {"after": after}).all():
        _add_rows(connection, rows)
        after = rows[-1].seq


def frequency(connection: Connection, word: str) -> int:
    return int(connection.scalar(_FREQUENCY, {"word": _split(word)}) or 0)


def match(connection: Connection, words: Sequence[str], limit: int, *, every: bool) -> list[int]:
    wanted = [split for word in words if (split := _split(word))]
    if not wanted:
        return []
    total = int(connection.scalar(_COUNT) or 0)
    params: dict[str, Any] = {"most": limit}
    for number, word in enumerate(wanted):
        count = frequency(connection, word)
        params[f"word{number}"] = word
        params[f"rarity{number}"] = max(log((total - count + 0.5) / (count + 0.5)), _LEAST_RARITY)
    numbers = range(len(wanted))
    query = (" && " if every else " || ").join(_QUERY % (NAME, number) for number in numbers)
    rank = " + ".join(_RANK % (NAME, number, number) for number in numbers)
    found = text(f"SELECT passage FROM {NAME} WHERE words @@ ({query}) ORDER BY {rank} DESC, passage LIMIT :most")
    return list(connection.scalars(found, params))


def _add_rows(connection: Connection, rows: Iterable[Any]) -> None:
    added = [
        {"passage": seq, "title": _split(title), "text": _split(body), "tags": _split(tags)}
        for seq, title, body, tags in rows
    ]
    if added:
        connection.execute(_ADD, added)


def _split(written: str) -> str:
    """Returns the words alone, in lower case and without accents, since the parser of Postgres would keep addresses,
    file names and hyphenated words in one piece."""
    if not written.isascii():
        decomposed = unicodedata.normalize("NFKD", written.casefold())
        written = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    return " ".join(_WORD.findall(written.lower()))
