"""Tool calls and their failures, each as one line of a terminal."""

from typing import Any, Final

import msgspec

MAX_CHARS: Final = 300
"""How much of a call's arguments is shown: they may hold a whole program."""
CONFIRMATION_REQUIRED: Final = "CONFIRMATION_REQUIRED"


def describe_call(name: str, args: Any) -> str:
    shown = msgspec.json.encode(args).decode()
    return f"· {name} {shown if len(shown) <= MAX_CHARS else f'{shown[:MAX_CHARS]}…'}"


def describe_failure(name: str, result: Any) -> str | None:
    """None for a call that only waits for a person, which is told as a question."""
    match result:
        case {"error": {"type": kind}} if kind == CONFIRMATION_REQUIRED:
            return None
        case {"error": {"message": str(message)}}:
            return f"· {name} failed: {message}"
    return f"· {name} failed."
