"""Searches by meaning find the same in the index of pgvector as in the vectors that a process has in memory."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from antiphon.services.kb.vectors import pack
from antiphon.storage.knowledge import Namespace, Passage, Readable, Record, RecordType
from antiphon.storage.sql import Database, open_database
from antiphon.storage.sql.vector_index import DIMENSIONS
from tests.fakes.postgres import PostgresServer

pytestmark = pytest.mark.real_time

PASSAGES = 2_000
Vectors = NDArray[np.float32]


def make_vectors(count: int, seed: int) -> Vectors:
    """Vectors in loose groups, as texts about the same things have them."""
    groups = np.random.default_rng(0).normal(size=(40, DIMENSIONS))
    rng = np.random.default_rng(seed)
    vectors = groups[np.arange(count) % 40] + rng.normal(size=(count, DIMENSIONS))
    unit: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


def make_records(vectors: Vectors) -> list[tuple[Record, list[Passage]]]:
    """Every third record is personal, of one of 100 users, and every 50th is of a type of its own."""
    staged = []
    for number, packed in enumerate(pack(vectors)):
        is_personal = number % 3 == 0
        record = Record(
            id=f"doc:{number}",
            owner=f"user{number % 100}" if is_personal else "",
            namespace=Namespace.PERSONAL if is_personal else Namespace.STUDIO,
            type=RecordType.PERSON if number % 50 == 0 else RecordType.DOC,
            title="A title",
            body="A text",
            tags=("rare",) if number % 300 == 1 else (),
            source_type="text",
            last_updated_ms=number,
        )
        staged.append((record, [Passage("A text", packed)]))
    return staged


@pytest.fixture(scope="module")
def filled(postgres_with_pgvector: PostgresServer) -> str:
    url = postgres_with_pgvector.make_database()

    async def fill() -> None:
        database = await open_database(url)
        try:
            await database.knowledge.clear_vectors("a model")
            records = make_records(make_vectors(PASSAGES, seed=1))
            await database.knowledge.stage("b1", records[: PASSAGES // 2])
            assert await database.knowledge.make_vector_index()
            await database.knowledge.stage("b1", records[PASSAGES // 2 :])
            await database.knowledge.publish("b1")
        finally:
            await database.aclose()

    asyncio.run(fill())
    name = url.rpartition("/")[2]
    # As in production, where Postgres does this by itself. For so few passages, it would not use the index.
    postgres_with_pgvector.execute("ANALYZE", name)
    postgres_with_pgvector.execute(f"ALTER DATABASE {name} SET enable_seqscan = off")
    return url


@pytest.fixture
async def database(filled: str) -> AsyncIterator[Database]:
    opened = await open_database(filled)
    try:
        yield opened
    finally:
        await opened.aclose()


async def find_exactly(database: Database, question: Vectors, readable: Readable, limit: int) -> list[int]:
    """Compares all vectors that can be read."""
    passages = sorted(await database.knowledge.readable_passages(readable))
    rows = await database.knowledge.vectors(passages)
    matrix = np.frombuffer(b"".join(vector for _, vector in rows), np.int8).reshape(len(rows), -1).astype(np.float32)
    similarity = matrix @ question / np.linalg.norm(matrix, axis=1)
    return [rows[place][0] for place in np.argsort(-similarity)[:limit]]


@pytest.mark.parametrize(
    "readable",
    [
        Readable("user3"),
        Readable("user3", (Namespace.STUDIO,)),
        Readable("user3", (Namespace.PERSONAL,)),
        Readable("user3", type=RecordType.PERSON),
        Readable("user3", tags=("rare",)),
        Readable("user3", start_ms=PASSAGES - 40),
    ],
    ids=["all", "shared", "personal", "type", "tag", "newest"],
)
async def test_the_nearest_readable_passages_are_found(database: Database, readable: Readable) -> None:
    found_of_all = wanted_of_all = 0
    for question in make_vectors(10, seed=2):
        wanted = await find_exactly(database, question, readable, 10)
        nearest = await database.knowledge.nearest(question.tolist(), readable, 30)
        similarities = [similarity for _, similarity in nearest]
        assert similarities == sorted(similarities, reverse=True)
        allowed = await database.knowledge.readable_passages(readable)
        assert {passage for passage, _ in nearest} <= set(allowed)
        wanted_of_all += len(wanted)
        found_of_all += len(set(wanted) & {passage for passage, _ in nearest})
    assert found_of_all >= 0.97 * wanted_of_all


async def test_the_similarity_is_that_of_the_vectors(database: Database) -> None:
    question = make_vectors(1, seed=3)[0]
    [(passage, similarity), *_] = await database.knowledge.nearest(question.tolist(), Readable("ann"), 5)
    [(_, packed)] = await database.knowledge.vectors([passage])
    vector = np.frombuffer(packed, np.int8).astype(np.float32)
    assert similarity == pytest.approx(float(vector @ question / np.linalg.norm(vector)), abs=1e-3)


async def test_what_is_not_published_removed_or_of_another_length_is_not_found(
    postgres_with_pgvector: PostgresServer,
) -> None:
    url = postgres_with_pgvector.make_database()
    database = await open_database(url)
    store, vectors = database.knowledge, make_vectors(4, seed=4)
    reader, question = Readable("user3"), vectors[1].tolist()

    async def find(limit: int = 10) -> Sequence[str]:
        hits = {hit.passage: hit.record.id for hit in await store.passages(await _passages(), reader)}
        return [hits[passage] for passage, _ in await store.nearest(question, reader, limit)]

    async def _passages() -> list[int]:
        return list(await store.readable_passages(reader))

    try:
        assert await store.make_vector_index()
        records = make_records(vectors)
        await store.stage("b1", [records[1]])
        assert await find() == []
        await store.publish("b1")
        assert await find() == ["doc:1"]
        await store.stage("b2", [records[2], (records[3][0], [Passage("short", b"\1\2\3\4")])])
        await store.publish("b2")
        assert await find() == ["doc:1", "doc:2"]
        await store.remove("doc:1", "")
        assert await find() == ["doc:2"]
        assert await store.make_vector_index(anew=True)
        assert await find() == ["doc:2"]
        await store.clear_vectors("another model")
        assert await find() == []
    finally:
        await database.aclose()


async def test_two_servers_that_start_at_the_same_time_make_one_index(postgres_with_pgvector: PostgresServer) -> None:
    url = postgres_with_pgvector.make_database()
    databases = [await open_database(url) for _ in range(3)]
    try:
        before = await databases[0].knowledge.state()
        made = await asyncio.gather(*(each.knowledge.make_vector_index() for each in databases))
        assert made == [True, True, True]
        # The others learn of it by the version.
        assert (await databases[1].knowledge.state()).version > before.version
    finally:
        for each in databases:
            await each.aclose()


async def test_it_is_not_made_for_more_vectors_than_allowed(postgres_with_pgvector: PostgresServer) -> None:
    url = postgres_with_pgvector.make_database()
    database = await open_database(url)
    try:
        await database.knowledge.stage("b1", make_records(make_vectors(3, seed=5)))
        await database.knowledge.publish("b1")
        assert await database.knowledge.make_vector_index(most=2) is False
        assert await database.knowledge.has_vector_index() is False
        assert await database.knowledge.make_vector_index(most=3) is True
    finally:
        await database.aclose()


async def test_a_user_who_may_not_create_the_extension_has_no_index(postgres_with_pgvector: PostgresServer) -> None:
    server = postgres_with_pgvector
    server.execute("CREATE ROLE limited LOGIN")
    server.execute("CREATE DATABASE of_limited OWNER limited")
    database = await open_database(server.url("of_limited", "limited"))
    try:
        assert await database.knowledge.make_vector_index() is False
        server.execute("CREATE EXTENSION vector", "of_limited")
        assert await database.knowledge.make_vector_index() is True
    finally:
        await database.aclose()


async def test_a_server_without_the_extension_has_no_index(postgres_url: str) -> None:
    database = await open_database(postgres_url)
    try:
        assert await database.knowledge.make_vector_index() is False
        assert await database.knowledge.has_vector_index() is False
    finally:
        await database.aclose()
