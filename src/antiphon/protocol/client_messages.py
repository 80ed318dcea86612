"""The messages that a client sends. Missing fields are None; unknown fields are ignored."""

from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta, Struct

from antiphon.protocol import limits
from antiphon.sound_format import MAX_VOICE_SPEED, MAX_VOLUME, MIN_VOICE_SPEED

Turn = Annotated[int, Meta(ge=0, le=limits.MAX_NUMBER)]
PlayedMs = Annotated[float, Meta(ge=0, le=limits.MAX_PLAYED_MS)]
Name = Annotated[str, Meta(max_length=limits.MAX_NAME)]
Id = Annotated[str, Meta(max_length=limits.MAX_ID)]
Secret = Annotated[str, Meta(max_length=limits.MAX_SECRET)]
Text = Annotated[str, Meta(min_length=1, max_length=limits.MAX_TEXT)]


class Mode(StrEnum):
    TEXT = "text"
    VOICE = "voice"


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"


class AudioForm(StrEnum):
    JSON = "json"
    BINARY = "binary"


class Feature(StrEnum):
    """What a client may say in `hello` that it can do."""

    HOLD = "hold"
    """It follows `hold` and `resume`. For other clients, whatever sounds like speech interrupts the answer."""
    RECORDING = "recording"
    """It shows `recording`. Other clients are sent a `notice` when a call is recorded."""


class ClientMessage(Struct, frozen=True, tag_field="type", omit_defaults=True):
    """Any message that a client sends as text."""


class InitialMessage(Struct, frozen=True):
    """An earlier turn that the client provides as context for a new conversation."""

    role: Role
    content: Text


class Hello(ClientMessage, frozen=True, tag="hello", kw_only=True):
    """Introduces the client and says what it wants. Optional, but it must be the first message."""

    token: Secret | None = None
    """An access token. Required if the server requires authentication and the Authorization header has none."""
    resume: Secret | None = None
    """The newest handle of the session to resume."""
    last_n: Turn | None = None
    """The highest `n` that the client has received; later messages are sent again."""
    conversation_id: Id | None = None
    """The conversation to continue. Absent: a new one."""
    mode: Mode | None = None
    """Absent: voice, or the mode of the resumed session."""
    audio: AudioForm = AudioForm.JSON
    """How the server sends speech: "json" as `audio` messages, "binary" as binary frames."""
    initial_messages: Annotated[tuple[InitialMessage, ...], Meta(max_length=limits.MAX_INITIAL_MESSAGES)] = ()
    """Earlier turns as context for a new conversation, oldest first."""
    features: Annotated[tuple[Name, ...], Meta(max_length=limits.MAX_FEATURES)] = ()
    """What the client can do beyond the basic messages: "hold" if it follows `hold` and `resume`, "recording" if it
    shows `recording`."""
    client: Annotated[str, Meta(max_length=limits.MAX_CLIENT)] | None = None
    """The client's name and version, for the log."""


class StartListening(ClientMessage, frozen=True, tag="start_listening"):
    """The microphone is open. In text mode this starts voice, like `start_voice`."""


class StopListening(ClientMessage, frozen=True, tag="stop_listening"):
    """The microphone is closed. The speech so far is the user's turn."""


class Interrupt(ClientMessage, frozen=True, tag="interrupt"):
    """Stops the answer now."""

    played_ms: PlayedMs | None = None
    """How much of the answer was played, in milliseconds."""


class PlaybackDone(ClientMessage, frozen=True, tag="playback_done"):
    """All audio of the answer was played. Ignored while more audio is to come."""

    turn: Turn | None = None


class Settings(ClientMessage, frozen=True, tag="settings", kw_only=True):
    """Changes the given settings. If one of them is invalid, none is changed."""

    theme: Name | None = None
    voice_speed: Annotated[int, Meta(ge=MIN_VOICE_SPEED, le=MAX_VOICE_SPEED)] | None = None
    """The speed of speech, in percent of the normal speed."""
    volume: Annotated[int, Meta(ge=0, le=MAX_VOLUME)] | None = None
    """The volume in percent. The client applies it; the server only stores it."""
    voice: Name | None = None
    """An id from `GET /api/voices`."""
    greeting: bool | None = None
    """Whether a call without history begins with a greeting."""
    captions: bool | None = None
    """Whether the client wants interim transcripts."""


class ClearConversation(ClientMessage, frozen=True, tag="clear_conversation"):
    """Deletes the turns of the conversation. The state does not change."""


class TestAudio(ClientMessage, frozen=True, tag="test_audio"):
    """Plays a short sample of a voice. The state does not change."""

    # pytest would take a class whose name starts with "Test" for a test class wherever it is imported.
    __test__ = False

    voice: Name | None = None


class TextMessage(ClientMessage, frozen=True, tag="text_message"):
    """A typed message, in either mode, also during a call. It waits while another answer is in progress (`queued`)."""

    text: Text


class Unqueue(ClientMessage, frozen=True, tag="unqueue"):
    """Withdraws a typed message that is still waiting. Answered by `queued`."""

    id: Id


class Playback(ClientMessage, frozen=True, tag="playback"):
    """Reports how much of a turn was played, at most four times a second."""

    turn: Turn
    played_ms: PlayedMs
    """How much of the turn's audio was played, in milliseconds."""


class Confirm(ClientMessage, frozen=True, tag="confirm"):
    """The user's answer to a `confirmation_request`."""

    confirmation_token: Secret
    approved: bool


class StartVoice(ClientMessage, frozen=True, tag="start_voice"):
    """Switches from text to voice."""

    pending_request: Annotated[str, Meta(max_length=limits.MAX_PENDING_REQUEST)] | None = None
    """A request to answer first."""


class EndVoice(ClientMessage, frozen=True, tag="end_voice"):
    """Switches from voice to text."""


class Record(ClientMessage, frozen=True, tag="record"):
    """Begins or stops recording the calls of this conversation, if the server lets the user choose. Answered by
    `recording`."""

    on: bool


class LoadConversation(ClientMessage, frozen=True, tag="load_conversation"):
    """Continues an earlier conversation."""

    conversation_id: Id


class Ping(ClientMessage, frozen=True, tag="ping"):
    """Answered by `pong` with the same `t`."""

    t: int | float
    """Any number, such as the client's own time."""


CLIENT_MESSAGES: Final = tuple(ClientMessage.__subclasses__())


class AudioFrame(Struct, frozen=True, gc=False):
    """A binary frame with microphone audio: PCM16 little-endian, 16 kHz, mono."""

    playing: bool
    """Whether the client is playing the assistant's speech, which the microphone may pick up."""
    pcm: bytes
