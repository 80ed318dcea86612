"""What a handler is given. Each capability is a small Protocol, so that a test passes a fake in one line."""

from collections.abc import Mapping
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, cast
from zoneinfo import ZoneInfo

from msgspec import Struct

from antiphon.clock import Clock
from antiphon.tools.messages import Message
from antiphon.tools.result import After, Intent, IntentType, ToolResult
from antiphon.tools.spec import Capability, Mode

if TYPE_CHECKING:
    from antiphon.tools.capabilities.calendar import Calendar
    from antiphon.tools.capabilities.fetch import Fetch
    from antiphon.tools.capabilities.home import Home
    from antiphon.tools.capabilities.images import Images
    from antiphon.tools.capabilities.kb import KnowledgeBase
    from antiphon.tools.capabilities.lists import Lists
    from antiphon.tools.capabilities.reminders import Reminders
    from antiphon.tools.capabilities.secrets import Secrets
    from antiphon.tools.capabilities.storage import Storage
    from antiphon.tools.capabilities.weather import Weather
    from antiphon.tools.capabilities.web import Web

Args = Mapping[str, Any]
"""Validated arguments with defaults filled in."""

NOTHING_GRANTED: Final[Mapping[str, object]] = MappingProxyType({})


class SessionView(Struct, frozen=True, gc=False):
    """The session as a handler may see it. To change it, return an intent."""

    id: str
    user: str
    mode: Mode
    active: bool
    turn: int
    zone: ZoneInfo
    voice_speed: int = 100
    """The speed of speech, in percent of the normal speed."""
    volume: int = 80
    """In percent."""


class ToolView(Struct, frozen=True, gc=False):
    id: str
    version: str
    idempotent: bool
    secrets: tuple[str, ...] = ()
    """The names of the secrets that it may have."""


class Messaging(Protocol):
    async def send(self, message: Message) -> None:
        """Hands a message to the client, in order. Raises `ToolError` TRANSIENT if there is no client to take it."""
        ...


class AuditTrail(Protocol):
    def log(self, event: str, **data: Any) -> None:
        """Adds a line about this call to the audit. Values must be JSON."""
        ...


class Catalog(Protocol):
    """The registry as a handler may see it."""

    def tool_ids(self) -> list[str]: ...

    def documentation(self, tool_id: str) -> str | None: ...


class CallTool(Protocol):
    async def __call__(self, name: str, args: Mapping[str, Any]) -> ToolResult:
        """Runs another tool through the same gate, on the same turn's budget."""
        ...


class Offer(Protocol):
    def __call__(self, session: SessionView, tool: ToolView) -> object:
        """Makes a capability for one call of a tool. It must be cheap: it is called before every run."""
        ...


class Voice(Struct, frozen=True):
    active: bool

    def end_session(self, after: After = After.CURRENT_TURN) -> Intent:
        return Intent(IntentType.END_VOICE_SESSION, after=after)

    def change(self, *, speed: int, volume: int) -> Intent:
        """Makes the assistant speak at another speed, and the client play it at another volume, both in percent."""
        return Intent(IntentType.CHANGE_VOICE, voice_speed=speed, volume=volume)


class Audio:
    def suppress(self, value: bool = True) -> Intent:
        return Intent(IntentType.SUPPRESS_AUDIO, value=value)


class Context(Struct, frozen=True, gc=False):
    session: SessionView
    tool: ToolView
    messaging: Messaging
    voice: Voice
    audio: Audio
    audit: AuditTrail
    clock: Clock
    rng: Random
    granted: Mapping[str, object] = NOTHING_GRANTED
    """The capabilities that the tool's schema lists in `uses`."""
    clamped: Mapping[str, object] = NOTHING_GRANTED
    """Arguments that were limited to what speech can use, with the values that were asked for."""

    def use(self, capability: str) -> Any:
        """Returns a capability by its name, such as one that the project's own package offers."""
        try:
            return self.granted[capability]
        except KeyError:
            raise PermissionError(f'{self.tool.id} does not list "{capability}" in its schema\'s "uses"') from None

    @property
    def call_tool(self) -> CallTool:
        return cast(CallTool, self.use(Capability.CALL_TOOL))

    @property
    def catalog(self) -> Catalog:
        return cast(Catalog, self.use(Capability.CATALOG))

    @property
    def kb(self) -> "KnowledgeBase":
        return cast("KnowledgeBase", self.use(Capability.KB))

    @property
    def calendar(self) -> "Calendar":
        return cast("Calendar", self.use(Capability.CALENDAR))

    @property
    def reminders(self) -> "Reminders":
        return cast("Reminders", self.use(Capability.REMINDERS))

    @property
    def lists(self) -> "Lists":
        return cast("Lists", self.use(Capability.LISTS))

    @property
    def home(self) -> "Home":
        return cast("Home", self.use(Capability.HOME))

    @property
    def images(self) -> "Images":
        return cast("Images", self.use(Capability.IMAGES))

    @property
    def fetch(self) -> "Fetch":
        return cast("Fetch", self.use(Capability.FETCH))

    @property
    def weather(self) -> "Weather":
        return cast("Weather", self.use(Capability.WEATHER))

    @property
    def web(self) -> "Web":
        return cast("Web", self.use(Capability.WEB))

    @property
    def secrets(self) -> "Secrets":
        return cast("Secrets", self.use(Capability.SECRETS))

    @property
    def storage(self) -> "Storage":
        return cast("Storage", self.use(Capability.STORAGE))
