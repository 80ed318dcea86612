"""Items that a Realtime client has put into the conversation and that the session has not been given yet."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from antiphon.gateway.client_calls import ClientCall
from antiphon.gateway.realtime_events import FunctionCallItem, MessageItem, RealtimeError
from antiphon.gateway.realtime_input import MAX_BUFFER_S
from antiphon.gateway.realtime_items import Item, make_item, new_id
from antiphon.gateway.realtime_settings import Codec
from antiphon.gateway.session import audio_s
from antiphon.protocol.limits import MAX_TEXT
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage

MAX_PENDING: Final = 500
"""How many items may wait for a response."""


@dataclass(frozen=True, slots=True)
class PendingItem:
    """An item, with its message or its audio."""

    item: Item
    message: Message | None
    pcm: bytes = b""
    hz: int = 0

    @property
    def is_users(self) -> bool:
        """Whether a response may answer it."""
        return bool(self.pcm) or isinstance(self.message, UserMessage)

    @property
    def call_ids(self) -> Set[str]:
        """The call that it is, or that it is the output of."""
        match self.message:
            case AssistantMessage(calls=calls):
                return {call.id for call in calls}
            case ToolMessage(call_id=call_id):
                return {call_id}
        return frozenset()


class PendingItems:
    """Items in the order in which they came. The methods that add one raise `RealtimeError` if too many wait."""

    def __init__(self) -> None:
        self._waiting: list[PendingItem] = []
        self._calls: dict[str, str] = {}
        """The names of earlier calls that the client has told of, by their ids."""

    @property
    def are_any(self) -> bool:
        return bool(self._waiting)

    @property
    def have_a_turn(self) -> bool:
        """Whether the user has said something that a response may answer."""
        return any(each.pcm for each in self._waiting) or (bool(self._waiting) and self._waiting[-1].is_users)

    def add_message(self, given: MessageItem, item: Item, codec: Codec) -> None:
        if len(given.text) > MAX_TEXT:
            raise RealtimeError(
                f"The item has more than {MAX_TEXT} characters. Split it.", "invalid_value", param="item.content"
            )
        if given.audio and given.role == "user":
            self.add_audio(item, codec.decode(given.audio), codec.hz)
            return
        made = UserMessage if given.role == "user" else AssistantMessage
        self._add(PendingItem(item, made(given.text)))

    def check_room(self, length_s: float) -> None:
        """Raises `RealtimeError` if this much audio is too much beside what waits."""
        waiting_s = sum(audio_s(each.pcm, each.hz) for each in self._waiting if each.pcm)
        if waiting_s + length_s > MAX_BUFFER_S:
            raise RealtimeError(
                f"More than {MAX_BUFFER_S:.0f} s of audio wait for a response. Create one.", "input_audio_buffer_full"
            )

    def add_audio(self, item: Item, pcm: bytes, hz: int) -> None:
        self.check_room(audio_s(pcm, hz))
        self._add(PendingItem(item, None, pcm, hz))

    def add_call(self, given: FunctionCallItem) -> Item:
        """Adds an earlier call, whose output the client is about to add, too."""
        call_id = given.call_id or new_id("call")
        try:
            args = msgspec.json.decode(given.arguments or "{}")
        except (msgspec.DecodeError, RecursionError):
            raise RealtimeError("The arguments are not JSON.", "invalid_value", param="item.arguments") from None
        item = make_item("function_call", id=given.id, name=given.name, call_id=call_id, arguments=given.arguments)
        self._add(PendingItem(item, AssistantMessage("", (CallMade(call_id, given.name, args),))))
        self._calls[call_id] = given.name
        return item

    def add_output(self, item: Item, call_id: str, output: Any) -> bool:
        """Adds the result of an earlier call. False if the client has not told of such a call."""
        name = self._calls.get(call_id)
        if name is None:
            return False
        self._add(PendingItem(item, ToolMessage(call_id, name, output)))
        del self._calls[call_id]
        return True

    def add_late(self, item: Item, call: ClientCall, output: Any) -> None:
        """Adds a call that had ended without an output, and the output."""
        made = AssistantMessage("", (CallMade(call.id, call.name, call.args),))
        self._add(PendingItem(make_item("function_call"), made))
        self._add(PendingItem(item, ToolMessage(call.id, call.name, output)))

    def remove(self, item_id: str) -> bool:
        """Removes an item, and with a call its output, or the other way round. False if the item does not wait."""
        found = next((each for each in self._waiting if each.item.id == item_id), None)
        if found is None:
            return False
        calls = found.call_ids
        self._waiting = [each for each in self._waiting if each is not found and not calls & each.call_ids]
        for call_id in calls:
            self._calls.pop(call_id, None)
        return True

    def take(self) -> tuple[Sequence[PendingItem], PendingItem | None]:
        """Takes everything: the history, and the turn that is to be answered. That is all audio together, or the last
        item if the user has written it."""
        waiting, self._waiting = self._waiting, []
        spoken = [each for each in waiting if each.pcm]
        if spoken:
            last = spoken[-1]
            pcm = b"".join(each.pcm for each in spoken if each.hz == last.hz)
            return [each for each in waiting if not each.pcm], PendingItem(last.item, None, pcm, last.hz)
        if waiting and waiting[-1].is_users:
            return waiting[:-1], waiting[-1]
        return waiting, None

    def take_history(self) -> Sequence[PendingItem]:
        """Takes everything before the newest items of the user, which a response may still answer."""
        end = len(self._waiting)
        while end and self._waiting[end - 1].is_users:
            end -= 1
        if any(each.pcm for each in self._waiting[:end]):
            return ()
        taken, self._waiting = self._waiting[:end], self._waiting[end:]
        return taken

    def take_messages(self) -> Sequence[PendingItem]:
        """Takes all messages as history, since the user has said something else."""
        taken = [each for each in self._waiting if not each.pcm]
        self._waiting = [each for each in self._waiting if each.pcm]
        return taken

    def _add(self, pending: PendingItem) -> None:
        if len(self._waiting) >= MAX_PENDING:
            raise RealtimeError(
                f"{MAX_PENDING} items wait for a response. Create one before you add more.", "too_many_items"
            )
        self._waiting.append(pending)
