"""Ollama's stream of lines, and what faults make of it."""

import json
from collections.abc import Sequence
from typing import Any, Final

from antiphon.sim.actions import (
    OLLAMA_ACTIONS,
    Alteration,
    TextStyle,
    ToolCallAsText,
    ToolCallWithoutId,
)
from antiphon.sim.script import STREAM_OCCASIONS, Vocabulary
from antiphon.sim.vendors.base import Message

VOCABULARY: Final = Vocabulary("Ollama", OLLAMA_ACTIONS, STREAM_OCCASIONS)

_STATUS_TEXTS: Final = {
    404: "model 'missing' not found",
    429: "server busy, please try again. maximum pending requests exceeded",
    500: "llama runner process has terminated: signal: killed",
    503: "server busy, please try again. maximum pending requests exceeded",
}


def refusal(status: int) -> str:
    return json.dumps({"error": _STATUS_TEXTS.get(status, "the request was refused")})


def line_types(line: Message) -> tuple[str, ...]:
    """Returns the names by which a trigger can name a line."""
    said: Message = line.get("message") or {}
    names = [name for name in ("content", "thinking") if said.get(name)]
    if said.get("tool_calls"):
        names.append("tool_call")
    if line.get("done"):
        names += ["done", "answer_end"]
    return tuple(names) or ("",)


def alter(action: Alteration, line: Message) -> Sequence[Message] | None:
    """Returns what is sent in a line's place; None if the action does not fit this line."""
    said: Message = line.get("message") or {}
    calls: list[Message] = said.get("tool_calls") or []
    if not calls:
        return None
    match action:
        case ToolCallWithoutId():
            bare = [{name: value for name, value in call.items() if name != "id"} for call in calls]
            return ({**line, "message": {**said, "tool_calls": bare}},)
        case ToolCallAsText(style=style):
            rest = {name: value for name, value in said.items() if name != "tool_calls"}
            text = "\n".join(_write(call["function"], style) for call in calls)
            return ({**line, "message": {**rest, "content": text}},)
    return None


def _write(function: dict[str, Any], style: TextStyle) -> str:
    call = json.dumps({"name": function["name"], "arguments": function["arguments"]})
    match style:
        case TextStyle.FENCED:
            return f"```json\n{call}\n```"
        case TextStyle.TOOL_CALL:
            return f"<tool_call>\n{call}\n</tool_call>"
        case TextStyle.TOOLS:
            return f"<tools>\n{call}\n</tools>"
