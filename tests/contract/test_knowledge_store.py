"""The contract of the knowledge base's store: batches appear at once, and nobody sees what is not theirs."""

import asyncio

import pytest
from msgspec.structs import replace

from antiphon.storage.knowledge import (
    KnowledgeStore,
    Namespace,
    Passage,
    Published,
    Readable,
    Record,
    RecordConflict,
    RecordType,
)
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.sql import Database

pytestmark = pytest.mark.real_time

ANN, BOB = Readable("ann"), Readable("bob")


@pytest.fixture
def store(database: MemoryDatabase | Database) -> KnowledgeStore:
    return database.knowledge


def record(name: str = "tea", text: str = "Green tea is kept in the cupboard.", **fields: object) -> Record:
    given: dict[str, object] = {"namespace": Namespace.STUDIO, "type": RecordType.DOC, "title": name.title(), **fields}
    return Record(id=f"doc:{name}", body=text, source_type="text", last_updated_ms=1_000, **given)  # type: ignore[arg-type]


def personal(owner: str, name: str = "tea", text: str = "My own tea.") -> Record:
    return record(name, text, namespace=Namespace.PERSONAL, owner=owner)


async def put(store: KnowledgeStore, *records: Record, batch: str = "b1") -> Published:
    await store.stage(batch, [(each, [Passage(each.body)]) for each in records])
    return await store.publish(batch)


async def found(store: KnowledgeStore, word: str, readable: Readable = ANN) -> list[str]:
    hits = await store.passages(await store.match([word], 100), readable)
    return sorted(f"{hit.record.owner}{hit.record.id}" for hit in hits)


async def test_a_published_record_is_returned_as_it_was_given(store: KnowledgeStore) -> None:
    tea = record(tags=("kitchen", "hot drinks"), url="https://example.org/tea", metadata={"grams": 3, "of": ["leaf"]})
    assert await put(store, tea) == Published(added=1, updated=0)
    assert await store.get("doc:tea", ANN) == tea


async def test_a_staged_record_cannot_be_found_in_any_way(store: KnowledgeStore) -> None:
    await store.stage("b1", [(record(), [Passage("Green tea", b"\1" * 384)])])
    assert await store.get("doc:tea", ANN) is None
    assert await store.list(ANN, 10) == []
    assert await found(store, "tea") == []
    assert await store.places() == []
    assert await store.has_records() is False


async def test_the_passages_of_a_record_joined_are_its_body(store: KnowledgeStore) -> None:
    parts = ["One. ", "Two.\n\n", "Three."]
    await store.stage("b1", [(record(text="One. Two.\n\nThree."), [Passage(part) for part in parts])])
    await store.publish("b1")
    got = await store.get("doc:tea", ANN)
    assert got is not None
    assert got.body == "One. Two.\n\nThree."


async def test_records_published_beside_others_at_the_same_time_get_ids_of_their_own(store: KnowledgeStore) -> None:
    batches = [f"b{number}" for number in range(8)]

    async def add(batch: str) -> str:
        await store.stage(batch, [(personal("ann", text=batch), [Passage(batch)])])
        [id] = await store.publish_beside(batch)
        return id

    ids = await asyncio.gather(*map(add, batches))
    assert sorted(ids) == ["doc:tea", *(f"doc:tea_{number}" for number in range(2, 9))]
    found = [await store.get(id, ANN) for id in ids]
    assert [each and each.body for each in found] == batches
    assert await store.abandoned() == []


async def test_of_imports_of_one_record_at_the_same_time_each_replaces_the_one_before(store: KnowledgeStore) -> None:
    batches = [f"b{number}" for number in range(6)]
    published = await asyncio.gather(*(put(store, record(text=f"Tea {batch}."), batch=batch) for batch in batches))
    assert sorted(each.added for each in published) == [0, 0, 0, 0, 0, 1]
    assert await store.count(ANN) == 1
    assert await found(store, "tea") == ["doc:tea"]
    assert await store.abandoned() == []


