"""Summarises a part of a conversation without a model: requests, what tools did, and what is still open."""

from collections.abc import Sequence
from typing import Final

from antiphon.transcript import AssistantMessage, Message, ToolMessage, UserMessage

MAX_CHARS: Final = 600
REQUESTS_NAMED: Final = 6
REQUEST_CHARS: Final = 80


def extract(messages: Sequence[Message]) -> str:
    """Returns a few plain sentences; an empty text if there are no messages."""
    users = [message.text.strip() for message in messages if isinstance(message, UserMessage)]
    requests = [text for text in users if text]
    if not requests:
        return ""
    parts = [_requests(requests), _tools(messages), _open_question(messages)]
    summary = " ".join(part for part in parts if part)
    return summary if len(summary) <= MAX_CHARS else f"{summary[: MAX_CHARS - 1].rstrip()}…"


def _requests(requests: Sequence[str]) -> str:
    named = "; ".join(_short(request) for request in requests[:REQUESTS_NAMED])
    more = len(requests) - REQUESTS_NAMED
    return f"The user said: {named}{f'; and {more} more' if more > 0 else ''}."


def _tools(messages: Sequence[Message]) -> str:
    runs = [message for message in messages if isinstance(message, ToolMessage)]
    done = [message.name for message in runs if message.ok]
    failed = [message.name for message in runs if not message.ok]
    told = []
    if done:
        told.append(f"Tools used: {', '.join(dict.fromkeys(done))}.")
    if failed:
        told.append(f"Without success: {', '.join(dict.fromkeys(failed))}.")
    return " ".join(told)


def _open_question(messages: Sequence[Message]) -> str:
    """Returns the last words, if they still need an answer."""
    spoken = [m for m in messages if isinstance(m, UserMessage) or (isinstance(m, AssistantMessage) and m.text)]
    match spoken[-1]:
        case UserMessage(text=text):
            return f"Not answered yet: {_short(text)}."
        case AssistantMessage(text=text) if text.rstrip().endswith("?"):
            return f"Open question: {_short(text)}"
    return ""


def _short(text: str) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= REQUEST_CHARS else f"{line[: REQUEST_CHARS - 1]}…"
