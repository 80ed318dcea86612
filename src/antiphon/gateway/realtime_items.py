"""The items of a Realtime conversation, and the events of a response that adds items to it."""

import binascii
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final
from uuid import uuid4

import msgspec

from antiphon.gateway.client_calls import ClientCall
from antiphon.gateway.realtime_events import RealtimeError
from antiphon.gateway.realtime_settings import AUDIO, CODECS, RealtimeSettings
from antiphon.models.live import Usage
from antiphon.session.state import Piece, heard_of
from antiphon.sound_format import SAMPLE_BYTES

MAX_ITEMS: Final = 2_000
MAX_ITEM_CHARS: Final = 4 << 20
"""How many items a client can refer to, and how long they may be together. Older ones are only in the conversation's
history."""
DELTA_MS: Final = 200
"""The longest piece of audio in one event. Some clients refuse messages of more than a mebibyte."""
ROOT: Final = "root"

Emit = Callable[..., None]
"""Sends an event to the client: its type, and its fields by name."""


def new_id(prefix: str) -> str:
    return f"{prefix}_{uuid4().hex[:21]}"


@dataclass(eq=False, slots=True)
class Item:
    """An item as the client is shown it, and what belongs to it on our side."""

    shown: dict[str, Any]
    turn: int = 0
    """The number of the session's turn that it belongs to; 0 if it belongs to none."""
    turn_id: str = ""
    """The id under which an earlier message was brought into the conversation."""
    audio_ms: float = 0.0
    before_ms: float = 0.0
    """How much audio the turn's answer has in earlier items."""
    text: str = ""
    before_text: str = ""
    """What earlier items of the same answer say."""
    pieces: list[Piece] = field(default_factory=list)
    """Its audio, piece by piece, with the words of each, as far as the model tells them."""

    @property
    def id(self) -> str:
        return str(self.shown["id"])

    def heard_until(self, audio_end_ms: float) -> str:
        """What the user has heard of the answer, to the word, if this item was played up to there."""
        is_known = any(piece.text for piece in self.pieces)
        pieces = self.pieces if is_known else [Piece(self.text, round(self.audio_ms))]
        return " ".join(filter(None, [self.before_text.strip(), heard_of(pieces, audio_end_ms)]))


class Items:
    """The items in their order."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._items: dict[str, Item] = {}
        self._chars: dict[str, int] = {}
        """How long each item was when it was added."""

    def find(self, id: str) -> Item:
        """Raises `RealtimeError`."""
        item = self._items.get(id)
        if item is None:
            raise RealtimeError(f"There is no item '{id[:100]}'.", "item_not_found", param="item_id")
        return item

    def find_run(self, call_id: str) -> Item | None:
        """Returns the item of a call if there is one of its output, too."""
        of_call = {each.shown["type"]: each for each in self._items.values() if each.shown.get("call_id") == call_id}
        return of_call.get("function_call") if "function_call_output" in of_call else None

    @property
    def last_id(self) -> str | None:
        return next(reversed(self._items), None)

    def check_new(self, id: str | None, previous_id: str | None) -> None:
        """Raises `RealtimeError` if an item with this id cannot be added after that one."""
        if id is not None and id in self._items:
            raise RealtimeError(f"There is already an item '{id}'.", "invalid_value", param="item.id")
        if previous_id not in (None, ROOT) and previous_id not in self._items:
            message = f"There is no item '{previous_id[:100] if previous_id else ''}'."
            raise RealtimeError(message, "item_not_found", param="previous_item_id")

    def add(self, item: Item, *, after: str | None = None, is_done: bool = True) -> None:
        """Adds an item, after the last one unless `after` names another, and tells the client."""
        previous = self.last_id
        if after is None or after == previous:
            self._items[item.id] = item
        else:
            previous = None if after == ROOT else after
            self._insert(item, after)
        self._chars[item.id] = len(str(item.shown))
        while len(self._items) > MAX_ITEMS or (sum(self._chars.values()) > MAX_ITEM_CHARS and len(self._items) > 1):
            self._forget(next(iter(self._items)))
        self._emit("conversation.item.added", previous_item_id=previous, item=item.shown)
        if is_done:
            self._emit("conversation.item.done", previous_item_id=previous, item=item.shown)

    def finish(self, item: Item) -> None:
        """The item is complete."""
        self._emit("conversation.item.done", previous_item_id=self._before(item.id), item=item.shown)

    def remove(self, id: str) -> None:
        """Raises `RealtimeError`."""
        self.find(id)
        self._forget(id)
        self._emit("conversation.item.deleted", item_id=id)

    def _forget(self, id: str) -> None:
        del self._items[id], self._chars[id]

    def _insert(self, item: Item, after: str) -> None:
        others, self._items = self._items, {}
        if after == ROOT:
            self._items[item.id] = item
        for id, each in others.items():
            self._items[id] = each
            if id == after:
                self._items[item.id] = item

    def _before(self, id: str) -> str | None:
        ids = list(self._items)
        place = ids.index(id) if id in self._items else 0
        return ids[place - 1] if place else None


def make_item(type: str, *, id: str | None = None, status: str = "completed", **fields: Any) -> Item:
    return Item({"id": id or new_id("item"), "object": "realtime.item", "type": type, "status": status, **fields})


class Status(StrEnum):
    """How a response ended."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"


