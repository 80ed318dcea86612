"""The items of what the user says, and the events about them."""

from collections.abc import Callable
from typing import Final

from antiphon.gateway.realtime_input import InputAudio
from antiphon.gateway.realtime_items import Item, Items, make_item, new_id

TRANSCRIPTION: Final = "conversation.item.input_audio_transcription"
MAX_TURNS: Final = 16
"""How many turns back a late transcript is still taken."""


class UserSpeech:
    """Speech is noticed, and later committed: by the session, which has found its end, or by the client."""

    def __init__(self, emit: Callable[..., None], items: Items, input: InputAudio) -> None:
        self._emit = emit
        self._items = items
        self._input = input
        self._turn: str | None = None
        """The turn in which the user speaks, if the model has told it."""
        self._spoken: dict[str, Item] = {}
        """The items of the newest turns, by the ids of these."""

    def start(self, turn: str | None = None) -> None:
        """The user speaks, in this turn if that is known. This is told once a turn; if nothing has come of speech in an
        earlier turn, it was a noise."""
        if turn is not None and self._turn not in (None, turn):
            self.stop()
        self._turn = turn or self._turn
        if not self._input.is_speech:
            id = self._input.start_speech(new_id("item"))
            self._emit("input_audio_buffer.speech_started", audio_start_ms=self._input.speech_ms, item_id=id)

    def stop(self) -> str | None:
        """The user does not speak any more. Returns the id for the item, if there was speech."""
        self._turn = None
        if not self._input.is_speech:
            return None
        id = self._input.stop_speech()
        self._emit("input_audio_buffer.speech_stopped", audio_end_ms=self._input.now_ms, item_id=id)
        return id

    def commit(self, continues: str | None = None) -> Item:
        """Adds the item of what the user has just said. It replaces that of a turn which it continues."""
        id = self.stop() or new_id("item")
        before = self._spoken.pop(continues, None) if continues is not None else None
        if before is not None:
            self._items.remove(before.id)
        item = make_item("message", id=id, role="user", content=[{"type": "input_audio", "transcript": None}])
        self._emit("input_audio_buffer.committed", previous_item_id=self._items.last_id, item_id=id)
        self._items.add(item)
        self._input.clear()
        return item

    def assign(self, item: Item, turn: str, number: int) -> None:
        """The item is the user's part of this turn."""
        item.turn = number
        self._spoken[turn] = item
        for old in list(self._spoken)[:-MAX_TURNS]:
            del self._spoken[old]

    def note_words(self, number: int, text: str, *, is_wanted: bool) -> None:
        """The words of a turn are known. The client is told if it has asked for transcription."""
        item = next((each for each in self._spoken.values() if each.turn == number), None)
        if item is None:
            return
        item.shown["content"] = [{"type": "input_audio", "transcript": text}]
        if is_wanted:
            usage = {"type": "duration", "seconds": round(self._input.spoken_s, 3)}
            self._emit(f"{TRANSCRIPTION}.delta", item_id=item.id, content_index=0, delta=text)
            self._emit(f"{TRANSCRIPTION}.completed", item_id=item.id, content_index=0, transcript=text, usage=usage)
