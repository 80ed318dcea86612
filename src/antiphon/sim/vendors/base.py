"""The seam between the fault injector and a provider's protocol."""

import array
import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from urllib.parse import parse_qs

from starlette.types import Scope

from antiphon.sim.actions import MAX_REASON_BYTES, Action, Alteration
from antiphon.sim.script import Vocabulary

Message = dict[str, Any]

SPEECH_HZ: Final = 24_000
"""The sample rate at which both providers speak."""


@dataclass(frozen=True, slots=True)
class CloseWith:
    """The socket is closed with this code and reason. Providers cut a long reason, since a frame limits it."""

    code: int
    reason: str

    @property
    def cut_reason(self) -> str:
        return self.reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore")


@dataclass(frozen=True, slots=True)
class HttpRefusal:
    """The upgrade, or the request, is answered with this status instead."""

    status: int
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)


Outgoing = Message | CloseWith
"""What is sent to the client."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a client's message."""

    forward: tuple[Message, ...] = ()
    """What the endpoint gets."""
    replies: tuple[Outgoing, ...] = ()
    """What the client gets at once."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a connection may last, and when its end is announced, in seconds of the simulator's time."""

    connection_s: float
    warning_s: float | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """What a simulator was started with."""

    key: str | None = None
    """The only key that is accepted; None accepts any."""
    extra_models: frozenset[str] = frozenset()
    """Names of models that are accepted beside the provider's own."""
    time_scale: float = 1.0
    """How many times faster than the provider's the limits pass."""
    connection_s: float | None = None
    """How long a connection lasts; None is the provider's limit."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """A client's request for a WebSocket, or any HTTP request."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]

    @staticmethod
    def of(scope: Scope) -> "Upgrade":
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        query = {name: values[0] for name, values in parse_qs(scope["query_string"].decode("latin-1")).items()}
        return Upgrade(scope["path"], query, headers)


class Conversation(Protocol):
    """One connection as the provider sees it."""

    sends_binary: bool
    """Whether the provider's messages are binary frames."""
    limits: Limits | None
    """How long this connection lasts; None is for ever."""
    is_resumed: bool
    """Whether the client asked to resume a session."""

    def refuse(self) -> HttpRefusal | Sequence[Outgoing]:
        """Returns why the provider would not serve this request: a status, or messages and a close; [] if it would."""
        ...

    def client_types(self, message: Message) -> tuple[str, ...]:
        """Returns the names by which a trigger can name a client's message."""
        ...

    def server_types(self, message: Message) -> tuple[str, ...]: ...

    def asks_to_resume(self, message: Message) -> bool: ...

    def on_client(self, message: Message) -> Verdict:
        """Applies the provider's rules to a client's message."""
        ...

    def on_server(self, message: Message) -> Sequence[Message]:
        """Learns from a message of the endpoint, and returns what is to be sent instead."""
        ...

    def alter(self, action: Alteration, message: Message) -> Sequence[Outgoing] | None:
        """Returns what is sent in a message's place; None if the action does not fit this message."""
        ...

    def is_finished(self, action: Alteration, message: Message) -> bool:
        """Whether the alteration ends with this message. Most change one message, some a whole response."""
        ...

    def inject(self, action: Action) -> Sequence[Outgoing]:
        """Returns the messages of an action in the provider's format."""
        ...

    def take_forwards(self) -> Sequence[Message]:
        """Returns what the endpoint must get in the client's name, such as results for calls that were cancelled."""
        ...

    def warn(self, seconds_left: float) -> Sequence[Outgoing]:
        """Returns the announcement that the connection will end."""
        ...

    def expire(self) -> Sequence[Outgoing]: ...

    def close(self) -> None:
        """The connection has ended."""
        ...


class Vendor(Protocol):
    """A provider with everything that outlives a connection."""

    vocabulary: Vocabulary

    def open(self, number: int, upgrade: Upgrade) -> Conversation: ...

    def rewrite(self, scope: Scope) -> Scope:
        """Returns the request as the endpoint gets it: its own path, and no keys."""
        ...

    def refusal(self, status: int) -> str:
        """Returns the provider's usual body for a status."""
        ...

    def describe(self) -> list[Message]:
        """Returns the sessions, for the control port."""
        ...


def tone(seconds: float) -> str:
    """Returns audio that can be told apart from speech and silence, as base64."""
    count = int(seconds * SPEECH_HZ)
    samples = array.array("h", (int(4_000 * math.sin(2 * math.pi * 440 * n / SPEECH_HZ)) for n in range(count)))
    return base64.b64encode(samples.tobytes()).decode()


def without(scope: Scope, headers: frozenset[bytes], path: str) -> Scope:
    """Returns the scope with another path and without some headers and the query's keys."""
    pairs = [pair for pair in scope["query_string"].split(b"&") if not pair.startswith((b"key=", b"api-key="))]
    return {
        **scope,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"&".join(pairs),
        "headers": [(name, value) for name, value in scope["headers"] if name.lower() not in headers],
    }
