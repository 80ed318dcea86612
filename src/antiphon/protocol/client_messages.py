"""What a client sends. Fields that are not given are None; fields that are not known here are ignored."""

from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta, Struct

from antiphon.protocol import limits

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


class ClientMessage(Struct, frozen=True, tag_field="type", omit_defaults=True):
    """Any message that a client sends as text."""


class InitialMessage(Struct, frozen=True):
    """A turn that the client brings along as context of a new conversation."""

    role: Role
    content: Text


class Hello(ClientMessage, frozen=True, tag="hello", kw_only=True):
    """Who the client is and what it wants. Optional, and the first message if it comes at all."""

    token: Secret | None = None
    """Required where the server asks for authentication, unless it came in the Authorization header."""
    resume: Secret | None = None
    """The newest handle of the session to go on with."""
    last_n: Turn | None = None
    """The highest `n` that the client has seen; what came after it is sent again."""
    conversation_id: Id | None = None
    """An earlier conversation to go on in. Absent: a new one."""
    mode: Mode | None = None
    """Absent: voice, or what a resumed session was in."""
    audio: AudioForm = AudioForm.JSON
    """How to send speech: "json" as `audio` messages, "binary" as binary frames."""
    initial_messages: Annotated[tuple[InitialMessage, ...], Meta(max_length=limits.MAX_INITIAL_MESSAGES)] = ()
    """What was said elsewhere before, oldest first: context of a new conversation."""
    client: Annotated[str, Meta(max_length=limits.MAX_CLIENT)] | None = None
    """Name and version, for the log."""


class StartListening(ClientMessage, frozen=True, tag="start_listening"):
    """The microphone is open. In text mode it starts voice, as `start_voice` does."""


class StopListening(ClientMessage, frozen=True, tag="stop_listening"):
    """The microphone is closed: speech so far is the user's turn."""


class Interrupt(ClientMessage, frozen=True, tag="interrupt"):
    """Stop speaking now."""

    played_ms: PlayedMs | None = None
    """Milliseconds of the answer that were played."""


class PlaybackDone(ClientMessage, frozen=True, tag="playback_done"):
    """All audio of the answer was played. Ignored as long as there is more to play."""

    turn: Turn | None = None


class Settings(ClientMessage, frozen=True, tag="settings", kw_only=True):
    """Changes the settings that are given. If one of them is wrong, none is changed."""

    theme: Name | None = None
    voice_speed: Annotated[int, Meta(ge=limits.MIN_VOICE_SPEED, le=limits.MAX_VOICE_SPEED)] | None = None
    """Percent of the normal speed of speech."""
    volume: Annotated[int, Meta(ge=0, le=limits.MAX_VOLUME)] | None = None
    """Percent. The client plays; the server only stores it."""
    voice: Name | None = None
    """An id from `GET /api/voices`."""
    greeting: bool | None = None
    """Whether a call without history begins with a greeting."""
    captions: bool | None = None
    """Whether interim transcripts are wanted."""


class ClearConversation(ClientMessage, frozen=True, tag="clear_conversation"):
    """Forget what was said. The state stays as it is."""


class TestAudio(ClientMessage, frozen=True, tag="test_audio"):
    """Say one short sample. The state stays as it is."""

    # A name that starts with "Test" is taken for a test class by pytest, wherever it is imported.
    __test__ = False

    voice: Name | None = None


class TextMessage(ClientMessage, frozen=True, tag="text_message"):
    """A typed message, in either mode, also during a call. While an answer is being made, it waits (`queued`)."""

    text: Text


class Unqueue(ClientMessage, frozen=True, tag="unqueue"):
    """Takes back a typed message that still waits. Answered by `queued`."""

    id: Id


class Playback(ClientMessage, frozen=True, tag="playback"):
    """How much was heard. At most four a second."""

    turn: Turn
    played_ms: PlayedMs
    """Milliseconds of the turn's audio that were played."""


class Confirm(ClientMessage, frozen=True, tag="confirm"):
    """The person's answer to a `confirmation_request`."""

    confirmation_token: Secret
    approved: bool


class StartVoice(ClientMessage, frozen=True, tag="start_voice"):
    """From text to voice."""

    pending_request: Annotated[str, Meta(max_length=limits.MAX_PENDING_REQUEST)] | None = None
    """What to answer first."""


class EndVoice(ClientMessage, frozen=True, tag="end_voice"):
    """From voice to text."""


class LoadConversation(ClientMessage, frozen=True, tag="load_conversation"):
    """Go on in an earlier conversation."""

    conversation_id: Id


class Ping(ClientMessage, frozen=True, tag="ping"):
    """Answered by `pong` with the same `t`."""

    t: int | float
    """The client's own time, in any unit."""


CLIENT_MESSAGES: Final = tuple(ClientMessage.__subclasses__())


class AudioFrame(Struct, frozen=True, gc=False):
    """A binary frame from the microphone: PCM16 little-endian, 16 kHz, mono."""

    playing: bool
    """Whether the client is playing the assistant's speech, which its microphone may hear."""
    pcm: bytes
