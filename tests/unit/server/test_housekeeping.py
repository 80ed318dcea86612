"""The running server deletes records older than the settings allow."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from antiphon.client import connect
from antiphon.clock import SystemClock
from antiphon.compose.server import DAY_MS
from antiphon.config import Continuity, Settings, Storage
from antiphon.protocol.server_messages import Response
from antiphon.serve import serving
from antiphon.storage.base import AuditLine, CallRecord
from antiphon.storage.conversations import Conversation, VoiceCall
from antiphon.storage.images import ImageRecord
from antiphon.storage.sql import Database, open_database
from tests.fakes.image_api import PNG

pytestmark = pytest.mark.real_time


@asynccontextmanager
async def stores(folder: Path) -> AsyncIterator[Database]:
    database = await open_database(folder / "antiphon.db")
    try:
        yield database
    finally:
        await database.aclose()


async def fill(database: Database, name: str, at_ms: int) -> None:
    """Stores one record of each kind that expires."""
    await database.conversations.create(Conversation(f"c-{name}", "ann", name, at_ms, at_ms))
    await database.voice_calls.begin(VoiceCall(f"v-{name}", "c", "ann", at_ms, None, name, (), 1, None), None)
    await database.calls.start(CallRecord(f"r-{name}", "s1", name, None, "f", "tell_joke", 1, at_ms, at_ms))
    await database.audit.append([AuditLine(at_ms, "s1", "ann", "text", 1, name)])
    await database.images.add(ImageRecord(f"{name}.png", "ann", name, "m", at_ms, "image/png"), PNG)


async def left(database: Database) -> list[str]:
    return [
        *(each.title for each in await database.conversations.list("ann", 10)),
        *(each.summary for each in await database.voice_calls.list("ann", 10)),
        *[name for name in ("old", "new") if await database.calls.find("s1", name, None) is not None],
        *(line.tool for _, line in await database.audit.read()),
        *(each.prompt for each in await database.images.list("ann")),
    ]


async def serve_with(folder: Path, retention_days: int) -> list[str]:
    """What remains of a two-day-old and a new record, a moment after the server has started."""
    async with stores(folder) as database:
        now_ms = SystemClock().now_ms()
        await fill(database, "old", now_ms - 2 * DAY_MS)
        await fill(database, "new", now_ms)
        settings = Settings(project_dir=folder, data_dir=folder, storage=Storage(retention_days=retention_days))
        async with serving(settings):
            for _ in range(50):
                await asyncio.sleep(0.01)
                if "old" not in await left(database):
                    break
            return await left(database)


async def test_old_records_are_deleted_from_every_store(tmp_path: Path) -> None:
    assert await serve_with(tmp_path, retention_days=1) == ["new"] * 5


async def test_without_a_limit_nothing_is_deleted(tmp_path: Path) -> None:
    assert await serve_with(tmp_path, retention_days=0) == ["new", "old"] * 2 + ["old", "new"] * 3


@pytest.mark.parametrize(("resume_hours", "kept"), [(2, ["new"]), (720, ["old", "new"])])
async def test_without_a_limit_records_of_calls_are_kept_while_their_session_can_be_resumed(
    tmp_path: Path, resume_hours: int, kept: list[str]
) -> None:
    async with stores(tmp_path) as database:
        now_ms = SystemClock().now_ms()
        for name, at_ms in (("old", now_ms - 8 * DAY_MS), ("new", now_ms - 6 * DAY_MS)):
            await database.calls.start(CallRecord(f"r-{name}", "s1", name, None, "f", "tell_joke", 1, at_ms, at_ms))
        continuity = Continuity(resume_hours=resume_hours)
        settings = Settings(project_dir=tmp_path, data_dir=tmp_path, continuity=continuity)
        async with serving(settings):
            found: list[str] = []
            for _ in range(50):
                await asyncio.sleep(0.01)
                found = [name for name in ("old", "new") if await database.calls.find("s1", name, None) is not None]
                if found == ["new"]:
                    break
    assert found == kept


async def test_an_embedded_server_reports_the_address_it_is_bound_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.serve._describe", lambda *args, **keywords: ["It runs."])
    announced: list[str] = []
    settings = Settings(project_dir=tmp_path, data_dir=tmp_path, storage=Storage(url="memory"))
    async with serving(settings, announce=announced.append) as url, connect(url) as session:
        answer = [each.text async for each in session.type("What is 2 plus 3?") if isinstance(each, Response)]
    assert answer == ["2 plus 3 is 5."]
    assert announced == ["It runs."]
