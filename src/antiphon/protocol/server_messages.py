"""What the server sends. Every field is always there; what does not apply is null.

Clients ignore types and fields that they do not know.
"""

from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from antiphon.protocol.client_messages import Mode, Role
from antiphon.protocol.errors import ErrorCode


class ServerMessage(Struct, frozen=True, kw_only=True, tag_field="type"):
    """Any message that the server sends as text."""

    n: int = 0
    """Counts the server's messages and binary frames from 1 within the session. Set when it is sent."""


class State(StrEnum):
    IDLE = "idle"
    """Not listening."""
    LISTENING = "listening"
    """The user may speak."""
    PROCESSING = "processing"
    """An answer is being made."""
    SPEAKING = "speaking"
    """The answer is heard."""
    INTERRUPTED = "interrupted"
    """The user cut in; the next state follows at once."""


class FlyoutType(StrEnum):
    BROWSER = "browser"
    """The content is a URL."""
    CODE = "code"
    """The content is source text."""
    TERMINAL = "terminal"
    """The content is text to be added to what the panel shows."""


class NoticeKind(StrEnum):
    INFO = "info"
    SUCCESS = "success"
    WARNING = "warning"
    ERROR = "error"


class Outcome(StrEnum):
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"


class EnergyReason(StrEnum):
    RATE_LIMIT_EXCEEDED = "rate-limit-exceeded"
    SESSION_RESET = "session-reset"
    MANUAL = "manual"


class StateChanged(ServerMessage, frozen=True, tag="state"):
    """The state from now on. The first message of every connection is one."""

    state: State


class Transcript(ServerMessage, frozen=True, tag="transcript"):
    """What the user said, as far as it is known."""

    text: str
    is_final: bool
    """A final one is sent after it is stored; interim ones come while the user speaks."""
    turn: int | None = None
    """The turn that it belongs to. A transcript may come after the answer of its turn, or never."""


class ResponseChunk(ServerMessage, frozen=True, tag="response_chunk"):
    """The next piece of the answer."""

    text: str
    """Only what is new."""
    is_first: bool
    turn: int | None = None


class QueuedText(Struct, frozen=True):
    """A typed message that waits for its turn."""

    id: str
    text: str


class Queued(ServerMessage, frozen=True, tag="queued"):
    """The typed messages that wait for the answer under way, oldest first. Sent whenever they change; empty: none."""

    messages: tuple[QueuedText, ...]


class Response(ServerMessage, frozen=True, tag="response"):
    """The whole answer, after its chunks: it replaces them. Audio may come before it."""

    text: str
    turn: int | None = None


class Audio(ServerMessage, frozen=True, tag="audio"):
    """A clause or a sentence of speech."""

    data: str
    """A WAV file in base64: 22,050 Hz, mono, 16 bits."""
    turn: int = 0
    """The turn that it belongs to; 0: to none, as a sample of a voice."""
    seq: int = 0
    """Counts the pieces of a turn from 0."""
    last: bool = False
    """No more audio comes for this turn."""


class ToolCall(ServerMessage, frozen=True, tag="tool_call"):
    """A tool is about to run."""

    name: str
    args: Any
    """As the model gave them: an object, unless the model erred."""
    id: str | None = None
    """The same as in the `tool_result`."""


class ToolResult(ServerMessage, frozen=True, tag="tool_result"):
    """What came of a tool call."""

    name: str
    result: Any
    """The tool's data, or {"error": …}."""
    id: str | None = None
    ok: bool = True
    duration_ms: float | None = None


class Flyout(ServerMessage, frozen=True, tag="flyout"):
    """Something to show beside the conversation. Comes between its `tool_call` and its `tool_result`."""

    flyout_type: FlyoutType
    content: str
    """Text or a URL, never markup."""
    language: str | None = None
    """Of source text, such as "python"."""
    title: str | None = None


class Error(ServerMessage, frozen=True, tag="error"):
    """Something went wrong."""

    message: str
    """A sentence that can be shown."""
    code: str = ErrorCode.INTERNAL
    """One of the error codes."""
    retryable: bool = False
    """Whether the same may succeed another time."""


class EnergyLevels(Struct, frozen=True):
    """How good the models in use are; 0 is exhausted."""

    voice: int
    """0 to 3."""
    text: int
    """0 to 2."""


class Session(ServerMessage, frozen=True, tag="session"):
    """The session behind this connection. Sent again with each new handle."""

    session_id: str
    conversation_id: str
    resume: str
    """The handle to come back with, in the place of the one before it; keep it in memory only. The one before it stays
    good until this one was used, or until the client has sent anything on this connection."""
    resumed: bool
    mode: Mode
    tools_version: str
    expires_in_s: int
    """Seconds that the handle is valid after the last use."""
    energy: EnergyLevels | None = None


