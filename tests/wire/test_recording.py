"""Recordings through a whole server: calls are recorded if the settings say so, heard again, and deleted."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from stat import S_IMODE
from typing import Any, Final

import httpx2
import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from antiphon.sound_format import MICROPHONE_HZ
from antiphon.storage.sql import open_database
from tests.fakes.recorded import HZ, decode, find, level
from tests.fakes.scripted_live import Hear, Say, Step
from tests.wire.caller import Caller, Message, call
from tests.wire.served import Served, make_known, serve

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(180)]

VOICE: Final = {"mode": "voice"}
KNOWING: Final = {"mode": "voice", "features": ["recording"]}
QUESTION: Final = "What time is it, please?"
SCRIPT: Final[tuple[Step, ...]] = (Hear(QUESTION, after_ms=1_100), Say("It is noon.", audio_ms=300)) * 3
FRAME_MS: Final = 20
FRAME_BYTES: Final = 2 * MICROPHONE_HZ * FRAME_MS // 1000
HEADER_BYTES: Final = 3_000
"""From this size on, a file that is being written can be read."""


@asynccontextmanager
async def in_call(url: str, hello: Message, **options: Any) -> AsyncIterator[Caller]:
    async with call(url, hello, **options) as caller:
        await caller.send("start_listening")
        await caller.until("state", state="listening")
        yield caller


async def speak(caller: Caller, pcm: bytes) -> None:
    """Says something at the pace of speech."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    for number, at in enumerate(range(0, len(pcm), FRAME_BYTES)):
        await asyncio.sleep(max(0.0, began_s + number * FRAME_MS / 1000 - loop.time()))
        await caller.socket.send(b"\x00" + pcm[at : at + FRAME_BYTES])


async def ask(caller: Caller) -> None:
    """Says enough for a question, and waits for the end of the answer."""
    await speak(caller, bytes(FRAME_BYTES * 60))
    turn = (await caller.until("generation_complete"))["turn"]
    await asyncio.sleep(0.3)
    await caller.send("playback_done", turn=turn)
    await caller.until("state", state="listening")


