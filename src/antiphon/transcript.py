"""The transcript of a conversation: who said what, which tools were called, and what they returned.

The session owns the one transcript. A model that keeps no context of its own reads it; a model that does is given it
once, when it is connected. The instructions to a model are not part of it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from msgspec import Struct


class UserMessage(Struct, frozen=True, tag="user", tag_field="role"):
    """What the user said or typed in one turn. It is empty until the words are known."""

    text: str


class CallMade(Struct, frozen=True):
    """A tool call in the conversation."""

    id: str
    """The provider's id, or one that the session made up; it joins the call to its `ToolMessage`."""
    name: str
    args: Any
    extra: Any = None
    """`extra` of the `ToolCall`."""


class AssistantMessage(Struct, frozen=True, tag="assistant", tag_field="role"):
    """One message of a model: words, tool calls, or both."""

    text: str = ""
    calls: tuple[CallMade, ...] = ()


class ToolMessage(Struct, frozen=True, tag="tool", tag_field="role"):
    """The result of one call."""

    call_id: str
    name: str
    content: Any
    """JSON, for a model: the data, or {"error": …}."""
    spoken: str | None = None
    """The same in words that can be spoken, if the tool has any."""
    ok: bool = True


Message = UserMessage | AssistantMessage | ToolMessage


def is_blank(message: Message) -> bool:
    """Whether the message says nothing: the user's words are not known, or nothing of the answer was heard."""
    return not isinstance(message, ToolMessage) and not message.text and not getattr(message, "calls", ())


class Entry(Struct):
    """One message of the transcript, and what is known about it."""

    turn: str
    """The id of the turn that the message belongs to."""
    message: Message
    spoken: bool = False
    at_ms: int = 0
    seq: int = 0
    """The number under which the message is stored; 0 if it is not stored yet."""


class TranscriptView(Protocol):
    """The transcript as a model reads it."""

    @property
    def messages(self) -> Sequence[Message]:
        """Returns the conversation so far, with the current turn."""
        ...

    def with_user(self, turn: str, text: str) -> Sequence[Message]:
        """Returns the conversation as it will be if these are the user's words in this turn, which is new, or which the
        user continues."""
        ...


class Transcript:
    """The conversation in the order of its turns, whatever order the parts of a turn arrive in."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.entries: list[Entry] = list(entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    @property
    def messages(self) -> Sequence[Message]:
        """Returns the conversation without blank messages."""
        return tuple(entry.message for entry in self.entries if not is_blank(entry.message))

    def before(self, turn: str | None) -> Sequence[Message]:
        """Returns the conversation without this turn and those that began after it."""
        at = next((place for place, entry in enumerate(self.entries) if entry.turn == turn), len(self.entries))
        return tuple(entry.message for entry in self.entries[:at] if not is_blank(entry.message))

    def since(self, first_turn: str | None) -> "TranscriptTail":
        """Returns the transcript from this turn on, as it grows; all of it if there is no such turn."""
        turns = list(dict.fromkeys(entry.turn for entry in self.entries))
        left_out = turns[: turns.index(first_turn)] if first_turn in turns else []
        return TranscriptTail(self, frozenset(left_out))

    def with_user(self, turn: str, text: str) -> Sequence[Message]:
        changed = Transcript(Entry(entry.turn, entry.message) for entry in self.entries)
        changed.continue_as(turn, turn)
        changed.set_user(turn, text)
        return changed.messages

    def user_entry(self, turn: str) -> Entry | None:
        return next((e for e in self.entries if e.turn == turn and isinstance(e.message, UserMessage)), None)

    def answer_entry(self, turn: str) -> Entry | None:
        """Returns the entry with the words of the answer to this turn. Messages with only calls do not count."""
        words = (e for e in self.entries if e.turn == turn and isinstance(e.message, AssistantMessage))
        return next((entry for entry in words if not getattr(entry.message, "calls", ())), None)

    def set_user(self, turn: str, text: str, *, spoken: bool = False, at_ms: int = 0) -> Entry:
        """Sets the user's words in this turn. They come first in their turn, whenever they become known."""
        entry = self.user_entry(turn)
        if entry is not None:
            entry.message = UserMessage(text)
            return entry
        at = next((place for place, each in enumerate(self.entries) if each.turn == turn), len(self.entries))
        entry = Entry(turn, UserMessage(text), spoken, at_ms)
        self.entries.insert(at, entry)
        return entry

    def set_answer(self, turn: str, text: str, *, spoken: bool = False, at_ms: int = 0) -> Entry:
        """Sets the words of the answer to this turn, as far as they were heard."""
        entry = self.answer_entry(turn)
        if entry is not None:
            entry.message = AssistantMessage(text)
            return entry
        return self.add(Entry(turn, AssistantMessage(text), spoken, at_ms))

    def add(self, entry: Entry) -> Entry:
        """Adds an entry to the end of its turn. A new turn comes last."""
        places = [place for place, each in enumerate(self.entries) if each.turn == entry.turn]
        self.entries.insert(places[-1] + 1 if places else len(self.entries), entry)
        return entry

    def continue_as(self, turn: str, new: str) -> None:
        """The user goes on with a turn, which gets a new id. It comes last now, whatever was said in between."""
        continued = [entry for entry in self.entries if entry.turn == turn]
        self.entries = [entry for entry in self.entries if entry.turn != turn] + continued
        for entry in continued:
            entry.turn = new


class TranscriptTail:
    """The end of a transcript as it grows: everything but the turns that were left out when it was made.

    It names the turns that are left out, and not the first one that is kept, since that one may move to the end: the
    user goes on with it.
    """

    def __init__(self, transcript: Transcript, left_out: frozenset[str]) -> None:
        self._transcript = transcript
        self._left_out = left_out

    @property
    def messages(self) -> Sequence[Message]:
        return self._kept().messages

    def before(self, turn: str | None) -> Sequence[Message]:
        return self._kept().before(turn)

    def with_user(self, turn: str, text: str) -> Sequence[Message]:
        return self._kept().with_user(turn, text)

    def _kept(self) -> Transcript:
        return Transcript(entry for entry in self._transcript if entry.turn not in self._left_out)
