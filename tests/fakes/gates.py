"""A gate for tests, with tools made in one line, in-memory stores, a stopped clock, and a session."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from antiphon.authoring.adapters import ADAPTERS
from antiphon.authoring.testing import Outbox, StillClock
from antiphon.services.kb import Knowledge
from antiphon.services.kb.embedders import LazyEmbedder
from antiphon.services.lists import offer_lists
from antiphon.services.tool_storage import offer_storage
from antiphon.storage.base import AuditLine
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.memory.limits import MemoryLimitStore
from antiphon.tools.arguments import Arguments
from antiphon.tools.call import ToolCall
from antiphon.tools.context import Args, Context, Offer, SessionView, ToolView
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.executor import Executor
from antiphon.tools.registry import Snapshot
from antiphon.tools.result import ToolResult, ok
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Capability, Category, Mode, SideEffects, ToolSpec
from antiphon.tools.tool import Tool, compile_availability

ANY_TEXT: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"text": {"type": "string"}},
}


@dataclass
class Counted:
    """A handler that counts its runs, and returns a given answer."""

    answer: Callable[[Args, Context], Awaitable[Any]] | None = None
    runs: int = 0
    seen: list[dict[str, Any]] = field(default_factory=list)

    async def __call__(self, args: Args, context: Context) -> ToolResult:
        self.runs += 1
        self.seen.append(dict(args))
        if self.answer is not None:
            result: ToolResult = await self.answer(args, context)
            return result
        return ok({"run": self.runs})


def make_tool(id: str = "read_it", execute: Any = None, **overrides: Any) -> Tool:
    """Makes a read-only utility by default. Arguments that are not fields of the spec are fields of the tool."""
    own = ("preview", "prepare", "needs_confirmation", "is_asked_for", "digest")
    of_tool = {name: overrides.pop(name) for name in own if name in overrides}
    spec: dict[str, Any] = {
        "tool_id": id,
        "version": "1.0.0",
        "description": f"Does what {id} says.",
        "category": Category.UTILITY,
        "side_effects": SideEffects.NONE,
        "idempotent": True,
        "requires_confirmation": False,
        "allowed_modes": (Mode.TEXT, Mode.VOICE),
        "latency_budget_ms": 500,
        "parameters": ANY_TEXT,
    }
    spec.update(overrides)
    made = ToolSpec(**spec)
    return Tool(
        spec=made,
        digest=of_tool.pop("digest", f"digest of {id}"),
        origin=f"/somewhere/{id}",
        summary=f"Use {id}.",
        documentation=f"# {id}",
        examples='```args\n{"text": "a"}\n```',
        provider_schemas={name: adapt(made) for name, adapt in ADAPTERS.items()},
        sentences=None,
        arguments=Arguments(made.parameters),
        execute=execute or Counted(),
        availability=None if made.availability is None else compile_availability(made.availability),
        **of_tool,
    )


def make_action(id: str = "write_it", execute: Any = None, **overrides: Any) -> Tool:
    """An action that writes and must not be repeated."""
    spec = {"category": Category.ACTION, "side_effects": SideEffects.WRITES, "idempotent": False}
    return make_tool(id, execute, **{**spec, **overrides})


def make_retrieval(id: str = "look_up", execute: Any = None, **overrides: Any) -> Tool:
    spec = {"category": Category.RETRIEVAL, "side_effects": SideEffects.READ_ONLY}
    return make_tool(id, execute, **{**spec, **overrides})


@dataclass
class Toolset:
    """The part of a registry that the executor uses."""

    tools: Mapping[str, Tool]
    version: str = "1.0.00000001"

    def snapshot(self) -> Snapshot:
        return Snapshot(self.version, MappingProxyType(dict(self.tools)))


class NotOffered:
    """A capability whose service is not there: whatever a handler asks of it fails as expected."""

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def refuse(*args: Any, **named: Any) -> Any:
            raise ToolError(ErrorType.PERMANENT, "There is no such service here.")

        return refuse


def offer_nothing(session: SessionView, tool: ToolView) -> object:
    return NotOffered()


def make_offers(database: Any, clock: StillClock) -> dict[str, Offer]:
    """What the built-in tools can use, on the stores of a test."""
    knowledge = Knowledge(database.knowledge, LazyEmbedder(None), clock)
    return {
        **dict.fromkeys(Capability, offer_nothing),
        Capability.KB: lambda session, tool: knowledge.session(session),
        Capability.LISTS: offer_lists(database.lists, clock),
        Capability.STORAGE: offer_storage(database.tool_values, clock),
    }


class Gate:
    """An executor and one session of it. It offers every capability, so that the built-in tools can be loaded."""

    def __init__(self, *tools: Tool, database: Any = None, clock: StillClock | None = None, **options: Any) -> None:
        self.clock = clock or StillClock()
        self.database = database or MemoryDatabase()
        self.registry = Toolset({tool.id: tool for tool in tools})
        options["offers"] = make_offers(self.database, self.clock) | options.get("offers", {})
        self.executor = Executor(
            self.registry,  # type: ignore[arg-type]
            calls=self.database.calls,
            confirmations=self.database.confirmations,
            audit=self.database.audit,
            limits=MemoryLimitStore(self.clock.monotonic),
            clock=self.clock,
            **options,
        )
        self.outbox = Outbox()
        self.session = self.new_session()

    def new_session(self, id: str = "s1", **fields: Any) -> ToolSession:
        """A session in its first turn."""
        session = ToolSession(id, "ann", self.registry.snapshot(), messaging=self.outbox, **fields)
        session.state.voice_active = session.mode is Mode.VOICE
        session.turn = 1
        return session

    async def call(
        self, name: str, args: Any = None, *, id: str | None = None, occurrence: int = 0, session: Any = None
    ) -> ToolResult:
        call = ToolCall(id, name, {} if args is None else args, occurrence)
        return await self.executor.execute(call, session or self.session)

    def next_turn(self) -> None:
        self.executor.begin_turn(self.session)

    async def audit(self) -> list[AuditLine]:
        await self.executor.aclose()
        return [line for _, line in await self.database.audit.read()]

    async def audit_of(self, name: str) -> list[AuditLine]:
        """The audit of one call without arguments."""
        await self.call(name)
        return await self.audit()
