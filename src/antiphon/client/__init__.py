"""The Python client. It depends on the protocol only.

One line of a script:

    answer = antiphon.client.ask("http://127.0.0.1:8000", "What time is it in Tokyo?")

A conversation:

    async with connect("http://127.0.0.1:8000") as conversation:
        answer = await conversation.ask("What is 2 plus 3?")
        print(answer.text, answer.tools, answer.metrics)
"""

from antiphon.client.answers import Answer, ToolUse
from antiphon.client.asking import RecordingError, VoiceUnavailable, ask
from antiphon.client.connection import connect
from antiphon.client.events import (
    AnswerFailed,
    ClientError,
    ConfirmationNeeded,
    Disconnected,
    Incoming,
    NewSession,
    NoAnswer,
    Reconnecting,
    Resumed,
    TurnLost,
    Untrusted,
)
from antiphon.client.resuming import Backoff
from antiphon.client.session import Session
from antiphon.protocol.client_messages import Mode
from antiphon.protocol.server_messages import ConfirmationRequest

__all__ = [
    "Answer",
    "AnswerFailed",
    "Backoff",
    "ClientError",
    "ConfirmationNeeded",
    "ConfirmationRequest",
    "Disconnected",
    "Incoming",
    "Mode",
    "NewSession",
    "NoAnswer",
    "Reconnecting",
    "RecordingError",
    "Resumed",
    "Session",
    "ToolUse",
    "TurnLost",
    "Untrusted",
    "VoiceUnavailable",
    "ask",
    "connect",
]
