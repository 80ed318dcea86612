"""The interfaces of the stores of conversations and voice calls."""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from antiphon.storage.base import StorageError
from antiphon.storage.sessions import Fence, SentMessages, SessionRecord

Role = Literal["user", "assistant", "tool"]


class ConversationGone(StorageError):
    """The conversation was deleted by its owner or by age. Nothing was written."""

    code = "conversation_gone"

    def __init__(self, conversation_id: str) -> None:
        super().__init__(f"There is no conversation {conversation_id} any more. Start a new one.")


class Place(NamedTuple):
    """The position of a conversation in its user's list. The time alone is not unique, so the id is part of it."""

    updated_ms: int
    id: str


class Conversation(Struct, frozen=True):
    id: str
    user: str
    title: str
    created_ms: int
    updated_ms: int
    """When the newest turn was added."""

    @property
    def place(self) -> Place:
        return Place(self.updated_ms, self.id)


class Turn(Struct, frozen=True):
    """A message of the transcript, as it is given to a store."""

    role: Role
    text: str
    """The text that people read."""
    spoken: bool
    at_ms: int
    body: bytes
    """JSON of the whole message, including tool calls. A store does not interpret it."""


class StoredTurn(Struct, frozen=True):
    conversation_id: str
    seq: int
    """Counts from 1 in each conversation. A number is not reused, even after the turns were cleared."""
    role: Role
    text: str
    spoken: bool
    at_ms: int
    body: bytes


class ConversationStore(Protocol):
    """A fence of None is for a writer without a session."""

    async def create(self, conversation: Conversation) -> None: ...

    async def get(self, id: str, user: str) -> Conversation | None:
        """Returns None also if it belongs to another user."""
        ...

    async def list(self, user: str, limit: int, after: Place | None = None) -> Sequence[Conversation]:
        """Returns the most recently updated first; `after` continues from the position of the last one seen."""
        ...

    async def append_many(
        self,
        conversation_id: str,
        turns: Sequence[Turn],
        fence: Fence | None,
        *,
        sent: SentMessages = (),
        record: SessionRecord | None = None,
    ) -> Sequence[int]:
        """Appends turns that belong together, all or none, and returns their numbers. They are durable then.

        The messages to the client about them and the record of the fence's session are stored in the same transaction.
        Raises `Fenced` or `ConversationGone`.
        """
        ...

    async def amend(
        self, conversation_id: str, seq: int, turn: Turn, fence: Fence | None, *, sent: SentMessages = ()
    ) -> bool:
        """Replaces a turn, and stores the messages to the client about it. Returns False if the turn is gone; nothing
        is stored then. Raises `Fenced`."""
        ...

    async def turns(self, conversation_id: str, after_seq: int = 0, limit: int | None = None) -> Sequence[StoredTurn]:
        """Returns the turns in order, at most `limit` of those after `after_seq`."""
        ...

    async def last_seqs(self, ids: Collection[str]) -> Mapping[str, int]:
        """Returns the number of the last message of each of these conversations that has any."""
        ...

    async def clear(self, conversation_id: str, fence: Fence | None) -> None:
        """Deletes the turns, and the messages to the client of the fence's session. The conversation itself stays.

        Raises `Fenced`.
        """
        ...

    async def delete(self, id: str, user: str) -> bool:
        """Deletes it if it belongs to this user, and returns whether it did."""
        ...

    async def delete_before(self, at_ms: int) -> int:
        """Deletes the conversations without a turn since then, and returns how many."""
        ...


class VoiceCall(Struct, frozen=True):
    """One voice call in a conversation. It is kept when the conversation is deleted, since it has its own summary."""

    id: str
    conversation_id: str
    user: str
    started_ms: int
    ended_ms: int | None
    """None while the call goes on, and forever if its process died."""
    summary: str
    models: tuple[str, ...]
    """The models that answered, in the order of their first use."""
    first_seq: int
    """The number of the call's first turn, or the number that it would have had."""
    last_seq: int | None
    """The number of its last turn; lower than `first_seq` if nothing was said."""
    energy_path: tuple[int, ...] = ()
    """The energy levels that it was answered at, in order. Empty if they are not known."""


class VoiceCallStore(Protocol):
    async def begin(self, call: VoiceCall, fence: Fence | None) -> None:
        """Raises `Fenced`."""
        ...

    async def end(self, ended: VoiceCall, fence: Fence | None) -> bool:
        """Replaces the call with its ended form; returns False if it has ended already or is gone. Raises `Fenced`."""
        ...

    async def set_summary(self, id: str, summary: str) -> bool:
        """Replaces the summary of a call that has ended; returns False if it is gone."""
        ...

    async def get(self, id: str, user: str) -> VoiceCall | None:
        """Returns None also if it belongs to another user."""
        ...

    async def list(self, user: str, limit: int) -> Sequence[VoiceCall]:
        """Returns the most recently started first."""
        ...

    async def latest_ended(self, conversation_id: str, user: str) -> VoiceCall | None:
        """Returns the call of this conversation that was the last to start, of those that have ended."""
        ...

    async def delete(self, id: str, user: str) -> bool:
        """Deletes it if it belongs to this user, and returns whether it did."""
        ...

    async def clear(self, user: str) -> int:
        """Deletes all calls of a user, and returns how many."""
        ...

    async def delete_before(self, at_ms: int) -> int:
        """Deletes the calls that started earlier, and returns how many."""
        ...