async def test_records_may_come_and_go_while_the_index_is_made_anew(store: KnowledgeStore) -> None:
    await put(store, *(record(f"old{number}", "Old tea.") for number in range(10)))
    added = (put(store, record(f"new{n}", "New tea."), batch=f"b{n + 2}") for n in range(5))
    removed = (store.remove(f"doc:old{number}", "") for number in range(5))
    await asyncio.gather(store.reindex(), *added, store.reindex(), *removed)
    names = [f"doc:new{number}" for number in range(5)] + [f"doc:old{number}" for number in range(5, 10)]
    assert await found(store, "tea") == names
    assert await store.frequencies(["tea"]) == [10]


async def test_a_record_published_beside_others_avoids_the_ids_of_its_owner_and_of_shared_records(
    store: KnowledgeStore,
) -> None:
    await put(store, record("tea"), personal("ann", "tea_2"), personal("bob", "tea_3"))
    version = (await store.state()).version
    await store.stage("b2", [(personal("ann"), [Passage("My own tea.")])])
    assert await store.publish_beside("b2") == ["doc:tea_3"]
    assert (await store.state()).version > version


async def test_a_record_with_the_same_id_is_replaced_with_its_words(store: KnowledgeStore) -> None:
    await put(store, record())
    assert await put(store, record(text="Black coffee."), batch="b2") == Published(added=0, updated=1)
    assert await found(store, "cupboard") == []
    assert await found(store, "coffee") == ["doc:tea"]
    assert await store.count(ANN) == 1
    assert await store.abandoned() == []


async def test_a_swept_batch_leaves_nothing(store: KnowledgeStore) -> None:
    await put(store, record())
    await store.stage("b2", [(record(text="Black coffee."), [Passage("Black coffee.")])])
    assert await store.abandoned() == ["b2"]
    await store.sweep(["b2"])
    assert await store.abandoned() == []
    assert list(await store.match(["coffee"], 10)) == []
    assert await found(store, "tea") == ["doc:tea"]


async def test_two_records_of_one_batch_must_have_different_ids(store: KnowledgeStore) -> None:
    with pytest.raises(RecordConflict):
        await put(store, record(), record(text="Other."))
    assert await store.abandoned() == []


async def test_personal_records_are_seen_by_their_owner_alone(store: KnowledgeStore) -> None:
    await put(store, personal("ann", "diary", "A secret tea."))
    assert await found(store, "secret", ANN) == ["anndoc:diary"]
    assert await found(store, "secret", BOB) == []
    assert await store.get("doc:diary", BOB) is None
    assert await store.list(BOB, 10) == []
    assert await store.count(BOB) == 0


async def test_every_user_may_have_a_record_with_the_same_id_and_sees_the_own_one(store: KnowledgeStore) -> None:
    await put(store, record(), personal("ann"), personal("bob", text="Bob's tea."))
    for reader, text in ((ANN, "My own tea."), (BOB, "Bob's tea."), (Readable("cyd"), record().body)):
        got = await store.get("doc:tea", reader)
        assert got is not None
        assert got.body == text


async def test_a_namespace_that_is_not_readable_is_not_searched(store: KnowledgeStore) -> None:
    await put(store, record(), record("milk", "Milk for the tea.", namespace=Namespace.PUBLIC))
    assert await found(store, "tea", replace(ANN, namespaces=(Namespace.PUBLIC,))) == ["doc:milk"]
    assert await found(store, "tea", replace(ANN, namespaces=(Namespace.PERSONAL,))) == []


async def test_filters_by_type_tags_and_date(store: KnowledgeStore) -> None:
    old = record("old", "Tea from long ago.", tags=("a", "b"))
    new = replace(record("new", "Tea of today.", tags=("a",)), last_updated_ms=5_000, type=RecordType.LINK)
    await put(store, old, new)
    assert await found(store, "tea", replace(ANN, tags=("a", "b"))) == ["doc:old"]
    assert await found(store, "tea", replace(ANN, tags=("a",))) == ["doc:new", "doc:old"]
    assert await found(store, "tea", replace(ANN, type=RecordType.LINK)) == ["doc:new"]
    assert await found(store, "tea", replace(ANN, start_ms=5_000)) == ["doc:new"]
    assert await found(store, "tea", replace(ANN, end_ms=4_999)) == ["doc:old"]


