"""The records of the knowledge base. What differs between the databases is in `full_text.py`."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Insert,
    Row,
    Select,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    select,
    update,
)

from antiphon.storage.knowledge import (
    SHARED,
    Counts,
    KnowledgeState,
    Namespace,
    Passage,
    PassageHit,
    Published,
    Readable,
    Record,
    RecordConflict,
    RecordType,
)
from antiphon.storage.sql import vector_index
from antiphon.storage.sql.connections import Connections, KeyTakenError
from antiphon.storage.sql.full_text import index_of
from antiphon.storage.sql.tables import kb_passages as passages
from antiphon.storage.sql.tables import kb_records as records
from antiphon.storage.sql.tables import kb_state as state

LIVE: Final = ""
"""The batch of the records that can be found."""
REPLACED: Final = "replaced "
"""Begins the batch of records that another batch has replaced, and that are still to be deleted."""
DELETED_AT_ONCE: Final = 200
"""How many records are deleted in one transaction."""
PARAMETERS: Final = 500
"""How many passages are named in one statement."""

_FIELDS: Final = [column for column in records.c if column.name not in ("seq", "batch")]
_IS_LIVE: Final = records.c.batch == LIVE
_IS_LIVE_UNINDEXED: Final = records.c.batch.concat("") == LIVE
"""SQLite expects a batch to be small. With its index, it would go through all records, and not those that are named."""
_NEW: Final = records.alias("new")
_OLD: Final = records.alias("old")

_ADD_PASSAGE: Final = insert(passages)
_ADD_RECORDS: Final = insert(records).returning(records.c.seq, sort_by_parameter_order=True)
_REPLACE: Final = (
    update(records)
    .where(
        records.c.seq.in_(
            select(_OLD.c.seq)
            .select_from(_NEW.join(_OLD, and_(_OLD.c.id == _NEW.c.id, _OLD.c.owner == _NEW.c.owner)))
            .where(_NEW.c.batch == bindparam("staged"), _OLD.c.batch == LIVE)
        )
    )
    .values(batch=bindparam("replaced"))
)
_PUBLISH: Final = update(records).where(records.c.batch == bindparam("staged")).values(batch=LIVE)
_STAGED: Final = (
    select(records.c.seq, records.c.id, records.c.owner)
    .where(records.c.batch == bindparam("staged"))
    .order_by(records.c.seq)
)
_IS_TAKEN: Final = select(
    exists().where(
        records.c.id == bindparam("name"), records.c.owner.in_([SHARED, bindparam("whose")]), _IS_LIVE_UNINDEXED
    )
)
_PUBLISH_AS: Final = update(records).where(records.c.seq == bindparam("of")).values(batch=LIVE, id=bindparam("name"))
_CHANGE: Final = update(state).values(version=state.c.version + 1)
"""The first statement of every change, since it keeps all other changes waiting until the transaction ends."""
_RENEW: Final = update(state).values(version=state.c.version + 1, epoch=state.c.epoch + 1, embedder=bindparam("model"))
_STATE: Final = select(state.c.version, state.c.epoch, state.c.embedder)
_SOME_OF_BATCH: Final = select(records.c.seq).where(records.c.batch == bindparam("of")).limit(DELETED_AT_ONCE)
_DELETE: Final = delete(records).where(records.c.seq.in_(bindparam("seqs", expanding=True)))
_BATCHES: Final = select(records.c.batch).where(records.c.batch != LIVE).distinct()
_BODY: Final = select(passages.c.text).where(passages.c.record_seq == bindparam("of")).order_by(passages.c.seq)
_BEGINNING: Final = (
    select(passages.c.text)
    .where(passages.c.record_seq == records.c.seq)
    .order_by(passages.c.seq)
    .limit(1)
    .scalar_subquery()
)
_SOURCES: Final = select(records.c.id, records.c.source).where(_IS_LIVE, records.c.owner == bindparam("whose"))
_FIND: Final = select(records.c.seq).where(
    _IS_LIVE, records.c.owner == bindparam("whose"), records.c.id == bindparam("name")
)
_DISOWN: Final = (
    update(records).where(_IS_LIVE, records.c.owner == bindparam("whose")).values(batch=f"{REPLACED}by nothing")
)
_HAS_RECORDS: Final = select(exists().where(_IS_LIVE))
_COUNTS_BY_NAMESPACE: Final = (
    select(records.c.namespace, func.count().label("records"))
    .where(_IS_LIVE)
    .group_by(records.c.namespace)
    .order_by(records.c.namespace)
)
_COUNTS: Final = (
    select(
        select(func.count()).select_from(records).where(_IS_LIVE).scalar_subquery(),
        func.count(),
        func.count(passages.c.vector),
    )
    .select_from(passages.join(records))
    .where(_IS_LIVE)
)
_PLACES: Final = (
    select(passages.c.seq, records.c.namespace, records.c.owner)
    .select_from(passages.join(records))
    .where(_IS_LIVE, passages.c.vector.is_not(None))
)
_NAMED: Final = passages.c.seq.in_(bindparam("seqs", expanding=True))
_VECTORS: Final = select(passages.c.seq, passages.c.vector).where(_NAMED, passages.c.vector.is_not(None))
_WITHOUT_VECTOR: Final = (
    select(passages.c.seq, records.c.title, passages.c.text)
    .select_from(passages.join(records))
    .where(_IS_LIVE, passages.c.vector.is_(None))
    .order_by(passages.c.seq)
    .limit(bindparam("most"))
)
_SET_VECTOR: Final = update(passages).where(passages.c.seq == bindparam("of")).values(vector=bindparam("made"))
_CLEAR_VECTORS: Final = update(passages).values(vector=None)
_PASSAGES: Final = select(func.count()).select_from(passages)


def first_state() -> Insert:
    """The row that a new database has."""
    return insert(state).values(id=1, version=0, epoch=0, embedder="")


class SqlKnowledgeStore:
    def __init__(self, connections: Connections, readers: Connections) -> None:
        """`readers` search, so that a search delays no conversation that is being stored."""
        self._connections = connections
        self._readers = readers

    async def stage(self, batch: str, staged: Sequence[tuple[Record, Sequence[Passage]]]) -> None:
        def write(connection: Connection) -> None:
            index_of(connection).add(connection, _stage(connection, batch, staged))

        if not staged:
            return
        try:
            await self._connections.in_transaction(write)
        except KeyTakenError as error:
            raise RecordConflict("Two of the records have the same id.") from error

    async def publish(self, batch: str) -> Published:
        names = {"staged": batch, "replaced": f"{REPLACED}by {batch}"}

        def write(connection: Connection) -> Published:
            connection.execute(_CHANGE)
            updated = connection.execute(_REPLACE, names).rowcount
            published = connection.execute(_PUBLISH, names).rowcount
            return Published(published - updated, updated)

        published = await self._connections.in_transaction(write, is_long=True)
        if published.updated:
            await self.sweep([names["replaced"]])
        return published

    async def publish_beside(self, batch: str) -> Sequence[str]:
        def write(connection: Connection) -> Sequence[str]:
            connection.execute(_CHANGE)
            staged = connection.execute(_STAGED, {"staged": batch}).all()
            return [_publish_beside(connection, seq=seq, id=id, owner=owner) for seq, id, owner in staged]

        return await self._connections.in_transaction(write)

    async def sweep(self, batches: Collection[str]) -> None:
        for batch in batches:
            while await self._connections.in_transaction(lambda connection: _delete_some(connection, batch)):  # noqa: B023
                pass

    async def abandoned(self) -> Sequence[str]:
        return [row.batch for row in await self._readers.fetch(_BATCHES, {})]

    async def get(self, id: str, readable: Readable) -> Record | None:
        found = (
            select(records.c.seq, *_FIELDS)
            .where(records.c.id == id, *_conditions(readable, are_named=True))
            .order_by(records.c.owner.desc())
            .limit(1)
        )

        def read(connection: Connection) -> Record | None:
            row = connection.execute(found).first()
            if row is None:
                return None
            return _record(row[1:], "".join(connection.scalars(_BODY, {"of": row.seq})))

        return await self._readers.autocommit(read)

    async def list(self, readable: Readable, limit: int) -> Sequence[Record]:
        newest = (
            select(_BEGINNING, *_FIELDS)
            .where(*_conditions(readable))
            .order_by(records.c.last_updated_ms.desc(), records.c.seq.desc())
            .limit(limit)
        )
        return [_record(row[1:], row[0]) for row in await self._readers.fetch(newest, {})]

    async def count(self, readable: Readable) -> int:
        counted = select(func.count()).select_from(records).where(*_conditions(readable))
        [(count,)] = await self._readers.fetch(counted, {})
        return int(count)

    async def sources(self, owner: str) -> Mapping[str, str]:
        return {row.id: row.source for row in await self._readers.fetch(_SOURCES, {"whose": owner})}

    async def remove(self, id: str, owner: str) -> bool:
        def write(connection: Connection) -> bool:
            connection.execute(_CHANGE)
            seqs = list(connection.scalars(_FIND, {"whose": owner, "name": id}))
            _delete_records(connection, seqs)
            return bool(seqs)

        return await self._connections.in_transaction(write)

    async def remove_owner(self, owner: str) -> int:
        def write(connection: Connection) -> int:
            connection.execute(_CHANGE)
            return connection.execute(_DISOWN, {"whose": owner}).rowcount

        removed = await self._connections.in_transaction(write, is_long=True)
        await self.sweep([f"{REPLACED}by nothing"])
        return removed

    async def has_records(self) -> bool:
        [(has,)] = await self._readers.fetch(_HAS_RECORDS, {})
        return bool(has)

    async def counts(self) -> Counts:
        [row] = await self._readers.fetch(_COUNTS, {})
        return Counts(*row)

    async def counts_by_namespace(self) -> Mapping[str, int]:
        rows = await self._readers.fetch(_COUNTS_BY_NAMESPACE, {})
        return {row.namespace: row.records for row in rows}

    async def state(self) -> KnowledgeState:
        [row] = await self._readers.fetch(_STATE, {})
        return KnowledgeState(*row)

    async def frequencies(self, words: Sequence[str]) -> Sequence[int]:
        return await self._readers.autocommit(lambda it: [index_of(it).frequency(it, word) for word in words])

    async def match(self, words: Sequence[str], limit: int, *, every: bool = False) -> Sequence[int]:
        return await self._readers.autocommit(lambda it: index_of(it).match(it, words, limit, every=every))

    async def passages(self, passages: Sequence[int], readable: Readable) -> Sequence[PassageHit]:
        wanted = _select_hits(readable)

        def read(connection: Connection) -> Sequence[Row[*tuple[Any, ...]]]:
            return [row for part in _parts(passages) for row in connection.execute(wanted, {"seqs": part})]

        rows = await self._readers.autocommit(read)
        return [PassageHit(row[0], row[1], _record(row[2:])) for row in rows]

    async def readable_passages(self, readable: Readable) -> Collection[int]:
        wanted = select(passages.c.seq).select_from(passages.join(records)).where(*_conditions(readable))
        return {row.seq for row in await self._readers.fetch(wanted, {})}

    async def places(self) -> Sequence[tuple[int, str, str]]:
        return [(row[0], row[1], row[2]) for row in await self._readers.fetch(_PLACES, {})]

    async def vectors(self, passages: Sequence[int]) -> Sequence[tuple[int, bytes]]:
        def read(connection: Connection) -> Sequence[tuple[int, bytes]]:
            rows = (row for part in _parts(passages) for row in connection.execute(_VECTORS, {"seqs": part}))
            return [(row[0], row[1]) for row in rows]

        return await self._readers.autocommit(read)

    async def without_vector(self, limit: int) -> Sequence[tuple[int, str, str]]:
        return [(row[0], row[1], row[2]) for row in await self._readers.fetch(_WITHOUT_VECTOR, {"most": limit})]

    async def set_vectors(self, vectors: Sequence[tuple[int, bytes]]) -> None:
        await self._write(_SET_VECTOR, [{"of": seq, "made": vector} for seq, vector in vectors])

    async def clear_vectors(self, embedder: str) -> None:
        def write(connection: Connection) -> None:
            connection.execute(_RENEW, {"model": embedder})
            connection.execute(_CLEAR_VECTORS)

        await self._connections.in_transaction(write, is_long=True)

    async def make_vector_index(self, *, most: int | None = None, anew: bool = False) -> bool:
        def write(connection: Connection) -> bool:
            if not vector_index.make_index(connection, anew=anew):
                return False
            connection.execute(_CHANGE)
            return True

        if self._connections.dialect == "sqlite":
            return False
        if not anew and await self.has_vector_index():
            return True
        if most is not None and (await self.counts()).vectors > most:
            return False
        return await self._connections.in_transaction(write, is_long=True)

    async def has_vector_index(self) -> bool:
        return await self._readers.autocommit(vector_index.has_index)

    async def nearest(self, question: Sequence[float], readable: Readable, limit: int) -> Sequence[tuple[int, float]]:
        statement = _select_nearest(readable)
        return await self._readers.in_transaction(
            lambda connection: vector_index.find_nearest(connection, statement, question, limit)
        )

    async def reindex(self) -> int:
        def write(connection: Connection) -> int:
            index_of(connection).rebuild(connection)
            return int(connection.scalar(_PASSAGES) or 0)

        return await self._connections.in_transaction(write, is_long=True)

    async def _write(self, statement: Executable, params: Sequence[Mapping[str, Any]]) -> None:
        def write(connection: Connection) -> None:
            connection.execute(_CHANGE)
            connection.execute(statement, params)

        if params:
            await self._connections.in_transaction(write)


def _stage(connection: Connection, batch: str, staged: Sequence[tuple[Record, Sequence[Passage]]]) -> list[int]:
    """Adds records with their passages, in few statements: each is a round trip to the server. Returns the numbers of
    the records."""
    rows = [_row_of(record) | {"batch": batch} for record, _ in staged]
    seqs = list(connection.scalars(_ADD_RECORDS, rows))
    parts = zip(seqs, (parts for _, parts in staged), strict=True)
    connection.execute(
        _ADD_PASSAGE,
        [{"record_seq": seq, "text": part.text, "vector": part.vector} for seq, each in parts for part in each],
    )
    return seqs


def _row_of(record: Record) -> dict[str, Any]:
    row = {name: getattr(record, name) for name in record.__struct_fields__ if name != "body"}
    return row | {"tags": _write_tags(record.tags), "metadata": dict(record.metadata)}


def _publish_beside(connection: Connection, *, seq: int, id: str, owner: str) -> str:
    number, name = 1, id
    while connection.scalar(_IS_TAKEN, {"name": name, "whose": owner}):
        number += 1
        name = f"{id}_{number}"
    connection.execute(_PUBLISH_AS, {"of": seq, "name": name})
    return name


def _delete_some(connection: Connection, batch: str) -> bool:
    """Deletes some records of a batch, and returns whether there were any."""
    seqs = list(connection.scalars(_SOME_OF_BATCH, {"of": batch}))
    _delete_records(connection, seqs)
    return bool(seqs)


def _delete_records(connection: Connection, seqs: Sequence[int]) -> None:
    if seqs:
        index_of(connection).remove(connection, seqs)
        connection.execute(_DELETE, {"seqs": seqs})


def _conditions(readable: Readable, *, are_named: bool = False) -> list[ColumnElement[bool]]:
    """`are_named` says that another condition names the few records that are wanted."""
    shared = [each for each in readable.namespaces if each is not Namespace.PERSONAL]
    is_readable = and_(records.c.owner == SHARED, records.c.namespace.in_(shared))
    if Namespace.PERSONAL in readable.namespaces:
        is_readable = is_readable | (records.c.owner == readable.user)
    found = [_IS_LIVE_UNINDEXED if are_named else _IS_LIVE, is_readable]
    if readable.type is not None:
        found.append(records.c.type == readable.type)
    found += [records.c.tags.contains(f"\n{tag}\n", autoescape=True) for tag in readable.tags]
    if readable.start_ms is not None:
        found.append(records.c.last_updated_ms >= readable.start_ms)
    if readable.end_ms is not None:
        found.append(records.c.last_updated_ms <= readable.end_ms)
    return found


@lru_cache(64)
def _select_hits(readable: Readable) -> Select[*tuple[Any, ...]]:
    # Remembered, since making the statement takes longer than running it.
    return (
        select(passages.c.seq, passages.c.text, *_FIELDS)
        .select_from(passages.join(records))
        .where(_NAMED, *_conditions(readable, are_named=True))
    )


@lru_cache(64)
def _select_nearest(readable: Readable) -> Select[*tuple[Any, ...]]:
    return vector_index.select_nearest(*_conditions(readable))


def _parts(seqs: Sequence[int]) -> Iterable[Sequence[int]]:
    return (seqs[start : start + PARAMETERS] for start in range(0, len(seqs), PARAMETERS))


def _record(row: Sequence[Any], body: str = "") -> Record:
    id, owner, namespace, type, title, tags, url, source_type, source, last_updated_ms, metadata = row
    return Record(
        id=id,
        owner=owner,
        namespace=Namespace(namespace),
        type=RecordType(type),
        title=title,
        body=body,
        tags=tuple(tags.split("\n")[1:-1]),
        url=url,
        source_type=source_type,
        source=source,
        last_updated_ms=last_updated_ms,
        metadata=metadata,
    )


def _write_tags(tags: Sequence[str]) -> str:
    return "".join(f"\n{tag}" for tag in tags) + "\n"
