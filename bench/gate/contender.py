"""Our own contender: the executor as a server uses it, with a tool that reads and one that writes."""

import json
import shutil
from itertools import count
from pathlib import Path
from typing import Final

import msgspec

from antiphon.authoring import build
from antiphon.authoring.testing import make_context
from antiphon.clock import SystemClock
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.sql import Database
from antiphon.tools.call import ToolCall
from antiphon.tools.executor import Executor
from antiphon.tools.registry import Registry
from antiphon.tools.session import ToolSession
from bench.workload import ARGUMENT_TEXTS, KB_SEARCH, measure

READS: Final = "kb_search"
WRITES: Final = "kb_note"
"""The same tool, declared as an action with side effects, which must not run twice."""

ENVIRONMENT: Final = "production"


def load_tools(folder: Path) -> Registry:
    """Builds both tools in `folder`, and loads them as a server does at startup."""
    for tool in (READS, WRITES):
        shutil.copytree(KB_SEARCH, folder / tool)
    contract = json.loads((KB_SEARCH / "schema.json").read_bytes())
    contract |= {"toolId": WRITES, "category": "action", "sideEffects": "writes", "idempotent": False}
    (folder / WRITES / "schema.json").write_text(json.dumps(contract))
    artifact = folder / "tool_registry.json"
    build.write(build.build([folder]), artifact)
    return Registry.load(artifact, environment=ENVIRONMENT)


def decode(place: int) -> dict[str, object]:
    """Decodes the arguments from a model's text, which is also the input of openai-agents and Pydantic AI."""
    args: dict[str, object] = msgspec.json.decode(ARGUMENT_TEXTS[place])
    return args


class Gate:
    """Calls the tools of one executor in one session, and requires each call to be new and to succeed."""

    def __init__(self, registry: Registry, database: MemoryDatabase | Database) -> None:
        self._executor = Executor(
            registry,
            calls=database.calls,
            confirmations=database.confirmations,
            audit=database.audit,
            limits=database.limits,
            clock=SystemClock(),
            environment=ENVIRONMENT,
        )
        self._session = ToolSession("bench", "bench", registry.snapshot())
        self._numbers = count()
        self._handler = registry.tools[READS].execute
        self._args = decode(0)
        self._context = make_context(READS)

    async def measure(self, tool: str, calls: int) -> float:
        async def call(place: int) -> None:
            made = ToolCall(f"call_{next(self._numbers):06}", tool, decode(place))
            result = await self._executor.execute(made, self._session)
            if not result.ok or result.meta is None or result.meta.cache_hit:
                raise RuntimeError(f"The call was not run: {result}")

        return await measure(call, calls, self._begin_turn)

    async def measure_handler(self, calls: int) -> float:
        """Measures the handler alone, also in turns, since the start of a turn is not part of a call."""
        return await measure(self.handle, calls, self._begin_turn)

    async def handle(self, place: int) -> object:
        return await self._handler(self._args, self._context)

    async def aclose(self) -> None:
        await self._executor.aclose()

    def _begin_turn(self) -> None:
        self._executor.begin_turn(self._session)