@pytest.mark.parametrize("tag", ["%", "_", "a%", "A"])
async def test_a_tag_filter_has_no_wildcards(store: KnowledgeStore, tag: str) -> None:
    await put(store, record(tags=("ab",)))
    assert await found(store, "tea", replace(ANN, tags=(tag,))) == []


async def test_the_newest_records_are_listed_first_with_their_beginning(store: KnowledgeStore) -> None:
    await put(store, record("a", "First."), replace(record("b", "Second."), last_updated_ms=2_000))
    assert [(each.id, each.body) for each in await store.list(ANN, 10)] == [("doc:b", "Second."), ("doc:a", "First.")]
    assert len(await store.list(ANN, 1)) == 1


async def test_a_removed_record_and_its_words_are_gone(store: KnowledgeStore) -> None:
    await put(store, record(), record("milk", "Milk."))
    assert await store.remove("doc:tea", "") is True
    assert await store.remove("doc:tea", "") is False
    assert list(await store.match(["tea"], 10)) == []
    assert await store.frequencies(["cupboard", "milk"]) == [0, 1]


async def test_all_records_of_an_owner_are_removed(store: KnowledgeStore) -> None:
    await put(store, record(), personal("ann"), personal("ann", "diary"), personal("bob"))
    assert await store.remove_owner("ann") == 2
    assert await store.count(ANN) == 1
    assert await store.count(BOB) == 2


@pytest.mark.parametrize("word", ['"', "'", "NEAR", "AND", "title:x", "*", "a-b", "(", "\0", "^x", "tea OR milk", ""])
async def test_the_syntax_of_the_index_means_nothing_in_a_word(store: KnowledgeStore, word: str) -> None:
    await put(store, record())
    assert list(await store.match([word], 10)) == []


async def test_words_are_matched_in_any_form(store: KnowledgeStore) -> None:
    await put(store, record(text="The policies about Müller's running costs."))
    for word in ("policy", "muller", "run", "cost"):
        assert await found(store, word) == ["doc:tea"], word


async def test_every_word_must_be_there_if_that_is_asked(store: KnowledgeStore) -> None:
    await put(store, record(), record("milk", "Green milk."))
    assert len(await store.match(["green", "cupboard"], 10)) == 2
    assert len(await store.match(["green", "cupboard"], 10, every=True)) == 1


async def test_a_word_in_the_title_counts_more(store: KnowledgeStore) -> None:
    await put(store, record("a", "Tea, tea and more about other things."), record("tea", "Something else."))
    hits = {hit.passage: hit.record.id for hit in await store.passages(await store.match(["tea"], 10), ANN)}
    assert [hits[seq] for seq in await store.match(["tea"], 10)] == ["doc:tea", "doc:a"]


async def test_each_change_increases_the_version(store: KnowledgeStore) -> None:
    versions = [(await store.state()).version]
    await put(store, record())
    versions.append((await store.state()).version)
    await store.remove("doc:tea", "")
    versions.append((await store.state()).version)
    assert versions == sorted(set(versions))


async def test_vectors_are_kept_with_their_places(store: KnowledgeStore) -> None:
    await put(store, record(), personal("ann"))
    missing = await store.without_vector(10)
    assert [text for _, _, text in missing] == [record().body, "My own tea."]
    await store.clear_vectors("a model")
    await store.set_vectors([(seq, bytes([n] * 4)) for n, (seq, _, _) in enumerate(missing)])
    assert await store.without_vector(10) == []
    assert [place[1:] for place in await store.places()] == [("studio", ""), ("personal", "ann")]
    assert [vector for _, vector in await store.vectors([seq for seq, _, _ in missing])] == [b"\0" * 4, b"\1" * 4]
    assert (await store.state()).embedder == "a model"
    counts = await store.counts()
    assert (counts.records, counts.passages, counts.vectors) == (2, 2, 2)


async def test_an_index_that_was_made_anew_finds_the_same(store: KnowledgeStore) -> None:
    await put(store, record(), record("milk", "Milk."))
    assert await store.reindex() == 2
    assert await found(store, "cupboard") == ["doc:tea"]
    await store.remove("doc:tea", "")
    assert await store.frequencies(["cupboard"]) == [0]
