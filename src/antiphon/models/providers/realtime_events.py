"""The events of an OpenAI Realtime session: how the server's are read, and how the client's are made. Pure."""

import base64
import binascii
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from antiphon.models.live import ToolAnswer
from antiphon.security.surrogates import repair, repair_json
from antiphon.transcript import AssistantMessage, Message, ToolMessage, UserMessage

ClientEvent = dict[str, Any]
Item = dict[str, Any]

APPEND: Final = "input_audio_buffer.append"
SAY_EXACTLY: Final = "Say exactly these words, in their own language. Say nothing before them and nothing after them:"


class ErrorDetails(Struct, frozen=True):
    type: str | None = None
    code: str | None = None
    message: str | None = None
    event_id: str | None = None
    """The client's event that was refused, where the server tells."""


class OutputItem(Struct, frozen=True):
    """An item that a response has made."""

    id: str | None = None
    type: str | None = None
    status: str | None = None
    name: str | None = None
    call_id: str | None = None
    arguments: str | None = None


class StatusDetails(Struct, frozen=True):
    reason: str | None = None
    error: ErrorDetails | None = None


class TokenUsage(Struct, frozen=True):
    input_tokens: int | None = None
    output_tokens: int | None = None


class Response(Struct, frozen=True):
    id: str | None = None
    status: str | None = None
    status_details: StatusDetails | None = None
    output: tuple[OutputItem, ...] | None = None
    usage: TokenUsage | None = None
    metadata: Any = None


class Session(Struct, frozen=True):
    expires_at: float | None = None


class RateLimit(Struct, frozen=True):
    remaining: float | None = None
    reset_seconds: float | None = None


class ServerEvent(Struct, frozen=True):
    """The fields of all events that are used here. Each type of event has a few of them."""

    type: str
    session: Session | None = None
    response: Response | None = None
    response_id: str | None = None
    item: OutputItem | None = None
    item_id: str | None = None
    delta: str | None = None
    transcript: str | None = None
    error: ErrorDetails | None = None
    rate_limits: tuple[RateLimit, ...] | None = None


class _TypeOnly(Struct, frozen=True):
    type: str


class UnreadableEvent(Exception):
    """What the server sent is not an event."""


TRANSCRIPTION: Final = "conversation.item.input_audio_transcription"
USED_EVENTS: Final = frozenset(
    {
        "error",
        "session.created",
        "session.updated",
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        f"{TRANSCRIPTION}.delta",
        f"{TRANSCRIPTION}.completed",
        f"{TRANSCRIPTION}.failed",
        "response.created",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.output_audio_transcript.delta",
        "response.output_audio.delta",
        "response.function_call_arguments.delta",
        "response.done",
        "rate_limits.updated",
    }
)

_type_decoder = msgspec.json.Decoder(_TypeOnly)
_decoder = msgspec.json.Decoder(ServerEvent)


def read_event(data: bytes) -> ServerEvent:
    """Reads an event. One of a type that is not used has only its type. Raises `UnreadableEvent`.

    The SDK's own classes are not used: an event of an unknown type would come as an object of another type's class.
    """
    try:
        kind = _type_decoder.decode(data).type
        return _decoder.decode(data) if kind in USED_EVENTS else ServerEvent(kind)
    except (msgspec.DecodeError, RecursionError):
        return _read_halves(data)


def _read_halves(data: bytes) -> ServerEvent:
    """Reads an event that msgspec refuses, perhaps only because it contains half of a surrogate pair."""
    try:
        return msgspec.convert(json.loads(data), ServerEvent)
    except (ValueError, msgspec.ValidationError, RecursionError) as error:
        raise UnreadableEvent from error


def read_audio(delta: str) -> bytes:
    """Returns the PCM of an audio delta; empty if it is not base64."""
    try:
        return base64.b64decode(delta)
    except (binascii.Error, ValueError):
        return b""


def read_arguments(arguments: str) -> Any:
    """Returns the arguments of a call. What is not JSON stays a string, so that the gate can refuse it."""
    arguments = repair(arguments)
    try:
        return msgspec.json.decode(arguments.strip() or "{}")
    except (msgspec.DecodeError, RecursionError):
        return arguments


# The client's events.


def encode(value: Any) -> str:
    """Encodes JSON. Halves of characters, which a tool may return, are replaced."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(repair_json(value)).decode()


def append_audio(pcm: bytes) -> ClientEvent:
    return {"type": APPEND, "audio": base64.b64encode(pcm).decode()}


def create_item(item: Item) -> ClientEvent:
    return {"type": "conversation.item.create", "item": item}


def delete_item(id: str) -> ClientEvent:
    return {"type": "conversation.item.delete", "item_id": id}


def truncate_item(id: str, audio_end_ms: int) -> ClientEvent:
    return {"type": "conversation.item.truncate", "item_id": id, "content_index": 0, "audio_end_ms": audio_end_ms}


def user_item(text: str) -> Item:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def result_item(call_id: str, content: Any) -> Item:
    output = content if isinstance(content, str) else encode(content)
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def verbatim(text: str) -> dict[str, Any]:
    """Returns the settings of a response that says given words. It needs to know nothing of the conversation."""
    return {"instructions": f"{SAY_EXACTLY}\n\n{text}", "input": [], "tool_choice": "none"}


class EarlierItems:
    """Makes the items of what happened outside of this connection.

    Calls get ids of their own: the ids of other models may be too long here, or occur twice.
    """

    def __init__(self) -> None:
        self._made = 0

    def history(self, messages: Iterable[Message]) -> list[Item]:
        items: list[Item] = []
        ids: dict[str, str] = {}
        """The ids of calls whose results have not come, by those of the transcript."""
        for message in messages:
            match message:
                case UserMessage(text=text):
                    items += [user_item(text)] if text else []
                case AssistantMessage(text=text, calls=calls):
                    content = [{"type": "output_text", "text": text}]
                    items += [{"type": "message", "role": "assistant", "content": content}] if text else []
                    for call in calls:
                        ids[call.id] = self._make_id()
                        items.append(_call_item(ids[call.id], call.name, call.args))
                case ToolMessage(call_id=call_id, name=name, content=content):
                    if call_id not in ids:
                        # The beginning of a long conversation is cut off, so its call may be missing.
                        ids[call_id] = self._make_id()
                        items.append(_call_item(ids[call_id], name, {}))
                    items.append(result_item(ids.pop(call_id), content))
        return items

    def runs(self, answers: Sequence[ToolAnswer]) -> list[Item]:
        """Returns calls that the model did not make, or did not make here, with their results."""
        items: list[Item] = []
        for answer in answers:
            id = self._make_id()
            items += [_call_item(id, answer.call.name, answer.call.args), result_item(id, answer.content)]
        return items

    def _make_id(self) -> str:
        self._made += 1
        return f"call_earlier_{self._made}"


def _call_item(call_id: str, name: str, args: Any) -> Item:
    arguments = args if isinstance(args, dict) else {"invalid_arguments": args}
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": encode(arguments)}
