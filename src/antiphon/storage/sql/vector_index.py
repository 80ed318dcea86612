"""The index of the knowledge base's vectors in Postgres, for servers that have the extension pgvector.

A generated column holds each vector of `kb_passages` in the type of pgvector, so no writer has to know of it, and the
bytes stay what is backed up and copied. Without the extension, each process compares the vectors in its own memory.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Select, Text, bindparam, cast, literal_column, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import UserDefinedType

from antiphon.storage.sql.connections import sqlstate_of
from antiphon.storage.sql.locks import lock
from antiphon.storage.sql.tables import kb_passages as passages
from antiphon.storage.sql.tables import kb_records as records

DIMENSIONS: Final = 384
"""The length of the vectors of the embedding model. Vectors of another length are not in the index."""
OLDEST: Final = (0, 8)
"""The first version that goes on with a search whose nearest vectors belong to records that may not be read."""
BUILD_MEMORY: Final = "256MB"
"""Enough for 100,000 vectors. With the usual 64 MB, making the index of them takes several times as long."""
MIN_CANDIDATES: Final = 200
MAX_CANDIDATES: Final = 1_000

_HAS: Final = text(
    "SELECT EXISTS (SELECT FROM pg_attribute "
    "WHERE attrelid = to_regclass('kb_passages') AND attname = 'embedding' AND NOT attisdropped)"
)
_EXTENSION: Final = text(
    "SELECT installed_version IS NOT NULL, coalesce(installed_version, default_version) "
    "FROM pg_available_extensions WHERE name = 'vector'"
)
_CREATE: Final = (
    f"SET LOCAL maintenance_work_mem = '{BUILD_MEMORY}'",
    # The body is parsed here and not when it runs, so it does not depend on the search path of whoever adds a row.
    "CREATE OR REPLACE FUNCTION kb_unpack(packed bytea) RETURNS halfvec LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE "
    f"RETURN CASE WHEN length(packed) = {DIMENSIONS} THEN (SELECT array_agg(get_byte(packed, place) - "
    "CASE WHEN get_byte(packed, place) > 127 THEN 256 ELSE 0 END ORDER BY place)::halfvec "
    "FROM generate_series(0, length(packed) - 1) AS place) END",
    f"ALTER TABLE kb_passages ADD COLUMN embedding halfvec({DIMENSIONS}) "
    "GENERATED ALWAYS AS (kb_unpack(vector)) STORED",
    "CREATE INDEX kb_passages_embedding ON kb_passages USING hnsw (embedding halfvec_cosine_ops)",
)
_DROP: Final = text("ALTER TABLE kb_passages DROP COLUMN embedding")
# A search continues until enough passages are readable. The order may be a little wrong, and is corrected afterwards.
_SEARCH_SETTINGS: Final = text(
    "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', :candidates, true)"
)
_NOT_ALLOWED: Final = "42501"


class _HalfVector(UserDefinedType[str]):
    cache_ok = True

    def get_col_spec(self, **options: Any) -> str:
        return f"halfvec({DIMENSIONS})"


_DISTANCE: Final[ColumnElement[float]] = literal_column("kb_passages.embedding", _HalfVector()).op("<=>")(
    cast(bindparam("question", type_=Text), _HalfVector())
)


class Extension(StrEnum):
    """What there is of pgvector in a database."""

    USED = "used"
    USABLE = "usable"
    NOT_CREATED = "not created"
    """The server has it, but this database does not. Creating it takes rights that not every user has."""
    TOO_OLD = "too old"
    MISSING = "missing"


class VectorSupport(Struct, frozen=True):
    extension: Extension
    version: str = ""


def find_support(connection: Connection) -> VectorSupport:
    found = connection.execute(_EXTENSION).first()
    if found is None:
        return VectorSupport(Extension.MISSING)
    is_created, version = found
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        return VectorSupport(Extension.TOO_OLD, version)
    if not is_created:
        return VectorSupport(Extension.NOT_CREATED, version)
    return VectorSupport(Extension.USED if has_index(connection) else Extension.USABLE, version)


def has_index(connection: Connection) -> bool:
    return connection.dialect.name == "postgresql" and bool(connection.scalar(_HAS))


def make_index(connection: Connection, *, anew: bool = False) -> bool:
    """Makes the index unless there is one, or `anew`. Returns False if this database cannot have it. It needs a
    transaction, in which nobody else can use the passages."""
    lock(connection, "vector index")
    support = find_support(connection)
    if support.extension in (Extension.MISSING, Extension.TOO_OLD):
        return False
    if support.extension is Extension.NOT_CREATED and not _create_extension(connection):
        return False
    if support.extension is Extension.USED:
        if not anew:
            return True
        connection.execute(_DROP)
    for statement in _CREATE:
        connection.exec_driver_sql(statement)
    return True


def _create_extension(connection: Connection) -> bool:
    connection.exec_driver_sql("SAVEPOINT extension")
    try:
        connection.exec_driver_sql("CREATE EXTENSION vector")
    except DBAPIError as error:
        if sqlstate_of(error) != _NOT_ALLOWED:
            raise
        connection.exec_driver_sql("ROLLBACK TO SAVEPOINT extension")
        return False
    return True


def select_nearest(*conditions: ColumnElement[bool]) -> Select[*tuple[Any, ...]]:
    """Makes the statement for `find_nearest`: the passages of the records that meet these conditions."""
    return (
        select(passages.c.seq, _DISTANCE)
        .select_from(passages.join(records))
        .where(literal_column("kb_passages.embedding").is_not(None), *conditions)
        .order_by(_DISTANCE)
        .limit(bindparam("most"))
    )


def find_nearest(
    connection: Connection, statement: Select[*tuple[Any, ...]], question: Sequence[float], limit: int
) -> list[tuple[int, float]]:
    """Returns the nearest passages with their similarity. It needs a transaction."""
    candidates = min(max(2 * limit, MIN_CANDIDATES), MAX_CANDIDATES)
    connection.execute(_SEARCH_SETTINGS, {"candidates": str(candidates)})
    written = "[" + ",".join(f"{number:.6g}" for number in question) + "]"
    rows = connection.execute(statement, {"question": written, "most": limit})
    return sorted(((seq, 1 - distance) for seq, distance in rows), key=lambda each: -each[1])
