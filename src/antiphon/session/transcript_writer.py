"""The transcript of a session, and its way into the store.

Entries are stored in the order of their turns. The place of a spoken turn whose words are not known yet is kept by a
blank message of the user, which is stored with the first other message of the turn and replaced when the words come.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import msgspec

from antiphon.clock import Clock
from antiphon.models.live import ToolAnswer, messages_of
from antiphon.session.outbox import Outbox
from antiphon.session.stored_session import StoredSession
from antiphon.storage.changes import Topic
from antiphon.storage.conversations import Conversation, ConversationGone, StoredTurn, Turn
from antiphon.storage.sessions import SentMessages
from antiphon.tools.call import ToolCall
from antiphon.transcript import AssistantMessage, Entry, Message, ToolMessage, Transcript, UserMessage, is_blank

TITLE_CHARS: Final = 60


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A turn that was under way when an earlier process stored it last."""

    turn: str
    question: str
    """What the user said; empty if the turn began with a button."""
    ran: tuple[ToolAnswer, ...]
    """The calls that were run for it."""
    answer: Entry | None
    """Its answer, if that was stored. It may not have been heard."""
    is_newest: bool = True
    """Whether nothing was said after it. Another session may have continued the conversation."""


class TranscriptWriter:
    def __init__(self, session: StoredSession, clock: Clock) -> None:
        self.transcript = Transcript()
        self.last_seq = 0
        """The number of the newest message of the conversation in the store."""
        self._session = session
        self._stores = session.stores
        self._clock = clock
        self._has_begun = False
        """Whether a turn has begun. What comes before the first turn is stored with it."""
        self._lacks_conversation = False
        """Whether the session was stored before its first turn, and so without a conversation."""
        self._is_behind = False
        """Whether another session has stored messages in this conversation that are not in the transcript."""
        self._has_moved = False
        """Whether the conversation was deleted elsewhere, and another has taken its place."""
        self._brought = 0
        """How many messages were brought from elsewhere."""

    @property
    def conversation_id(self) -> str:
        return self._session.record.conversation_id

    def take_moved(self) -> bool:
        """Whether the conversation has been replaced since this was last asked."""
        moved, self._has_moved = self._has_moved, False
        return moved

    # Reading.

    async def has(self, conversation_id: str) -> bool:
        return await self._stores.conversations.get(conversation_id, self._session.record.user) is not None

    async def load(self, conversation_id: str | None = None) -> bool:
        """Reads the conversation, or moves on to another of this user; False if there is none."""
        if conversation_id is not None:
            if not await self.has(conversation_id):
                return False
            self._session.move_to(conversation_id)
            self.transcript.entries.clear()
        await self._read()
        if conversation_id is not None and self._session.is_stored:
            self._session.settle(self.last_seq, is_answering=False)
            await self._session.save()
        return True

    async def read_turns_of_others(self) -> bool:
        """Reads the turns that other sessions have added, unless there is something that is not stored yet. Returns
        whether there were any."""
        before = self.last_seq
        if any(not entry.seq for entry in self.transcript):
            return False
        await self._read()
        if self.last_seq == before:
            return False
        if self._session.is_stored:
            self._session.settle(self.last_seq, is_answering=False)
            await self._session.save()
        return True

    async def read(self, conversation_id: str, first_seq: int) -> list[Message]:
        """The messages of a conversation from that number on."""
        turns = await self._stores.conversations.turns(conversation_id, first_seq - 1)
        return [entry.message for entry in _entries_of(turns) if not is_blank(entry.message)]

    async def restore(self) -> Unfinished | None:
        """Reads what another process has left: the conversation, and the turn that was under way."""
        await self._read()
        self._has_begun = True
        state = self._session.state
        self._lacks_conversation = not self.transcript.entries and state.settled_seq == 0
        since = [entry for entry in self.transcript if entry.seq > state.settled_seq]
        if not state.is_answering or not since:
            return None
        asked = next((entry for entry in since if isinstance(entry.message, UserMessage)), None)
        if asked is None:
            # The turn began with a button, so it is a turn of its own, apart from that of the user before it.
            for entry in since:
                entry.turn = f"r{since[0].seq}"
        turn = since[0].turn if asked is None else asked.turn
        # Later turns are those of other sessions in this conversation.
        own = [entry.message for entry in since if entry.turn == turn]
        question = "" if asked is None else _words_of(asked.message)
        ran, answer = tuple(_runs_in(own)), self.transcript.answer_entry(turn)
        if answer is not None and is_blank(answer.message):
            answer = None
        if not (question or ran or answer is not None):
            return None
        is_newest = all(entry.turn == turn for entry in since if isinstance(entry.message, UserMessage))
        return Unfinished(turn, question, ran, answer, is_newest)

    # Writing.

    def begin_turn(self, turn: str, *, spoken: bool, continues: str | None = None) -> None:
        """A turn of the user begins. The place of its words is kept until they are known."""
        self._has_begun = True
        if continues is not None:
            self.transcript.continue_as(continues, turn)
        if spoken and self.transcript.user_entry(turn) is None:
            self.transcript.set_user(turn, "", spoken=True, at_ms=self._clock.now_ms())

    def bring(self, message: Message) -> str:
        """Adds what was said elsewhere before the next turn, with which it is stored. Returns the id of its turn."""
        self._brought += 1
        entry = Entry(f"b{self._brought}", message, at_ms=self._clock.now_ms())
        return self.transcript.add(entry).turn

    async def forget(self, turn: str, *, of_user: bool) -> bool:
        """Removes the user's words in a turn, or the words of the answer to it. False if there are none."""
        entry = self.transcript.user_entry(turn) if of_user else self.transcript.answer_entry(turn)
        if entry is None or is_blank(entry.message):
            return False
        await self._replace(entry, UserMessage("") if of_user else AssistantMessage(""))
        return True

    async def forget_run(self, name: str, args: Any) -> bool:
        """Removes the newest call of a tool with these arguments, and its result. False if there is none."""
        made = [(entry, call) for entry in self.transcript for call in getattr(entry.message, "calls", ())]
        found = next((each for each in reversed(made) if (each[1].name, each[1].args) == (name, args)), None)
        if found is None:
            return False
        entry, call = found
        assert isinstance(entry.message, AssistantMessage)
        rest = tuple(each for each in entry.message.calls if each is not call)
        await self._replace(entry, AssistantMessage(entry.message.text, rest))
        for each in list(self.transcript):
            if isinstance(each.message, ToolMessage) and each.message.call_id == call.id:
                await self._replace(each, AssistantMessage(""))
        return True

    async def _replace(self, entry: Entry, message: Message) -> None:
        """Changes a message. A stored one of which nothing is left becomes a blank: numbers are not used again."""
        if is_blank(message) and not entry.seq:
            self.transcript.entries.remove(entry)
            return
        before, entry.message = entry.message, message
        async with self._undoing(entry, before):
            if entry.seq:
                await self._amend(entry, ())

    async def store_user(self, turn: str, text: str, *, spoken: bool, sent: SentMessages = ()) -> bool:
        """Stores the user's words and the messages about them. Returns whether the transcript has got turns of other
        sessions by this, which a model with a context of its own does not know."""
        before = _message_of(self.transcript.user_entry(turn))
        entry = self.transcript.set_user(turn, text, spoken=spoken, at_ms=self._clock.now_ms())
        async with self._undoing(entry, before):
            await self._store(entry, sent)
        if not self._is_behind:
            return False
        await self._read()
        return True

    async def store_runs(self, turn: str, answers: Sequence[ToolAnswer], outbox: Outbox) -> None:
        """Calls and their results together: the transcript never has a call without a result."""
        self._has_begun = True
        now_ms = self._clock.now_ms()
        messages = messages_of("", answers, key=str(len(self.transcript.entries)))
        first, *_ = [self.transcript.add(Entry(turn, message, at_ms=now_ms)) for message in messages]
        async with self._undoing(first):
            with outbox.saving() as sent:
                await self._store(first, sent)

    async def store_answer(self, turn: str, text: str, *, spoken: bool, sent: SentMessages = ()) -> None:
        """Stores the answer to a turn and the messages about it. A second answer to a turn replaces the first."""
        before = _message_of(self.transcript.answer_entry(turn))
        if not text and before is None:
            await self._session.tell(sent)
            return
        entry = self.transcript.set_answer(turn, text, spoken=spoken, at_ms=self._clock.now_ms())
        async with self._undoing(entry, before):
            await self._store(entry, sent)

    def has_stored(self, turn: str) -> bool:
        """Whether anything of a turn is stored."""
        return any(entry.turn == turn and entry.seq for entry in self.transcript)

    async def save(self, *, is_settled: bool) -> None:
        """Stores the record of the session. If all turns `is_settled`, none of them is restored by another process."""
        if is_settled:
            self._session.settle(self.last_seq, is_answering=False)
        self._session.extend_handle()
        await self._session.save()

    async def clear(self) -> None:
        """Forgets the conversation and the messages about it."""
        self.transcript.entries.clear()
        if self._session.is_stored:
            await self._stores.conversations.clear(self.conversation_id, self._session.fence)

    @asynccontextmanager
    async def _undoing(self, entry: Entry, before: Message | None = None) -> AsyncIterator[None]:
        """If this block cannot store the entry, it is as it was before, and nothing of its turn waits to be stored."""
        try:
            yield
        except BaseException:
            if entry.seq and before is not None:
                entry.message = before
            self.transcript.entries = [each for each in self.transcript if each.seq or each.turn != entry.turn]
            raise

    async def _store(self, entry: Entry, sent: SentMessages) -> None:
        """Stores everything that is not stored yet, or the entry again if it is, with the messages about it."""
        if not self._has_begun:
            return
        if entry.seq:
            await self._amend(entry, sent)
            return
        if not self._session.is_stored or self._lacks_conversation:
            await self._begin()
        entries = self._unstored()
        earlier = [each for each in entries if each.turn != entry.turn]
        if earlier:
            self._count(await self._append(earlier))
        own = [each for each in entries if each.turn == entry.turn]
        begins_turn = not self.has_stored(entry.turn)
        if begins_turn:
            # With the record of the session, another process knows which turn is under way.
            self._session.settle(self.last_seq, is_answering=True)
            self._session.extend_handle()
        try:
            numbers = await self._append(own, sent, with_record=begins_turn)
        except ConversationGone:
            numbers = await self._move(entry.turn, sent)
        self._count(numbers)

    def _unstored(self) -> list[Entry]:
        """What is to be stored; of an answer of which nothing was heard, nothing is."""
        waiting = [entry for entry in self.transcript if not entry.seq]
        return [each for each in waiting if isinstance(each.message, UserMessage) or not is_blank(each.message)]

    async def _append(
        self, entries: Sequence[Entry], sent: SentMessages = (), *, with_record: bool = False
    ) -> Sequence[int]:
        numbers = await self._stores.conversations.append_many(
            self.conversation_id,
            [_stored_form(entry) for entry in entries],
            self._session.fence,
            sent=sent,
            record=self._session.record if with_record else None,
        )
        for entry, number in zip(entries, numbers, strict=True):
            entry.seq = number
        self._stores.changes.announce(Topic.CONVERSATIONS)
        return numbers

    def _count(self, numbers: Sequence[int]) -> None:
        """Notes the numbers of messages that were stored. A gap before them is the work of another session."""
        self._is_behind |= numbers[0] > self.last_seq + 1
        self.last_seq = numbers[-1]

    async def _amend(self, entry: Entry, sent: SentMessages) -> None:
        turn = _stored_form(entry)
        conversations = self._stores.conversations
        if not await conversations.amend(self.conversation_id, entry.seq, turn, self._session.fence, sent=sent):
            # It is gone, with its conversation or without.
            if isinstance(entry.message, AssistantMessage):
                await self._session.tell(sent)
            else:
                entry.seq = 0
                await self._store(entry, sent)

    async def _begin(self) -> None:
        record = self._session.record
        if await self._stores.conversations.get(record.conversation_id, record.user) is None:
            await self._create(record.conversation_id, self._title())
        await self.begin_session()
        self._lacks_conversation = False

    async def begin_session(self) -> None:
        """Stores the record of the session, if it is not stored yet. Its conversation is stored with the first turn."""
        if not self._session.is_stored:
            self._lacks_conversation = self.last_seq == 0
            self._session.settle(self.last_seq, is_answering=False)
            await self._session.begin()

    async def _create(self, conversation_id: str, title: str) -> None:
        now_ms = self._clock.now_ms()
        conversation = Conversation(conversation_id, self._session.record.user, title[:TITLE_CHARS], now_ms, now_ms)
        await self._stores.conversations.create(conversation)

    def _title(self, turn: str | None = None) -> str:
        """The user's words of this turn or of the newest; if they are not known, those of the answer."""
        turn = turn or self.transcript.entries[-1].turn
        own = [_words_of(entry.message) for entry in self.transcript if entry.turn == turn]
        return next(filter(None, own), "")

    async def _move(self, turn: str, sent: SentMessages) -> Sequence[int]:
        """The conversation was deleted elsewhere: the turn under way goes on in a new one, and nothing else does."""
        self._session.move_to(uuid4().hex)
        self.transcript.entries = [entry for entry in self.transcript if entry.turn == turn]
        for entry in self.transcript:
            entry.seq = 0
        await self._create(self.conversation_id, self._title(turn))
        self.last_seq = 0
        self._session.settle(0, is_answering=True)
        self._has_moved = True
        return await self._append(self._unstored(), sent, with_record=True)

    async def _read(self) -> None:
        """Reads the whole conversation anew. Entries that are in the transcript already keep the ids of their turns."""
        known = {entry.seq: entry.turn for entry in self.transcript if entry.seq}
        stored = await self._stores.conversations.turns(self.conversation_id)
        entries = _entries_of(stored)
        for entry in entries:
            entry.turn = known.get(entry.seq, entry.turn)
        self.transcript.entries = entries
        self.last_seq = stored[-1].seq if stored else 0
        self._is_behind = False


