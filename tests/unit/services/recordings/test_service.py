"""Recordings on disk: written while a call goes on, completed, given up, and put right after a crash."""

import asyncio
import errno
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from stat import S_IMODE
from typing import Any

import numpy as np
import pytest

from antiphon.clock import SystemClock
from antiphon.config import Recording as RecordingSection
from antiphon.config import Settings, Storage
from antiphon.services.recordings import RecordingError, RecordingService, open_recordings
from antiphon.services.recordings import service as module
from antiphon.services.recordings.sound_file import SoundWriter
from antiphon.sound_format import MICROPHONE_HZ, SPEECH_HZ
from antiphon.storage.conversations import Conversation
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.recordings import Recording
from tests.fakes.recorded import decode, level

pytestmark = pytest.mark.real_time

NOISE = np.random.default_rng(1).normal(0, 3_000, MICROPHONE_HZ).astype(np.int16).tobytes()
"""A second of it."""


@pytest.fixture
def database() -> MemoryDatabase:
    return MemoryDatabase()


@pytest.fixture
async def service(tmp_path: Path, database: MemoryDatabase) -> AsyncIterator[RecordingService]:
    settings = Settings(tmp_path, tmp_path, recording=RecordingSection(calls="always"))
    async with open_recordings(settings, database.recordings, SystemClock()) as opened:
        yield opened


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WRITE_S", 0.02)


def begin(service: RecordingService, on_failure: Callable[[str], None] = lambda reason: None) -> module.OpenRecording:
    """Begins a recording that is ten seconds old, in which something was said, and answered."""
    since_s = SystemClock().monotonic() - 10
    opened = service.begin(since_s, on_failure)
    opened.hear(NOISE, since_s + 2)
    opened.play(1, bytes(2 * SPEECH_HZ), since_s + 3)
    return opened


def row(file: str, duration_ms: int | None = None) -> Recording:
    return Recording("r1", "c1", "ann", "v1", 0, duration_ms, 2, None, "opus", file, "here")


def files(tmp_path: Path) -> list[str]:
    folder = tmp_path / "recordings"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


async def until(happened: Callable[[], Any]) -> None:
    for _ in range(500):
        if happened():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not happen")


async def test_a_recording_is_one_file_that_only_its_user_can_read(service: RecordingService, tmp_path: Path) -> None:
    opened = begin(service)
    finished = await opened.finish()
    assert finished is not None
    duration_ms, size_bytes = finished
    [name] = files(tmp_path)
    path = tmp_path / "recordings" / name
    assert name == opened.file
    assert S_IMODE(path.stat().st_mode) == 0o600
    assert S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.stat().st_size == size_bytes
    frames = decode(path.read_bytes())
    assert len(frames) / 24 == pytest.approx(duration_ms, abs=1)
    assert 10_000 <= duration_ms < 60_000
    assert level(frames[26_000:46_000, 0]) == pytest.approx(3_000, rel=0.2)
    assert level(frames[60_000:120_000, 0]) < 10


async def test_sound_is_written_while_the_call_goes_on_and_not_by_the_loop(
    service: RecordingService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[int] = set()
    write = SoundWriter.write

    def watched(self: SoundWriter, frames: Any) -> None:
        threads.add(threading.get_ident())
        write(self, frames)

    monkeypatch.setattr(SoundWriter, "write", watched)
    opened = begin(service)
    partial = tmp_path / "recordings" / f".{opened.file}.partial"
    await until(lambda: partial.exists() and partial.stat().st_size > 3_000)
    # It can be heard as it is.
    assert len(decode(partial.read_bytes())) > 24_000
    await opened.discard()
    assert files(tmp_path) == []
    assert threads
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("after_bytes", [0, 4_000])
async def test_a_full_disk_ends_the_recording_and_keeps_what_there_is(
    service: RecordingService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after_bytes: int
) -> None:
    written, write = 0, os.write

    def fill(descriptor: int, data: Any) -> int:
        nonlocal written
        written += len(data)
        if written > after_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data)

    monkeypatch.setattr("antiphon.services.recordings.sound_file.os.write", fill)
    reasons: list[str] = []
    opened = begin(service, reasons.append)
    await until(lambda: reasons)
    opened.hear(NOISE, SystemClock().monotonic())
    finished = await opened.finish()
    assert reasons == ["No space left on device"]
    assert (finished is not None) == bool(after_bytes)
    assert files(tmp_path) == ([opened.file] if after_bytes else [])
    if finished is not None:
        assert 0 < finished[0] < 10_000


