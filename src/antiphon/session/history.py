"""A conversation as a client shows it."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from antiphon.protocol.client_messages import Role
from antiphon.protocol.server_messages import HistoryCall, HistoryTurn
from antiphon.tools.tool import Tool
from antiphon.transcript import AssistantMessage, CallMade, Entry, ToolMessage, UserMessage

MAX_VALUE_BYTES: Final = 2_000
"""How much of a call's arguments, and of its result, a history holds, as JSON. What is longer is cut."""
MAX_CALLS: Final = 200
"""How many calls a history holds at most: the newest."""


def history_of(entries: Iterable[Entry], tools: Mapping[str, Tool]) -> tuple[HistoryTurn, ...]:
    """Who said what and when, and what the assistant called before it said it, by the titles of the tools."""
    entries = list(entries)
    turns: list[HistoryTurn] = []
    calls: list[HistoryCall] = []
    made = [call for e in entries if isinstance(e.message, AssistantMessage) for call in e.message.calls]
    shown = {call.id for call in made[-MAX_CALLS:]}

    def answer(text: str, entry: Entry) -> None:
        if text or calls:
            turns.append(HistoryTurn(Role.ASSISTANT, text, entry.spoken, entry.at_ms, tuple(calls)))
            calls.clear()

    for before, entry in zip([None, *entries], entries, strict=False):
        match entry.message:
            case UserMessage(text=text):
                if before is not None:
                    answer("", before)
                if text:
                    turns.append(HistoryTurn(Role.USER, text, entry.spoken, entry.at_ms))
            case AssistantMessage(text=text, calls=called):
                if text:
                    answer(text, entry)
                calls += [_begin_call(call, tools) for call in called if call.id in shown]
            case ToolMessage(call_id=id, content=content, ok=ok):
                calls[:] = [replace(c, result=shorten(content), ok=ok) if c.id == id else c for c in calls]
    if entries:
        answer("", entries[-1])
    return tuple(turns)


def _begin_call(call: CallMade, tools: Mapping[str, Tool]) -> HistoryCall:
    """Returns the call without its result. A tool may be gone by now."""
    tool = tools.get(call.name)
    return HistoryCall(call.id, call.name, shorten(call.args), title=None if tool is None else tool.spec.shown_title)


def shorten(value: Any) -> Any:
    text = msgspec.json.encode(value)
    return value if len(text) <= MAX_VALUE_BYTES else text[:MAX_VALUE_BYTES].decode(errors="ignore") + "…"