def _entries_of(turns: Sequence[StoredTurn]) -> list[Entry]:
    """Each message of the user begins a turn."""
    entries, turn = list[Entry](), "r0"
    for stored in turns:
        message: Message = msgspec.json.decode(stored.body, type=Message)
        if isinstance(message, UserMessage):
            turn = f"r{stored.seq}"
        entries.append(Entry(turn, message, stored.spoken, stored.at_ms, stored.seq))
    return entries


def _stored_form(entry: Entry) -> Turn:
    match entry.message:
        case UserMessage():
            role = "user"
        case AssistantMessage():
            role = "assistant"
        case _:
            role = "tool"
    return Turn(role, _words_of(entry.message), entry.spoken, entry.at_ms, msgspec.json.encode(entry.message))  # type: ignore[arg-type]


def _message_of(entry: Entry | None) -> Message | None:
    return None if entry is None else entry.message


def _words_of(message: Message) -> str:
    return "" if isinstance(message, ToolMessage) else message.text


def _runs_in(messages: Sequence[Message]) -> Iterator[ToolAnswer]:
    """The calls of a turn with their results."""
    made = {call.id: call for each in messages if isinstance(each, AssistantMessage) for call in each.calls}
    for message in messages:
        if isinstance(message, ToolMessage) and (call := made.get(message.call_id)) is not None:
            called = ToolCall(call.id, call.name, call.args, extra=call.extra)
            yield ToolAnswer(called, message.content, message.spoken, message.ok)
