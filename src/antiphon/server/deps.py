"""What the HTTP routes work with."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from msgspec import Struct
from prometheus_client.registry import Collector
from starlette.requests import Request

from antiphon.clock import Clock
from antiphon.security.quota import Quota
from antiphon.server.authenticator import Caller
from antiphon.session.hub import Hub
from antiphon.speech.base import Voice
from antiphon.storage.conversations import ConversationStore, VoiceCallStore
from antiphon.tools.registry import Registry
from antiphon.tools.spec import Mode


class Model(Struct, frozen=True):
    name: str
    mode: Mode
    needs_network: bool
    current: bool = False


class ModelFailure(Struct, frozen=True):
    kind: str
    """What went wrong, such as unreachable, timeout, rate_limited, server_error or cut_off."""
    at: int
    """Unix time in milliseconds."""
    status: int | None = None
    """The HTTP status of the model's server, if it refused."""


class ModelState(Struct, frozen=True):
    """The model for text, and how its last answer went."""

    name: str
    """Without the address of its server."""
    last_failure: ModelFailure | None = None
    """Null if the last answer was whole, or if there was none yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpDeps:
    hub: Hub
    conversations: ConversationStore
    voice_calls: VoiceCallStore
    registry: Registry
    identify: Callable[[Request], Awaitable[Caller | None]]
    """None for a request without a valid token, where one is required."""
    ready: Callable[[], Awaitable[Sequence[str]]]
    """What keeps the server from serving, a sentence each; nothing if it can."""
    clock: Clock
    quota: Quota = field(default_factory=Quota)
    models: Callable[[], Sequence[Model]] = tuple
    voices: Callable[[], Sequence[Voice]] = tuple
    """The voices of the synthesiser, the usual one first; none where nothing speaks."""
    collectors: Sequence[Collector] = ()
    """Of metrics, beside those of the tools and the sessions."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server begins to stop: no new message is taken."""
    must_end: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the time is over in which answers could still be finished."""
    model_state: Callable[[], ModelState | None] = lambda: None