async def fetch(served: Served, path: str, method: str = "GET", **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient(base_url=served.http) as client:
        return await client.request(method, path, headers=headers)


async def recordings(served: Served, conversation: str, **headers: str) -> list[Message]:
    """The recordings of a conversation, once all of them are complete."""
    found: list[Message] = []
    for _ in range(400):
        listed = await fetch(served, f"/api/conversations/{conversation}/recordings", **headers)
        found = listed.json()["recordings"]
        if found and all(each["duration_ms"] is not None for each in found):
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(found)


def sweep(from_hz: float, to_hz: float) -> bytes:
    """A tone that rises or falls for as long as `NOTE_S`. It can be told from every other one, and where it is."""
    times = np.arange(round(NOTE_S * MICROPHONE_HZ)) / MICROPHONE_HZ
    turns = from_hz * times + (to_hz - from_hz) * times**2 / (2 * NOTE_S)
    return (8_000 * np.sin(2 * np.pi * turns)).astype(np.int16).tobytes()


NOTE_S: Final = 0.28
PAUSE_S: Final = 0.12
NOTES: Final = (sweep(300, 700), sweep(1_000, 600), sweep(800, 1_300))
SAID: Final = b"".join(note + bytes(2 * round(PAUSE_S * MICROPHONE_HZ)) for note in NOTES)
"""As long as a question of the script, so that the answer comes after it."""
MIN_MATCH: Final = 0.88
"""A note that is whole matches by 0.93 or more, also under an answer. One that lacks 20 ms matches by 0.85 or less."""


def find_notes(frames: NDArray[np.int16]) -> list[tuple[float, float]]:
    """Where the notes of `SAID` are on the user's side, and how well each matches."""
    return [find(note, MICROPHONE_HZ, frames[:, 0]) for note in NOTES]


def has_notes(frames: NDArray[np.int16]) -> bool:
    return all(match > MIN_MATCH for _, match in find_notes(frames))


def check_notes(frames: NDArray[np.int16]) -> float:
    """Checks that everything that was said is there, whole and in its order. Returns where it begins.

    Frames of a busy machine come late, and the pauses are where a recording makes up for that: a pause may be shorter
    or longer than it was, but a note is never cut. The tests of the mixer say where exactly sound is placed.
    """
    found = find_notes(frames)
    assert has_notes(frames), found
    starts = [at_s for at_s, _ in found]
    assert all(after - before > NOTE_S - 0.01 for before, after in pairwise(starts)), found
    assert starts[-1] - starts[0] < 2 * (NOTE_S + PAUSE_S) + 1.0, found
    return starts[0]


def files(folder: Path) -> list[Path]:
    recorded = folder / "data" / "recordings"
    return sorted(recorded.iterdir()) if recorded.is_dir() else []


async def until_no_files(folder: Path) -> None:
    for _ in range(400):
        if not files(folder):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(files(folder))


async def record_call(served: Served, hello: Message = KNOWING, **options: Any) -> str:
    """Has a call with one question, and returns the id of its conversation."""
    async with in_call(served.url, hello, **options) as caller:
        await ask(caller)
        await caller.send("end_voice")
        await caller.until("end_voice_session")
    conversation: str = caller.session["conversation_id"]
    return conversation


async def test_nothing_is_recorded_by_default(tmp_path: Path) -> None:
    with serve(tmp_path, voice=SCRIPT) as served:
        async with in_call(served.url, KNOWING) as caller:
            await caller.send("record", on=True)
            refused = await caller.until("error")
            await ask(caller)
        conversation = caller.session["conversation_id"]
        listed = await fetch(served, f"/api/conversations/{conversation}/recordings")
    assert refused["code"] == "not_recorded"
    assert caller.every("recording") == []
    assert listed.json() == {"recordings": []}
    assert not (tmp_path / "data" / "recordings").exists()


async def test_every_call_is_recorded_and_the_client_is_told(tmp_path: Path) -> None:
    with serve(tmp_path, voice=SCRIPT, recording={"calls": "always"}) as served:
        async with in_call(served.url, KNOWING) as caller:
            assert [each["active"] for each in caller.every("recording")] == [False, True]
            await asyncio.sleep(0.5)
            await speak(caller, SAID)
            await caller.until("generation_complete")
            await caller.send("record", on=False)
            refused = await caller.until("error")
            await caller.send("end_voice")
            await caller.until("end_voice_session")
        [entry] = await recordings(served, caller.session["conversation_id"])
        whole = await fetch(served, entry["url"])
        part = await fetch(served, entry["url"], Range="bytes=100-299")
        turns = (await fetch(served, f"/api/conversations/{caller.session['conversation_id']}")).json()["turns"]
    assert {each["choice"] for each in caller.every("recording")} == {"always"}
    assert refused["code"] == "always_recorded"
    assert caller.every("notice") == []
    assert (whole.status_code, part.status_code) == (200, 206)
    assert part.content == whole.content[100:300]
    assert whole.headers["content-type"].startswith("audio/ogg")
    assert "no-store" in whole.headers["cache-control"]
    frames = decode(whole.content)
    assert len(whole.content) == entry["size_bytes"]
    assert len(frames) / HZ * 1000 == pytest.approx(entry["duration_ms"], abs=50)
    at_s = check_notes(frames)
    assert at_s > 0.4
    # The assistant's side has nothing of it.
    assert level(frames[: round(at_s * HZ), 1]) < 10
    assert max(find(note, MICROPHONE_HZ, frames[:, 1])[1] for note in NOTES) < 0.5
    [file] = files(tmp_path)
    assert S_IMODE(file.stat().st_mode) == 0o600
    assert {each["seq"] for each in entry["turns"]} == {turn["seq"] for turn in turns}
    assert all(0 <= each["at_ms"] <= entry["duration_ms"] for each in entry["turns"])


async def test_a_client_that_does_not_know_recordings_is_sent_a_notice(tmp_path: Path) -> None:
    with serve(tmp_path, voice=SCRIPT, recording={"calls": "always"}) as served:
        async with in_call(served.url, VOICE) as caller:
            [told] = caller.every("notice")
    assert (told["code"], told["text"]) == ("recording_started", "This call is recorded.")


async def test_the_user_turns_recording_on_and_off(tmp_path: Path) -> None:
    with serve(tmp_path, voice=SCRIPT, recording={"calls": "ask"}) as served:
        async with in_call(served.url, KNOWING) as caller:
            assert [(each["choice"], each["active"]) for each in caller.every("recording")] == [("off", False)]
            await ask(caller)
            await caller.send("record", on=True)
            await caller.until("recording", choice="on", active=True)
            await ask(caller)
            await caller.send("record", on=False)
            await caller.until("recording", choice="off", active=False)
            await ask(caller)
            conversation = caller.session["conversation_id"]
            # While the call goes on.
            [entry] = await recordings(served, conversation)
            turns = (await fetch(served, f"/api/conversations/{conversation}")).json()["turns"]
    assert entry["duration_ms"] < 10_000
    assert [each["seq"] for each in entry["turns"]] == [turn["seq"] for turn in turns[2:4]]


async def test_a_call_in_which_nothing_was_said_leaves_nothing(tmp_path: Path) -> None:
    with serve(tmp_path, voice=SCRIPT, recording={"calls": "always"}) as served:
        async with in_call(served.url, KNOWING) as caller:
            await speak(caller, bytes(FRAME_BYTES * 10))
            await caller.send("end_voice")
            await caller.until("end_voice_session")
        await until_no_files(tmp_path)


async def test_a_recording_is_deleted_with_its_conversation(tmp_path: Path) -> None:
    with serve(tmp_path, voice=SCRIPT, recording={"calls": "always"}) as served:
        conversation = await record_call(served)
        [entry] = await recordings(served, conversation)
        assert len(files(tmp_path)) == 1
        deleted = await fetch(served, f"/api/conversations/{conversation}", "DELETE")
        gone = await fetch(served, entry["url"])
    assert (deleted.status_code, gone.status_code) == (204, 404)
    assert files(tmp_path) == []


async def test_a_recording_is_deleted_with_its_call_and_when_the_conversation_is_cleared(tmp_path: Path) -> None:
    with serve(tmp_path, voice=SCRIPT, recording={"calls": "always"}) as served:
        first = await record_call(served)
        [entry] = await recordings(served, first)
        await fetch(served, f"/api/calls/{entry['call_id']}", "DELETE")
        assert files(tmp_path) == []
        second = await record_call(served)
        await recordings(served, second)
        async with call(served.url, {"mode": "text", "conversation_id": second}) as caller:
            await caller.send("clear_conversation")
            assert await caller.is_answered()
        await until_no_files(tmp_path)


async def test_a_conversation_that_is_deleted_during_its_call_leaves_no_recording(tmp_path: Path) -> None:
    with serve(tmp_path, voice=SCRIPT, recording={"calls": "always"}) as served:
        async with in_call(served.url, KNOWING) as caller:
            await ask(caller)
            await fetch(served, f"/api/conversations/{caller.session['conversation_id']}", "DELETE")
            await caller.send("end_voice")
            await caller.until("end_voice_session")
        await until_no_files(tmp_path)


async def test_nobody_but_the_owner_and_an_operator_hears_a_recording(tmp_path: Path) -> None:
    ann, bob = await make_known(tmp_path, "ann"), await make_known(tmp_path, "bob")
    ada = await make_known(tmp_path, "ada", is_admin=True)
    with serve(tmp_path, voice=SCRIPT, recording={"calls": "always"}, server={"auth": "required"}) as served:
        conversation = await record_call(served, {**KNOWING, "token": ann})
        [entry] = await recordings(served, conversation, Authorization=f"Bearer {ann}")
        own = await fetch(served, entry["url"], Authorization=f"Bearer {ann}")
        wrong = [
            await fetch(served, entry["url"]),
            await fetch(served, entry["url"], Authorization=f"Bearer {bob}"),
            await fetch(served, f"/api/conversations/{conversation}/recordings", Authorization=f"Bearer {bob}"),
            await fetch(served, f"/api/conversations/other/recordings/{entry['id']}", Authorization=f"Bearer {ann}"),
            await fetch(served, entry["url"], Authorization=f"Bearer {ada}"),
        ]
        timeline = await fetch(served, f"/api/admin/conversations/{conversation}", Authorization=f"Bearer {ada}")
        [shown] = next(each["recordings"] for each in timeline.json()["entries"] if each["kind"] == "call")
        part = await fetch(served, shown["url"], Authorization=f"Bearer {ada}", Range="bytes=100-299")
        refused = [await fetch(served, shown["url"]), await fetch(served, shown["url"], Authorization=f"Bearer {ann}")]
    assert own.status_code == 200
    assert [each.status_code for each in wrong] == [401, 404, 404, 404, 404]
    assert (part.status_code, part.content) == (206, own.content[100:300])
    assert [each.status_code for each in refused] == [401, 403]
    said = [each["place"] for each in timeline.json()["entries"] if each["kind"] == "said"]
    assert said == [{"recording": entry["id"], "at_ms": turn["at_ms"]} for turn in entry["turns"]]


async def test_the_recording_of_a_server_that_was_killed_is_completed_by_the_next_one(tmp_path: Path) -> None:
    with serve(tmp_path, voice=SCRIPT, recording={"calls": "always"}) as served:
        async with in_call(served.url, KNOWING) as caller:
            await ask(caller)
            await speak(caller, SAID)
            for _ in range(40):
                # Until all of it is older than what is still held back.
                await speak(caller, bytes(FRAME_BYTES * 25))
                written = files(tmp_path)[0].read_bytes()
                if len(written) > HEADER_BYTES and has_notes(decode(written)):
                    break
            served.process.send_signal(signal.SIGKILL)
            served.process.wait(20)
    assert [file.suffix for file in files(tmp_path)] == [".partial"]
    # What a crash may leave besides.
    stray = tmp_path / "data" / "recordings" / ("A" * 43 + ".opus")
    stray.write_bytes(b"nothing")
    with serve(tmp_path, recording={"calls": "off"}) as served:
        [entry] = await recordings(served, caller.session["conversation_id"])
        frames = decode((await fetch(served, entry["url"])).content)
    check_notes(frames)
    assert len(files(tmp_path)) == 1
    assert not stray.exists()


async def test_a_file_on_another_machine_is_told(tmp_path: Path) -> None:
    with serve(tmp_path, voice=SCRIPT, recording={"calls": "always"}) as served:
        conversation = await record_call(served)
        [entry] = await recordings(served, conversation)
        files(tmp_path)[0].unlink()
        gone = await fetch(served, entry["url"])
        database = await open_database(tmp_path / "data" / "antiphon.db")
        [row] = await database.recordings.delete("local")
        await database.recordings.add(replace(row, node="tower"))
        await database.aclose()
        elsewhere = await fetch(served, entry["url"])
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "not_found")
    assert (elsewhere.status_code, elsewhere.json()["error"]["code"]) == (421, "elsewhere")
    assert "tower" in elsewhere.json()["error"]["message"]