TURN_DETECTED: Final = "turn_detected"
CLIENT_CANCELLED: Final = "client_cancelled"


@dataclass(eq=False, slots=True)
class ResponseWriter:
    """A response while it is made: what the session says becomes the vendor's events, in the vendor's order."""

    emit: Emit
    items: Items
    settings: RealtimeSettings
    conversation_id: str
    metadata: Any = None
    is_unasked: bool = False
    """Whether the session has begun it by itself, so that the client may still ask for it."""
    turn: int = 0
    """The session's turn that it answers; 0 until that begins."""
    before_ms: float = 0.0
    before_text: str = ""
    """What earlier responses to the same turn have said."""
    id: str = field(default_factory=lambda: new_id("resp"))
    output: list[dict[str, Any]] = field(default_factory=list)
    usage: Usage | None = None
    audio_ms: float = 0.0
    """How much audio it has so far."""
    _message: Item | None = None
    """The message that is being said."""

    @property
    def is_spoken(self) -> bool:
        return self.settings.modality == AUDIO

    def start(self) -> None:
        self.emit("response.created", response=self._shown("in_progress"))

    def add_text(self, text: str) -> None:
        message = self._begin_message()
        message.text += text
        kind = "response.output_audio_transcript.delta" if self.is_spoken else "response.output_text.delta"
        self._emit_part(kind, message, delta=text)

    def note_piece(self, text: str, ms: int) -> None:
        """Notes the words of a piece of audio, which is about to be added."""
        if self.is_spoken:
            self._begin_message().pieces.append(Piece(text, ms))

    def add_audio(self, pcm: bytes) -> None:
        """Adds speech: PCM16 at the rate of the output format. A response in text leaves it out."""
        if not self.is_spoken:
            return
        message = self._begin_message()
        codec = CODECS[self.settings.output_format]
        step = codec.hz * DELTA_MS // 1000 * SAMPLE_BYTES
        for at in range(0, len(pcm), step):
            piece = pcm[at : at + step]
            length_ms = len(piece) * 1000 / (SAMPLE_BYTES * codec.hz)
            message.audio_ms += length_ms
            self.audio_ms += length_ms
            delta = binascii.b2a_base64(codec.encode(piece), newline=False).decode("ascii")
            self._emit_part("response.output_audio.delta", message, delta=delta)

    def add_call(self, call: ClientCall) -> None:
        """Adds a call of one of the client's tools."""
        self._end_message("completed")
        arguments = msgspec.json.encode(call.args).decode()
        item = make_item("function_call", status="in_progress", name=call.name, call_id=call.id, arguments="")
        place = len(self.output)
        self._emit_of("response.output_item.added", output_index=place, item=item.shown)
        self.items.add(item, is_done=False)
        about = {"item_id": item.id, "output_index": place, "call_id": call.id}
        self._emit_of("response.function_call_arguments.delta", **about, delta=arguments)
        self._emit_of("response.function_call_arguments.done", **about, name=call.name, arguments=arguments)
        item.shown |= {"status": "completed", "arguments": arguments}
        self.items.finish(item)
        self._emit_of("response.output_item.done", output_index=place, item=item.shown)
        self.output.append(item.shown)

    def finish(self, status: Status, *, reason: str | None = None, error: dict[str, Any] | None = None) -> None:
        is_complete = status is Status.COMPLETED
        self._end_message("completed" if is_complete else "incomplete")
        details: dict[str, Any] | None = None
        if not is_complete:
            details = {"type": status.value}
            details |= {"reason": reason} if reason else {}
            details |= {"error": error} if error else {}
        self.emit("response.done", response=self._shown(status.value, details, with_usage=True))

    def _begin_message(self) -> Item:
        if self._message is None:
            item = make_item("message", status="in_progress", role="assistant", content=[])
            item.turn, item.before_ms, item.before_text = self.turn, self.before_ms, self.before_text
            self._message = item
            self._emit_of("response.output_item.added", output_index=len(self.output), item=item.shown)
            self.items.add(item, is_done=False)
            part = {"type": "audio", "transcript": ""} if self.is_spoken else {"type": "text", "text": ""}
            self._emit_part("response.content_part.added", item, part=part)
        return self._message

    def _end_message(self, status: str) -> None:
        item, self._message = self._message, None
        if item is None:
            return
        if self.is_spoken:
            self._emit_part("response.output_audio.done", item)
            self._emit_part("response.output_audio_transcript.done", item, transcript=item.text)
            part, content = (
                {"type": "audio", "transcript": item.text},
                {"type": "output_audio", "transcript": item.text},
            )
        else:
            self._emit_part("response.output_text.done", item, text=item.text)
            said = {"text": item.text}
            part, content = {"type": "text", **said}, {"type": "output_text", **said}
        self._emit_part("response.content_part.done", item, part=part)
        item.shown |= {"status": status, "content": [content]}
        self.items.finish(item)
        self._emit_of("response.output_item.done", output_index=len(self.output), item=item.shown)
        self.output.append(item.shown)
        self.before_ms += item.audio_ms
        self.before_text += item.text

    def _emit_of(self, type: str, **fields: Any) -> None:
        self.emit(type, response_id=self.id, **fields)

    def _emit_part(self, type: str, item: Item, **fields: Any) -> None:
        self._emit_of(type, item_id=item.id, output_index=len(self.output), content_index=0, **fields)

    def _shown(self, status: str, details: dict[str, Any] | None = None, *, with_usage: bool = False) -> dict[str, Any]:
        return {
            "object": "realtime.response",
            "id": self.id,
            "status": status,
            "status_details": details,
            "output": list(self.output),
            "conversation_id": self.conversation_id,
            "output_modalities": [self.settings.modality],
            "max_output_tokens": self.settings.max_output_tokens,
            "audio": self.settings.shown_output(),
            "usage": shown_usage(self.usage) if with_usage else None,
            "metadata": self.metadata,
        }


def shown_usage(usage: Usage | None) -> dict[str, Any]:
    """Returns the `usage` of a response; zero where the model does not count."""
    received, sent = (usage.input_tokens, usage.output_tokens) if usage is not None else (0, 0)
    return {
        "total_tokens": received + sent,
        "input_tokens": received,
        "output_tokens": sent,
        "input_token_details": {"text_tokens": received, "audio_tokens": 0, "image_tokens": 0, "cached_tokens": 0},
        "output_token_details": {"text_tokens": sent, "audio_tokens": 0},
    }
