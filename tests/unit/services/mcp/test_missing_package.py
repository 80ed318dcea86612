"""Without the package `mcp`, Antiphon starts, and says what is missing when it is needed."""

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from antiphon.clock import SystemClock
from antiphon.config import McpServer
from antiphon.gateway import mcp_http
from antiphon.gateway.mcp_http import McpEndpoint
from antiphon.services.mcp import servers as servers_module
from antiphon.services.mcp.errors import McpMissing
from antiphon.services.mcp.servers import open_mcp
from antiphon.storage.memory import MemoryDatabase
from antiphon.tools.registry import Registry, Snapshot

pytestmark = pytest.mark.real_time


@pytest.fixture(autouse=True)
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (servers_module, mcp_http):
        monkeypatch.setattr(module, "find_spec", lambda name: None)


@pytest.mark.parametrize("enabled", [True, False])
async def test_only_configured_servers_need_it(tmp_path: Path, enabled: bool) -> None:
    registry = Registry(tmp_path, "production", Snapshot("1", {}, "1"))
    settings = {"far": McpServer(command="x", enabled=enabled)}
    opening = open_mcp(settings, registry, MemoryDatabase().mcp_pins, clock=SystemClock(), rng=Random(1))
    if enabled:
        with pytest.raises(McpMissing, match=r"\[mcp.servers.far\] needs the package mcp. Run: pip install 'antiphon"):
            await opening.__aenter__()
    else:
        async with opening as opened:
            assert opened is None


def test_the_route_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_http, "McpCalls", lambda deps, executor, nodes: None)
    nothing: Any = None
    endpoint = McpEndpoint(nothing, nothing, nothing, stopping=asyncio.Event(), must_end=asyncio.Event())
    with TestClient(Starlette(routes=endpoint.routes())) as client:
        refused = client.post("/mcp", json={})
    assert refused.status_code == 501
    assert "pip install 'antiphon[mcp]'" in refused.json()["error"]["message"]
