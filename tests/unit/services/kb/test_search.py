"""Hybrid search on a database that other processes change, and the texts that are made of what it finds."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from antiphon.authoring.testing import StillClock
from antiphon.embedding.base import Embedder, EmbeddingError
from antiphon.services.kb import Knowledge
from antiphon.services.kb.embedders import LazyEmbedder
from antiphon.services.kb.passages import MOST_CHARS, split
from antiphon.services.kb.snippets import SNIPPET_CHARS, sentences, snippet
from antiphon.services.kb.terms import stem, terms
from antiphon.storage.knowledge import Namespace
from antiphon.storage.sql import Database, open_database
from tests.fakes.postgres import PostgresServer
from tests.unit.services.kb.handbook import HANDBOOK, record

pytestmark = pytest.mark.real_time

TOPICS = {"holiday": 0, "vacation": 0, "boat": 1, "ship": 1}


class TopicEmbedder:
    """Words of one topic mean the same; everything else means nothing in particular."""

    name = "topics"

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.embed_now(texts)

    def embed_now(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.full((len(texts), 384), 0.001, np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word, topic in TOPICS.items():
                row[topic] += word in text.lower()
        unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    async def aclose(self) -> None:
        """Does nothing."""


async def load() -> Embedder:
    return TopicEmbedder()


@pytest.fixture(params=["sqlite", "postgres", "pgvector"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where the database is: a file, or an address."""
    match request.param:
        case "sqlite":
            return tmp_path / "a.db"
        case "postgres":
            return str(request.getfixturevalue("postgres_url"))
        case _:
            server: PostgresServer = request.getfixturevalue("postgres_with_pgvector")
            return server.empty_database()


