"""Counts tokens without downloading a vocabulary, to tell whether a conversation fits in a model's context."""

import json
from collections.abc import Iterable
from typing import Any, Final

from antiphon.transcript import AssistantMessage, Message, ToolMessage

MESSAGE_TOKENS: Final = 6
"""What a message costs beside its words: its role, and the marks around it."""


def count_tokens(text: str) -> int:
    """Estimates how many tokens a text has, rather too many than too few."""
    ascii_chars = sum(map(str.isascii, text))
    return -(-ascii_chars // 3) + len(text) - ascii_chars


def count_message(message: Message) -> int:
    """Counts a message with its calls, or with the result of its call."""
    match message:
        case ToolMessage(content=content):
            return MESSAGE_TOKENS + count_tokens(_as_json(content))
        case AssistantMessage(text=text, calls=calls):
            made = (f"{call.name} {_as_json(call.args)}" for call in calls)
            return MESSAGE_TOKENS + count_tokens(" ".join([text, *made]))
    return MESSAGE_TOKENS + count_tokens(message.text)


def count_messages(messages: Iterable[Message]) -> int:
    return sum(map(count_message, messages))


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
