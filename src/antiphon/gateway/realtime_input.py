"""What a Realtime client has put into a conversation and the session has not been given yet: audio and items."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from antiphon.gateway.realtime_events import FunctionCallItem, MessageItem, RealtimeError
from antiphon.gateway.realtime_items import Item, make_item, new_id
from antiphon.gateway.realtime_settings import Codec
from antiphon.gateway.session import audio_s
from antiphon.sound_format import SAMPLE_BYTES
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage

MIN_COMMIT_MS: Final = 100
MAX_BUFFER_S: Final = 300.0
"""The longest turn that a client may commit by itself."""
MAX_HELD_S: Final = 30.0
"""How much speech waits until the session listens: its voice is being connected, or a response may not be
interrupted."""
PADDING_MS: Final = 400
"""The silence around a committed turn. Recognisers lose words at the very edges of the audio."""
FEED_MS: Final = 100
ONSET_MS: Final = 500
"""How long speech lasts before it is noticed, at most."""


class InputAudio:
    """The input audio buffer, and where in it the user speaks. Times count from the beginning of the session."""

    def __init__(self) -> None:
        self.now_ms = 0
        """How much audio the client has sent."""
        self.speech_ms = 0
        """Where the user's newest speech begins."""
        self.spoken_s = 0.0
        """How long the user's last turn was."""
        self._heard_s = 0.0
        self._since_clear_s = 0.0
        self._hz = 0
        self._kept = bytearray()
        self._held: list[tuple[bytes, int]] = []
        self._held_s = 0.0
        self._speech_item: str | None = None
        self._last_end_ms = 0

    @staticmethod
    def length_s(pcm: bytes, hz: int) -> float:
        return audio_s(pcm, hz)

    def add(self, pcm: bytes, hz: int, *, keep: bool) -> None:
        """`keep`: the client will commit the audio. Raises `RealtimeError` if it is too much."""
        length_s = audio_s(pcm, hz)
        if keep:
            if hz != self._hz:
                self._kept.clear()
                self._hz = hz
            if audio_s(self._kept, hz) + length_s > MAX_BUFFER_S:
                raise RealtimeError(
                    f"The input audio buffer holds at most {MAX_BUFFER_S:.0f} s. Commit or clear it.",
                    "input_audio_buffer_full",
                )
            self._kept += pcm
        self._heard_s += length_s
        self._since_clear_s += length_s
        self.now_ms = int(self._heard_s * 1000)

    def check_length(self) -> None:
        if self._since_clear_s * 1000 < MIN_COMMIT_MS:
            raise RealtimeError(
                f"Error committing input audio buffer: buffer too small. Expected at least {MIN_COMMIT_MS}ms of audio, "
                f"but buffer only has {self._since_clear_s * 1000:.2f}ms of audio.",
                "input_audio_buffer_commit_empty",
            )

    def take(self) -> tuple[bytes, int]:
        """Returns the audio of a committed turn, and its rate."""
        pcm = bytes(self._kept)
        self.spoken_s = audio_s(pcm, self._hz)
        self.clear()
        return pcm, self._hz

    def clear(self) -> None:
        self._kept.clear()
        self._since_clear_s = 0.0

    def hold(self, pcm: bytes, hz: int) -> None:
        """Keeps speech until the session listens; the oldest is dropped if it is too much."""
        self._held.append((pcm, hz))
        self._held_s += audio_s(pcm, hz)
        while self._held_s > MAX_HELD_S:
            self._held_s -= audio_s(*self._held.pop(0))

    def take_held(self) -> list[tuple[bytes, int]]:
        held, self._held, self._held_s = self._held, [], 0.0
        return held

    def padded(self, pcm: bytes, hz: int) -> Iterator[bytes]:
        """Yields a committed turn in short pieces, between silences."""
        silence = b"\0" * (SAMPLE_BYTES * hz * PADDING_MS // 1000)
        whole = silence + pcm + silence
        step = SAMPLE_BYTES * hz * FEED_MS // 1000
        yield from (whole[at : at + step] for at in range(0, len(whole), step))

    @property
    def is_speech(self) -> bool:
        return self._speech_item is not None

    def start_speech(self, item_id: str) -> str:
        self._speech_item = item_id
        self.speech_ms = max(self._last_end_ms, self.now_ms - ONSET_MS)
        return item_id

    def stop_speech(self) -> str:
        """Returns the id of the speech's item."""
        assert self._speech_item is not None
        id, self._speech_item = self._speech_item, None
        self.spoken_s = max(0, self.now_ms - self.speech_ms) / 1000
        self._last_end_ms = self.now_ms
        return id


class PendingInput:
    """Items that wait for the next response, in the order in which they came."""

    def __init__(self) -> None:
        self._entries: list[tuple[Item, Message | None, bytes, int]] = []
        """Each item with its message, or with its audio and the rate of that."""
        self._calls: dict[str, str] = {}
        """The names of earlier calls that the client has told of, by their ids."""

    @property
    def has_any(self) -> bool:
        return bool(self._entries)

    @property
    def has_history(self) -> bool:
        """Whether there is anything besides the user's newest messages."""
        return any(not isinstance(message, UserMessage) and not pcm for _, message, pcm, _ in self._entries)

    def add_message(self, given: MessageItem, item: Item, codec: Codec) -> None:
        if given.audio and given.role == "user":
            self.add_audio(item, codec.decode(given.audio), codec.hz)
            return
        made = UserMessage if given.role == "user" else AssistantMessage
        self._entries.append((item, made(given.text), b"", 0))

    def add_audio(self, item: Item, pcm: bytes, hz: int) -> None:
        self._entries.append((item, None, pcm, hz))

    def add_call(self, given: FunctionCallItem) -> Item:
        """Adds an earlier call, whose output the client is about to add, too."""
        call_id = given.call_id or new_id("call")
        try:
            args = msgspec.json.decode(given.arguments or "{}")
        except (msgspec.DecodeError, RecursionError):
            raise RealtimeError("The arguments are not JSON.", "invalid_value", param="item.arguments") from None
        item = make_item("function_call", id=given.id, name=given.name, call_id=call_id, arguments=given.arguments)
        self._calls[call_id] = given.name
        self._entries.append((item, AssistantMessage("", (CallMade(call_id, given.name, args),)), b"", 0))
        return item

    def add_output(self, call_id: str, output: Any) -> bool:
        """Adds the result of an earlier call. False if the client has not told of such a call."""
        name = self._calls.pop(call_id, None)
        if name is None:
            return False
        self._entries.append((make_item("function_call_output"), ToolMessage(call_id, name, output), b"", 0))
        return True

    def remove(self, item_id: str) -> bool:
        """False if the item does not wait."""
        count = len(self._entries)
        self._entries = [entry for entry in self._entries if entry[0].id != item_id]
        return len(self._entries) < count

    def take(self) -> tuple[Sequence[Message], tuple[Item | None, bytes, int, str]]:
        """Takes everything: the history, and the turn that is to be answered, which is the newest of the user's."""
        entries, self._entries = self._entries, []
        spoken = [entry for entry in entries if entry[2]]
        if spoken:
            item, _, _, hz = spoken[-1]
            pcm = b"".join(pcm for _, _, pcm, of in spoken if of == hz)
            return _messages(entries), (item, pcm, hz, "")
        if entries and isinstance(entries[-1][1], UserMessage):
            return _messages(entries[:-1]), (None, b"", 0, entries[-1][1].text)
        return _messages(entries), (None, b"", 0, "")

    def take_history(self) -> Sequence[Message]:
        """Takes everything but the user's newest messages."""
        last = max(place for place, (_, message, pcm, _) in enumerate(self._entries) if not _is_turn(message, pcm))
        taken, self._entries = self._entries[: last + 1], self._entries[last + 1 :]
        return _messages(taken)

    def take_all(self) -> Sequence[Message]:
        """Takes everything as history."""
        taken, self._entries = self._entries, []
        return _messages(taken)


def _is_turn(message: Message | None, pcm: bytes) -> bool:
    return isinstance(message, UserMessage) or bool(pcm)


def _messages(entries: Sequence[tuple[Item, Message | None, bytes, int]]) -> list[Message]:
    return [message for _, message, _, _ in entries if message is not None]
