"""The operator's interface of a real server: who may enter, and what remains of sessions that are over."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from antiphon.security.quota import Kind, Limit, Rate
from antiphon.security.tokens import make_token
from tests.fakes.toolbox import write_tool
from tests.wire.caller import call
from tests.wire.served import UNLIMITED, Served, add_token, serve

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("admin")


@pytest.fixture(scope="module")
def tokens(folder: Path) -> dict[str, str]:
    return {"ann": add_token(folder, "ann"), "ada": add_token(folder, "ada", is_admin=True)}


@pytest.fixture(scope="module")
def server(folder: Path, tokens: dict[str, str]) -> Iterator[Served]:
    """A server that requires no tokens, whose tools are locked."""
    write_tool(folder / "tools", "greet")
    with serve(folder, limits=UNLIMITED, server={"environment": "production"}) as served:
        yield served


@pytest.fixture
async def http(server: Served) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=server.http, trust_env=False, timeout=30) as client:
        yield client


def shows(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_the_page_is_served_with_the_policy_of_the_other_page(http: httpx2.AsyncClient) -> None:
    page, other = await http.get("/admin"), await http.get("/")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert page.headers["content-security-policy"] == other.headers["content-security-policy"]
    assert "admin.js" in page.text


async def test_an_admin_token_is_needed_even_where_no_token_is(
    http: httpx2.AsyncClient, tokens: dict[str, str]
) -> None:
    assert (await http.get("/api/tools")).status_code == 200
    refused = await http.get("/api/admin/sessions")
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert "`antiphon token new --admin`" in refused.json()["error"]["message"]
    assert (await http.get("/api/admin/sessions", headers=shows(tokens["ann"]))).status_code == 403
    assert (await http.get("/api/admin/sessions", headers=shows(make_token()))).status_code == 401
    assert (await http.get("/api/admin/sessions", headers=shows(tokens["ada"]))).status_code == 200


async def test_wrong_tokens_are_limited(tmp_path: Path) -> None:
    limits = {Kind.WRONG_TOKEN: Limit(address=Rate(per_s=0.01, burst=2))}
    with serve(tmp_path, limits=limits) as served:
        async with httpx2.AsyncClient(base_url=served.http, trust_env=False, timeout=30) as client:
            found = [await client.get("/api/admin/status", headers=shows(make_token())) for _ in range(3)]
    assert [each.status_code for each in found] == [401, 401, 429]


async def test_the_timeline_of_a_session_that_is_over_has_its_latencies_and_the_reader_is_logged(
    server: Served, http: httpx2.AsyncClient, tokens: dict[str, str]
) -> None:
    admin = shows(tokens["ada"])
    async with call(server.url, {"mode": "text", "token": tokens["ann"]}) as caller:
        assert "5" in await caller.ask("What is 2 plus 3?")
        id, session = caller.session["conversation_id"], caller.session["session_id"]
        listed = (await http.get("/api/admin/sessions?user=ann", headers=admin)).json()["sessions"]
        assert [(each["id"], each["connected"]) for each in listed if each["id"] == session] == [(session, True)]

    async def read() -> dict[str, Any]:
        answer = await http.get(f"/api/admin/conversations/{id}", headers=admin)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    told = await read()
    while not any(each["kind"] == "latency" for each in told["entries"]):
        await asyncio.sleep(0.2)
        told = await read()
    kinds = [each["kind"] for each in told["entries"]]
    assert kinds == ["said", "tool", "said", "latency"]
    tool = told["entries"][1]
    assert (tool["tool"], tool["outcome"], tool["session"]) == ("calculate", "ok", session)
    lines = [json.loads(line) for line in server.log.splitlines()]
    logged = [line for line in lines if line["event"] == "admin_read_conversation"]
    assert {(line["admin"], line["owner"], line["conversation"]) for line in logged} == {("ada", "ann", id)}
    audited = (await http.get(f"/api/admin/audit?conversation={id}", headers=admin)).json()["lines"]
    events = {(each["line"]["user"], each["line"].get("event")) for each in audited}
    assert events == {("ann", None), ("ada", "admin_read_conversation")}


async def test_tools_that_changed_on_disk_are_compared_and_not_loaded(
    server: Served, folder: Path, http: httpx2.AsyncClient, tokens: dict[str, str]
) -> None:
    admin = shows(tokens["ada"])
    loaded = (await http.get("/api/admin/tools", headers=admin)).json()
    assert loaded["locked"] is True
    assert "greet" in [each["id"] for each in loaded["tools"] if each["from_files"]]
    write_tool(folder / "tools", "greet", version="9.0.0")
    write_tool(folder / "tools", "wave")
    found = (await http.get("/api/admin/tools/changes", headers=admin)).json()
    assert found["running"] == loaded["built_version"] != found["on_disk"]
    assert {each["tool"]: each["kind"] for each in found["tools"]} == {"greet": "changed", "wave": "added"}
    assert (await http.get("/api/admin/tools", headers=admin)).json()["version"] == loaded["version"]


async def test_a_token_that_was_revoked_no_longer_works(
    folder: Path, http: httpx2.AsyncClient, tokens: dict[str, str]
) -> None:
    admin = shows(tokens["ada"])
    listed = (await http.get("/api/admin/tokens", headers=admin)).json()["tokens"]
    [ann] = [each["id"] for each in listed if each["user"] == "ann"]
    assert (await http.get("/api/conversations", headers=shows(tokens["ann"]))).status_code == 200
    assert (await http.delete(f"/api/admin/tokens/{ann}", headers=admin)).status_code == 204
    assert (await http.get("/api/conversations", headers=shows(tokens["ann"]))).status_code == 401
