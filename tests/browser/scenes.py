"""Pieces of conversations, as a server sends them."""

import math
import struct
import time
from collections.abc import Sequence
from typing import Any, Final

from antiphon.protocol.limits import SPEECH_HZ
from tests.browser.scripted import Message

CODE: Final = '''def greet(name: str) -> str:
    """What is said to somebody who comes in."""
    return f"Good morning, {name}."
'''
LISTING: Final = f"Here it is:\n\n```python\n{CODE}```\n\nIt is **short**."
SENTENCE: Final = "The evening train to Porto leaves at ten past six from the second platform. "


def in_ms(ms: int) -> int:
    """The Unix time in milliseconds, `ms` from now."""
    return int(time.time() * 1000) + ms


def exchange(asked: str, answered: str) -> list[Message]:
    """A typed question and its answer, from idle to idle."""
    return [
        {"type": "state", "state": "processing"},
        {"type": "transcript", "text": asked, "is_final": True},
        {"type": "response_chunk", "text": answered, "is_first": True},
        {"type": "response", "text": answered},
        {"type": "state", "state": "idle"},
    ]


def tool_use(
    name: str,
    args: Any,
    result: Any,
    *,
    ok: bool = True,
    duration_ms: int = 412,
    call_id: str = "t1",
) -> list[Message]:
    return [
        {"type": "tool_call", "id": call_id, "name": name, "args": args},
        {
            "type": "tool_result",
            "id": call_id,
            "name": name,
            "ok": ok,
            "duration_ms": duration_ms,
            "result": result,
        },
    ]


def wait_for_approval(call_id: str = "t1", token: str = "tok", **fields: Any) -> list[Message]:
    """The messages of a call that a person has to approve, up to the question."""
    asked = question(token, id=call_id, **fields)
    refusal = {"error": {"type": "CONFIRMATION_REQUIRED", "message": "This needs confirmation.", "retryable": False}}
    called, refused = tool_use(asked["tool"], asked["args"], refusal, ok=False, duration_ms=6, call_id=call_id)
    return [called, asked, refused]


def question(token: str = "tok", **fields: Any) -> Message:
    """A question that a person has to answer before a tool runs."""
    return {
        "type": "confirmation_request",
        "confirmation_token": token,
        "tool": "send_email",
        "args": {"to": "ana@example.org", "subject": "Saturday"},
        "preview": "Send an e-mail to Ana.",
        "expires_at": in_ms(58_000),
        **fields,
    }


def tone(ms: int, hz: float = 220.0) -> bytes:
    """A tone in the wire format of speech."""
    count = SPEECH_HZ * ms // 1000
    return struct.pack(
        f"<{count}h", *(round(9000 * math.sin(2 * math.pi * hz * at / SPEECH_HZ)) for at in range(count))
    )


CODE_ANSWER: Final = (
    "Here is one, with a function around it:\n\n```python\n"
    'DATE = re.compile(r"\\d{4}-\\d{2}-\\d{2}")\n\n'
    "def find_dates(text: str) -> list[str]:\n    return DATE.findall(text)\n```"
)
FORECAST: Final = (
    "**Saturday** is dry and mild, up to 21 °C. On *Sunday* showers are likely after four, so the morning is the "
    "better half.\n\n| Day | High | Rain |\n|---|---|---|\n| Saturday | 21 °C | 10 % |\n| Sunday | 18 °C | 60 % |\n\n"
    "Shall I remind you of the umbrella on Sunday?"
)
DIALOGUE: Final[Sequence[Message]] = (
    *exchange("Write me a regular expression for dates", CODE_ANSWER),
    {"type": "state", "state": "processing"},
    {"type": "transcript", "text": "What will the weekend in Lisbon be like?", "is_final": True},
    *tool_use(
        "get_forecast",
        {"location": "Lisbon", "days": 2},
        {"sources": [{"title": "Instituto Português do Mar e da Atmosfera", "url": "https://www.ipma.pt/"}]},
    ),
    {"type": "response", "text": FORECAST},
)
"""A conversation with everything that usually occurs in one."""
