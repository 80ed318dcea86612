"""Tools that change while a server runs, as a developer and an operator see it."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog

from antiphon import config
from antiphon.cli.findings import ask
from antiphon.client import Session, connect
from antiphon.protocol import server_messages as s
from antiphon.serve import serving
from tests.fakes.toolbox import HANDLER, write_tool

pytestmark = pytest.mark.real_time

SENTENCES = 'data:\n  - sentences: ["please greet {name}"]\n'
PATIENCE_S = 20.0


class Developer:
    """Someone who writes tools beside a running server."""

    def __init__(self, folder: Path, address: str) -> None:
        self.tools = folder / "tools"
        self.address = address
        self._version = ""
        """The version of the tools that were listed last."""

    async def list(self) -> dict[str, Any]:
        answer = await asyncio.to_thread(ask, self.address.replace("ws://", "http://").replace("/ws", "/api/tools"))
        assert answer is not None
        listed: dict[str, Any] = json.loads(answer)
        self._version = listed["version"]
        return {"version": listed["version"], **{tool["toolId"]: tool for tool in listed["tools"]}}

    async def wait_for_other_tools(self) -> dict[str, Any]:
        before = self._version
        async with asyncio.timeout(PATIENCE_S):
            while True:
                now = await self.list()
                if now["version"] != before:
                    return now
                await asyncio.sleep(0.1)


@asynccontextmanager
async def developing(folder: Path, environment: str = "development") -> AsyncIterator[Developer]:
    write_tool(folder / "tools", "greet", files={"sentences.yaml": SENTENCES})
    env = {"ANTIPHON_SERVER__ENVIRONMENT": environment, "ANTIPHON_DATA_DIR": str(folder / "data")}
    async with serving(config.load(None, env, folder)) as address:
        developer = Developer(folder, address)
        await developer.list()
        yield developer


async def until_logged(event: str, logged: Sequence[Mapping[str, Any]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if any(line["event"] == event for line in logged):
                return
            await asyncio.sleep(0.1)


async def ask_for_greeting(address: str) -> str:
    async with connect(address) as session:
        return await ask_again(session)


async def ask_again(session: Session) -> str:
    async for received in session.type("please greet Ada"):
        if isinstance(received, s.Response):
            return received.text
    raise AssertionError("there was no answer")


async def test_a_changed_tool_is_available_without_a_restart(tmp_path: Path) -> None:
    async with developing(tmp_path) as developer:
        assert await ask_for_greeting(developer.address) == "Hello, Ada."
        (developer.tools / "greet" / "handler.py").write_text(HANDLER.replace("Hello", "Good day"))
        await developer.wait_for_other_tools()
        assert await ask_for_greeting(developer.address) == "Good day, Ada."


async def test_an_open_session_continues(tmp_path: Path) -> None:
    async with developing(tmp_path) as developer, connect(developer.address) as session:
        assert await ask_again(session) == "Hello, Ada."
        (developer.tools / "greet" / "handler.py").write_text(HANDLER.replace("Hello", "Good day"))
        await developer.wait_for_other_tools()
        assert await ask_again(session) == "Good day, Ada."


async def test_a_new_tool_appears_and_a_deleted_one_disappears(tmp_path: Path) -> None:
    async with developing(tmp_path) as developer:
        write_tool(developer.tools, "wave")
        assert {"greet", "wave"} <= (await developer.wait_for_other_tools()).keys()
        for file in (developer.tools / "greet").iterdir():
            file.unlink()
        assert "greet" not in await developer.wait_for_other_tools()


async def test_a_broken_tool_keeps_the_old_ones_and_all_its_problems_are_logged(tmp_path: Path) -> None:
    async with developing(tmp_path) as developer:
        before = await developer.list()
        with structlog.testing.capture_logs() as logged:
            write_tool(developer.tools, "greet", category="music", latencyBudgetMs=0)
            await until_logged("tools_not_reloaded", logged)
        problems = "\n".join(line["problem"] for line in logged if line["event"] == "tool_problem")
        assert "greet/schema.json: category: must be one of" in problems
        assert "greet/schema.json: latencyBudgetMs" in problems
        assert await developer.list() == before
        assert await ask_for_greeting(developer.address) == "Hello, Ada."


async def test_in_production_a_change_waits_for_a_restart(tmp_path: Path) -> None:
    async with developing(tmp_path, "production") as developer:
        before = await developer.list()
        write_tool(developer.tools, "wave")
        await asyncio.sleep(2)
        assert await developer.list() == before