async def test_an_encoder_that_fails_ends_the_recording(
    service: RecordingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: SoundWriter, frames: Any) -> None:
        raise RecordingError("The sound could not be encoded.")

    monkeypatch.setattr(SoundWriter, "write", fail)
    reasons: list[str] = []
    opened = begin(service, reasons.append)
    await until(lambda: reasons)
    await opened.finish()
    assert reasons == ["The sound could not be encoded."]


async def test_a_disk_that_is_too_slow_ends_the_recording(
    service: RecordingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_WAITING_BYTES", 1_000)
    reasons: list[str] = []
    opened = begin(service, reasons.append)
    await until(lambda: reasons)
    await opened.finish()
    assert reasons == ["The disk is too slow."]


async def test_a_sweep_leaves_a_recording_alone_that_is_being_made(
    service: RecordingService, database: MemoryDatabase, tmp_path: Path
) -> None:
    opened = begin(service)
    await until(lambda: files(tmp_path))
    assert await service.archive.sweep() == 0
    assert await opened.finish() is not None


async def test_a_sweep_deletes_files_without_a_row_and_completes_what_was_left(
    service: RecordingService, database: MemoryDatabase, tmp_path: Path
) -> None:
    await database.conversations.create(Conversation("c1", "ann", "A talk", 1, 1))
    left, stray, empty = begin(service), begin(service), begin(service)
    for each in (left, stray):
        await each.finish()
    await empty.discard()
    folder = tmp_path / "recordings"
    # As if the process had been killed: the end of the file is missing.
    whole = (folder / left.file).read_bytes()
    (folder / left.file).unlink()
    (folder / f".{left.file}.partial").write_bytes(whole[: len(whole) // 2])
    (folder / f".{empty.file}.partial").write_bytes(b"OggS")
    (folder / "notes.txt").write_text("not ours")
    await database.recordings.add(row(left.file))
    assert await service.archive.sweep() == 3
    assert files(tmp_path) == sorted([left.file, "notes.txt"])
    repaired = await database.recordings.get("r1", "ann")
    assert repaired is not None
    assert repaired.duration_ms is not None
    assert repaired.duration_ms > 500
    assert repaired.size_bytes == len(whole) // 2
    assert await service.archive.sweep() == 0


async def test_a_recording_without_any_sound_is_not_repaired_but_deleted(
    service: RecordingService, database: MemoryDatabase, tmp_path: Path
) -> None:
    await database.conversations.create(Conversation("c1", "ann", "A talk", 1, 1))
    service.archive.make_folder()
    name = "B" * 43 + ".opus"
    (tmp_path / "recordings" / f".{name}.partial").write_bytes(b"OggS")
    await database.recordings.add(row(name))
    await service.archive.sweep()
    assert files(tmp_path) == []
    assert await database.recordings.list("ann") == []


async def test_a_server_that_is_to_record_needs_the_package(
    tmp_path: Path, database: MemoryDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "soundfile", None)
    settings = Settings(tmp_path, tmp_path, recording=RecordingSection(calls="ask"))
    with pytest.raises(RecordingError, match=r"pip install 'antiphon\[recording\]'"):
        async with open_recordings(settings, database.recordings, SystemClock()):
            pass
    async with open_recordings(Settings(tmp_path, tmp_path), database.recordings, SystemClock()) as opened:
        assert opened.calls == "off"


async def test_with_a_database_in_memory_recordings_are_gone_with_the_server(
    tmp_path: Path, database: MemoryDatabase
) -> None:
    settings = Settings(tmp_path, tmp_path, recording=RecordingSection(calls="always"), storage=Storage(url="memory"))
    async with open_recordings(settings, database.recordings, SystemClock()) as opened:
        made = begin(opened)
        assert await made.finish() is not None
        path = opened.archive.path_of(row(made.file))
        assert path.is_file()
    assert not path.exists()
    assert files(tmp_path) == []
