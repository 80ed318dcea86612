"""What a session leaves behind: its turns, its record, its messages. Every write shows the session's lease."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

import msgspec

from antiphon.clock import Clock
from antiphon.models.live import ToolAnswer, note
from antiphon.session.outbox import Outbox
from antiphon.session.standing import Standing
from antiphon.storage.conversations import (
    Conversation,
    ConversationGone,
    ConversationStore,
    StoredTurn,
    Turn,
    VoiceCallStore,
)
from antiphon.storage.people import BlockStore
from antiphon.storage.sessions import Fence, MessageStore, SessionRecord, SessionStore, Told
from antiphon.tools.call import ToolCall
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


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A turn that was under way when an earlier process stored it last."""

    question: str
    """What the user said; nothing, if the turn came of a button."""
    ran: tuple[ToolAnswer, ...]
    """What was done for it."""
    answer: StoredTurn | None
    """Its answer, if that was made. It may not have been heard."""


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
        self._turn_begin = 0
        """Where the turn under way, or the last one, begins among the messages."""
        self._has_moved = False
        """Whether the conversation was deleted elsewhere, and another has taken its place."""
        self._naming = asyncio.Lock()
        """Held while the handle is written: a client may come back in the moment when the session is first stored."""

    @property
    def conversation_id(self) -> str:
        return self._record.conversation_id

    @property
    def fence(self) -> Fence:
        return Fence(self._record.id, self._record.lease_token)

    @property
    def is_stored(self) -> bool:
        return self._stored

    @property
    def messages_before_turn(self) -> Sequence[Message]:
        """The conversation without the turn under way."""
        return self.messages[: self._turn_begin]

    def take_moved(self) -> bool:
        """Whether the conversation has been replaced since the last time this was asked."""
        moved, self._has_moved = self._has_moved, False
        return moved

    async def load(self, conversation_id: str | None = None) -> bool:
        """Reads the conversation, or moves on to another of this user; False if there is none."""
        wanted = conversation_id or self._record.conversation_id
        if conversation_id is not None and not await self.has(conversation_id):
            return False
        self._answer, self._asked_seq = None, 0
        self._record = msgspec.structs.replace(self._record, conversation_id=wanted)
        await self._read()
        self._turn_begin = len(self.messages)
        if conversation_id is not None and self._stored:
            self._settle(is_answering=False)
            await self.stores.sessions.save(self._record)
        return True

    async def has(self, conversation_id: str) -> bool:
        return await self.stores.conversations.get(conversation_id, self._record.user) is not None

    async def read(self, conversation_id: str, first_seq: int) -> list[Message]:
        """The messages of a conversation from that number on."""
        turns = await self.stores.conversations.turns(conversation_id, first_seq - 1)
        return [message for _, message in _decoded(turns)]

    async def restore(self) -> Unfinished | None:
        """Reads what another process has left: the conversation, and the turn that was under way."""
        turns = await self._read()
        standing = msgspec.json.decode(self._record.state, type=Standing)
        since = [(place, turn) for place, turn in enumerate(turns) if turn.seq > standing.settled_seq]
        if not standing.is_answering or not since:
            self._turn_begin = len(self.messages)
            return None
        # Later turns of the user are those of other sessions in this conversation.
        self._turn_begin, asked = next((each for each in since if each[1].role == "user"), since[0])
        own = list(zip(turns, self.messages, strict=True))[self._turn_begin :]
        own = own[: next((place for place, each in enumerate(own) if place and each[0].role == "user"), len(own))]
        if asked.role == "user":
            self._asked_seq = asked.seq
        answers = [turn for turn, message in own if isinstance(message, AssistantMessage) and message.text]
        return Unfinished(
            question=asked.text if asked.role == "user" else "",
            ran=tuple(_runs_in([message for _, message in own])),
            answer=answers[-1] if answers else None,
        )

    def begin_answer(self, turn: int, seq: int) -> None:
        """The answer that another process has stored is the one of this turn: it may still be cut."""
        self._answer = (turn, seq)

    async def keep_user(self, text: str, *, spoken: bool, goes_on: bool = False, told: Told = ()) -> bool:
        """Durable when it returns, with what the client is told. True if there are turns of other sessions among the
        messages now, which a model that was connected before knows nothing of.

        `goes_on`: it takes the place of the user's last turn.
        """
        if goes_on and self._asked_seq:
            return await self._amend_user(text, spoken=spoken, told=told)
        await self._begin(text)
        self._turn_begin = len(self.messages)
        (self._asked_seq,) = await self._store([UserMessage(text)], spoken=spoken, told=told, begins_turn=True)
        was_behind = self._is_behind
        if was_behind:
            await self._read()
            self._turn_begin = _place_of_last_user(self.messages)
        return was_behind

    async def keep_runs(self, answers: Sequence[ToolAnswer], outbox: Outbox, *, begins_turn: bool = False) -> None:
        """Calls and their results together: history never has a call that nobody answered.

        `begins_turn`: nobody has said anything; the turn came of a button.
        """
        messages = list(self.messages)
        note(messages, "", answers)
        if begins_turn:
            self._turn_begin = len(self.messages)
        with outbox.saving() as told:
            await self._store(messages[len(self.messages) :], spoken=False, told=told, begins_turn=begins_turn)

    async def keep_answer(self, turn: int, text: str, *, spoken: bool, told: Told = ()) -> None:
        """Stores the answer of a turn with what the client is told; a second time it takes the place of the first."""
        if self._answer is not None and self._answer[0] == turn:
            self._replace_last_answer(text)
            if not self._stored:
                return
            stored = self._turn_of(AssistantMessage(text), spoken)
            if await self.stores.conversations.amend(
                self.conversation_id, self._answer[1], stored, self.fence, told=told
            ):
                return
        elif text and not self._stored:
            self.bring(AssistantMessage(text))
            self._answer = (turn, 0)
            return
        elif text:
            (seq,) = await self._store([AssistantMessage(text)], spoken=spoken, told=told)
            self._answer = (turn, seq)
            return
        await self.tell(told)

    async def tell(self, told: Told) -> None:
        """Stores what the client is told."""
        if told and self._stored:
            await self.stores.messages.append_many(self._record.id, told, self._record.lease_token)

    async def rename(self, used_hash: str, handle_hash: str) -> SessionRecord | None:
        """The new handle takes the place of the one that was used: the record of the session that it leads to.

        None if the handle that was used is not good any more.
        """
        async with self._naming:
            record: SessionRecord | None = self._record
            if self._stored:
                now_ms, user = self._clock.now_ms(), self._record.user
                record = await self.stores.sessions.rotate(used_hash, handle_hash, user, now_ms, now_ms + HANDLE_MS)
            self._record = msgspec.structs.replace(
                self._record, handle_hash=handle_hash, previous_handle_hash=used_hash
            )
        return record

    def holds(self, record: SessionRecord | None) -> bool:
        """Whether the session is still run here, by its newest record."""
        return record is not None and record.lease_token == self._record.lease_token

    async def settle_handle(self) -> None:
        """The client has its newest handle."""
        async with self._naming:
            if self._stored:
                await self.stores.sessions.settle_handle(self._record.id, self._record.lease_token)
            self._record = msgspec.structs.replace(self._record, previous_handle_hash=None)

    def describe(self, mode: str, turn: int, tools_version: str, standing: Standing) -> None:
        """What another process needs to go on; it is stored by `save`, and with the first turn."""
        before = msgspec.json.decode(self._record.state, type=Standing)
        standing.settled_seq, standing.is_answering = before.settled_seq, before.is_answering
        self._record = msgspec.structs.replace(
            self._record, mode=mode, turn=turn, tools_version=tools_version, state=msgspec.json.encode(standing)
        )

    async def save(self) -> None:
        """To be called only while no turn is under way: all are settled by it."""
        if not self._stored:
            return
        self._settle(is_answering=False)
        self._put_off_end()
        await self.stores.sessions.save(self._record)

    async def save_messages(self, outbox: Outbox) -> None:
        if self._stored:
            with outbox.saving() as told:
                await self.tell(told)

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
        """Forgets the conversation, and what the client was told."""
        self.messages.clear()
        self._early.clear()
        self._answer, self._asked_seq, self._turn_begin = None, 0, 0
        if self._stored:
            await self.stores.conversations.clear(self.conversation_id, self.fence)

    async def end(self) -> None:
        if self._stored:
            await self.stores.sessions.end(self._record.id, self._record.lease_token)

    async def _begin(self, title: str) -> None:
        if self._stored:
            return
        if await self.stores.conversations.get(self._record.conversation_id, self._record.user) is None:
            await self._create(self._record.conversation_id, title)
        async with self._naming:
            self._settle(is_answering=False)
            await self.stores.sessions.begin(self._record)
            self._stored = True
        early, self._early = [*filter(_words_of, self._early)], []
        if early:
            turns = [self._turn_of(message, spoken=False) for message in early]
            numbers = await self.stores.conversations.append_many(self.conversation_id, turns, self.fence)
            self._count(numbers)

    async def _create(self, conversation_id: str, title: str) -> None:
        now_ms = self._clock.now_ms()
        conversation = Conversation(conversation_id, self._record.user, title[:TITLE_CHARS], now_ms, now_ms)
        await self.stores.conversations.create(conversation)

    def bring(self, message: UserMessage | AssistantMessage) -> None:
        """Adds what was said elsewhere or before the first turn, with which it is stored."""
        self.messages.append(message)
        self._early.append(message)

    async def _store(
        self, messages: Sequence[Message], *, spoken: bool, told: Told = (), begins_turn: bool = False
    ) -> Sequence[int]:
        """Adds to the conversation, with what the client is told of it; the numbers that the messages have there.

        With the begin of a turn, the session's record is stored: another process then knows what is under way.
        """
        if begins_turn:
            self._settle(is_answering=True)
            self._put_off_end()
        try:
            numbers = await self.stores.conversations.append_many(
                self.conversation_id,
                [self._turn_of(message, spoken) for message in messages],
                self.fence,
                told=told,
                record=self._record if begins_turn else None,
            )
        except ConversationGone:
            numbers = await self._move(messages, spoken=spoken, told=told)
        self.messages += messages
        self._count(numbers)
        return numbers

    async def _move(self, messages: Sequence[Message], *, spoken: bool, told: Told) -> Sequence[int]:
        """The conversation was deleted elsewhere: the turn under way goes on in a new one, and nothing else does."""
        turn = [*self.messages[self._turn_begin :], *messages]
        title = next((message.text for message in turn if isinstance(message, UserMessage)), "")
        conversation_id = uuid4().hex
        await self._create(conversation_id, title)
        self._record = msgspec.structs.replace(self._record, conversation_id=conversation_id)
        self.last_seq = 0
        self._settle(is_answering=True)
        numbers = await self.stores.conversations.append_many(
            conversation_id,
            [self._turn_of(message, spoken) for message in turn],
            self.fence,
            told=told,
            record=self._record,
        )
        del self.messages[: self._turn_begin]
        self._turn_begin, self._answer, self._has_moved = 0, None, True
        self._asked_seq = numbers[0] if isinstance(turn[0], UserMessage) else 0
        self.last_seq = numbers[-1] - len(messages)
        return numbers[len(turn) - len(messages) :]

    def _count(self, numbers: Sequence[int]) -> None:
        """Notes the numbers of turns that were stored. A gap before them is the work of another session."""
        self._is_behind |= numbers[0] > self.last_seq + 1
        self.last_seq = numbers[-1]

    async def _amend_user(self, text: str, *, spoken: bool, told: Told) -> bool:
        turn = self._turn_of(UserMessage(text), spoken)
        if await self.stores.conversations.amend(self.conversation_id, self._asked_seq, turn, self.fence, told=told):
            self.messages[_place_of_last_user(self.messages)] = UserMessage(text)
            return False
        # It is gone, with its conversation or without.
        self._asked_seq, self._turn_begin = 0, len(self.messages)
        return await self.keep_user(text, spoken=spoken, told=told)

    async def _read(self) -> Sequence[StoredTurn]:
        """Gives the turns that the messages are made of, one for each."""
        turns = await self.stores.conversations.turns(self.conversation_id)
        decoded = _decoded(turns)
        self.messages = [message for _, message in decoded]
        self.last_seq = turns[-1].seq if turns else 0
        self._is_behind = False
        return [turn for turn, _ in decoded]

    def _settle(self, *, is_answering: bool) -> None:
        """All turns up to now are over. `is_answering`: the next one begins."""
        standing = msgspec.json.decode(self._record.state, type=Standing)
        standing.settled_seq, standing.is_answering = self.last_seq, is_answering
        self._record = msgspec.structs.replace(self._record, state=msgspec.json.encode(standing))

    def _put_off_end(self) -> None:
        """The handle of a session that is used does not expire."""
        now_ms = self._clock.now_ms()
        self._record = msgspec.structs.replace(self._record, handle_expires_ms=now_ms + HANDLE_MS, updated_ms=now_ms)

    def _turn_of(self, message: Message, spoken: bool) -> Turn:
        match message:
            case UserMessage():
                role = "user"
            case AssistantMessage():
                role = "assistant"
            case _:
                role = "tool"
        return Turn(role, _words_of(message), spoken, self._clock.now_ms(), msgspec.json.encode(message))  # type: ignore[arg-type]

    def _replace_last_answer(self, text: str) -> None:
        """Of an answer that nobody heard, nothing is left."""
        for place in range(len(self.messages) - 1, -1, -1):
            message = self.messages[place]
            if isinstance(message, AssistantMessage) and message.text:
                cut = [AssistantMessage(text)] if text else []
                self.messages[place : place + 1] = cut
                self._early = [kept for early in self._early for kept in (cut if early is message else [early])]
                return


def _decoded(turns: Sequence[StoredTurn]) -> list[tuple[StoredTurn, Message]]:
    """Each turn with its message, without the answers of which nothing was heard."""
    decoded = [(turn, msgspec.json.decode(turn.body, type=Message)) for turn in turns]
    return [(turn, message) for turn, message in decoded if message != AssistantMessage()]


def _place_of_last_user(messages: Sequence[Message]) -> int:
    return max(place for place, message in enumerate(messages) if isinstance(message, UserMessage))


def _runs_in(messages: Sequence[Message]) -> Iterator[ToolAnswer]:
    """The calls of a turn with their results."""
    made = {call.id: call for each in messages if isinstance(each, AssistantMessage) for call in each.calls}
    for message in messages:
        if isinstance(message, ToolMessage) and (call := made.get(message.call_id)) is not None:
            called = ToolCall(call.id, call.name, call.args, extra=call.extra)
            yield ToolAnswer(called, message.content, message.spoken, message.ok)


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
