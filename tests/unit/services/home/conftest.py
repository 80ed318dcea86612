"""A gate with the tools of the home, connected to a Home Assistant that answers as the real one does."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest_asyncio

from antiphon.clock import SystemClock
from antiphon.config import Home
from antiphon.services.home import TOKEN_VARIABLE, open_home
from antiphon.tools.result import Failure, ToolResult
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool
from tests.fakes.gates import Gate, make_retrieval
from tests.fakes.home_assistant import TOKEN, FakeHome
from tests.fakes.local_http import serving, without_tls
from tests.fakes.toolkit import built_in


@dataclass
class AtHome:
    gate: Gate
    home: FakeHome

    async def control(self, action: str, mode: Mode = Mode.TEXT, **args: Any) -> ToolResult:
        self.gate.session.mode = mode
        return await self.gate.call("ha_control", {"action": action, **args})

    async def state(self, mode: Mode = Mode.TEXT, **args: Any) -> ToolResult:
        self.gate.session.mode = mode
        return await self.gate.call("ha_state", args)

    async def approve(self, result: ToolResult) -> ToolResult:
        """Says yes to a call that waits for it."""
        assert result.error is not None, "it was not asked"
        request = result.error.confirmation_request
        assert request is not None, result.error
        return await self.gate.executor.resolve(request.confirmation_token, True, self.gate.session)


def failed(result: ToolResult) -> Failure:
    assert result.error is not None, result.data
    return result.error


def patient(tool: Tool) -> Tool:
    """Gives a tool more time than it has in production, since a busy machine may take that long to answer itself."""
    return replace(tool, spec=msgspec.structs.replace(tool.spec, latency_budget_ms=3_000))


@pytest_asyncio.fixture
async def at_home() -> AsyncIterator[AtHome]:
    async with (
        serving(FakeHome()) as fake,
        open_home(Home(url=fake.server.url), SystemClock(), {TOKEN_VARIABLE: TOKEN}, without_tls()) as home,
    ):
        tools = built_in()
        gate = Gate(
            patient(tools["ha_control"]),
            patient(tools["ha_state"]),
            make_retrieval("read_page", tags=("untrusted",)),
            offers={"home": lambda session, tool: home},
        )
        yield AtHome(gate, fake)
        await gate.executor.aclose()
