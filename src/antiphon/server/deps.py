"""What the HTTP routes work with."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct
from prometheus_client.registry import Collector
from starlette.requests import Request

from antiphon.clock import Clock
from antiphon.models.health import ModelHealth
from antiphon.security.admission import Caller
from antiphon.security.quota import Quota
from antiphon.services.images import ImageArchive
from antiphon.services.kb import Knowledge
from antiphon.services.recordings import RecordingArchive
from antiphon.session.hub import Hub
from antiphon.session.nodes import Nodes
from antiphon.speech.base import Voice
from antiphon.storage.base import AuditStore
from antiphon.storage.conversations import ConversationStore, VoiceCallStore
from antiphon.storage.events import EventStore
from antiphon.storage.overview import OverviewStore
from antiphon.storage.people import BlockStore, TokenStore
from antiphon.telemetry.metrics import EngineStats
from antiphon.tools.registry import Registry
from antiphon.tools.spec import Mode


class Model(Struct, frozen=True):
    name: str
    mode: Mode
    needs_network: bool
    current: bool = False
    """Whether it is the best model of its mode."""
    levels: tuple[int, ...] = ()
    """The levels of energy at which it is used, the highest first."""


class ModelFailure(Struct, frozen=True):
    kind: str
    """What went wrong, such as unreachable, timeout, rate_limited, server_error or cut_off."""
    at: int
    """Unix time in milliseconds."""
    status: int | None = None
    """The HTTP status of the model's server, if it refused."""


class ModelState(Struct, frozen=True):
    """A model, and whether its last answer succeeded."""

    name: str
    """The name without the address of its server."""
    last_failure: ModelFailure | None = None
    """Null if the last answer was complete, or if there was none yet."""
    warming: bool = False
    """Whether its server is loading the model and reading the prompt, so that the first answer may take longer."""


@dataclass(frozen=True, slots=True)
class NamedHealth:
    """A model by the name that clients may know, and how it does."""

    name: str
    health: ModelHealth

    def state(self) -> ModelState:
        failure = self.health.last_failure
        told = None if failure is None else ModelFailure(failure.kind, failure.at_ms, failure.status)
        return ModelState(self.name, told, self.health.is_warming)


class ToolChange(Struct, frozen=True):
    """One change of a tool."""

    field: str
    """The field of its schema.json, or `tool` or `files`."""
    breaking: bool
    """Whether it breaks callers of the tool, or readers of its results."""
    sentence: str


class ChangedTool(Struct, frozen=True):
    tool: str
    kind: str
    """One of added, removed and changed."""
    changes: tuple[ToolChange, ...]


class ToolChanges(Struct, frozen=True):
    """What would change if the tools were built and loaded now."""

    running: str
    """The version of the tools from files that this process has loaded."""
    on_disk: str
    """The version that the folders of the tools would have now."""
    tools: tuple[ChangedTool, ...]
    problems: tuple[str, ...]
    """The mistakes that a build would report. A tool with one is not compared, and counts as removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorDeps:
    """What the operator's page reads and changes."""

    overview: OverviewStore
    events: EventStore
    audit: AuditStore
    tokens: TokenStore
    blocks: BlockStore
    compare_tools: Callable[[], Awaitable[ToolChanges]]


@dataclass(frozen=True, slots=True)
class VoiceParts:
    """What the voice of a server is made of."""

    is_wanted: bool = False
    """Whether the settings ask for a voice."""
    is_there: bool = False
    stt: EngineStats | None = None
    """The engine that recognises speech on this server, if one does."""
    tts: EngineStats | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpDeps:
    hub: Hub
    nodes: Nodes
    conversations: ConversationStore
    voice_calls: VoiceCallStore
    knowledge: Knowledge
    registry: Registry
    identify: Callable[[Request], Awaitable[Caller | None]]
    """Returns None for a request without a valid token where one is required."""
    ready: Callable[[], Awaitable[Sequence[str]]]
    """Returns what keeps the server from serving, one sentence each; nothing if it can serve."""
    clock: Clock
    operator: OperatorDeps
    quota: Quota = field(default_factory=Quota)
    models: Callable[[], Sequence[Model]] = tuple
    voices: Callable[[], Sequence[Voice]] = tuple
    """The voices of the synthesizer, the default one first; none on a server that does not speak."""
    images: ImageArchive | None = None
    """The images that tools have made."""
    recordings: RecordingArchive | None = None
    """The recordings of calls."""
    collectors: Sequence[Collector] = ()
    """Metrics besides those of the tools and the sessions."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server begins to stop: new messages are refused."""
    must_end: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the time for finishing answers is over."""
    model_healths: Mapping[Mode, Sequence[NamedHealth]] = field(default_factory=dict)
    """The models that sessions talk to, by mode, the best one first. A cascade is not listed: its answers are those of
    the text model."""
    voice_parts: VoiceParts = field(default_factory=VoiceParts)
    answers_locally: bool = False
    """Whether the offline assistant answers what it knows before the text model is asked."""
