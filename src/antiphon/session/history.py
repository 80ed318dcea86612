"""A conversation as a client shows it."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from antiphon.protocol.client_messages import Role
from antiphon.protocol.server_messages import HistoryCall, HistoryTurn
from antiphon.transcript import AssistantMessage, Message, ToolMessage, UserMessage

MAX_VALUE_BYTES: Final = 2_000
"""How much of a call's arguments, and of its result, a history holds, as JSON. Their beginning is told beyond it."""
MAX_CALLS: Final = 200
"""How many calls a history holds at most: the newest."""


def history_of(messages: Sequence[Message]) -> tuple[HistoryTurn, ...]:
    """Who said what, and what the assistant called before it said it."""
    turns: list[HistoryTurn] = []
    calls: list[HistoryCall] = []
    too_many = sum(len(message.calls) for message in messages if isinstance(message, AssistantMessage)) - MAX_CALLS

    def answer(text: str) -> None:
        if text or calls:
            turns.append(HistoryTurn(Role.ASSISTANT, text, calls=tuple(calls)))
            calls.clear()

    for message in messages:
        match message:
            case UserMessage(text=text):
                answer("")
                turns.append(HistoryTurn(Role.USER, text))
            case AssistantMessage(text=text, calls=made):
                if text:
                    answer(text)
                for call in made:
                    if too_many > 0:
                        too_many -= 1
                    else:
                        calls.append(HistoryCall(call.id, call.name, _shorten(call.args)))
            case ToolMessage(call_id=id, content=content, ok=ok):
                calls[:] = [replace(c, result=_shorten(content), ok=ok) if c.id == id else c for c in calls]
    answer("")
    return tuple(turns)


def _shorten(value: Any) -> Any:
    text = msgspec.json.encode(value)
    return value if len(text) <= MAX_VALUE_BYTES else text[:MAX_VALUE_BYTES].decode(errors="ignore") + "…"
