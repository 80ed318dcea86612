"""A store that is locked, full or damaged: every entry point reports it in the same words, and recovers."""

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import connect

from antiphon.storage.base import STORE_UNAVAILABLE
from tests.wire.caller import Caller, call
from tests.wire.served import UNLIMITED, Served, serve

pytestmark = pytest.mark.real_time

PATIENCE_S = 30.0
SUM = "What is 2 plus 3?"
LONG = "la " * 2_500


@contextmanager
def stored(folder: Path) -> Iterator[sqlite3.Connection]:
    """The database, opened as by another program."""
    with closing(sqlite3.connect(folder / "data" / "antiphon.db", isolation_level=None)) as connection:
        yield connection


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    with stored(folder) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


async def post(served: Served, message: str, **fields: Any) -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as client:
        return await client.post(f"{served.http}/api/chat", json={"message": message, **fields})


async def get_ready(served: Served) -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as client:
        return await client.get(f"{served.http}/ready")


def is_refused(answer: httpx2.Response) -> bool:
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["message"]) == (503, "unavailable", STORE_UNAVAILABLE)
    assert int(answer.headers["retry-after"]) > 0
    return True


async def error_after(caller: Caller, text: str) -> dict[str, Any]:
    """The error for a typed message. Other programs may be using all cores."""
    await caller.send("text_message", text=text)
    async with asyncio.timeout(PATIENCE_S):
        while not (errors := caller.every("error")):
            frame = await caller.socket.recv()
            caller.received.append(json.loads(frame))
    return errors[0]


async def until_ready(served: Served, status: int = 200) -> httpx2.Response:
    """A readiness result is cached for a moment, and the last page of a full disk may still be free."""
    for _ in range(50):
        ready = await get_ready(served)
        if ready.status_code == status:
            return ready
        await asyncio.sleep(0.5)
    pytest.fail(f"/ready does not become {status}")


async def test_readiness_reports_a_locked_store_while_a_message_waits_and_is_then_refused(tmp_path: Path) -> None:
    with serve(tmp_path) as served:
        with locked(tmp_path):
            waiting = asyncio.create_task(post(served, SUM))
            await asyncio.sleep(0.5)
            ready = await get_ready(served)
            assert not waiting.done()
            assert (ready.status_code, ready.json()["problems"]) == (503, [STORE_UNAVAILABLE])
            assert is_refused(await waiting)
        await until_ready(served)
        assert (await post(served, SUM)).status_code == 200


async def test_messages_waiting_for_a_locked_store_are_refused_together(tmp_path: Path) -> None:
    with serve(tmp_path) as served, locked(tmp_path):
        async with asyncio.timeout(PATIENCE_S):
            answers = await asyncio.gather(*(post(served, SUM) for _ in range(12)))
        assert all(map(is_refused, answers))


async def test_a_socket_learns_that_the_store_is_locked_and_its_message_is_accepted_later(tmp_path: Path) -> None:
    with serve(tmp_path) as served:
        async with call(served.url, {"mode": "text"}) as caller:
            with locked(tmp_path):
                error = await error_after(caller, SUM)
        assert (error["code"], error["message"], error["retryable"]) == ("unavailable", STORE_UNAVAILABLE, True)
        async with call(served.url, {"mode": "text"}) as again:
            assert "5" in await again.ask(SUM)


async def test_a_resume_during_a_store_lock_is_told_to_retry_and_then_succeeds(tmp_path: Path) -> None:
    with serve(tmp_path) as served:
        async with call(served.url, {"mode": "text"}) as caller:
            await caller.ask(SUM)
            await caller.socket.close(1001)
        hello = {"resume": caller.session["resume"], "last_n": caller.received[-1]["n"]}
        with locked(tmp_path):
            async with connect(served.url) as socket:
                early = Caller(socket)
                await early.send("hello", **hello)
                closing = await early.closing()
        assert [(error["code"], error["message"]) for error in early.every("error")] == [
            ("unavailable", STORE_UNAVAILABLE)
        ]
        assert (closing.code, closing.reason) == (1013, "the server cannot reach its database; try again later")
        async with call(served.url, hello) as again:
            assert again.session["resumed"] is True
            assert again.session["session_id"] == caller.session["session_id"]


async def test_a_full_disk_is_reported_by_every_entry_point(tmp_path: Path) -> None:
    with serve(tmp_path, limits=UNLIMITED, max_file_bytes=1 << 20) as served:
        for message in (LONG, SUM):
            while (answer := await post(served, message)).status_code == 200:
                pass
            assert is_refused(answer)
        assert (await until_ready(served, 503)).json()["problems"] == [STORE_UNAVAILABLE]
        async with call(served.url, {"mode": "text"}) as caller:
            error = await error_after(caller, LONG)
        assert (error["code"], error["message"]) == ("unavailable", STORE_UNAVAILABLE)


async def test_a_damaged_store_is_reported_too(tmp_path: Path) -> None:
    with serve(tmp_path) as served:
        with stored(tmp_path) as connection:
            connection.execute("DROP TABLE turns")
        assert is_refused(await post(served, SUM))
