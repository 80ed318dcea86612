"""The contract of one tool: what its schema.json says, as a value."""

from enum import StrEnum
from typing import Any, Final

from msgspec import Struct


class Mode(StrEnum):
    TEXT = "text"
    VOICE = "voice"


class Category(StrEnum):
    RETRIEVAL = "retrieval"
    ACTION = "action"
    UTILITY = "utility"


class SideEffects(StrEnum):
    NONE = "none"
    READ_ONLY = "read_only"
    WRITES = "writes"


class Capability(StrEnum):
    """What Antiphon offers to handlers that ask for it in `uses`. A project's own package can offer more."""

    KB = "kb"
    CALENDAR = "calendar"
    REMINDERS = "reminders"
    LISTS = "lists"
    HOME = "home"
    IMAGES = "images"
    FETCH = "fetch"
    WEATHER = "weather"
    WEB = "web"
    SECRETS = "secrets"
    STORAGE = "storage"
    CALL_TOOL = "call_tool"
    CATALOG = "catalog"


DEFAULT_TIMEOUT_MS: Final = 30_000

UNTRUSTED_TAG: Final = "untrusted"
"""Marks a tool whose results are untrusted content."""
FROM_STRANGERS: Final = frozenset({Capability.FETCH, Capability.WEATHER, Capability.WEB})
"""Capabilities that bring in what strangers wrote. Every tool that uses one counts as marked."""


class RateLimit(Struct, frozen=True):
    calls: int
    window_s: float


class ToolSpec(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The content of schema.json. The build checks it field by field first, to report all mistakes at once."""

    tool_id: str
    version: str
    description: str
    category: Category
    side_effects: SideEffects
    idempotent: bool
    requires_confirmation: bool
    allowed_modes: tuple[Mode, ...]
    latency_budget_ms: int
    parameters: dict[str, Any]
    title: str | None = None
    """The name that people see; None for one made from the id."""
    uses: tuple[str, ...] = ()
    """The names of capabilities: those of `Capability`, or others that the project offers."""
    secrets: tuple[str, ...] = ()
    """The environment variables that `context.secrets` gives to the handler."""
    rate_limit: RateLimit | None = None
    requires_auth: bool = False
    availability: str | None = None
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    tags: tuple[str, ...] = ()
    outputs: dict[str, Any] | None = None

    @property
    def shown_title(self) -> str:
        return self.title or self.tool_id.replace("_", " ").capitalize()

    @property
    def writes(self) -> bool:
        return self.side_effects is SideEffects.WRITES

    @property
    def untrusted(self) -> bool:
        """Whether its results are untrusted content, written by strangers."""
        return UNTRUSTED_TAG in self.tags or not FROM_STRANGERS.isdisjoint(self.uses)
