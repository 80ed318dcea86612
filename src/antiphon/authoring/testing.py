"""Helpers for the tests of a tool: they load its handler, make a context in one line, and fake what a server offers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any
from zoneinfo import ZoneInfo

from antiphon.tools.context import Args, Audio, AuditTrail, Context, Messaging, SessionView, ToolView, Voice
from antiphon.tools.errors import RegistryError
from antiphon.tools.loader import import_handler
from antiphon.tools.messages import Message, is_message, not_a_message
from antiphon.tools.outputs import find_mismatches
from antiphon.tools.result import ToolResult
from antiphon.tools.source import Source, parse_json, read
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Execute


@dataclass(slots=True)
class StillClock:
    """A clock that moves only when `advance` is called."""

    at_ms: int = 1_767_268_800_000
    """2026-01-01 12:00 UTC, a Thursday."""

    def now(self, zone: tzinfo) -> datetime:
        return datetime.fromtimestamp(self.at_ms / 1000, UTC).astimezone(zone)

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic(self) -> float:
        return self.at_ms / 1000

    def advance(self, *, seconds: float) -> None:
        self.at_ms += round(seconds * 1000)


@dataclass(slots=True)
class Outbox:
    """Keeps what a handler sends to the client."""

    sent: list[Message] = field(default_factory=list)

    async def send(self, message: Message) -> None:
        if not is_message(message):
            raise not_a_message(message)
        self.sent.append(message)


@dataclass(slots=True)
class AuditRecorder:
    """Keeps what a handler logs to the audit."""

    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def log(self, event: str, **data: Any) -> None:
        self.events.append((event, data))


def make_context(
    tool: str = "a_tool",
    *,
    mode: Mode = Mode.TEXT,
    active: bool = True,
    user: str = "local",
    zone: str = "UTC",
    clock: StillClock | None = None,
    messaging: Messaging | None = None,
    audit: AuditTrail | None = None,
    seed: int = 7,
    granted: Mapping[str, object] | None = None,
) -> Context:
    """Makes the second argument of `execute`, with fakes for what the server provides."""
    return Context(
        session=SessionView("s1", user, mode, active, 1, ZoneInfo(zone)),
        tool=ToolView(tool, "1.0.0", True),
        messaging=messaging or Outbox(),
        voice=Voice(mode is Mode.VOICE),
        audio=Audio(),
        audit=audit or AuditRecorder(),
        clock=clock or StillClock(),
        rng=Random(seed),
        granted=granted or {},
    )


def load_module(directory: Path) -> ModuleType:
    """Loads the handler of a tool's directory. Raises RegistryError.

    Its `execute` fails a test whose result does not fit the `outputs` in schema.json.
    """
    try:
        source = read(directory.resolve())
    except OSError as error:
        raise RegistryError(f"{error.filename} cannot be read: {error.strerror}.") from error
    handler = import_handler(source)
    outputs = _outputs_of(source)
    if outputs is not None and hasattr(handler, "execute"):
        handler.execute = _checked(handler.execute, outputs)  # type: ignore[attr-defined]
    return handler


def _checked(execute: Execute, outputs: dict[str, Any]) -> Execute:
    """Wraps a handler, so that it raises `AssertionError` for a result that does not fit the schema."""

    async def execute_and_check(args: Args, context: Context) -> ToolResult:
        result = await execute(args, context)
        mismatches = find_mismatches(outputs, result) if isinstance(result, ToolResult) else []
        assert not mismatches, f"the result does not fit the outputs in schema.json: {'; '.join(mismatches)}"
        return result

    return execute_and_check


def _outputs_of(source: Source) -> dict[str, Any] | None:
    """Returns None if there are none. The build reports what is wrong with the schema."""
    try:
        schema = parse_json(source.files.get("schema.json", b"{}"))
    except ValueError:
        return None
    outputs = schema.get("outputs") if isinstance(schema, dict) else None
    return outputs if isinstance(outputs, dict) else None
