"""What a server in its own process tells about refusals, failures and itself."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from antiphon.security.quota import Kind, Limit, Rate
from antiphon.security.tokens import make_token
from tests.e2e.terminal import Terminal
from tests.fakes.chat_server import ChatServer, refusal
from tests.fakes.local_http import Received, Reply, served_in_thread
from tests.fakes.otlp_collector import collecting
from tests.wire.caller import call
from tests.wire.served import Served, make_known, serve

pytestmark = pytest.mark.real_time


async def get(served: Served, path: str, token: str | None = None, **headers: str) -> httpx2.Response:
    given = headers | ({} if token is None else {"Authorization": f"Bearer {token}"})
    async with httpx2.AsyncClient(timeout=20) as client:
        return await client.get(f"{served.http}{path}", headers=given)


async def metrics(served: Served, token: str | None = None) -> dict[tuple[str, ...], float]:
    """The samples, by their names and the values of their labels."""
    text = (await get(served, "/metrics", token)).text
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return {(sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value for sample in samples}


def lines(served: Served, event: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, served.log.splitlines()) if line["event"] == event]


async def test_refusals_are_counted_by_their_reason(tmp_path: Path) -> None:
    token = await make_known(tmp_path, "ann")
    limits = {
        Kind.WRONG_TOKEN: Limit(address=Rate(per_s=0.001, burst=2)),
        Kind.CONNECTION: Limit(user=Rate(per_s=0.001, burst=1)),
    }
    with serve(tmp_path, limits=limits, server={"auth": "required"}) as served:
        assert (await get(served, "/metrics", token)).status_code == 200
        assert (await get(served, "/api/tools")).status_code == 401
        for expected in (401, 401, 429):
            assert (await get(served, "/api/tools", make_token())).status_code == expected
        assert (await get(served, "/health", origin="https://evil.example")).status_code == 403
        assert (await get(served, "/health", host="evil.example")).status_code == 421
        async with httpx2.AsyncClient(timeout=20) as client:
            too_large = await client.post(f"{served.http}/api/chat", content=b"x" * (1024 * 1024 + 1))
            assert too_large.status_code == 413
            headers = {"Authorization": f"Bearer {token}"}
            for expected in (200, 429):
                told = await client.post(f"{served.http}/api/chat", json={"message": "hello"}, headers=headers)
                assert told.status_code == expected
        found = await metrics(served, token)
    assert {key[1]: value for key, value in found.items() if key[0] == "antiphon_auth_refusals_total"} == {
        "missing_token": 1,
        "wrong_token": 2,
        "too_many_wrong_tokens": 1,
        "blocked": 0,
    }
    assert {key[1]: value for key, value in found.items() if key[0] == "antiphon_request_refusals_total"} == {
        "wrong_origin": 1,
        "wrong_host": 1,
        "too_large": 1,
    }
    assert found["antiphon_quota_refusals_total", "connection"] == 1
    assert found["antiphon_turns_total", "text", "answered"] == 1


async def test_a_refused_origin_and_a_wrong_token_are_one_line_each_and_a_flood_is_not(tmp_path: Path) -> None:
    await make_known(tmp_path, "ann")
    wrong = make_token()
    with serve(tmp_path, server={"auth": "required"}) as served:
        await get(served, "/health", origin="https://evil.example")
        await get(served, "/api/tools", wrong)
        origin, token = lines(served, "request_refused")
        assert (origin["origin"], origin["address"]) == ("https://evil.example", "127.0.0.1")
        assert (token["reason"], token["address"]) == ("wrong token", "127.0.0.1")
        assert wrong not in served.log
        for _ in range(40):
            await get(served, "/health", origin="https://evil.example")
        assert len(lines(served, "request_refused")) < 20


async def test_a_failing_model_is_degraded_and_leaves_a_line_while_the_server_stays_ready(tmp_path: Path) -> None:
    async with ChatServer(lambda request: refusal(500, {"error": {"message": "broken"}})) as model:
        with serve(tmp_path, model={"text": f"openai:{model.url}#m"}) as served:
            async with call(served.url, {"mode": "text"}) as caller:
                await caller.send("text_message", text="tell me about the history of glass making in Venice")
                await caller.until("error")
            ready = await get(served, "/ready")
            assert (ready.status_code, ready.json()["status"]) == (200, "ok")
            [part] = [part for part in ready.json()["parts"] if part["name"] == "text_model"]
            assert part["status"] == "degraded"
            assert "HTTP 500" in part["message"]
            assert [(line["kind"], line["status"]) for line in lines(served, "model_failed")] == [("server_error", 500)]
            found = await metrics(served)
            assert found["antiphon_turns_total", "text", "failed"] == 1


# Traces, and the level of the log.


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "Only http/protobuf is supported"),
        ({"OTEL_TRACES_EXPORTER": "jaeger"}, "OTEL_TRACES_EXPORTER is 'jaeger'"),
    ],
)
def test_traces_that_cannot_be_made_are_announced_and_the_server_works(
    tmp_path: Path, variables: dict[str, str], says: str
) -> None:
    terminal = Terminal(tmp_path)
    given = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", **variables}
    with terminal.serve("--port", "0", "--json-log", **given) as announced:
        [line] = [line for line in announced if line.startswith("There are no traces: ")]
        assert says in line
    [logged] = [line for line in (tmp_path / "log").read_text().splitlines() if "tracing_not_available" in line]
    assert says in json.loads(logged)["reason"]


async def test_a_server_that_stops_sends_its_last_spans(tmp_path: Path) -> None:
    with collecting() as collector:
        with Terminal(tmp_path).serve("--port", "0", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url) as announced:
            await ask(announced, "what is 17 times 6")
            # The exporter sends every five seconds.
            assert collector.spans == []
        [turn] = collector.turns
        assert sorted(turn.names) == ["model", "model", "tool calculate"]


async def test_a_collector_that_does_not_answer_keeps_no_server_from_stopping(tmp_path: Path) -> None:
    def hang(request: Received) -> Reply:
        return Reply(delay_s=60)

    loop = asyncio.get_running_loop()
    with served_in_thread(hang) as url:
        with Terminal(tmp_path).serve("--port", "0", "--json-log", OTEL_EXPORTER_OTLP_ENDPOINT=url) as announced:
            await ask(announced, "what is 17 times 6")
            stopped_s = loop.time()
        assert loop.time() - stopped_s < 20
    assert "spans_not_sent" in (tmp_path / "log").read_text()


@pytest.mark.parametrize(("level", "is_logged"), [("info", True), ("warning", False)])
async def test_lines_below_the_log_level_are_not_written(tmp_path: Path, level: str, is_logged: bool) -> None:
    with Terminal(tmp_path).serve("--port", "0", ANTIPHON_SERVER__LOG_LEVEL=level) as announced:
        url = address(announced)
        async with call(url, {"mode": "text"}), httpx2.AsyncClient(timeout=20) as client:
            changed = await client.put(f"{http_of(url)}/api/energy", json={"mode": "text", "level": 1})
            assert changed.status_code == 200
    assert ("energy_changed" in (tmp_path / "log").read_text()) is is_logged


async def test_the_flag_for_the_log_level_wins_over_the_setting(tmp_path: Path) -> None:
    words = ("--port", "0", "--log-level", "error")
    with Terminal(tmp_path).serve(*words, ANTIPHON_SERVER__LOG_LEVEL="info") as announced:
        async with httpx2.AsyncClient(timeout=20) as client:
            await client.get(f"{http_of(address(announced))}/health", headers={"origin": "https://evil.example"})
    assert "request_refused" not in (tmp_path / "log").read_text()


def address(announced: list[str]) -> str:
    [line] = [line for line in announced if "WebSocket: " in line]
    return line.rpartition("WebSocket: ")[2].rstrip(").")


def http_of(url: str) -> str:
    return url.replace("ws:", "http:").removesuffix("/ws")


async def ask(announced: list[str], text: str) -> None:
    async with call(address(announced), {"mode": "text"}) as caller:
        assert "102" in await caller.ask(text)
        await caller.until("turn_metrics")
