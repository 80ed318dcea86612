"""What a realtime model has said in its latest answers, and how the server is made to forget what was not heard."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from antiphon.models.providers.realtime_events import ClientEvent, delete_item, truncate_item
from antiphon.models.providers.upstream import MAX_REMEMBERED


@dataclass(eq=False, slots=True)
class SpokenItem:
    """A message of an answer, as far as it was passed on."""

    id: str
    text: str = ""
    audio_ms: float = 0.0


class SpokenAnswers:
    """The messages of the latest answers, by turn."""

    def __init__(self, send: Callable[[ClientEvent], None]) -> None:
        self._send = send
        self._answers: OrderedDict[str, list[SpokenItem]] = OrderedDict()

    def __contains__(self, turn: str) -> bool:
        return turn in self._answers

    def item(self, turn: str, id: str) -> SpokenItem:
        """Returns a message of the answer to this turn, which may be new."""
        items = self._answers.setdefault(turn, [])
        if len(self._answers) > MAX_REMEMBERED:
            self._answers.popitem(last=False)
        known = next((item for item in items if item.id == id), None)
        if known is None:
            known = SpokenItem(id)
            items.append(known)
            del items[:-MAX_REMEMBERED]
        return known

    def cut(self, turn: str, heard: str) -> None:
        """Truncates the message in which the user stopped listening, and deletes those after it.

        Where a word is in the audio is not known, so it is estimated: by the word's share of the message.
        """
        left = len(heard.split())
        kept: list[SpokenItem] = []
        for item in self._answers.get(turn, ()):
            if left <= 0:
                self._send(delete_item(item.id))
                continue
            kept.append(item)
            words = item.text.split()
            if left < len(words) and item.audio_ms >= 1:
                item.audio_ms = max(1, int(item.audio_ms * left / len(words)))
                item.text = " ".join(words[:left])
                self._send(truncate_item(item.id, int(item.audio_ms)))
            left -= len(words)
        self._answers[turn] = kept
