"""Names that one user is likely to say."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from antiphon.compose.services import MAX_NAMES, Services, open_services
from antiphon.config import Settings, Storage
from antiphon.storage.knowledge import SHARED, Namespace, Record, RecordType
from antiphon.storage.lists import ListItem
from antiphon.storage.memory import MemoryDatabase


@pytest.fixture
async def services(tmp_path: Path) -> AsyncIterator[Services]:
    settings = Settings(tmp_path, tmp_path / "data", storage=Storage(url="memory"))
    async with open_services(settings, MemoryDatabase()) as services:
        yield services


async def add_items(services: Services, user: str, name: str, *texts: str, at_ms: int = 0) -> None:
    items = [ListItem(user, name, text, text, at_ms + place) for place, text in enumerate(texts)]
    await services.lists.add(items, max_items=1_000, max_total=2_000)


async def add_record(services: Services, title: str, owner: str = SHARED) -> None:
    record = Record(
        id=f"doc:{title.lower().replace(' ', '_')}",
        owner=owner,
        namespace=Namespace.PERSONAL if owner else Namespace.PUBLIC,
        type=RecordType.DOC,
        title=title,
        body="Something.",
        source_type="note",
        last_updated_ms=1,
    )
    await services.knowledge.add([record], by_meaning=False)


async def test_they_are_the_newest_lists_then_titles_then_the_newest_items(services: Services) -> None:
    await add_items(services, "ann", "packing", "tent", "sleeping bags")
    await add_items(services, "ann", "shopping", "gochujang", at_ms=10)
    await add_record(services, "Quarkus migration")
    names = await services.names_of("ann")
    assert names == ["shopping", "packing", "Quarkus migration", "gochujang", "sleeping bags", "tent"]


async def test_nobody_gets_the_names_of_somebody_else(services: Services) -> None:
    await add_items(services, "ann", "wedding", "ring")
    await add_record(services, "Divorce of Ben", owner="ann")
    await add_record(services, "House rules")
    assert await services.names_of("ben") == ["House rules"]
    assert set(await services.names_of("ann")) == {"wedding", "Divorce of Ben", "House rules", "ring"}


async def test_notes_that_are_sentences_are_left_out(services: Services) -> None:
    await add_items(services, "ann", "notes", "the car is on level three", "plumber")
    assert await services.names_of("ann") == ["notes", "plumber"]


async def test_there_is_a_limit_and_the_newest_stay(services: Services) -> None:
    await add_items(services, "ann", "shopping", *(f"thing {number}" for number in range(MAX_NAMES + 100)))
    names = await services.names_of("ann")
    assert len(names) == MAX_NAMES
    assert names[:2] == ["shopping", f"thing {MAX_NAMES + 99}"]
