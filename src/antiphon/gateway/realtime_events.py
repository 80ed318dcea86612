"""The events that a client of OpenAI's Realtime API sends, and what is said about one that is wrong."""

import re
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from antiphon.errors import AntiphonError
from antiphon.prompts.composer import MAX_CLIENT_INSTRUCTIONS_CHARS
from antiphon.protocol.limits import MAX_ID, MAX_TEXT

MAX_CONTENT_PARTS: Final = 32
MAX_OUTPUT: Final = 64 * 1024
"""Characters of a function's result."""

Id = Annotated[str, Meta(min_length=1, max_length=MAX_ID)]
Text = Annotated[str, Meta(max_length=MAX_TEXT)]
Instructions = Annotated[str, Meta(max_length=MAX_CLIENT_INSTRUCTIONS_CHARS)]
Milliseconds = Annotated[int, Meta(ge=0)]
Modalities = tuple[Literal["text", "audio"], ...]
Ignored = Any
"""The type of a setting that the vendor has and that means nothing here."""


class RealtimeError(AntiphonError):
    """A client's event cannot be carried out. It becomes an `error` event, and the session goes on."""

    def __init__(
        self, message: str, code: str, *, param: str | None = None, type: str = "invalid_request_error"
    ) -> None:
        super().__init__(message)
        self.error_code = code
        self.param = param
        self.type = type


