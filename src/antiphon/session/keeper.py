"""What a session leaves behind: its turns, its record, its messages. Every write shows the session's lease."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

import msgspec

from antiphon.clock import Clock
from antiphon.models.live import ToolAnswer, note
from antiphon.session.outbox import Outbox
from antiphon.session.standing import Standing
from antiphon.storage.conversations import Conversation, ConversationStore, StoredTurn, Turn, VoiceCallStore
from antiphon.storage.people import BlockStore
from antiphon.storage.sessions import Fence, MessageStore, SessionRecord, SessionStore
from antiphon.transcript import AssistantMessage, Message, ToolMessage, UserMessage

LEASE_MS: Final = 60_000
FIRST_LEASE: Final = 1
HANDLE_MS: Final = 2 * 60 * 60 * 1000
TITLE_CHARS: Final = 60


@dataclass(frozen=True, slots=True)
class Stores:
    conversations: ConversationStore
    sessions: SessionStore
    messages: MessageStore
    blocks: BlockStore
    voice_calls: VoiceCallStore


class Keeper:
    """Nothing durable is written before the first turn: a client that only looks leaves no trace."""

    def __init__(self, stores: Stores, clock: Clock, record: SessionRecord, *, stored: bool = False) -> None:
        self.stores = stores
        self.messages: list[Message] = []
        """The conversation, as models are given it."""
        self._clock = clock
        self._record = record
        self._stored = stored
        self._early: list[Message] = []
        """What was there before the first turn: a greeting, what the client brought along."""
        self.last_seq = 0
        """The number of the newest turn in the store."""
        self._answer: tuple[int, int] | None = None
        """The turn of the answer that was stored last, and its number there."""
        self._asked_seq = 0
        """The number of the user's last turn."""
        self._is_behind = False
        """Whether another session has stored turns in this conversation that are not among the messages."""
        self._left: list[Message] = []
        """The user's turn that another process has left unanswered, and what was done for it."""
        self._naming = asyncio.Lock()
        """Held while the handle is written: a client may come back in the moment when the session is first stored."""

    @property
    def conversation_id(self) -> str:
        return self._record.conversation_id

    @property
    def fence(self) -> Fence:
        return Fence(self._record.id, self._record.lease_token)

    async def load(self, conversation_id: str | None = None) -> bool:
        """Reads the conversation, or moves on to another of this user; False if there is none."""
        wanted = conversation_id or self._record.conversation_id
        if conversation_id is not None and not await self.has(conversation_id):
            return False
        self._asked_seq = 0
        self._record = msgspec.structs.replace(self._record, conversation_id=wanted)
        await self._read()
        if conversation_id is not None and self._stored:
            self._settle()
            await self.stores.sessions.save(self._record)
        return True

    async def has(self, conversation_id: str) -> bool:
        return await self.stores.conversations.get(conversation_id, self._record.user) is not None

    async def read(self, conversation_id: str, first_seq: int) -> list[Message]:
        """The messages of a conversation from that number on."""
        return _messages_of(await self.stores.conversations.turns(conversation_id, first_seq - 1))

    @property
    def unanswered(self) -> str | None:
        """The user's turn that another process was answering. It is none of the messages until it is kept once more."""
        return self._left[0].text if self._left and isinstance(self._left[0], UserMessage) else None

    async def restore(self) -> None:
        """Reads what another process has left."""
        turns = await self._read()
        asked = next((turn for turn in reversed(turns) if turn.role == "user"), None)
        if asked is None or asked.seq <= msgspec.json.decode(self._record.state, type=Standing).settled_seq:
            return
        place = max(place for place, message in enumerate(self.messages) if isinstance(message, UserMessage))
        if any(isinstance(message, AssistantMessage) and message.text for message in self.messages[place:]):
            return
        self.messages, self._left = self.messages[:place], self.messages[place:]

    async def keep_user(self, text: str, *, spoken: bool, goes_on: bool = False) -> bool:
        """Durable when it returns. True if there are turns of other sessions among the messages now, which a model
        that was connected before knows nothing of.

        `goes_on`: it takes the place of the user's last turn.
        """
        left, self._left = self._left, []
        self.messages += left
        if left[:1] == [UserMessage(text)]:
            # Once more after what was done for it: a model does not do that again, and finds the question at the end.
            self.messages += left[:1] if len(left) > 1 else []
            return False
        if goes_on and self._asked_seq:
            await self._amend_user(text, spoken=spoken)
            return False
        await self._begin(text)
        self._asked_seq = await self._append(UserMessage(text), text, spoken=spoken)
        was_behind = self._is_behind
        if was_behind:
            await self._read()
        return was_behind

    async def keep_runs(self, answers: Sequence[ToolAnswer]) -> None:
        """Calls and their results together: history never has a call that nobody answered."""
        at = len(self.messages)
        note(self.messages, "", answers)
        turns = [self._turn_of(message, "", spoken=False) for message in self.messages[at:]]
        numbers = await self.stores.conversations.append_many(self.conversation_id, turns, self.fence)
        self._count(numbers[0], numbers[-1])

    async def keep_answer(self, turn: int, text: str, *, spoken: bool) -> None:
        """Stores the answer of a turn; a second time it is put in the place of what was stored."""
        if self._answer is not None and self._answer[0] == turn:
            self._replace_last_answer(text)
            if not self._stored:
                return
            stored = self._turn_of(AssistantMessage(text), text, spoken)
            await self.stores.conversations.amend(self.conversation_id, self._answer[1], stored, self.fence)
        elif text:
            seq = await self._append(AssistantMessage(text), text, spoken=spoken)
            self._answer = (turn, seq)

    async def rename(self, handle_hash: str) -> bool:
        """From now on only the new handle leads here; False if the old one does not any more."""
        async with self._naming:
            if self._stored:
                now_ms, old, user = self._clock.now_ms(), self._record.handle_hash, self._record.user
                if await self.stores.sessions.rotate(old, handle_hash, user, now_ms, now_ms + HANDLE_MS) is None:
                    return False
            self._record = msgspec.structs.replace(self._record, handle_hash=handle_hash)
        return True

    def describe(self, mode: str, turn: int, tools_version: str, standing: Standing) -> None:
        """What another process needs to go on; it is stored by `save`, and with the first turn."""
        standing.settled_seq = msgspec.json.decode(self._record.state, type=Standing).settled_seq
        self._record = msgspec.structs.replace(
            self._record, mode=mode, turn=turn, tools_version=tools_version, state=msgspec.json.encode(standing)
        )

    async def save(self) -> None:
        """To be called only while no turn is under way: all are settled by it."""
        if not self._stored:
            return
        self._settle()
        now_ms = self._clock.now_ms()
        self._record = msgspec.structs.replace(self._record, handle_expires_ms=now_ms + HANDLE_MS, updated_ms=now_ms)
        await self.stores.sessions.save(self._record)

    async def save_messages(self, outbox: Outbox) -> None:
        if self._stored and (unsaved := outbox.take_unsaved()):
            await self.stores.messages.append_many(self._record.id, unsaved, self._record.lease_token)

    async def renew(self) -> bool:
        """Whether this process still has the session. The handle of one that is held does not expire."""
        if not self._stored:
            return True
        now_ms = self._clock.now_ms()
        if not await self.stores.sessions.renew(self._record.id, self._record.lease_token, now_ms + LEASE_MS):
            return False
        if self._record.handle_expires_ms - now_ms < HANDLE_MS // 2:
            self._record = msgspec.structs.replace(self._record, handle_expires_ms=now_ms + HANDLE_MS)
            await self.stores.sessions.save(self._record)
        return True

    async def clear(self) -> None:
        self.messages.clear()
        self._answer, self._asked_seq = None, 0
        if self._stored:
            await self.stores.conversations.clear(self.conversation_id, self.fence)

    async def end(self) -> None:
        if self._stored:
            await self.stores.sessions.end(self._record.id, self._record.lease_token)

    async def _begin(self, title: str) -> None:
        if self._stored:
            return
        now_ms = self._clock.now_ms()
        user, id = self._record.user, self._record.conversation_id
        if await self.stores.conversations.get(id, user) is None:
            conversation = Conversation(id, user, title[:TITLE_CHARS], now_ms, now_ms)
            await self.stores.conversations.create(conversation)
        async with self._naming:
            self._settle()
            await self.stores.sessions.begin(self._record)
            self._stored = True
        early, self._early = self._early, []
        for message in filter(_words_of, early):
            await self._store(message, _words_of(message), spoken=False)

    def bring(self, message: UserMessage | AssistantMessage) -> None:
        """Adds what was said elsewhere or before the first turn, with which it is stored."""
        self.messages.append(message)
        self._early.append(message)

    async def _append(self, message: UserMessage | AssistantMessage, text: str, *, spoken: bool) -> int:
        if not self._stored:
            self.bring(message)
            return 0
        self.messages.append(message)
        return await self._store(message, text, spoken=spoken)

    async def _store(self, message: Message, text: str, *, spoken: bool) -> int:
        turn = self._turn_of(message, text, spoken)
        seq = await self.stores.conversations.append(self.conversation_id, turn, self.fence)
        self._count(seq, seq)
        return seq

    def _count(self, first_seq: int, last_seq: int) -> None:
        """Notes the numbers of turns that were stored. A gap before them is the work of another session."""
        self._is_behind |= first_seq > self.last_seq + 1
        self.last_seq = last_seq

    async def _amend_user(self, text: str, *, spoken: bool) -> None:
        place = max(place for place, message in enumerate(self.messages) if isinstance(message, UserMessage))
        self.messages[place] = UserMessage(text)
        turn = self._turn_of(UserMessage(text), text, spoken)
        await self.stores.conversations.amend(self.conversation_id, self._asked_seq, turn, self.fence)

    async def _read(self) -> Sequence[StoredTurn]:
        turns = await self.stores.conversations.turns(self.conversation_id)
        self.messages = _messages_of(turns)
        self.last_seq = turns[-1].seq if turns else 0
        self._is_behind = False
        return turns

    def _settle(self) -> None:
        standing = msgspec.json.decode(self._record.state, type=Standing)
        standing.settled_seq = self.last_seq
        self._record = msgspec.structs.replace(self._record, state=msgspec.json.encode(standing))

    def _turn_of(self, message: Message, text: str, spoken: bool) -> Turn:
        match message:
            case UserMessage():
                role = "user"
            case AssistantMessage():
                role = "assistant"
            case _:
                role = "tool"
        return Turn(role, text, spoken, self._clock.now_ms(), msgspec.json.encode(message))  # type: ignore[arg-type]

    def _replace_last_answer(self, text: str) -> None:
        """Of an answer that nobody heard, nothing is left."""
        for place in range(len(self.messages) - 1, -1, -1):
            message = self.messages[place]
            if isinstance(message, AssistantMessage) and message.text:
                cut = [AssistantMessage(text)] if text else []
                self.messages[place : place + 1] = cut
                self._early = [kept for early in self._early for kept in (cut if early is message else [early])]
                return


def _messages_of(turns: Sequence[StoredTurn]) -> list[Message]:
    """Without the answers of which nothing was heard."""
    messages = [msgspec.json.decode(turn.body, type=Message) for turn in turns]
    return [message for message in messages if message != AssistantMessage()]


def _words_of(message: Message) -> str:
    return "" if isinstance(message, ToolMessage) else message.text


def new_record(user: str, owner: str, handle_hash: str, now_ms: int, mode: str = "text") -> SessionRecord:
    """A session that nobody knows of yet."""
    return SessionRecord(
        id=uuid4().hex,
        user=user,
        conversation_id=uuid4().hex,
        mode=mode,
        tools_version="",
        turn=0,
        state=b"{}",
        handle_hash=handle_hash,
        handle_expires_ms=now_ms + HANDLE_MS,
        lease_owner=owner,
        lease_token=FIRST_LEASE,
        lease_until_ms=now_ms + LEASE_MS,
        updated_ms=now_ms,
    )