@pytest.fixture
async def database(place: Path | str, request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    database = await open_database(place)
    has_index = await database.knowledge.make_vector_index()
    assert has_index == ("pgvector" in request.node.name)
    yield database
    await database.aclose()


def open_kb(database: Database, *, by_meaning: bool = True) -> Knowledge:
    return Knowledge(database.knowledge, LazyEmbedder(load if by_meaning else None), StillClock())


async def ids(knowledge: Knowledge, query: str, user: str = "ann") -> list[str]:
    return [each.id for each in (await knowledge.search(query, knowledge.readable(user), 5)).results]


async def test_records_are_found_by_meaning_and_by_words(database: Database) -> None:
    knowledge = open_kb(database)
    await knowledge.add([record("doc:a", "A", "Our vacation."), record("doc:b", "B", "A ship and a zebra.")])
    assert await ids(knowledge, "holiday") == ["doc:a"]
    assert await ids(knowledge, "zebra") == ["doc:b"]
    assert (await knowledge.search("holiday", knowledge.readable("ann"), 5)).by_meaning is True


async def test_changes_of_another_process_are_found_at_once(place: Path | str, database: Database) -> None:
    knowledge = open_kb(database)
    await knowledge.add([record("doc:a", "A", "Our vacation.")])
    assert await ids(knowledge, "boat") == []
    other = await open_database(place)
    try:
        await open_kb(other).add([record("doc:b", "B", "A ship.")])
        assert await ids(knowledge, "boat") == ["doc:b"]
        await open_kb(other).remove("doc:b", "")
        assert await ids(knowledge, "boat") == []
        await open_kb(other).add([record("doc:a", "A", "A ship.")])
        assert await ids(knowledge, "boat") == ["doc:a"]
        assert await ids(knowledge, "holiday") == []
    finally:
        await other.aclose()


async def test_an_index_that_another_process_makes_replaces_the_vectors_in_memory(
    postgres_with_pgvector: PostgresServer,
) -> None:
    database = await open_database(postgres_with_pgvector.make_database())
    try:
        knowledge = open_kb(database)
        await knowledge.add([record("doc:a", "A", "Our vacation."), record("doc:b", "B", "A ship.")])
        assert await ids(knowledge, "holiday") == ["doc:a"]
        assert knowledge.vectors is not None
        await open_kb(database).warm()
        assert await ids(knowledge, "holiday") == ["doc:a"]
        assert knowledge.vectors is None
    finally:
        await database.aclose()


async def test_meaning_does_not_show_the_records_of_other_users(database: Database) -> None:
    knowledge = open_kb(database)
    await knowledge.add([record("doc:a", "A", "Our vacation.", namespace=Namespace.PERSONAL, owner="bob")])
    assert await ids(knowledge, "holiday", "bob") == ["doc:a"]
    assert await ids(knowledge, "holiday", "ann") == []


async def test_without_the_model_words_are_compared_and_the_reason_is_known(database: Database) -> None:
    async def fail() -> Embedder:
        raise EmbeddingError("the package numpy is not installed")

    await open_kb(database).add([record("doc:a", "A", "Our vacation.")])
    knowledge = Knowledge(database.knowledge, LazyEmbedder(fail), StillClock())
    found = await knowledge.search("vacation", knowledge.readable("ann"), 5)
    assert (found.by_meaning, len(found.results)) == (False, 1)
    assert await knowledge.problem() == "the package numpy is not installed"


async def test_vectors_that_are_missing_are_made_later(database: Database) -> None:
    await open_kb(database, by_meaning=False).add([record("doc:a", "A", "Our vacation.")])
    knowledge = open_kb(database)
    assert await ids(knowledge, "holiday") == []
    counts = await knowledge.reindex(all=False, on_progress=lambda done, total: None)
    assert (counts.passages, counts.vectors) == (1, 1)
    assert await ids(knowledge, "holiday") == ["doc:a"]


async def test_an_import_that_fails_half_way_leaves_nothing(database: Database) -> None:
    knowledge = open_kb(database)
    many = [record(f"doc:n{n}", f"Number {n}", "Some text.") for n in range(450)]

    def fail(done: int) -> None:
        if done >= 400:
            raise OSError("the terminal is gone")

    with pytest.raises(OSError, match="terminal"):
        await knowledge.add(many, by_meaning=False, on_progress=fail)
    assert await database.knowledge.has_records() is False
    assert await database.knowledge.abandoned() == []


async def test_other_work_is_stored_while_a_large_import_runs(database: Database) -> None:
    knowledge = open_kb(database, by_meaning=False)
    many = [record(f"doc:n{n}", f"Number {n}", "Some text about it. " * 20) for n in range(2_000)]
    importing = asyncio.create_task(knowledge.add(many))
    stored = 0
    while not importing.done():
        await database.blocks.block("ann", stored + 1, "rude")
        stored += 1
    await importing
    assert stored > 10


async def test_a_personal_record_hides_a_shared_one_with_its_id(database: Database) -> None:
    knowledge = open_kb(database)
    own = record("doc:a", "Mine", "My vacation.", namespace=Namespace.PERSONAL, owner="ann")
    await knowledge.add([record("doc:a", "Ours", "Our vacation."), own])
    found = await knowledge.search("vacation", knowledge.readable("ann"), 5)
    assert [each.title for each in found.results] == ["Mine"]


async def test_a_common_word_is_found_beside_a_rare_one(database: Database) -> None:
    knowledge = open_kb(database, by_meaning=False)
    await knowledge.add([*HANDBOOK, record("doc:x", "Office of zebras", "The zebra office.")])
    assert (await ids(knowledge, "office zebra"))[0] == "doc:x"


@given(st.text(max_size=4_000))
def test_the_passages_of_any_text_are_the_text(body: str) -> None:
    parts = split(body)
    assert "".join(parts) == body
    assert all(len(part) <= MOST_CHARS for part in parts)


def test_a_passage_begins_at_a_heading() -> None:
    parts = split("\n\n".join(f"# Part {n}\n\n{'Some words here. ' * 20}" for n in range(3)))
    assert [part.startswith("# Part") for part in parts] == [True, True, True]


def test_a_snippet_shows_the_hit_in_its_context() -> None:
    shown = snippet(
        "Filler words. " * 60 + "The **zebra** sleeps in the barn. " + "More filler. " * 60, {stem("zebra")}
    )
    assert "zebra sleeps" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert len(shown) <= SNIPPET_CHARS + 2


def test_sentences_have_no_headings_and_no_marks() -> None:
    said = sentences("# Tea\n\nGreen *tea* is\nhot. See [the shop](https://example.org).\n- One\n- Two")
    assert said == ["Green tea is hot.", "See the shop.", "One", "Two"]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("what is the budget of Project Heron?", ["budget", "project", "heron"]),
        ("how long does it take", ["take"]),
        ("the policies and the policy", ["policies"]),
        ("who are you", ["who", "are", "you"]),
        ("Müller's café", ["muller", "cafe"]),
        ("?!", []),
    ],
)
def test_a_query_is_reduced_to_the_words_that_tell_something(query: str, wanted: list[str]) -> None:
    assert terms(query) == wanted


@pytest.mark.parametrize(
    "forms", [("policy", "policies"), ("run", "runs", "running"), ("reimbursed", "reimburse"), ("backup", "backups")]
)
def test_the_forms_of_a_word_have_one_stem(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1
