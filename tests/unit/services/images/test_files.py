import re
import stat
from pathlib import Path

import pytest

from antiphon.services.images.files import ImageFiles, ImageRecord
from antiphon.services.images.formats import NotAnImage
from tests.fakes.image_api import JPEG, PNG, SVG

pytestmark = pytest.mark.real_time


@pytest.fixture
def files(tmp_path: Path) -> ImageFiles:
    return ImageFiles(tmp_path / "images")


async def add(files: ImageFiles, user: str = "ann", at_ms: int = 1_000, image: bytes = PNG) -> ImageRecord:
    return await files.add(image, user=user, prompt="a lighthouse", model="openai:m", at_ms=at_ms)


async def test_an_image_can_be_read_by_its_name_and_by_nothing_else(files: ImageFiles) -> None:
    record = await add(files)
    assert await files.read(record.name) == (PNG, "image/png")
    stem = record.name.removesuffix(".png")
    for name in (
        stem,
        f"{stem}.json",
        f"{stem}.jpg",
        f"../images/{record.name}",
        f"{record.name}/",
        f"{record.name}\n",
    ):
        assert await files.read(name) is None


async def test_names_cannot_be_guessed(files: ImageFiles) -> None:
    names = {(await add(files, image=JPEG)).name for _ in range(20)}
    assert len(names) == 20
    assert all(re.fullmatch(r"[\w-]{43}\.jpg", name) for name in names)


async def test_only_this_user_of_the_machine_can_read_the_files(files: ImageFiles, tmp_path: Path) -> None:
    await add(files)
    folder = tmp_path / "images"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert len(list(folder.iterdir())) == 2


async def test_what_is_not_an_image_leaves_no_file(files: ImageFiles, tmp_path: Path) -> None:
    with pytest.raises(NotAnImage):
        await add(files, image=SVG)
    assert not (tmp_path / "images").exists()


async def test_a_full_disk_leaves_no_record_without_its_image(
    files: ImageFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill_up(path: Path, content: bytes) -> None:
        if path.suffix == ".png":
            raise OSError(28, "No space left on device")
        path.write_bytes(content)

    monkeypatch.setattr("antiphon.services.images.files._write_atomically", fill_up)
    with pytest.raises(OSError, match="No space"):
        await add(files)
    assert list((tmp_path / "images").iterdir()) == []


async def test_a_user_is_listed_and_loses_only_their_own_images(files: ImageFiles) -> None:
    late, early, other = await add(files, at_ms=2_000), await add(files), await add(files, "bob")
    assert [each.name for each in await files.list("ann")] == [early.name, late.name]
    assert await files.delete_all("ann") == 2
    assert await files.list("ann") == []
    assert await files.read(early.name) is None
    assert await files.read(other.name) is not None


async def test_old_images_are_deleted_by_their_age(files: ImageFiles) -> None:
    old, new = await add(files, at_ms=1_000), await add(files, "bob", at_ms=2_000)
    assert await files.delete_before(2_000) == 1
    assert await files.read(old.name) is None
    assert await files.read(new.name) is not None


async def test_the_images_of_a_text_are_deleted_if_they_belong_to_its_user(files: ImageFiles) -> None:
    mine, kept, theirs = await add(files), await add(files), await add(files, "bob")
    text = f'{{"url":"{mine.url}"}} and ![picture]({theirs.url})'
    assert await files.delete_mentioned(text, "ann") == 1
    assert await files.read(mine.name) is None
    assert await files.read(kept.name) is not None
    assert await files.read(theirs.name) is not None


async def test_a_damaged_record_and_other_files_disturb_nobody(files: ImageFiles, tmp_path: Path) -> None:
    record = await add(files)
    (tmp_path / "images" / "broken.json").write_text("{")
    (tmp_path / "images" / "evil.json").write_text(
        '{"name": "../../important.png", "user": "ann", "prompt": "", "model": "", "at_ms": 0}'
    )
    assert [each.name for each in await files.list("ann")] == [record.name]
    assert await files.delete_all("ann") == 1


async def test_a_folder_that_does_not_exist_has_no_images(files: ImageFiles) -> None:
    assert await files.list("ann") == []
    assert await files.delete_before(9_000) == 0
