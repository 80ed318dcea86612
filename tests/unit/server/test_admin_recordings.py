"""`/api/admin/conversations/{id}/recordings`: an operator hears the calls of others, which the audit has."""

from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from msgspec.structs import replace

from antiphon.services.recordings import RecordingArchive
from antiphon.services.recordings.archive import make_name
from antiphon.storage.base import AuditLine
from antiphon.storage.conversations import Conversation, Turn, VoiceCall
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.recordings import Mark, Recording
from tests.fakes.web import WebApp, WebApps

SOUND: Final = bytes(range(256))
PATH: Final = "/api/admin/conversations/c1/recordings/r1"
RECORDING: Final = Recording(
    id="r1",
    conversation_id="c1",
    user="ann",
    call_id="v1",
    started_ms=0,
    duration_ms=9_000,
    channels=2,
    size_bytes=len(SOUND),
    format="opus",
    file=make_name(),
    node="here",
    marks=(Mark(1, 700), Mark(2, 2_900)),
)
HOUR_MS: Final = 60 * 60 * 1000


@pytest.fixture
async def web(apps: WebApps, tmp_path: Path) -> WebApp:
    """A server with a call of three turns, of which two were recorded, in one file of two."""
    database = MemoryDatabase()
    archive = RecordingArchive(database.recordings, tmp_path, "here")
    web = apps.open(text=[], database=database, deps={"recordings": archive})
    await database.conversations.create(Conversation("c1", "ann", "Tea", 0, 0))
    turns = [Turn("user", str(at), True, at, b'{"role":"user","text":"%d"}' % at) for at in (1_000, 3_000, 9_500)]
    await database.conversations.append_many("c1", turns, None)
    await database.voice_calls.begin(VoiceCall("v1", "c1", "ann", 0, 10_000, "", (), 1, 3, ()), None)
    archive.path_of(RECORDING).write_bytes(SOUND)
    await database.recordings.add(RECORDING)
    await database.recordings.add(
        replace(
            RECORDING, id="r2", started_ms=9_000, duration_ms=None, size_bytes=None, file="x", marks=(Mark(3, 400),)
        )
    )
    return web


async def hear(web: WebApp, path: str = PATH, *, part: str | None = None) -> httpx2.Response:
    return await web.http.get(path, headers={"X-User": "admin"} | ({} if part is None else {"Range": f"bytes={part}"}))


async def heard(web: WebApp) -> list[tuple[str, str | None, Any]]:
    lines = [line for _, line in await web.server.database.audit.read()]
    return [(line.user, line.conversation, line.data) for line in lines if line.event == "admin_heard_recording"]


async def test_the_timeline_says_where_turns_can_be_heard(web: WebApp) -> None:
    call, *said = (await web.get("/api/admin/conversations/c1", "admin")).json()["entries"]
    first, second = call["recordings"]
    assert (first["id"], first["duration_ms"], first["url"]) == ("r1", 9_000, PATH)
    assert first["turns"] == [{"seq": 1, "at_ms": 700}, {"seq": 2, "at_ms": 2_900}]
    assert (second["id"], second["duration_ms"]) == ("r2", None)
    # The second recording is not complete, so nothing can be heard of it.
    places = [{"recording": "r1", "at_ms": 700}, {"recording": "r1", "at_ms": 2_900}, None]
    assert [each["place"] for each in said] == places


async def test_a_page_of_the_timeline_has_the_places_of_a_call_on_an_earlier_page(web: WebApp) -> None:
    page = (await web.get("/api/admin/conversations/c1?limit=2", "admin")).json()
    assert [each["kind"] for each in page["entries"]] == ["said", "said"]
    assert page["entries"][0]["place"] == {"recording": "r1", "at_ms": 2_900}


async def test_each_listening_is_audited_once_whatever_parts_the_player_asks_for(web: WebApp) -> None:
    line = ("admin", "c1", {"recording": "r1", "owner": "ann"})
    whole = await hear(web)
    assert (whole.status_code, whole.content) == (200, SOUND)
    assert whole.headers["content-type"].startswith("audio/ogg")
    assert await heard(web) == [line]
    part = await hear(web, part="100-199")
    assert (part.status_code, part.content) == (206, SOUND[100:200])
    assert await heard(web) == [line]
    await hear(web)
    assert await heard(web) == [line, line]


async def test_a_part_is_audited_if_no_listening_began_before_it(web: WebApp) -> None:
    assert (await hear(web, part="100-")).status_code == 206
    assert len(await heard(web)) == 1
    await hear(web, part="200-")
    assert len(await heard(web)) == 1


async def test_a_listening_of_long_ago_or_of_something_else_does_not_cover_a_part(web: WebApp) -> None:
    now_ms = web.deps.clock.now_ms()
    line = AuditLine(
        ts_ms=now_ms - 2 * HOUR_MS,
        session="",
        user="admin",
        mode="admin",
        turn=0,
        tool="",
        outcome="event",
        event="admin_heard_recording",
        data={"recording": "r1"},
        conversation="c1",
    )
    others = (replace(line, ts_ms=now_ms, data={"recording": "r2"}), replace(line, ts_ms=now_ms, user="other"))
    await web.server.database.audit.append([line, *others])
    await hear(web, part="0-")
    assert len(await heard(web)) == 4


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        (PATH.replace("c1", "c2"), 404, "There is no such recording."),
        (PATH.replace("r1", "r9"), 404, "There is no such recording."),
        (PATH.replace("r1", "r2"), 409, "not complete yet"),
    ],
)
async def test_what_cannot_be_heard_is_explained_and_not_audited(
    web: WebApp, path: str, status: int, told: str
) -> None:
    answer = await hear(web, path)
    assert (answer.status_code, told in answer.json()["error"]["message"]) == (status, True)
    assert await heard(web) == []


async def test_a_recording_is_not_found_in_another_conversation(web: WebApp) -> None:
    await web.server.database.conversations.create(Conversation("c2", "ann", "Coffee", 0, 0))
    assert (await hear(web, PATH.replace("c1", "c2"))).status_code == 404


async def test_a_file_that_is_gone_is_told(web: WebApp, tmp_path: Path) -> None:
    (tmp_path / RECORDING.file).unlink()
    answer = await hear(web)
    assert (answer.status_code, "gone" in answer.json()["error"]["message"]) == (404, True)
    assert await heard(web) == []


async def test_a_call_of_the_owner_has_the_numbers_that_its_recordings_have(web: WebApp) -> None:
    call = (await web.get("/api/calls/v1")).json()
    assert [turn["seq"] for turn in call["transcript"]] == [1, 2, 3]
    assert [turn["seq"] for turn in call["recordings"][0]["turns"]] == [1, 2]
    assert call["recordings"][0]["url"] == "/api/conversations/c1/recordings/r1"
