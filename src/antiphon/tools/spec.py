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
    """What a handler may ask for in `uses`, beyond what every handler gets."""

    KB = "kb"
    CALENDAR = "calendar"
    REMINDERS = "reminders"
    IMAGES = "images"
    FETCH = "fetch"
    CALL_TOOL = "call_tool"
    CATALOG = "catalog"


DEFAULT_TIMEOUT_MS: Final = 30_000

UNTRUSTED_TAG: Final = "untrusted"
"""Marks a tool whose results are untrusted content. Every tool that uses `fetch` counts as marked."""


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
    uses: tuple[Capability, ...] = ()
    rate_limit: RateLimit | None = None
    requires_auth: bool = False
    availability: str | None = None
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    tags: tuple[str, ...] = ()
    outputs: dict[str, Any] | None = None

    @property
    def writes(self) -> bool:
        return self.side_effects is SideEffects.WRITES

    @property
    def untrusted(self) -> bool:
        """Whether its results are untrusted content, written by strangers."""
        return Capability.FETCH in self.uses or UNTRUSTED_TAG in self.tags
