"""The seams to conversations: their turns, and the stretches of voice among these."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from antiphon.storage.base import StorageError
from antiphon.storage.sessions import Fence, SessionRecord, Told

Role = Literal["user", "assistant", "tool"]


class ConversationGone(StorageError):
    """Its owner deleted it, or it was too old; nothing was written."""

    code = "conversation_gone"

    def __init__(self, conversation_id: str) -> None:
        super().__init__(f"There is no conversation {conversation_id} any more. Start a new one.")


class Place(NamedTuple):
    """Where a conversation stands in the list of its user. Several can be of one millisecond, so that is not enough."""

    updated_ms: int
    id: str


class Conversation(Struct, frozen=True):
    id: str
    user: str
    title: str
    created_ms: int
    updated_ms: int
    """When the newest turn was made."""

    @property
    def place(self) -> Place:
        return Place(self.updated_ms, self.id)


class Turn(Struct, frozen=True):
    """A message of the transcript, as it is given to a store."""

    role: Role
    text: str
    """What a person reads."""
    spoken: bool
    at_ms: int
    body: bytes
    """JSON of the whole message, tool calls and all; a store does not look into it."""


class StoredTurn(Struct, frozen=True):
    conversation_id: str
    seq: int
    """Counts from 1 in each conversation. A number is not used again, not even after the turns were cleared."""
    role: Role
    text: str
    spoken: bool
    at_ms: int
    body: bytes


class ConversationStore(Protocol):
    """Where a method takes a fence, None is for a writer without a session."""

    async def create(self, conversation: Conversation) -> None: ...

    async def get(self, id: str, user: str) -> Conversation | None:
        """None too if it is another's."""
        ...

    async def list(self, user: str, limit: int, after: Place | None = None) -> Sequence[Conversation]:
        """The last updated first; `after` goes on from the place of the last one seen."""
        ...

    async def append_many(
        self,
        conversation_id: str,
        turns: Sequence[Turn],
        fence: Fence | None,
        *,
        told: Told = (),
        record: SessionRecord | None = None,
    ) -> Sequence[int]:
        """Appends turns that belong together, all or none, and returns their numbers. They are durable then.

        What the client is told of them, and the record of the fence's session, are stored in the same transaction.
        Raises `Fenced` or `ConversationGone`.
        """
        ...

    async def amend(self, conversation_id: str, seq: int, turn: Turn, fence: Fence | None, *, told: Told = ()) -> bool:
        """Puts another turn in the place of one, with what the client is told of it; False if it is gone, and then
        nothing was stored. Raises `Fenced`."""
        ...

    async def turns(self, conversation_id: str, after_seq: int = 0, limit: int | None = None) -> Sequence[StoredTurn]:
        """In their order; `limit` keeps the first ones after `after_seq`."""
        ...

    async def clear(self, conversation_id: str, fence: Fence | None) -> None:
        """Deletes the turns, and what the client of the fence's session was told. The conversation itself stays.

        Raises `Fenced`.
        """
        ...

    async def delete(self, id: str, user: str) -> bool:
        """Whether it was there, and this user's."""
        ...

    async def delete_before(self, at_ms: int) -> int:
        """Deletes the conversations without a turn since then, and says how many there were."""
        ...


class VoiceCall(Struct, frozen=True):
    """One stretch of voice in a conversation. It outlasts the conversation, as its summary stands for itself."""

    id: str
    conversation_id: str
    user: str
    started_ms: int
    ended_ms: int | None
    """None while it goes on, and for ever if its process died."""
    summary: str
    models: tuple[str, ...]
    """Those that answered, in the order of their first use."""
    first_seq: int
    """The number that the first turn of the call has, or would have had."""
    last_seq: int | None
    """That of its last turn; below `first_seq` if nothing was said."""


class VoiceCallStore(Protocol):
    async def begin(self, call: VoiceCall, fence: Fence | None) -> None:
        """Raises `Fenced`."""
        ...

    async def end(
        self, id: str, *, ended_ms: int, summary: str, models: Sequence[str], last_seq: int, fence: Fence | None
    ) -> bool:
        """Completes a call that goes on; False if it is over already, or gone. Raises `Fenced`."""
        ...

    async def get(self, id: str, user: str) -> VoiceCall | None:
        """None too if it is another's."""
        ...

    async def list(self, user: str, limit: int) -> Sequence[VoiceCall]:
        """The last started first."""
        ...

    async def delete(self, id: str, user: str) -> bool:
        """Whether it was there, and this user's."""
        ...

    async def clear(self, user: str) -> int:
        """Deletes all of a user's calls, and says how many there were."""
        ...

    async def delete_before(self, at_ms: int) -> int:
        """Deletes the calls that started earlier, and says how many there were."""
        ...