class GoAway(ServerMessage, frozen=True, tag="go_away"):
    """The server will close this connection. Come back with the handle."""

    time_left_ms: int
    reason: str
    resume: str | None = None


class GenerationComplete(ServerMessage, frozen=True, tag="generation_complete"):
    """The model has finished making this answer. It may still be playing."""

    turn: int


class VoiceSessionStart(ServerMessage, frozen=True, tag="voice_session_start"):
    """The conversation goes on in voice: the client opens the microphone and sends `start_voice`."""

    session_id: str
    pending_request: str | None
    """What will be answered first."""


class EndVoiceSession(ServerMessage, frozen=True, tag="end_voice_session"):
    """The call is over; the conversation goes on in text."""

    reason: str
    final_message: str | None


class Timeout(ServerMessage, frozen=True, tag="timeout"):
    """This user is blocked."""

    until: int
    """Unix time in milliseconds."""
    duration_seconds: float
    message: str


class ConfirmationRequest(ServerMessage, frozen=True, tag="confirmation_request"):
    """The person is asked to approve a call, exactly as it is shown. Answered by `confirm`."""

    confirmation_token: str
    tool: str
    args: dict[str, Any]
    preview: str
    """What will happen, in words."""
    expires_at: int
    """Unix time in milliseconds."""
    id: str | None = None
    """The `id` of the `tool_call` that waits for the answer. The `tool_result` of an approved call has the same."""


class ConfirmationResolved(ServerMessage, frozen=True, tag="confirmation_resolved"):
    """The question is settled, by whichever way."""

    confirmation_token: str
    outcome: Outcome


class Energy(ServerMessage, frozen=True, tag="energy"):
    """Another model is in use, or none."""

    mode: Mode
    level: int
    max: int
    previous: int
    reason: EnergyReason
    model: str | None
    """Null at level 0."""
    resumable: bool
    requires_fallback: bool
    """Whether the new model starts from a summary instead of the old one's handle."""


class Notice(ServerMessage, frozen=True, tag="notice"):
    """A short text that passes by."""

    kind: NoticeKind
    text: str
    code: str | None = None
    """What it is about, for programs."""
    duration_ms: int | None = None
    """How long to show it. Null: as the client likes."""


class TurnMetrics(ServerMessage, frozen=True, tag="turn_metrics"):
    """Where the time of a turn went, in milliseconds. Null: the turn had no such part."""

    turn: int
    end_of_turn_ms: float | None = None
    """From the last sound of the user to the decision that the turn is over."""
    stt_ms: float | None = None
    """What recognition took. It may begin before the turn is over, so it is not all a part of the total."""
    first_token_ms: float | None = None
    """From the text to the first word of the answer."""
    first_audio_ms: float | None = None
    """From the first word to the first sound."""
    total_ms: float | None = None
    """From the last sound of the user to the first sound of the answer."""


class HistoryCall(Struct, frozen=True):
    """A tool call of an earlier turn."""

    id: str
    name: str
    args: Any = None
    """As in `tool_call`. What is longer than 2,000 bytes of JSON is given as the beginning of that text."""
    result: Any = None
    """As in `tool_result`, shortened in the same way. Null if it is not known."""
    ok: bool | None = None
    """Null: the outcome is not known."""


class HistoryTurn(Struct, frozen=True):
    """Who said what."""

    role: Role
    content: str
    """Empty for calls that no words followed."""
    spoken: bool = False
    at: int | None = None
    """Unix time in milliseconds."""
    calls: tuple[HistoryCall, ...] = ()
    """What the assistant called before it said this, in order. Of a long conversation, the newest calls only."""


class History(ServerMessage, frozen=True, tag="history"):
    """The turns of a conversation that was resumed or loaded, oldest first."""

    conversation_id: str
    turns: tuple[HistoryTurn, ...]


class Reminder(ServerMessage, frozen=True, tag="reminder"):
    """A reminder is due."""

    id: str
    message: str
    due: int
    """Unix time in milliseconds."""


class Image(ServerMessage, frozen=True, tag="image"):
    """A picture that was made or found."""

    url: str
    caption: str | None = None


class SettingsUpdated(ServerMessage, frozen=True, tag="settings_updated"):
    """The settings in force."""

    theme: str | None
    voice_speed: int
    """Percent of the normal speed of speech."""
    volume: int
    """Percent."""
    voice: str | None
    greeting: bool
    captions: bool


class Pong(ServerMessage, frozen=True, tag="pong"):
    """The answer to a `ping`."""

    t: int | float
    """The same as in the `ping`."""


SERVER_MESSAGES: Final = tuple(ServerMessage.__subclasses__())


class SpeechFrame(Struct, frozen=True, gc=False):
    """Speech in a binary frame, in the place of an `audio` message: PCM16 little-endian, 22,050 Hz, mono."""

    n: int
    turn: int
    seq: int
    pcm: bytes
