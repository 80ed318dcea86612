"""The contract of the image store: images and whose they are."""

import pytest

from antiphon.storage.base import StorageError
from antiphon.storage.images import ImageRecord, ImageStore
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.sql import Database

pytestmark = pytest.mark.real_time

CONTENT = bytes(range(256)) * 9_000
"""More than two megabytes, with every byte."""


def record(name: str = "a.png", *, user: str = "ann", at_ms: int = 1_000) -> ImageRecord:
    return ImageRecord(name, user, "a lighthouse\nat dusk", "openai:m", at_ms, "image/png")


@pytest.fixture
def images(database: MemoryDatabase | Database) -> ImageStore:
    return database.images


async def test_an_image_is_read_back_as_it_was(images: ImageStore) -> None:
    await images.add(record(), CONTENT)
    assert await images.read("a.png") == (record(), CONTENT)
    assert await images.read("b.png") is None


async def test_a_name_is_used_once(images: ImageStore) -> None:
    await images.add(record(), CONTENT)
    with pytest.raises(StorageError):
        await images.add(record(user="bob"), b"other")
    assert await images.read("a.png") == (record(), CONTENT)


async def test_the_images_of_a_user_are_listed_the_oldest_first(images: ImageStore) -> None:
    late, early = record("a.png", at_ms=2_000), record("b.png")
    for each in (late, early, record("c.png", user="bob")):
        await images.add(each, b"content")
    assert await images.list("ann") == [early, late]
    assert await images.list("nobody") == []


async def test_a_user_loses_all_images_or_those_that_are_named_and_nobody_elses(images: ImageStore) -> None:
    for number in range(45):
        await images.add(record(f"{number}.png"), b"content")
    await images.add(record("bob.png", user="bob"), b"content")
    assert await images.delete("ann", ["3.png", "bob.png", "unknown.png"]) == 1
    assert await images.delete("ann", []) == 0
    assert await images.read("3.png") is None
    assert await images.delete("ann") == 44
    assert await images.list("ann") == []
    assert await images.read("bob.png") is not None


async def test_old_images_are_deleted(images: ImageStore) -> None:
    old, new = record("a.png", at_ms=999), record("b.png", user="bob")
    await images.add(old, b"content")
    await images.add(new, b"content")
    assert await images.delete_before(1_000) == 1
    assert await images.read("a.png") is None
    assert await images.list("bob") == [new]
