"""What a session may still do after its token was revoked: nothing."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress

import pytest

from antiphon.protocol import server_messages as s
from antiphon.server.authenticator import CHECK_EVERY_S, end_revoked
from antiphon.storage.base import StoreUnavailable
from antiphon.storage.people import TokenRecord
from antiphon.tools.call import ToolCall
from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok
from tests.fakes.calls import Client
from tests.fakes.gates import Counted, make_tool
from tests.fakes.web import WebApp, WebApps


@asynccontextmanager
async def checked(web: WebApp) -> AsyncIterator[None]:
    task = asyncio.create_task(end_revoked(web.server.hub, web.server.database.tokens))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def enter(web: WebApp) -> Client:
    await web.server.database.tokens.add(TokenRecord("t1", "ann", "", "hash", 0, None))
    client = await Client(web.server).enter()
    assert client.live is not None
    client.live.token_id = "t1"
    return client


async def wait(args: Args, context: Context) -> ToolResult:
    await asyncio.sleep(CHECK_EVERY_S * 1.5)
    return ok({})


async def test_no_tool_runs_after_the_revocation(apps: WebApps) -> None:
    second = Counted()
    web = apps.open(
        make_tool("wait", Counted(wait), latency_budget_ms=60_000),
        make_tool("second", second),
        text=[[ToolCall(None, "wait", {})], [ToolCall(None, "second", {})], "Done."],
    )
    async with checked(web):
        client = await enter(web)
        await client.write("go", 0.1)
        await web.server.database.tokens.revoke("t1")
        await asyncio.sleep(60)
    assert second.runs == 0
    assert client.link.closed is not None
    assert client.link.closed.code == 4401
    assert [error.code for error in client.every(s.Error)] == ["unauthenticated"]
    assert web.server.hub.sessions == {}


async def test_a_temporary_store_failure_ends_no_session_but_a_later_check_does(
    apps: WebApps, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = apps.open(text=[])
    tokens = web.server.database.tokens
    valid = tokens.valid
    is_down = True

    async def fail_at_first(ids: Collection[str], now_ms: int) -> Collection[str]:
        if is_down:
            raise StoreUnavailable("The database is locked.")
        return await valid(ids, now_ms)

    monkeypatch.setattr(tokens, "valid", fail_at_first)
    async with checked(web):
        client = await enter(web)
        await tokens.revoke("t1")
        await asyncio.sleep(CHECK_EVERY_S * 3)
        assert client.link.closed is None
        is_down = False
        await asyncio.sleep(CHECK_EVERY_S * 2)
    assert client.link.closed is not None


async def test_a_session_without_a_token_continues(apps: WebApps) -> None:
    web = apps.open(text=["Hello."])
    async with checked(web):
        client = await Client(web.server).enter()
        await asyncio.sleep(CHECK_EVERY_S * 3)
        await client.write("hi")
    assert client.last(s.Response).text.strip() == "Hello."
