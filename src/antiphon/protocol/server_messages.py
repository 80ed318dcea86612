"""The messages that the server sends. Every field is always present; null means that it does not apply.

Clients ignore unknown types and fields.
"""

from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from antiphon.protocol.client_messages import Mode, Role
from antiphon.protocol.errors import ErrorCode


class ServerMessage(Struct, frozen=True, kw_only=True, tag_field="type"):
    """Any message that the server sends as text."""

    n: int = 0
    """Counts the server's messages and binary frames from 1 within the session. It is set when the message is sent."""


class State(StrEnum):
    IDLE = "idle"
    """Not listening."""
    LISTENING = "listening"
    """The user may speak."""
    PROCESSING = "processing"
    """The answer is in progress."""
    SPEAKING = "speaking"
    """The answer is being played."""
    INTERRUPTED = "interrupted"
    """The user interrupted the answer; the next state follows at once."""


class FlyoutType(StrEnum):
    BROWSER = "browser"
    """The content is a URL."""
    CODE = "code"
    """The content is source text."""
    TERMINAL = "terminal"
    """The content is text that is added to the panel."""


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
    """The new state. It is the first message of every connection."""

    state: State


class Transcript(ServerMessage, frozen=True, tag="transcript"):
    """What the user said, as far as it is known."""

    text: str
    is_final: bool
    """A final transcript is sent after it is stored; interim ones are sent while the user speaks."""
    turn: int | None = None
    """The turn that it belongs to. A transcript may come after the answer of its turn, or never."""


class ResponseChunk(ServerMessage, frozen=True, tag="response_chunk"):
    """The next piece of the answer."""

    text: str
    """Only the new text."""
    is_first: bool
    turn: int | None = None


class QueuedText(Struct, frozen=True):
    """A typed message that is waiting."""

    id: str
    text: str


class Queued(ServerMessage, frozen=True, tag="queued"):
    """The typed messages that wait for the current answer to end, oldest first. Sent whenever the list changes."""

    messages: tuple[QueuedText, ...]


class Citation(Struct, frozen=True):
    """A source of an answer."""

    id: str
    """The id of a record of the knowledge base, which `GET /api/kb/{id}` returns; or another name of the source."""
    title: str
    url: str | None = None


class Response(ServerMessage, frozen=True, tag="response"):
    """The whole answer. It comes after its chunks and replaces them. Audio may come before it."""

    text: str
    turn: int | None = None
    citations: tuple[Citation, ...] = ()
    """The sources that the tools of this turn have returned, in their order."""


class Audio(ServerMessage, frozen=True, tag="audio"):
    """A clause or a sentence of speech."""

    data: str
    """A WAV file in base64: 22,050 Hz, mono, 16 bits."""
    turn: int = 0
    """The turn that it belongs to; 0 for a voice sample, which belongs to none."""
    seq: int = 0
    """Counts the pieces of a turn from 0."""
    last: bool = False
    """Whether this is the last audio of the turn."""


class Hold(ServerMessage, frozen=True, tag="hold"):
    """Stop playing at once, and keep the rest: somebody may speak. `resume` or the state `interrupted` follows."""

    turn: int
    """The answer to hold. Only clients whose `hello` has the feature "hold" are told."""


class Resume(ServerMessage, frozen=True, tag="resume"):
    """It was a noise, or an "okay": go on playing where the answer was held."""

    turn: int


class ToolCall(ServerMessage, frozen=True, tag="tool_call"):
    """A tool is about to run."""

    name: str
    args: Any
    """The arguments as the model gave them: an object, unless the model made a mistake."""
    id: str | None = None
    """The `tool_result` has the same id."""
    title: str | None = None
    """The tool's name for people, such as "Add to a list". Null if there is no such tool."""


class ToolResult(ServerMessage, frozen=True, tag="tool_result"):
    """The result of a tool call."""

    name: str
    result: Any
    """The tool's data, or {"error": …}."""
    id: str | None = None
    ok: bool = True
    duration_ms: float | None = None


class Flyout(ServerMessage, frozen=True, tag="flyout"):
    """Content to show beside the conversation. It comes between the `tool_call` and the `tool_result`."""

    flyout_type: FlyoutType
    content: str
    """Text or a URL, never markup."""
    language: str | None = None
    """The language of source text, such as "python"."""
    title: str | None = None


class Error(ServerMessage, frozen=True, tag="error"):
    """Something went wrong."""

    message: str
    """A sentence to show to the user."""
    code: str = ErrorCode.INTERNAL
    """One of the error codes."""
    retryable: bool = False
    """Whether another attempt may succeed."""


class EnergyLevels(Struct, frozen=True):
    """The quality levels of the models in use; 0 means exhausted."""

    voice: int
    """0 to 3."""
    text: int
    """0 to 2."""


class Session(ServerMessage, frozen=True, tag="session"):
    """The session of this connection. Sent again with each new handle."""

    session_id: str
    conversation_id: str
    resume: str
    """The handle for resuming the session, which replaces the previous one; keep it in memory only. The previous handle
    stays valid until this one is used, or until the client sends anything on this connection."""
    resumed: bool
    mode: Mode
    tools_version: str
    expires_in_s: int
    """How many seconds the handle stays valid after the last use."""
    energy: EnergyLevels | None = None
    """Null on a server without voice."""


class GoAway(ServerMessage, frozen=True, tag="go_away"):
    """The server will close this connection. Reconnect with the handle."""

    time_left_ms: int
    reason: str
    resume: str | None = None


class GenerationComplete(ServerMessage, frozen=True, tag="generation_complete"):
    """The model has finished this answer, which may still be playing."""

    turn: int


