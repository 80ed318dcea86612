"""The Python client: `async with connect(url) as session`. It depends on the protocol only."""

from antiphon.client.connection import connect
from antiphon.client.events import (
    ClientError,
    Disconnected,
    Incoming,
    NewSession,
    Reconnecting,
    Resumed,
    TurnLost,
    Untrusted,
)
from antiphon.client.resuming import Backoff
from antiphon.client.session import Session
from antiphon.protocol.client_messages import Mode

__all__ = [
    "Backoff",
    "ClientError",
    "Disconnected",
    "Incoming",
    "Mode",
    "NewSession",
    "Reconnecting",
    "Resumed",
    "Session",
    "TurnLost",
    "Untrusted",
    "connect",
]
