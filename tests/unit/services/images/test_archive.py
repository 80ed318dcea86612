"""How images are named, whose they are, and what becomes of those that an earlier version has left as files."""

import json
import os
import re
from pathlib import Path

import pytest

from antiphon.services.images import ImageArchive, address_of
from antiphon.services.images.formats import NotAnImage
from antiphon.storage.images import ImageRecord
from antiphon.storage.memory import MemoryDatabase
from tests.fakes.image_api import JPEG, PNG, SVG


@pytest.fixture
def archive() -> ImageArchive:
    return ImageArchive(MemoryDatabase().images)


async def add(archive: ImageArchive, user: str = "ann", image: bytes = PNG) -> ImageRecord:
    return await archive.add(image, user=user, prompt="a lighthouse", model="openai:m", at_ms=1_000)


async def test_an_image_can_be_read_by_its_name_and_by_nothing_else(archive: ImageArchive) -> None:
    record = await add(archive)
    assert record.media_type == "image/png"
    assert await archive.read(record.name) == (record, PNG)
    stem = record.name.removesuffix(".png")
    for name in (stem, f"{stem}.jpg", f"../images/{record.name}", f"{record.name}/", f"{record.name}\n"):
        assert await archive.read(name) is None


async def test_names_cannot_be_guessed(archive: ImageArchive) -> None:
    names = {(await add(archive, image=JPEG)).name for _ in range(20)}
    assert len(names) == 20
    assert all(re.fullmatch(r"[\w-]{43}\.jpg", name) for name in names)


async def test_what_is_not_an_image_is_not_stored(archive: ImageArchive) -> None:
    with pytest.raises(NotAnImage):
        await add(archive, image=SVG)
    assert await archive.store.list("ann") == []


async def test_the_images_of_a_text_are_deleted_if_they_belong_to_its_user(archive: ImageArchive) -> None:
    mine, kept, theirs = await add(archive), await add(archive), await add(archive, "bob")
    text = f'{{"url":"{address_of(mine)}"}} and ![picture]({address_of(theirs)})'
    assert await archive.delete_mentioned(text, "ann") == 1
    assert await archive.delete_mentioned("no picture", "ann") == 0
    assert await archive.read(mine.name) is None
    assert await archive.read(kept.name) is not None
    assert await archive.read(theirs.name) is not None


@pytest.mark.real_time
async def test_the_files_of_an_earlier_version_are_moved_into_the_store_once(
    archive: ImageArchive, tmp_path: Path
) -> None:
    def leave(name: str, content: bytes | None) -> None:
        known = {"name": name, "user": "ann", "prompt": "a lighthouse", "model": "openai:m", "at_ms": 1_000}
        (tmp_path / f"{name[:43]}.json".replace("/", "_")).write_text(json.dumps(known))
        if content is not None:
            (tmp_path / name).write_bytes(content)

    good, known = "A" * 43 + ".png", await add(archive)
    leave(good, PNG)
    leave(known.name, PNG)
    leave("B" * 43 + ".png", SVG)
    leave("C" * 43 + ".png", None)
    leave("../important.png", None)
    (tmp_path / "broken.json").write_text("{")
    await archive.import_files(tmp_path)
    assert {each.name for each in await archive.store.list("ann")} == {good, known.name}
    record = ImageRecord(good, "ann", "a lighthouse", "openai:m", 1_000, "image/png")
    assert await archive.read(good) == (record, PNG)
    assert sorted(os.listdir(tmp_path)) == [
        ".._important.png.json",
        "B" * 43 + ".json",
        "B" * 43 + ".png",
        "C" * 43 + ".json",
        "broken.json",
    ]
    await archive.import_files(tmp_path / "nowhere")
