"""What happens to tools when sockets drop, providers misbehave, code changes under a session, and models overdo it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from antiphon.authoring import build
from antiphon.authoring.testing import StillClock
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.sql import Database, open_database
from antiphon.tools.call import ToolCall
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType, RegistryChanged, RegistryError
from antiphon.tools.executor import Executor
from antiphon.tools.registry import Registry
from antiphon.tools.result import ToolResult, ok
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Mode
from tests.fakes.gates import Counted, Gate, make_action, make_retrieval, make_tool
from tests.fakes.toolbox import HANDLER, write_tool

pytestmark = pytest.mark.real_time


@pytest.fixture
async def databases(tmp_path: Path) -> AsyncIterator[tuple[Database, Database]]:
    """One file, opened twice, as two processes would."""
    one, two = await open_database(tmp_path / "a.db"), await open_database(tmp_path / "a.db")
    yield one, two
    await one.aclose()
    await two.aclose()


async def test_a_turn_replayed_after_a_reconnect_gets_the_stored_result(databases: tuple[Database, Database]) -> None:
    handler = Counted()
    before = Gate(make_retrieval("kb_search", handler), database=databases[0])
    first = await before.call("kb_search", {"text": "tea"})
    await before.executor.aclose()

    after = Gate(make_retrieval("kb_search", handler), database=databases[1])
    replayed = await after.call("kb_search", {"text": "tea"})
    await after.executor.aclose()
    assert replayed.data == first.data
    assert replayed.meta is not None
    assert replayed.meta.cache_hit
    assert handler.runs == 1


@pytest.mark.parametrize("ids", [(None, None), ("temp-1", "temp-2"), ("x", ""), ("call_aaaaaaaaa", "call_bbbbbbbbb")])
async def test_a_writing_call_repeated_under_another_id_runs_once(ids: tuple[str | None, str | None]) -> None:
    handler = Counted()
    gate = Gate(make_action("book", handler))
    results = [await gate.call("book", {"text": "tea"}, id=id) for id in ids]
    assert all(result.ok for result in results)
    assert handler.runs == 1


class ToolFolder:
    """A tool directory that is changed while a session uses it."""

    def __init__(self, folder: Path, environment: str) -> None:
        self.folder, self.artifact = folder / "tools", folder / "tool_registry.json"
        write_tool(self.folder, "greet")
        self.registry = self.build(environment)
        self.executor = self.execute_with(self.registry, environment)
        self.session = ToolSession("s1", "ann", self.registry.snapshot())

    def build(self, environment: str) -> Registry:
        build.write(build.build([self.folder]), self.artifact)
        return Registry.load(self.artifact, environment=environment)

    def execute_with(self, registry: Registry, environment: str) -> Executor:
        stores = MemoryDatabase()
        return Executor(
            registry,
            calls=stores.calls,
            confirmations=stores.confirmations,
            audit=stores.audit,
            limits=stores.limits,
            clock=StillClock(),
            environment=environment,
        )

    def change(self) -> None:
        (self.folder / "greet" / "handler.py").write_text(HANDLER.replace("Hello", "Good day"))

    async def greet(self) -> ToolResult:
        return await self.executor.execute(ToolCall(None, "greet", {"name": "Ada"}), self.session)


async def test_in_development_a_session_whose_tools_were_reloaded_is_stopped(tmp_path: Path) -> None:
    shop = ToolFolder(tmp_path, "development")
    assert (await shop.greet()).data == {"greeting": "Hello, Ada."}
    shop.change()
    build.write(build.build([shop.folder]), shop.artifact)
    shop.registry.reload()
    with pytest.raises(RegistryChanged):
        await shop.greet()
    await shop.executor.aclose()


async def test_in_development_a_session_gets_reloaded_tools_at_its_next_turn(tmp_path: Path) -> None:
    shop = ToolFolder(tmp_path, "development")
    shop.change()
    build.write(build.build([shop.folder]), shop.artifact)
    shop.registry.reload()
    assert shop.executor.begin_turn(shop.session)
    assert (await shop.greet()).data == {"greeting": "Good day, Ada."}
    await shop.executor.aclose()


async def test_in_production_tools_are_not_reloaded(tmp_path: Path) -> None:
    shop = ToolFolder(tmp_path, "production")
    shop.registry.lock()
    with pytest.raises(RegistryError):
        shop.registry.reload()


async def test_in_production_a_session_keeps_its_snapshot(tmp_path: Path) -> None:
    shop = ToolFolder(tmp_path, "production")
    shop.change()
    shop.executor = shop.execute_with(shop.build("production"), "production")
    assert (await shop.greet()).data == {"greeting": "Hello, Ada."}
    await shop.executor.aclose()


async def test_a_session_resumed_on_another_version_switches_to_it_at_the_next_turn(tmp_path: Path) -> None:
    shop = ToolFolder(tmp_path, "production")
    old_version = shop.registry.version
    shop.change()
    registry = shop.build("production")
    shop.executor = shop.execute_with(registry, "production")
    shop.session = ToolSession("s1", "ann", registry.snapshot(), pinned_version=old_version)
    assert shop.executor.begin_turn(shop.session)
    assert shop.session.pinned_version == registry.version != old_version
    assert not shop.executor.begin_turn(shop.session)
    assert (await shop.greet()).data == {"greeting": "Good day, Ada."}
    await shop.executor.aclose()


async def test_a_third_lookup_and_a_fourth_call_in_a_spoken_turn_are_refused() -> None:
    gate = Gate(make_retrieval("kb_search"), make_tool("calculate"))
    gate.session.mode = Mode.VOICE
    searches = [await gate.call("kb_search", {"text": str(n)}) for n in range(3)]
    others = [await gate.call("calculate", {"text": str(n)}) for n in range(2)]
    assert [result.ok for result in searches] == [True, True, False]
    assert [result.ok for result in others] == [True, False]
    for refused in (searches[2], others[1]):
        assert refused.error is not None
        assert refused.error.type is ErrorType.RATE_LIMIT


async def test_a_thousand_duplicates_over_two_executors_and_one_database_run_once(
    databases: tuple[Database, Database],
) -> None:
    async def book(args: Args, context: Context) -> ToolResult:
        await asyncio.sleep(0.05)
        return ok("booked")

    handler = Counted(book)
    gates = [Gate(make_action("book", handler), database=database) for database in databases]
    ids = [None, "call_aaaaaaaaa", "call_bbbbbbbbb"]
    results = await asyncio.gather(
        *(gates[n % 2].call("book", {"text": "tea"}, id=ids[n % 3]) for n in range(1_000)),
    )
    assert handler.runs == 1
    assert {(result.ok, result.data) for result in results} == {(True, "booked")}
    for gate in gates:
        await gate.executor.aclose()
