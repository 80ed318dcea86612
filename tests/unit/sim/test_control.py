"""The control port: it arms faults, shows them, the log and the sessions, and refuses web pages."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from antiphon.server.serving import listen
from antiphon.sim.control import make_control
from antiphon.sim.serving import serving
from antiphon.sim.wire import Wires
from tests.unit.sim.simulated import Simulated, simulate_gemini, text

pytestmark = pytest.mark.real_time


@asynccontextmanager
async def controlled() -> AsyncIterator[tuple[Simulated, httpx2.AsyncClient]]:
    simulated, _ = simulate_gemini()
    sockets = listen("127.0.0.1", 0)
    url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
    control = make_control(simulated.injector, simulated.vendor.vocabulary)
    async with serving(control, sockets, wires=Wires()), httpx2.AsyncClient(base_url=url) as client:
        yield simulated, client
    for each in sockets:
        each.close()


async def test_a_fault_can_be_added_listed_and_removed() -> None:
    fault = {"when": {"audio_chunk": 2}, "do": [{"close": {"code": 1011}}, "silence"], "times": 3}
    async with controlled() as (_, control):
        added = await control.post("/faults", json=fault)
        assert (added.status_code, added.json()) == (201, {"ids": [1]})
        (listed,) = (await control.get("/faults")).json()["faults"]
        assert listed == {
            "id": 1,
            "when": {"audio_chunk": 2},
            "do": [{"close": {"code": 1011, "reason": ""}}, {"silence": {}}],
            "connection": None,
            "skip": 0,
            "times": 3,
            "performed": 0,
        }
        assert (await control.delete("/faults/1")).status_code == 204
        assert (await control.delete("/faults/1")).status_code == 404
        await control.post("/faults", json=[fault, fault])
        await control.delete("/faults")
        assert (await control.get("/faults")).json() == {"faults": []}


async def test_an_added_fault_happens() -> None:
    async with controlled() as (simulated, control), simulated.gemini() as client:
        await control.post("/faults", content="when: {audio_chunk: 2}\ndo: {close: {code: 1008}}")
        client.say(text("hello"))
        assert (await client.closed())[0] == 1008


async def test_now_is_now_or_an_error() -> None:
    now = {"when": "now", "do": {"close": {"code": 1012}}}
    async with controlled() as (simulated, control):
        refused = await control.post("/faults", json=now)
        assert (refused.status_code, refused.json()) == (400, {"error": "no connection is open."})
        async with simulated.gemini() as client:
            assert (await control.post("/faults", json=now)).json() == {"ids": []}
            assert (await client.closed())[0] == 1012


async def test_the_log_can_be_read_from_an_entry_on_and_cleared() -> None:
    async with controlled() as (simulated, control):
        async with simulated.gemini():
            pass
        entries: list[dict[str, Any]] = (await control.get("/log")).json()["entries"]
        assert [entry["event"] for entry in entries] == ["connect", "client", "server", "disconnect"]
        assert (await control.get("/log", params={"after": 3})).json()["entries"] == entries[3:]
        assert (await control.get("/log", params={"after": "x"})).status_code == 400
        await control.delete("/log")
        assert (await control.get("/log")).json()["entries"] == []


async def test_sessions_show_handles_and_open_calls() -> None:
    async with controlled() as (simulated, control), simulated.gemini() as client:
        client.say(text("hello"))
        await client.heard_until("sessionResumptionUpdate")
        client.say(text("call"))
        await client.heard()
        shown = (await control.get("/sessions")).json()
    (connection,), (session,) = shown["connections"], shown["sessions"]
    assert (connection["connection"], connection["client_messages"]) == (1, 3)
    assert (session["handles"], session["open_calls"]) == (1, ["call-1"])


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (json.dumps({"when": "connect", "do": "clse"}), 'Did you mean "close"?'),
        ("when: [", "neither JSON nor YAML"),
        ("", "a fault is a mapping"),
        ("x" * 1_000_001, "longer than"),
    ],
    ids=["unknown action", "not YAML", "empty", "too long"],
)
async def test_a_bad_body_is_a_clear_error(body: str, told: str) -> None:
    async with controlled() as (_, control):
        refused = await control.post("/faults", content=body)
    assert refused.status_code == 400
    assert told in refused.json()["error"]


@pytest.mark.parametrize("headers", [{"origin": "https://evil.example"}, {"host": "evil.example"}])
async def test_web_pages_are_refused(headers: dict[str, str]) -> None:
    async with controlled() as (_, control):
        assert (await control.get("/faults", headers=headers)).status_code == 403
