"""What a tool returns. Handlers create it with `ok` and `fail`; the gate adds `meta`."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from antiphon.security.surrogates import repair_json
from antiphon.sound_format import MAX_VOICE_SPEED, MAX_VOLUME, MIN_VOICE_SPEED
from antiphon.tools.errors import ErrorType

VOICE_SPEEDS: Final = range(MIN_VOICE_SPEED, MAX_VOICE_SPEED + 1)
VOLUMES: Final = range(MAX_VOLUME + 1)
"""What `CHANGE_VOICE` may ask for, in percent."""


class IntentType(StrEnum):
    END_VOICE_SESSION = "END_VOICE_SESSION"
    SUPPRESS_AUDIO = "SUPPRESS_AUDIO"
    SUPPRESS_TRANSCRIPT = "SUPPRESS_TRANSCRIPT"
    SET_PENDING_MESSAGE = "SET_PENDING_MESSAGE"
    CHANGE_VOICE = "CHANGE_VOICE"


class After(StrEnum):
    """When a voice session ends."""

    IMMEDIATE = "immediate"
    CURRENT_TURN = "current_turn"
    FAREWELL_SPOKEN = "farewell_spoken"


class Intent(Struct, frozen=True, gc=False):
    """A change of the session that a handler asks for. The session's `StateController` decides."""

    type: str
    after: str | None = None
    value: bool | None = None
    message: str | None = None
    voice_speed: int | None = None
    """In percent of the normal speed."""
    volume: int | None = None
    """In percent."""


class FlyoutType(StrEnum):
    BROWSER = "browser"
    CODE = "code"
    TERMINAL = "terminal"


class Flyout(Struct, frozen=True):
    """Something to show beside the conversation. The content is text or a URL, never markup."""

    flyout_type: FlyoutType
    content: str
    language: str | None = None
    title: str | None = None


class Citation(Struct, frozen=True):
    id: str
    title: str
    url: str | None = None


class ConfirmationRequest(Struct, frozen=True):
    """What the person is asked to approve, exactly as it would run."""

    tool: str
    args: dict[str, Any]
    preview: str
    confirmation_token: str
    expires_at: int
    """Unix time in milliseconds."""
    id: str | None = None
    """The id under which the client is shown the call."""
    title: str | None = None
    """The tool's name for people."""


class Prepared(Struct, frozen=True):
    """A call as it would run, made by a tool's `prepare` before the person is asked."""

    args: dict[str, Any]
    """The arguments with nothing left open: "tomorrow at three" has become a date and a time. They fit the schema."""
    preview: str
    """What the person is asked to approve, in a sentence."""


class Outcome(StrEnum):
    """What a call that did not succeed has done. A model is told, so that it does not claim more."""

    NOTHING_DONE = "nothing_done"
    WAITING = "waiting_for_approval"
    UNKNOWN = "unknown"


class Failure(Struct, frozen=True, gc=False):
    type: ErrorType
    message: str
    retryable: bool = False
    suggestion: str | None = None
    retry_after_s: float | None = None
    details: Mapping[str, Any] | None = None
    confirmation_request: ConfirmationRequest | None = None
    idempotency_required: bool = False
    partial_side_effects: bool = False

    @property
    def outcome(self) -> Outcome:
        if self.partial_side_effects:
            return Outcome.UNKNOWN
        return Outcome.WAITING if self.type is ErrorType.CONFIRMATION_REQUIRED else Outcome.NOTHING_DONE

    def for_model(self) -> dict[str, Any]:
        """Returns what the model gets: enough to correct itself, but not the token that only the user may use."""
        told: dict[str, Any] = {
            "type": str(self.type),
            "message": self.message,
            "outcome": str(self.outcome),
            "retryable": self.retryable,
        }
        if self.suggestion is not None:
            told["suggestion"] = self.suggestion
        if self.retry_after_s is not None:
            told["retry_after_s"] = self.retry_after_s
        if self.details is not None:
            told["details"] = self.details
        if self.partial_side_effects:
            told["partial_side_effects"] = True
        if self.confirmation_request is not None:
            told["preview"] = self.confirmation_request.preview
        return told


class Meta(Struct, frozen=True, gc=False):
    tool: str
    tool_version: str | None
    registry_version: str
    duration_ms: float
    turn: int
    idempotency_key: str | None
    cache_hit: bool = False
    clamped: dict[str, Any] | None = None
    """Arguments that the policy changed, with the values that were asked for."""


class ToolResult(Struct, frozen=True, gc=False):
    ok: bool
    data: Any = None
    error: Failure | None = None
    intents: tuple[Intent, ...] = ()
    spoken: str | None = None
    flyout: Flyout | None = None
    citations: tuple[Citation, ...] = ()
    meta: Meta | None = None

    def for_model(self) -> Any:
        """Returns the data, or `{"error": …}`, but never meta or intents."""
        return self.data if self.error is None else {"error": self.error.for_model()}


def ok(
    data: Any = None,
    *,
    spoken: str | None = None,
    intents: Sequence[Intent] = (),
    flyout: Flyout | None = None,
    citations: Sequence[Citation] = (),
) -> ToolResult:
    """Makes a successful result. `spoken` is the answer in one or two sentences, in normal writing: it is also shown,
    and the speech engine reads "example.org" as "example dot org" by itself."""
    return ToolResult(
        ok=True, data=data, intents=tuple(intents), spoken=spoken, flyout=flyout, citations=tuple(citations)
    )


def fail(
    type: ErrorType,
    message: str,
    *,
    retryable: bool = False,
    suggestion: str | None = None,
    retry_after_s: float | None = None,
    details: Mapping[str, Any] | None = None,
    partial_side_effects: bool = False,
    spoken: str | None = None,
) -> ToolResult:
    """Makes a failed result. The message is a sentence that can be said to the user."""
    failure = Failure(
        type,
        message,
        retryable=retryable,
        suggestion=suggestion,
        retry_after_s=retry_after_s,
        details=details,
        partial_side_effects=partial_side_effects,
    )
    return ToolResult(False, None, failure, spoken=spoken)


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Returns a result, a message or JSON data with every text in it changed, including keys."""
    match value:
        case StrEnum():
            return value
        case str():
            return change(value)
        case Struct():
            return type(value)(**{name: map_texts(inner, change) for name, inner in asdict(value).items()})
        case Mapping():
            return {map_texts(key, change): map_texts(inner, change) for key, inner in value.items()}
        case list():
            return [map_texts(inner, change) for inner in value]
        case tuple():
            return tuple(map_texts(inner, change) for inner in value)
    return value


def repair(result: ToolResult) -> ToolResult:
    """Replaces lone surrogates, which a handler may have got from elsewhere."""
    return ToolResult(**{name: _repair(value) for name, value in asdict(result).items()})


def _repair(value: Any) -> Any:
    match value:
        case Struct():
            return type(value)(**{name: _repair(inner) for name, inner in asdict(value).items()})
        case tuple():
            return tuple(map(_repair, value))
    return repair_json(value)
