"""The SDK's own client at `/mcp`, in both generations of the protocol."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ElicitRequest, ElicitResult, InputRequiredResult

from tests.wire.caller import call
from tests.wire.served import UNLIMITED, Served, add_token, serve
from tests.wire.test_confirmation import ARGS, QUESTION, write_garden

pytestmark = pytest.mark.real_time

MODES: Final = ("legacy", "2026-07-28")
YES: Final = ElicitResult(action="accept", content={"approve": True})
NO: Final = ElicitResult(action="decline")
HALF: Final = ElicitResult(action="accept", content={"approve": False})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mcp")


@pytest.fixture(scope="module")
def tokens(folder: Path) -> dict[str, str]:
    return {user: add_token(folder, user) for user in ("ann", "bob")}


@pytest.fixture(scope="module")
def garden(folder: Path) -> Path:
    return write_garden(folder)


@pytest.fixture(scope="module")
def served(folder: Path, tokens: dict[str, str], garden: Path) -> Iterator[Served]:
    with serve(folder, limits=UNLIMITED, server={"auth": "required"}) as served:
        yield served


class Watered:
    """What the tool has done: each run adds a line to a file."""

    def __init__(self, garden: Path) -> None:
        self._file = garden / "watered"

    @property
    def places(self) -> list[str]:
        return self._file.read_text().splitlines() if self._file.exists() else []

    def forget(self) -> None:
        self._file.unlink(missing_ok=True)


@pytest.fixture
def watered(garden: Path) -> Iterator[Watered]:
    made = Watered(garden)
    yield made
    made.forget()


@asynccontextmanager
async def client_of(
    served: Served, token: str, mode: str, answer: ElicitResult | None = None, asked: list[str] | None = None
) -> AsyncIterator[Client]:
    """A stock client. With an `answer` it can ask its person, who always says that; `asked` gets the questions."""

    async def ask(context: Any, params: Any) -> ElicitResult:
        if asked is not None:
            asked.append(params.message)
        assert answer is not None
        return answer

    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=20) as http:
        streams = streamable_http_client(f"{served.http}/mcp", http_client=http)
        async with Client(streams, mode=mode, elicitation_callback=None if answer is None else ask) as client:
            yield client


def data_of(result: CallToolResult) -> Any:
    return result.structured_content


# Tools.


@pytest.mark.parametrize("mode", [*MODES, "auto"])
async def test_a_stock_client_lists_and_calls_tools(served: Served, tokens: dict[str, str], mode: str) -> None:
    async with client_of(served, tokens["ann"], mode) as client:
        assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"calculate", "water_plants", "say", "ask", "notify"} <= tools.keys()
        result = await client.call_tool("calculate", {"expression": "6 * 7"})
        assert data_of(result)["result"] == 42
        assert not result.is_error


async def test_tools_say_what_they_are(served: Served, tokens: dict[str, str]) -> None:
    async with client_of(served, tokens["ann"], "auto") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    reads, writes = tools["calculate"], tools["water_plants"]
    assert reads.title == "Calculate"
    assert reads.annotations is not None
    assert writes.annotations is not None
    assert (reads.annotations.read_only_hint, reads.annotations.idempotent_hint) == (True, True)
    assert (writes.annotations.read_only_hint, writes.annotations.destructive_hint) == (False, True)


@pytest.mark.parametrize("name", ["no_such_tool", "ignore_user", "start_voice_session", "end_voice_session"])
@pytest.mark.parametrize("mode", MODES)
async def test_an_unknown_tool_is_an_error_of_the_protocol(
    served: Served, tokens: dict[str, str], mode: str, name: str
) -> None:
    async with client_of(served, tokens["ann"], mode) as client:
        assert name not in {tool.name for tool in (await client.list_tools()).tools}
        with pytest.raises(MCPError, match=f"There is no tool called '{name}'"):
            await client.call_tool(name, {})


async def test_wrong_arguments_are_an_error_that_the_model_can_read(served: Served, tokens: dict[str, str]) -> None:
    async with client_of(served, tokens["ann"], "auto") as client:
        result = await client.call_tool("calculate", {"sum": "6 * 7"})
        assert result.is_error
        assert data_of(result)["error"]["type"] == "VALIDATION"


# Confirmation.


@pytest.mark.parametrize("mode", MODES)
async def test_the_person_at_the_client_approves(
    served: Served, tokens: dict[str, str], watered: Watered, mode: str
) -> None:
    asked: list[str] = []
    async with client_of(served, tokens["ann"], mode, YES, asked) as client:
        result = await client.call_tool("water_plants", ARGS)
        assert data_of(result) == {"watered": "garden"}
        assert asked == [QUESTION]
    assert watered.places == ["garden"]


@pytest.mark.parametrize("answer", [NO, HALF, ElicitResult(action="cancel")], ids=["decline", "not approved", "cancel"])
@pytest.mark.parametrize("mode", MODES)
async def test_what_the_person_does_not_approve_is_not_done(
    served: Served, tokens: dict[str, str], watered: Watered, mode: str, answer: ElicitResult
) -> None:
    async with client_of(served, tokens["ann"], mode, answer) as client:
        result = await client.call_tool("water_plants", ARGS)
        assert result.is_error
        assert "declined" in data_of(result)["error"]["message"]
    assert not watered.places


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_cannot_ask_gets_the_preview(
    served: Served, tokens: dict[str, str], watered: Watered, mode: str
) -> None:
    async with client_of(served, tokens["ann"], mode) as client:
        error = data_of(await client.call_tool("water_plants", ARGS))["error"]
        assert (error["type"], error["preview"]) == ("CONFIRMATION_REQUIRED", QUESTION)
        assert "token" not in str(error)
    assert not watered.places


async def ask_to_water(client: Client) -> InputRequiredResult:
    asked = await client.session.call_tool("water_plants", ARGS, allow_input_required=True)
    assert isinstance(asked, InputRequiredResult)
    assert isinstance((asked.input_requests or {})["confirm"], ElicitRequest)
    return asked


async def answer(client: Client, asked: InputRequiredResult, args: Any = ARGS) -> CallToolResult:
    state = asked.request_state
    return await client.session.call_tool("water_plants", args, input_responses={"confirm": YES}, request_state=state)


async def test_an_approval_counts_once(served: Served, tokens: dict[str, str], watered: Watered) -> None:
    async with client_of(served, tokens["ann"], "2026-07-28", YES) as client:
        asked = await ask_to_water(client)
        first, second = await asyncio.gather(answer(client, asked), answer(client, asked))
        assert sorted([first.is_error, second.is_error]) == [False, True]
    assert watered.places == ["garden"]


async def test_an_approval_is_for_the_call_that_was_shown(
    served: Served, tokens: dict[str, str], watered: Watered
) -> None:
    async with client_of(served, tokens["ann"], "2026-07-28", YES) as client:
        result = await answer(client, await ask_to_water(client), {"place": "roof"})
        assert data_of(result)["error"]["type"] == "VALIDATION"
    assert not watered.places


async def test_another_user_cannot_approve(served: Served, tokens: dict[str, str], watered: Watered) -> None:
    async with client_of(served, tokens["ann"], "2026-07-28", YES) as client:
        asked = await ask_to_water(client)
    async with client_of(served, tokens["bob"], "2026-07-28", YES) as client:
        assert data_of(await answer(client, asked))["error"]["type"] == "NOT_FOUND"
    assert not watered.places


@pytest.mark.parametrize("state", ["", "x", "a.b.c", "mcp-1.99999999999999999999.t"])
async def test_a_state_that_is_not_one_of_ours_is_refused(
    served: Served, tokens: dict[str, str], watered: Watered, state: str
) -> None:
    async with client_of(served, tokens["ann"], "2026-07-28", YES) as client:
        with pytest.raises(MCPError, match="The request state is not valid"):
            await answer(client, InputRequiredResult(request_state=state))
    assert not watered.places


async def test_a_made_up_approval_does_nothing(served: Served, tokens: dict[str, str], watered: Watered) -> None:
    async with client_of(served, tokens["ann"], "2026-07-28", YES) as client:
        result = await answer(client, InputRequiredResult(request_state="mcp-1.1.made-up"))
        assert data_of(result)["error"]["type"] == "NOT_FOUND"
    assert not watered.places


# Sessions.


@pytest.mark.parametrize("mode", MODES)
async def test_say_ask_and_notify_need_somebody_who_is_connected(
    served: Served, tokens: dict[str, str], mode: str
) -> None:
    calls = {"say": {"text": "Hi."}, "ask": {"question": "Hm?"}, "notify": {"text": "Hi."}}
    async with client_of(served, tokens["bob"], mode) as client:
        for name, args in calls.items():
            error = data_of(await client.call_tool(name, args))["error"]
            assert error["type"] == "SESSION_INACTIVE"
            assert error["message"].startswith("Nobody is connected to Antiphon now.")


async def test_say_and_notify_reach_the_newest_session_of_the_user(served: Served, tokens: dict[str, str]) -> None:
    async with (
        client_of(served, tokens["ann"], "auto") as client,
        call(served.url, {"token": tokens["bob"]}) as other,
        call(served.url, {"token": tokens["ann"]}) as old,
        call(served.url, {"token": tokens["ann"]}) as new,
    ):
        said = await client.call_tool("say", {"text": "Dinner is ready."})
        assert data_of(said)["session_id"] == new.session["session_id"]
        assert (await new.until("response"))["text"] == "Dinner is ready."
        await client.call_tool("notify", {"text": "The oven is hot.", "kind": "warning"})
        notice = await new.until("notice")
        assert (notice["kind"], notice["text"], notice["code"]) == ("warning", "The oven is hot.", "mcp")
        chosen = {"text": "And here?", "session_id": old.session["session_id"]}
        await client.call_tool("say", chosen)
        assert (await old.until("response"))["text"] == "And here?"
        wrong = {"text": "Me too?", "session_id": other.session["session_id"]}
        assert data_of(await client.call_tool("say", wrong))["error"]["type"] == "NOT_FOUND"
        assert await other.is_answered()
        assert not other.every("response")


async def test_ask_returns_what_the_user_says_next(served: Served, tokens: dict[str, str]) -> None:
    async with (
        client_of(served, tokens["ann"], "auto") as client,
        call(served.url, {"token": tokens["ann"]}) as person,
    ):
        asking = asyncio.create_task(client.call_tool("ask", {"question": "Which colour?"}))
        assert (await person.until("response"))["text"] == "Which colour?"
        await person.until("state", state="idle")
        await person.send("text_message", text="the blue one")
        assert data_of(await asking)["answer"] == "the blue one"
        assert (await person.until("response"))["text"] == "Thank you, I'll pass that on."
        await person.until("state", state="idle")
        assert await person.ask("what is 2 plus 3") == "2 plus 3 is 5."


async def test_ask_gives_up_after_a_while(served: Served, tokens: dict[str, str]) -> None:
    async with (
        client_of(served, tokens["ann"], "auto") as client,
        call(served.url, {"token": tokens["ann"]}) as person,
    ):
        error = data_of(await client.call_tool("ask", {"question": "Anybody?", "timeout_s": 1}))["error"]
        assert (error["type"], error["message"]) == ("TRANSIENT", "There was no answer within 1 seconds.")
        await person.until("response")
        await person.until("state", state="idle")
        assert await person.ask("what is 2 plus 3") == "2 plus 3 is 5."


# The door.


def post(served: Served, **headers: str) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"Accept": "application/json, text/event-stream"}
    return httpx2.post(f"{served.http}/mcp", json=body, headers={**accept, **headers})


def test_a_token_is_required(served: Served) -> None:
    refused = post(served)
    assert refused.status_code == 401
    assert "antiphon token new" in refused.json()["error"]["message"]


def test_a_page_of_another_origin_is_refused(served: Served, tokens: dict[str, str]) -> None:
    assert post(served, Authorization=f"Bearer {tokens['ann']}", Origin="https://evil.example").status_code == 403


def test_a_wrong_host_is_refused(served: Served, tokens: dict[str, str]) -> None:
    assert post(served, Authorization=f"Bearer {tokens['ann']}", Host="evil.example").status_code == 421


def test_a_body_that_is_too_large_is_refused(served: Served, tokens: dict[str, str]) -> None:
    headers = {"Authorization": f"Bearer {tokens['ann']}", "Accept": "application/json, text/event-stream"}
    assert httpx2.post(f"{served.http}/mcp", content=b"x" * 300_000, headers=headers).status_code == 413


async def test_a_session_belongs_to_its_user(served: Served, tokens: dict[str, str]) -> None:
    async with client_of(served, tokens["ann"], "legacy"):
        begin = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        }
        accept = {"Accept": "application/json, text/event-stream"}
        async with httpx2.AsyncClient(headers=accept) as http:
            own = {"Authorization": f"Bearer {tokens['ann']}"}
            begun = await http.post(f"{served.http}/mcp", json=begin, headers=own)
            stolen = {"Authorization": f"Bearer {tokens['bob']}", "Mcp-Session-Id": begun.headers["mcp-session-id"]}
            refused = await http.post(f"{served.http}/mcp", json={**begin, "method": "tools/list"}, headers=stolen)
    assert refused.status_code == 404


async def test_a_request_that_is_delivered_twice_runs_once(
    served: Served, tokens: dict[str, str], folder: Path
) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = {
        "jsonrpc": "2.0",
        "id": "request-0123456789",
        "method": "tools/call",
        "params": {"name": "calculate", "arguments": {"expression": "1 + 1"}, "_meta": meta},
    }
    headers = {
        "Authorization": f"Bearer {tokens['ann']}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "calculate",
    }
    async with httpx2.AsyncClient(headers=headers) as http:
        answers = [await http.post(f"{served.http}/mcp", json=body) for _ in range(2)]
    assert [each.json()["result"]["structuredContent"]["result"] for each in answers] == [2, 2]
    with closing(sqlite3.connect(folder / "data" / "antiphon.db")) as database:
        found = database.execute("SELECT count(*) FROM calls WHERE provider_key = 'provider:request-0123456789'")
        assert found.fetchone()[0] == 1


def test_nothing_of_this_is_an_error_of_the_server(served: Served) -> None:
    assert not served.failures
