"""Everything that a conversation of a chaos run needs: two server processes on one store, their models, and tools."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from antiphon.models.live import ModelFactory
from antiphon.models.text_live import text_factory
from antiphon.protocol.limits import SPEECH_HZ
from antiphon.storage.memory import MemoryDatabase
from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool
from tests.chaos.assistant import BOOK, LOOK_UP, ORDER, ChaosAssistant
from tests.chaos.providers import SimulatedProvider, gemini_provider, gemini_rung, openai_provider, openai_rung
from tests.chaos.sound import Tones, cascade_factory
from tests.chaos.text_faults import FaultyText, TextFaults
from tests.fakes.calls import Server
from tests.fakes.gates import make_action, make_retrieval

TOOL_S: Final = 0.3
"""How long a tool takes."""


class CountedTool:
    """Counts its runs by topic."""

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()

    async def __call__(self, args: Args, context: Context) -> ToolResult:
        topic = str(args["text"])
        # Counted when it begins: a call that is cut off may have had its effect.
        self.runs[topic] += 1
        await asyncio.sleep(TOOL_S)
        return ok({"topic": topic})


@dataclass(frozen=True, slots=True)
class World:
    tones: Tones
    database: MemoryDatabase
    processes: tuple[Server, Server]
    providers: dict[str, SimulatedProvider]
    text_faults: TextFaults
    tools: dict[str, CountedTool]


@asynccontextmanager
async def open_world() -> AsyncIterator[World]:
    tones, database, text_faults = Tones(), MemoryDatabase(), TextFaults()
    counted = {name: CountedTool() for name in (BOOK, ORDER, LOOK_UP)}
    providers = {"gemini": gemini_provider(tones), "openai": openai_provider(tones)}
    for provider in providers.values():
        await provider.start()

    def open_process(owner: str) -> Server:
        process = Server(*_make_tools(counted), models={}, database=database, owner=owner, synthesize=_speak(tones))
        for mode, factories in _make_ladders(tones, text_faults).items():
            process.use(mode, *factories)
        return process

    world = World(
        tones=tones,
        database=database,
        processes=(open_process("one"), open_process("two")),
        providers=providers,
        text_faults=text_faults,
        tools=counted,
    )
    try:
        yield world
    finally:
        for process in world.processes:
            await process.aclose()
        for provider in providers.values():
            await provider.aclose()


def _make_tools(counted: dict[str, CountedTool]) -> list[Tool]:
    return [
        make_action(BOOK, counted[BOOK], latency_budget_ms=2_000),
        make_action(ORDER, counted[ORDER], latency_budget_ms=2_000, requires_confirmation=True),
        make_retrieval(LOOK_UP, counted[LOOK_UP], latency_budget_ms=2_000),
    ]


def _make_ladders(tones: Tones, text_faults: TextFaults) -> dict[Mode, tuple[ModelFactory, ...]]:
    """The models of each mode, the best one first. The last ones are local."""
    local = ChaosAssistant("local")
    return {
        Mode.TEXT: (text_factory(FaultyText(ChaosAssistant("text"), text_faults)), text_factory(local)),
        Mode.VOICE: (gemini_rung(), openai_rung(), cascade_factory(tones, local)),
    }


def _speak(tones: Tones):  # type: ignore[no-untyped-def]
    async def synthesize(text: str, voice: str | None, speed: float) -> bytes:
        return tones.encode(text, SPEECH_HZ)

    return synthesize