class VoiceSessionStart(ServerMessage, frozen=True, tag="voice_session_start"):
    """The conversation continues in voice: the client opens the microphone and sends `start_voice`."""

    session_id: str
    pending_request: str | None
    """The request that will be answered first."""


class EndVoiceSession(ServerMessage, frozen=True, tag="end_voice_session"):
    """The call is over; the conversation continues in text."""

    reason: str
    final_message: str | None


class Timeout(ServerMessage, frozen=True, tag="timeout"):
    """This user is blocked."""

    until: int
    """Unix time in milliseconds."""
    duration_seconds: float
    message: str


class ConfirmationRequest(ServerMessage, frozen=True, tag="confirmation_request"):
    """Asks the user to approve a call exactly as it is shown. Answered by `confirm`."""

    confirmation_token: str
    tool: str
    args: dict[str, Any]
    preview: str
    """A description of what will happen."""
    expires_at: int
    """Unix time in milliseconds."""
    id: str | None = None
    """The `id` of the `tool_call` that waits for the answer. The `tool_result` of an approved call has the same id."""
    title: str | None = None
    """The tool's name for people."""


class ConfirmationResolved(ServerMessage, frozen=True, tag="confirmation_resolved"):
    """A confirmation request was answered, or it expired."""

    confirmation_token: str
    outcome: Outcome


class Energy(ServerMessage, frozen=True, tag="energy"):
    """The model in use has changed, or there is none any more."""

    mode: Mode
    level: int
    max: int
    previous: int
    reason: EnergyReason
    model: str | None
    """Null at level 0."""
    resumable: bool
    requires_fallback: bool
    """Whether the new model starts from a summary instead of the old model's handle."""
    again_in_s: float | None = None
    """In how many seconds a better model may be used again. Null: it is not known, or nothing prevents it."""


class Notice(ServerMessage, frozen=True, tag="notice"):
    """A short notification."""

    kind: NoticeKind
    text: str
    code: str | None = None
    """A code for programs."""
    duration_ms: int | None = None
    """How long to show it. Null: the client decides."""


class TurnMetrics(ServerMessage, frozen=True, tag="turn_metrics"):
    """How long the parts of a turn took, in milliseconds. Null: the turn had no such part."""

    turn: int
    end_of_turn_ms: float | None = None
    """From the end of the user's speech to the decision that the turn is over."""
    stt_ms: float | None = None
    """How long recognition took. It may start before the turn is over, so the total does not include all of it."""
    first_token_ms: float | None = None
    """From the final transcript to the first word of the answer."""
    first_audio_ms: float | None = None
    """From the first word to the first audio."""
    total_ms: float | None = None
    """From the end of the user's speech to the first audio of the answer."""


class HistoryCall(Struct, frozen=True):
    """A tool call of an earlier turn."""

    id: str
    name: str
    args: Any = None
    """As in `tool_call`. If the JSON is longer than 2,000 bytes, only the beginning of its text is given."""
    result: Any = None
    """As in `tool_result`, shortened in the same way. Null: unknown."""
    ok: bool | None = None
    """Null: the outcome is unknown."""
    title: str | None = None
    """As in `tool_call`."""


class HistoryTurn(Struct, frozen=True):
    """One turn of a conversation."""

    role: Role
    content: str
    """Empty for tool calls without a text after them."""
    spoken: bool = False
    at: int | None = None
    """Unix time in milliseconds."""
    calls: tuple[HistoryCall, ...] = ()
    """The tool calls before this text, in order. A long conversation has only its newest calls."""


class History(ServerMessage, frozen=True, tag="history"):
    """The turns of the conversation that was resumed or loaded, oldest first."""

    conversation_id: str
    turns: tuple[HistoryTurn, ...]


class ReminderKind(StrEnum):
    REMINDER = "reminder"
    TIMER = "timer"
    ALARM = "alarm"


class Reminder(ServerMessage, frozen=True, tag="reminder"):
    """A reminder, a timer or an alarm rings. In a call, the server also says it."""

    id: str
    """It is different each time that a reminder rings."""
    message: str
    """The text to show."""
    due: int
    """Unix time in milliseconds."""
    kind: ReminderKind = ReminderKind.REMINDER
    missed: bool = False
    """Whether the time had passed for more than a minute, since no client of the user was connected."""


class Image(ServerMessage, frozen=True, tag="image"):
    """An image that was generated or found."""

    url: str
    caption: str | None = None


class SettingsUpdated(ServerMessage, frozen=True, tag="settings_updated"):
    """The settings in force."""

    theme: str | None
    voice_speed: int
    """The speed of speech, in percent of the normal speed."""
    volume: int
    """The volume in percent."""
    voice: str | None
    greeting: bool
    captions: bool


class RecordingChoice(StrEnum):
    OFF = "off"
    """Calls of this conversation are not recorded. `record` changes that."""
    ON = "on"
    """Calls of this conversation are recorded, since the user wants it. `record` changes that."""
    ALWAYS = "always"
    """This server records every call."""


class Recording(ServerMessage, frozen=True, tag="recording"):
    """Whether calls are recorded, which clients show clearly. It follows `session`, and comes whenever it changes. A
    server that records nothing does not send it."""

    choice: RecordingChoice
    active: bool
    """Whether a call is being recorded now."""


class Pong(ServerMessage, frozen=True, tag="pong"):
    """The answer to a `ping`."""

    t: int | float
    """The same as in the `ping`."""


SERVER_MESSAGES: Final = tuple(ServerMessage.__subclasses__())


class SpeechFrame(Struct, frozen=True, gc=False):
    """Speech in a binary frame, instead of an `audio` message: PCM16 little-endian, 22,050 Hz, mono."""

    n: int
    turn: int
    seq: int
    pcm: bytes
