"""The record of a session in the store: its lease, its handle and its state. Every write shows the session's lease."""

import asyncio
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import msgspec

from antiphon.clock import Clock
from antiphon.session.outbox import Outbox
from antiphon.session.resume_state import ResumeState
from antiphon.storage.changes import Changes
from antiphon.storage.conversations import ConversationStore, VoiceCallStore
from antiphon.storage.people import BlockStore
from antiphon.storage.sessions import Fence, MessageStore, SentMessages, SessionRecord, SessionStore

LEASE_MS: Final = 60_000
REQUEST_LEASE_MS: Final = 10_000
"""How long the lease of a request holds. It is short: if the process dies, the conversation is busy until it ends."""
FIRST_LEASE: Final = 1
HANDLE_MS: Final = 2 * 60 * 60 * 1000
"""How long after its last use a handle is valid, unless the settings say otherwise."""


@dataclass(frozen=True, slots=True)
class Stores:
    conversations: ConversationStore
    sessions: SessionStore
    messages: MessageStore
    blocks: BlockStore
    voice_calls: VoiceCallStore
    changes: Changes


class StoredSession:
    """Nothing durable is written before the first turn: a client that only looks leaves no trace."""

    def __init__(
        self,
        stores: Stores,
        clock: Clock,
        record: SessionRecord,
        *,
        is_stored: bool = False,
        handle_ms: int = HANDLE_MS,
    ) -> None:
        self.stores = stores
        self.record = record
        self.handle_ms = handle_ms
        """How long after its last use the handle is valid."""
        self.is_stored = is_stored
        self._clock = clock
        self._lease_ms = record.lease_until_ms - record.updated_ms
        """How long the lease holds if it is not renewed: as long as the one that the session begins with here."""
        self._leasing = asyncio.Lock()
        """Held while the lease is written, so that it is not renewed after it was released."""
        self._is_released = False
        self._naming = asyncio.Lock()
        """Held while the handle is written: a client may come back in the moment when the session is first stored."""

    @property
    def fence(self) -> Fence:
        return Fence(self.record.id, self.record.lease_token)

    @property
    def state(self) -> ResumeState:
        return msgspec.json.decode(self.record.state, type=ResumeState)

    def holds(self, record: SessionRecord | None) -> bool:
        """Whether this process still runs the session, according to its newest record."""
        return record is not None and record.lease_token == self.record.lease_token

    def move_to(self, conversation_id: str) -> None:
        self._change(conversation_id=conversation_id)

    def describe(self, *, mode: str, turn: int, tools_version: str, state: ResumeState) -> None:
        """What another process needs to go on. It is stored by `save`, and with the first message of a turn."""
        before = self.state
        state.settled_seq, state.is_answering = before.settled_seq, before.is_answering
        self._change(mode=mode, turn=turn, tools_version=tools_version, state=msgspec.json.encode(state))

    def settle(self, last_seq: int, *, is_answering: bool) -> None:
        """All turns up to this message are over. `is_answering`: the next one begins."""
        state = self.state
        state.settled_seq, state.is_answering = last_seq, is_answering
        self._change(state=msgspec.json.encode(state))

    def extend_handle(self) -> None:
        """The handle of a session that is in use does not expire."""
        now_ms = self._clock.now_ms()
        self._change(handle_expires_ms=now_ms + self.handle_ms, updated_ms=now_ms)

    async def begin(self) -> None:
        """Stores the record for the first time."""
        async with self._naming:
            # The client may have been connected for long.
            self._change(lease_until_ms=self._clock.now_ms() + self._lease_ms)
            await self.stores.sessions.begin(self.record)
            self.is_stored = True

    async def save(self) -> None:
        if self.is_stored:
            await self.stores.sessions.save(self.record)

    async def save_messages(self, outbox: Outbox) -> None:
        """Stores what the client was sent and the store does not have yet."""
        if self.is_stored:
            with outbox.saving() as sent:
                await self.tell(sent)

    async def tell(self, sent: SentMessages) -> None:
        """Stores what the client is told."""
        if sent and self.is_stored:
            await self.stores.messages.append_many(self.record.id, sent, self.record.lease_token)

    async def rename(self, used_hash: str, handle_hash: str) -> SessionRecord | None:
        """The new handle takes the place of the one that was used: the record of the session that it leads to.

        None if the handle that was used is not valid any more.
        """
        async with self._naming:
            record: SessionRecord | None = self.record
            if self.is_stored:
                now_ms, user = self._clock.now_ms(), self.record.user
                expires_ms = now_ms + self.handle_ms
                record = await self.stores.sessions.rotate(used_hash, handle_hash, user, now_ms, expires_ms)
            self._change(handle_hash=handle_hash, previous_handle_hash=used_hash)
        return record

    async def settle_handle(self) -> None:
        """The client has received its newest handle."""
        async with self._naming:
            if self.is_stored:
                await self.stores.sessions.settle_handle(self.record.id, self.record.lease_token)
            self._change(previous_handle_hash=None)

    async def renew(self) -> bool:
        """Whether this process still has the session. The handle of a session that is held does not expire."""
        now_ms = self._clock.now_ms()
        async with self._leasing:
            if not self.is_stored or self._is_released:
                return True
            if not await self.stores.sessions.renew(self.record.id, self.record.lease_token, now_ms + self._lease_ms):
                return False
        if self.record.handle_expires_ms - now_ms < self.handle_ms // 2:
            self._change(handle_expires_ms=now_ms + self.handle_ms)
            await self.stores.sessions.save(self.record)
        return True

    async def release(self) -> None:
        """Any process may claim the session from now on."""
        async with self._leasing:
            self._is_released = True
            if self.is_stored:
                await self.stores.sessions.renew(self.record.id, self.record.lease_token, 0)

    async def end(self) -> None:
        if self.is_stored:
            await self.stores.sessions.end(self.record.id, self.record.lease_token)

    def _change(self, **fields: Any) -> None:
        self.record = msgspec.structs.replace(self.record, **fields)


def new_record(
    user: str, owner: str, handle_hash: str, *, now_ms: int, handle_ms: int, lease_ms: int, mode: str = "text"
) -> SessionRecord:
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
        handle_expires_ms=now_ms + handle_ms,
        lease_owner=owner,
        lease_token=FIRST_LEASE,
        lease_until_ms=now_ms + lease_ms,
        updated_ms=now_ms,
    )
