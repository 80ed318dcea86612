"""A conversation in the words that every layer shares: who said what, what was called, and what came back.

The instructions to a model are not part of it: each model is given them anew (`models/base.py`).
"""

from typing import Any

from msgspec import Struct


class UserMessage(Struct, frozen=True, tag="user", tag_field="role"):
    """One turn of the person, spoken or typed."""

    text: str


class CallMade(Struct, frozen=True):
    """A tool call as it stands in the conversation."""

    id: str
    """The provider's id, or one that the session made up; it joins the call to its `ToolMessage`."""
    name: str
    args: Any
    extra: Any = None
    """The `ToolCall`'s."""


class AssistantMessage(Struct, frozen=True, tag="assistant", tag_field="role"):
    """One message of a model: words, tool calls, or both."""

    text: str = ""
    calls: tuple[CallMade, ...] = ()


class ToolMessage(Struct, frozen=True, tag="tool", tag_field="role"):
    """What one call gave."""

    call_id: str
    name: str
    content: Any
    """JSON, for a model: the data, or {"error": …}."""
    spoken: str | None = None
    """The same for the ear, if the tool has words for it."""
    ok: bool = True


Message = UserMessage | AssistantMessage | ToolMessage
