"""Servers whose data is in Postgres survive its outages."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from antiphon.storage.base import STORE_UNAVAILABLE
from tests.fakes.chat_server import ChatServer
from tests.fakes.image_api import PNG, openai_answer
from tests.fakes.postgres import PostgresServer
from tests.wire.caller import call
from tests.wire.served import serve
from tests.wire.test_recording import SCRIPT, fetch, files, record_call, recordings
from tests.wire.test_store_down import SUM, error_after, is_refused, post, until_ready

pytestmark = pytest.mark.real_time

NUL = "What is 2 plus\u0000 3?"


async def test_an_outage_of_the_database_is_reported_at_once_and_forgotten_when_it_is_over(
    tmp_path: Path, postgres: PostgresServer, postgres_url: str
) -> None:
    with serve(tmp_path, storage={"url": postgres_url}) as served:
        async with call(served.url, {"mode": "text"}) as caller:
            assert "5" in await caller.ask(SUM)
            postgres.stop()
            try:
                began = time.monotonic()
                error = await error_after(caller, SUM)
                assert (error["code"], error["message"]) == ("unavailable", STORE_UNAVAILABLE)
                answers = await asyncio.gather(*(post(served, SUM) for _ in range(12)))
                assert all(map(is_refused, answers))
                assert time.monotonic() - began < 20
                assert (await until_ready(served, 503)).json()["problems"] == [STORE_UNAVAILABLE]
            finally:
                postgres.start()
        await until_ready(served)
        async with call(served.url, {"mode": "text"}) as again:
            assert "5" in await again.ask(SUM)
        assert "Check that Postgres runs there" in served.log


async def test_a_nul_character_in_a_message_breaks_nothing(tmp_path: Path, postgres_url: str) -> None:
    with serve(tmp_path, storage={"url": postgres_url}) as served:
        async with call(served.url, {"mode": "text"}) as caller:
            await caller.ask(NUL)
            assert "5" in await caller.ask(SUM)
        assert served.failures == []


async def test_pictures_and_recordings_of_one_server_are_shown_and_deleted_by_another(
    folders: tuple[Path, Path], postgres: PostgresServer, postgres_url: str
) -> None:
    def rows(table: str) -> int:
        [(count,)] = postgres.execute(f"SELECT count(*) FROM {table}", postgres_url.rpartition("/")[2])
        return int(count)

    async with ChatServer(lambda _: openai_answer()) as service:
        sections: dict[str, Any] = {
            "storage": {"url": postgres_url},
            "images": {"model": f"openai:{service.url}#flux"},
            "recording": {"calls": "always"},
        }
        with (
            serve(folders[0], voice=SCRIPT, **sections) as first,
            serve(folders[1], voice=SCRIPT, **sections) as second,
        ):
            async with call(first.url, {"mode": "text"}) as caller:
                await caller.ask("draw me a picture of a lighthouse at dusk")
            drawn, [shown] = caller.session["conversation_id"], caller.every("image")
            talk = await record_call(first)
            [entry] = await recordings(second, talk)
            own = played = await fetch(first, entry["url"])
            for _ in range(400):
                # The sound is stored a moment after the call.
                played = await fetch(second, entry["url"])
                if played.status_code == 200:
                    break
                await asyncio.sleep(0.05)
            part = await fetch(second, entry["url"], Range="bytes=100-299")
            picture = await fetch(second, shown["url"])
            deleted = [await fetch(second, f"/api/conversations/{id}", "DELETE") for id in (drawn, talk)]
            gone = [await fetch(first, path) for path in (shown["url"], entry["url"])]
        assert first.failures == second.failures == []
    assert (played.content, part.content) == (own.content, own.content[100:300])
    assert picture.content == PNG
    assert [each.status_code for each in (*deleted, *gone)] == [204, 204, 404, 404]
    assert [rows(table) for table in ("images", "recordings", "recording_parts")] == [0, 0, 0]
    assert files(folders[1]) == []
