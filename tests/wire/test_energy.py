"""Energy over HTTP and the WebSocket of a real server: levels, rate limits, manual changes, and who may make them."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.fakes.chat_server import ChatServer, refusal
from tests.fakes.scripted_live import Say
from tests.wire.caller import call
from tests.wire.served import UNLIMITED, Served, add_token, serve

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("energy")


@pytest.fixture(scope="module")
def users(folder: Path) -> dict[str, str]:
    return {user: add_token(folder, user) for user in ("ann", "bob")}


@pytest.fixture(scope="module")
def server(folder: Path, users: dict[str, str]) -> Iterator[Served]:
    """A server with a voice, where some callers have tokens, and others are the operator."""
    with serve(folder, voice=[Say("Hello.")], limits=UNLIMITED, continuity={"resume_hours": 5}) as served:
        yield served


@pytest.fixture
async def http(server: Served) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=server.http, trust_env=False) as client:
        yield client


def shows(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_a_session_begins_with_the_best_models(server: Served) -> None:
    async with call(server.url, {"mode": "text"}) as caller:
        assert caller.session["energy"] == {"voice": 3, "text": 2}
        assert caller.session["expires_in_s"] == 5 * 3600


async def test_a_level_that_is_set_is_told_to_the_client_and_logged(server: Served, http: httpx2.AsyncClient) -> None:
    async with call(server.url, {"mode": "text"}) as caller:
        id = caller.session["session_id"]
        changed = await http.put("/api/energy", json={"mode": "voice", "level": 2, "session_id": id})
        told = await caller.until("energy")
        assert {name: told[name] for name in ("mode", "level", "previous", "max", "reason")} == {
            "mode": "voice",
            "level": 2,
            "previous": 3,
            "max": 3,
            "reason": "manual",
        }
        assert [each["voice"] for each in changed.json()["sessions"]] == [2]
        assert "5" in await caller.ask("What is 2 plus 3?")
    lines = [json.loads(line) for line in server.log.splitlines()]
    [logged] = [line for line in lines if line["event"] == "energy_changed" and line["session"] == id]
    assert {name: logged[name] for name in ("mode", "energy", "previous", "reason", "model")} == {
        "mode": "voice",
        "energy": 2,
        "previous": 3,
        "reason": "manual",
        "model": told["model"],
    }


async def test_a_renewed_session_answers_with_its_context(server: Served, http: httpx2.AsyncClient) -> None:
    async with call(server.url, {"mode": "text"}) as caller:
        assert "5" in await caller.ask("What is 2 plus 3?")
        renewed = await http.post(f"/api/sessions/{caller.session['session_id']}/renew")
        assert (renewed.status_code, renewed.json()["mode"]) == (200, "text")
        assert "9" in await caller.ask("What is 4 plus 5?")


async def test_a_user_neither_sees_nor_changes_the_sessions_of_others(
    server: Served, http: httpx2.AsyncClient, users: dict[str, str]
) -> None:
    async with call(server.url, {"token": users["ann"], "mode": "text"}) as caller:
        id = caller.session["session_id"]
        bob = shows(users["bob"])
        assert (await http.get("/api/energy", headers=bob)).json()["sessions"] == []
        for refused in (
            await http.put("/api/energy", json={"mode": "text", "level": 0, "session_id": id}, headers=bob),
            await http.put("/api/energy", json={"mode": "text", "level": 0}, headers=bob),
            await http.post(f"/api/sessions/{id}/renew", headers=bob),
        ):
            assert (refused.status_code, refused.json()["error"]["code"]) == (404, "not_found")
        ids = [each["session_id"] for each in (await http.get("/api/energy")).json()["sessions"]]
        assert id in ids, "who needs no token is the operator"
        assert (await http.post(f"/api/sessions/{id}/renew", headers=shows(users["ann"]))).status_code == 200
        assert "5" in await caller.ask("What is 2 plus 3?")


@pytest.mark.parametrize("method", ["PUT", "POST"])
async def test_a_page_of_another_origin_changes_nothing(server: Served, http: httpx2.AsyncClient, method: str) -> None:
    async with call(server.url, {"mode": "text"}) as caller:
        id = caller.session["session_id"]
        path = "/api/energy" if method == "PUT" else f"/api/sessions/{id}/renew"
        body = json.dumps({"mode": "text", "level": 0})
        refused = await http.request(method, path, content=body, headers={"Origin": "https://evil.example"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "wrong_origin")
        assert "5" in await caller.ask("What is 2 plus 3?")


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"mode": "voice", "level": 1e400}', b"\xff", b"[" * 60_000])
async def test_a_body_that_is_no_request_is_refused(server: Served, http: httpx2.AsyncClient, body: bytes) -> None:
    refused = await http.put("/api/energy", content=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_request")
    assert server.failures == []


async def test_a_rate_limited_text_model_is_replaced_by_the_offline_assistant(tmp_path: Path) -> None:
    limited = refusal(429, {"error": {"message": "slow down"}}, retry_after="40")
    async with ChatServer(lambda request: limited, hides_warm_ups=True) as chat:
        model: dict[str, Any] = {"text": f"openai:{chat.url}#big", "local_first": False}
        with serve(tmp_path, model=model, limits=UNLIMITED) as served:
            async with (
                call(served.url, {"mode": "text"}) as caller,
                httpx2.AsyncClient(base_url=served.http, trust_env=False) as http,
            ):
                assert "5" in await caller.ask("What is 2 plus 3?")
                [told] = caller.every("energy")
                assert (told["level"], told["reason"], told["model"]) == (1, "rate-limit-exceeded", "builtin")
                assert told["requires_fallback"] is True
                [ladder] = (await http.get("/api/energy")).json()["ladders"]
                assert (ladder["best"], ladder["rungs"][0]["model"]) == (1, "openai:big")
                assert 0 < ladder["rungs"][0]["cooling_s"] <= 40
                names = {each["name"]: each["levels"] for each in (await http.get("/api/models")).json()["models"]}
                assert names == {"openai:big": [2], "builtin": [1]}
                ready = (await http.get("/ready")).json()
                assert ready["model"]["last_failure"]["kind"] == "rate_limited"
                assert [each["name"] for each in ready["fallback_models"]] == ["builtin"]
                metrics = (await http.get("/metrics")).text
                assert 'antiphon_energy_changes_total{mode="text",reason="rate-limit-exceeded"} 1.0' in metrics
                assert 'antiphon_model_fallbacks_total{mode="text"} 1.0' in metrics
                assert 'antiphon_energy_level{level="1",mode="text"} 1.0' in metrics
            assert "slow down" not in served.log