class _Known(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Part of an event. A field that the vendor does not know is an error, since it is probably a misspelt one."""


class AudioFormat(_Known, frozen=True, kw_only=True):
    type: Literal["audio/pcm", "audio/pcmu", "audio/pcma"] = "audio/pcm"
    rate: Literal[24000] | None = None


class ServerVad(_Known, frozen=True, kw_only=True, tag="server_vad", tag_field="type"):
    threshold: float | None = None
    prefix_padding_ms: int | None = None
    silence_duration_ms: int | None = None
    idle_timeout_ms: int | None = None
    create_response: bool | None = None
    interrupt_response: bool | None = None


class SemanticVad(_Known, frozen=True, kw_only=True, tag="semantic_vad", tag_field="type"):
    eagerness: Literal["low", "medium", "high", "auto"] | None = None
    create_response: bool | None = None
    interrupt_response: bool | None = None


TurnDetection = ServerVad | SemanticVad


class AudioInput(_Known, frozen=True, kw_only=True):
    format: AudioFormat | UnsetType | None = UNSET
    transcription: dict[str, Any] | UnsetType | None = UNSET
    noise_reduction: Ignored | UnsetType | None = UNSET
    turn_detection: TurnDetection | UnsetType | None = UNSET


class VoiceId(_Known, frozen=True, kw_only=True):
    id: str


class AudioOutput(_Known, frozen=True, kw_only=True):
    format: AudioFormat | UnsetType | None = UNSET
    voice: str | VoiceId | UnsetType | None = UNSET
    speed: Annotated[float, Meta(ge=0.25, le=1.5)] | UnsetType | None = UNSET


class AudioSettings(_Known, frozen=True, kw_only=True):
    input: AudioInput | UnsetType | None = UNSET
    output: AudioOutput | UnsetType | None = UNSET


class FunctionTool(_Known, frozen=True, kw_only=True, tag="function", tag_field="type"):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class McpTool(Struct, frozen=True, tag="mcp", tag_field="type"):
    """A tool server of the vendor's own. Ours has its tools already."""


ToolChoice = Literal["auto", "none", "required"] | dict[str, Any]


class SessionSettings(_Known, frozen=True, kw_only=True):
    """The `session` of `session.update`. What is not set stays as it is."""

    type: Literal["realtime"]
    model: str | UnsetType | None = UNSET
    instructions: Instructions | UnsetType | None = UNSET
    output_modalities: Modalities | UnsetType | None = UNSET
    audio: AudioSettings | UnsetType | None = UNSET
    tools: tuple[FunctionTool | McpTool, ...] | UnsetType | None = UNSET
    tool_choice: ToolChoice | UnsetType | None = UNSET
    max_output_tokens: Ignored | UnsetType | None = UNSET
    parallel_tool_calls: Ignored | UnsetType | None = UNSET
    include: Ignored | UnsetType | None = UNSET
    prompt: Ignored | UnsetType | None = UNSET
    reasoning: Ignored | UnsetType | None = UNSET
    tracing: Ignored | UnsetType | None = UNSET
    truncation: Ignored | UnsetType | None = UNSET


class ContentPart(_Known, frozen=True, kw_only=True):
    type: Literal["input_text", "input_audio", "input_image", "output_text", "output_audio", "text"]
    text: Text | None = None
    audio: bytes | None = None
    """PCM16 in base64, in the input format."""
    transcript: str | None = None
    image_url: str | None = None
    detail: str | None = None


class _Item(_Known, frozen=True, kw_only=True, tag_field="type"):
    id: Id | None = None
    object: str | None = None
    status: str | None = None


class MessageItem(_Item, frozen=True, kw_only=True, tag="message"):
    role: Literal["user", "assistant", "system"]
    content: Annotated[tuple[ContentPart, ...], Meta(min_length=1, max_length=MAX_CONTENT_PARTS)]
    phase: str | None = None

    @property
    def text(self) -> str:
        return "\n".join(filter(None, (part.text or part.transcript for part in self.content)))

    @property
    def audio(self) -> bytes:
        return b"".join(part.audio for part in self.content if part.audio is not None)


class FunctionCallItem(_Item, frozen=True, kw_only=True, tag="function_call"):
    name: Annotated[str, Meta(min_length=1, max_length=64)]
    arguments: Text
    call_id: Id | None = None


class FunctionCallOutputItem(_Item, frozen=True, kw_only=True, tag="function_call_output"):
    call_id: Id
    output: Annotated[str, Meta(max_length=MAX_OUTPUT)]


ClientItem = MessageItem | FunctionCallItem | FunctionCallOutputItem


class ResponseSettings(_Known, frozen=True, kw_only=True):
    """The `response` of `response.create`: settings for one response."""

    instructions: Instructions | None = None
    output_modalities: Modalities | None = None
    conversation: str | None = None
    metadata: dict[str, str] | None = None
    tool_choice: ToolChoice | None = None
    tools: tuple[FunctionTool | McpTool, ...] | None = None
    input: tuple[Any, ...] | None = None
    audio: Ignored | None = None
    max_output_tokens: Ignored | None = None
    parallel_tool_calls: Ignored | None = None
    prompt: Ignored | None = None
    reasoning: Ignored | None = None


class ClientEvent(_Known, frozen=True, kw_only=True, tag_field="type"):
    event_id: Annotated[str, Meta(max_length=512)] | None = None


class SessionUpdate(ClientEvent, frozen=True, kw_only=True, tag="session.update"):
    session: SessionSettings


class AudioAppend(ClientEvent, frozen=True, kw_only=True, tag="input_audio_buffer.append"):
    audio: bytes


class AudioCommit(ClientEvent, frozen=True, kw_only=True, tag="input_audio_buffer.commit"):
    pass


class AudioClear(ClientEvent, frozen=True, kw_only=True, tag="input_audio_buffer.clear"):
    pass


class ItemCreate(ClientEvent, frozen=True, kw_only=True, tag="conversation.item.create"):
    item: ClientItem
    previous_item_id: str | None = None


class ItemRetrieve(ClientEvent, frozen=True, kw_only=True, tag="conversation.item.retrieve"):
    item_id: str


class ItemDelete(ClientEvent, frozen=True, kw_only=True, tag="conversation.item.delete"):
    item_id: str


class ItemTruncate(ClientEvent, frozen=True, kw_only=True, tag="conversation.item.truncate"):
    item_id: str
    content_index: int
    audio_end_ms: Milliseconds


class ResponseCreate(ClientEvent, frozen=True, kw_only=True, tag="response.create"):
    response: ResponseSettings | None = None


class ResponseCancel(ClientEvent, frozen=True, kw_only=True, tag="response.cancel"):
    response_id: str | None = None


EVENTS: Final = tuple(ClientEvent.__subclasses__())


class _Envelope(Struct, frozen=True):
    type: Any = None
    event_id: Any = None


AnyEvent = (
    SessionUpdate
    | AudioAppend
    | AudioCommit
    | AudioClear
    | ItemCreate
    | ItemRetrieve
    | ItemDelete
    | ItemTruncate
    | ResponseCreate
    | ResponseCancel
)

_decoder: Final = msgspec.json.Decoder(AnyEvent)
_envelope: Final = msgspec.json.Decoder(_Envelope)

_AT: Final = re.compile(r" - at `\$\.?(?P<path>.*)`$", re.DOTALL)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(?P<name>.*)`", re.DOTALL)
_MAX_QUOTED: Final = 200


def decode(frame: str | bytes) -> ClientEvent:
    """Decodes a client's event. Raises `RealtimeError`."""
    try:
        event: ClientEvent = _decoder.decode(frame)
        return event
    except msgspec.ValidationError as error:
        raise _explain(error, frame) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise RealtimeError(f"The event is not JSON: {error}.", "invalid_json") from None


def event_id_of(frame: str | bytes) -> str | None:
    """Returns the id of an event, even of one that is wrong, so that an error can name it."""
    try:
        id = _envelope.decode(frame).event_id
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return id[:512] if isinstance(id, str) else None


def _explain(error: msgspec.ValidationError, frame: str | bytes) -> RealtimeError:
    text = str(error)
    at = _AT.search(text)
    path, what = (at["path"], text[: at.start()]) if at is not None else ("", text)
    missing = _MISSING.fullmatch(what)
    if path == "type" or (not path and missing is not None and missing["name"] == "type"):
        return _unknown_type(frame)
    for pattern, code, told in (
        (_UNKNOWN, "unknown_parameter", "Unknown parameter"),
        (_MISSING, "missing_required_parameter", "Missing required parameter"),
    ):
        found = pattern.fullmatch(what)
        if found is not None:
            param = f"{path}.{found['name']}".lstrip(".")[:_MAX_QUOTED]
            return RealtimeError(f"{told}: '{param}'.", code, param=param)
    if not path:
        return RealtimeError("An event must be a JSON object with a 'type'.", "invalid_type")
    code = "invalid_type" if what.startswith("Expected") and "got" in what else "invalid_value"
    what = what.replace("`", "'")[:_MAX_QUOTED]
    return RealtimeError(f"Invalid value for '{path}': {what}.", code, param=path)


def _unknown_type(frame: str | bytes) -> RealtimeError:
    known = ", ".join(f"'{event.__struct_config__.tag}'" for event in EVENTS)
    try:
        given = _envelope.decode(frame).type
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        given = None
    if given is None:
        message = f"Missing required parameter: 'type'. Supported values are: {known}."
        return RealtimeError(message, "missing_required_parameter", param="type")
    return RealtimeError(
        f"Invalid value: {str(given)[:_MAX_QUOTED]!r}. Supported values are: {known}.", "invalid_value", param="type"
    )
