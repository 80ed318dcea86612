"""The sound of recordings in the store: servers that do not share a folder have it from there."""

import asyncio
import os
from pathlib import Path
from stat import S_IMODE

import pytest
from msgspec.structs import replace

from antiphon.clock import SystemClock
from antiphon.config import Settings
from antiphon.services.recordings import RecordingArchive, open_recordings
from antiphon.services.recordings import service as module
from antiphon.storage.base import StoreUnavailable
from antiphon.storage.conversations import Conversation
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.memory.recordings import MemoryRecordingStore
from antiphon.storage.recordings import PART_BYTES, Recording

pytestmark = pytest.mark.real_time

SOUND = os.urandom(2 * PART_BYTES + 1_000)
FILE = "A" * 43 + ".opus"
ROW = Recording("r1", "c1", "ann", "v1", 0, 61_500, 2, len(SOUND), "opus", FILE, "one")


class SharedStore(MemoryRecordingStore):
    """A store that fails as often as a test wants, and counts what is asked of it."""

    failures = 0
    parts_read = 0
    is_deleted_meanwhile = False
    """Whether the user deletes everything after the first part was read."""

    async def add_part(self, id: str, number: int, data: bytes) -> bool:
        if number == 1 and self.failures:
            self.failures -= 1
            raise StoreUnavailable("The database cannot be reached.")
        return await super().add_part(id, number, data)

    async def part(self, id: str, number: int) -> bytes | None:
        self.parts_read += 1
        # As another process would, so that requests run beside each other.
        await asyncio.sleep(0)
        if number == 1 and self.is_deleted_meanwhile:
            await self.delete("ann")
        return await super().part(id, number)


@pytest.fixture
async def store() -> SharedStore:
    database = MemoryDatabase()
    await database.conversations.create(Conversation("c1", "ann", "A talk", 1, 1))
    store = SharedStore(database.conversations, keeps_sound=True)
    await store.add(ROW)
    return store


@pytest.fixture
def one(tmp_path: Path, store: SharedStore) -> RecordingArchive:
    """The server that has made the recording."""
    archive = RecordingArchive(store, tmp_path / "one", "one")
    archive.make_folder()
    archive.path_of(ROW).write_bytes(SOUND)
    return archive


@pytest.fixture
def two(tmp_path: Path, store: SharedStore) -> RecordingArchive:
    return RecordingArchive(store, tmp_path / "two", "two")


async def known(store: SharedStore) -> Recording:
    found = await store.get("r1", "ann")
    assert found is not None
    return found


async def test_another_server_fetches_what_was_stored(
    one: RecordingArchive, two: RecordingArchive, store: SharedStore, tmp_path: Path
) -> None:
    assert await two.fetch(await known(store)) is None
    assert await one.store_sound(ROW)
    assert await two.fetch(await known(store)) == tmp_path / "two" / FILE
    assert (tmp_path / "two" / FILE).read_bytes() == SOUND
    assert S_IMODE((tmp_path / "two" / FILE).stat().st_mode) == 0o600
    read = store.parts_read
    assert await two.fetch(await known(store)) == tmp_path / "two" / FILE
    assert await one.fetch(await known(store)) == tmp_path / "one" / FILE
    assert store.parts_read == read


async def test_requests_at_once_fetch_a_file_once_and_processes_do_not_disturb_each_other(
    one: RecordingArchive, two: RecordingArchive, store: SharedStore, tmp_path: Path
) -> None:
    await one.store_sound(ROW)
    row = await known(store)
    # Another process with the same folder.
    twin = RecordingArchive(store, tmp_path / "two", "two")
    found = await asyncio.gather(*(two.fetch(row) for _ in range(5)), twin.fetch(row))
    assert found == [tmp_path / "two" / FILE] * 6
    assert store.parts_read == 2 * 4
    assert os.listdir(tmp_path / "two") == [FILE]
    assert (tmp_path / "two" / FILE).read_bytes() == SOUND


async def test_a_recording_that_is_deleted_while_it_is_fetched_leaves_no_file(
    one: RecordingArchive, two: RecordingArchive, store: SharedStore, tmp_path: Path
) -> None:
    await one.store_sound(ROW)
    store.is_deleted_meanwhile = True
    assert await two.fetch(await known(store)) is None
    assert os.listdir(tmp_path / "two") == []


async def test_sound_that_could_not_be_stored_is_stored_by_the_next_sweep(
    one: RecordingArchive, two: RecordingArchive, store: SharedStore
) -> None:
    store.failures = 1
    with pytest.raises(StoreUnavailable):
        await one.store_sound(ROW)
    assert await two.fetch(await known(store)) is None
    assert await one.sweep() == 1
    assert (await known(store)).is_stored
    assert await two.fetch(await known(store)) is not None
    assert await one.sweep() == 0


async def test_a_sweep_deletes_fetched_files_whose_recording_is_gone_and_what_is_left_of_fetching(
    one: RecordingArchive, two: RecordingArchive, store: SharedStore, tmp_path: Path
) -> None:
    await one.store_sound(ROW)
    await two.fetch(await known(store))
    (tmp_path / "two" / f".{FILE}.0123456789abcdef.fetching").write_bytes(SOUND[:100])
    await one.delete("ann")
    assert os.listdir(tmp_path / "one") == []
    assert await two.sweep() == 1
    assert os.listdir(tmp_path / "two") == []
    assert await store.part("r1", 0) is None


async def test_a_store_that_is_used_with_one_folder_gets_no_sound(
    one: RecordingArchive, store: SharedStore, tmp_path: Path
) -> None:
    store.keeps_sound = False
    assert not await one.store_sound(ROW)
    assert await one.sweep() == 0
    assert await store.part("r1", 0) is None


async def test_a_recording_is_copied_from_its_file_or_from_the_store(
    one: RecordingArchive, two: RecordingArchive, store: SharedStore, tmp_path: Path
) -> None:
    assert not await two.copy(ROW, tmp_path / "none.opus")
    assert await one.copy(ROW, tmp_path / "first.opus")
    await one.store_sound(ROW)
    assert await two.copy(await known(store), tmp_path / "second.opus")
    assert not (tmp_path / "none.opus").exists()
    assert (tmp_path / "first.opus").read_bytes() == (tmp_path / "second.opus").read_bytes() == SOUND
    assert not (tmp_path / "two").exists()


@pytest.mark.parametrize(("close_s", "is_stored"), [(20.0, True), (0.0, False)])
async def test_a_server_that_stops_waits_a_moment_for_its_last_recordings(
    store: SharedStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, close_s: float, is_stored: bool
) -> None:
    monkeypatch.setattr(module, "CLOSE_S", close_s)
    async with open_recordings(Settings(tmp_path, tmp_path), store, SystemClock()) as service:
        service.archive.make_folder()
        service.archive.path_of(ROW).write_bytes(SOUND)
        service.share(ROW)
    assert await known(store) == replace(ROW, is_stored=is_stored)
