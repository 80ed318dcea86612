"""A token that expires, or is revoked by another process, ends the connections that it opened."""

import asyncio
import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from websockets.asyncio.client import connect

from antiphon.security.tokens import hash_token
from antiphon.storage.sql import open_database
from tests.e2e.terminal import Terminal
from tests.fakes.chat_server import ChatServer, End, delta, stream
from tests.wire.caller import Caller, call, closing_after
from tests.wire.served import UNLIMITED, make_known, serve

pytestmark = pytest.mark.real_time

LOCKED = {"auth": "required"}


async def revoke(folder: Path, token: str) -> None:
    """Runs `antiphon token revoke` in its own process."""
    database = await open_database(folder / "data" / "antiphon.db")
    found = await database.tokens.find(hash_token(token), 0)
    await database.aclose()
    assert found is not None
    data = {"ANTIPHON_DATA_DIR": str(folder / "data")}
    shown = await asyncio.to_thread(Terminal(folder).run_process, "token", "revoke", found.id, **data)
    assert (shown.code, shown.out) == (0, f"Revoked {found.id}. Its open connections are closed within seconds.\n")


async def is_ended(caller: Caller) -> bool:
    close = await caller.closing()
    assert [error["code"] for error in caller.every("error")] == ["unauthenticated"]
    return close.code == 4401


async def test_a_revoked_token_ends_its_sockets_on_all_processes_and_no_other(tmp_path: Path) -> None:
    revoked, other = await make_known(tmp_path, "ann"), await make_known(tmp_path, "bob")
    with serve(tmp_path, server=LOCKED) as one, serve(tmp_path, server=LOCKED) as two:
        async with (
            call(one.url, {"token": revoked, "mode": "text"}) as first,
            call(two.url, {"mode": "text"}, additional_headers={"Authorization": f"Bearer {revoked}"}) as second,
            call(two.url, {"token": other, "mode": "text"}) as bystander,
        ):
            await first.ask("What is 2 plus 3?")
            await revoke(tmp_path, revoked)
            assert await is_ended(first)
            assert await is_ended(second)
            assert "5" in await bystander.ask("What is 2 plus 3?")
        hello = json.dumps({"type": "hello", "token": revoked, "resume": first.session["resume"]})
        code, refused = await closing_after(one.url, hello)
        assert code == 4401
        assert refused.every("session") == []


async def test_a_token_that_expires_ends_its_sockets(tmp_path: Path) -> None:
    token = await make_known(tmp_path, "ann")
    with serve(tmp_path, server=LOCKED) as served:
        async with call(served.url, {"token": token}) as caller:
            with closing(sqlite3.connect(tmp_path / "data" / "antiphon.db", isolation_level=None)) as connection:
                connection.execute("UPDATE tokens SET expires_ms = ?", [time.time_ns() // 1_000_000 + 500])
            assert await is_ended(caller)


async def test_the_current_answer_is_abandoned_when_its_token_is_revoked(tmp_path: Path) -> None:
    token = await make_known(tmp_path, "ann")
    endless = stream(delta(content="Once upon a time "), done=False, end=End.STALL)
    async with ChatServer(lambda request: endless) as model:
        with serve(tmp_path, server=LOCKED, model={"text": f"openai:{model.url}#m"}) as served:
            async with call(served.url, {"token": token, "mode": "text"}) as caller:
                await caller.send("text_message", text="Tell me a story.")
                await caller.until("response_chunk")
                await revoke(tmp_path, token)
                assert await is_ended(caller)
            await asyncio.wait_for(model.left.wait(), 10)


async def test_an_event_stream_ends_when_its_token_is_revoked(tmp_path: Path) -> None:
    token = await make_known(tmp_path, "ann")
    endless = stream(delta(content="Once upon a time "), done=False, end=End.STALL)
    headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
    async with ChatServer(lambda request: endless) as model, httpx2.AsyncClient(timeout=20, headers=headers) as client:
        with serve(tmp_path, server=LOCKED, model={"text": f"openai:{model.url}#m"}) as served:
            asking = client.stream("POST", f"{served.http}/api/chat", json={"message": "Tell me a story."})
            lines: list[str] = []
            async with asking as answer:
                async for line in answer.aiter_lines():
                    lines.append(line)
                    if line == "event: response_chunk":
                        await revoke(tmp_path, token)
        assert "event: error" in lines
        done = json.loads(lines[lines.index("event: done") + 1].removeprefix("data: "))
        assert done["error"]["code"] == "unauthenticated"
        await asyncio.wait_for(model.left.wait(), 10)


async def test_a_parked_session_of_a_revoked_token_is_stopped(tmp_path: Path) -> None:
    token = await make_known(tmp_path, "ann")
    endless = stream(delta(content="Once upon a time "), done=False, end=End.STALL)
    async with ChatServer(lambda request: endless) as model:
        with serve(tmp_path, server=LOCKED, limits=UNLIMITED, model={"text": f"openai:{model.url}#m"}) as served:
            async with connect(served.url) as socket:
                caller = Caller(socket)
                await caller.send("hello", token=token, mode="text")
                await caller.send("text_message", text="Tell me a story.")
                await caller.until("response_chunk")
                await socket.close(1001)
            await revoke(tmp_path, token)
            await asyncio.wait_for(model.left.wait(), 10)
