"""The sessions of one process: begun, resumed, parked, taken over, ended.

A session that comes back to the process that has it goes on as if nothing had been. Elsewhere, or later, it is restored
from the store, and whoever had it before is fenced. Then what was stored is repeated, and `history` tells what was
said, since the client may have seen less than was stored, or more. An answer that was stored is spoken as far as the
client does not have it. One that was not is made anew, with what was done for it: for the gate its turn has the same
number, so that it recalls what was done instead of doing it again. The first chunk of the new answer `is_first`. A
client that puts `history` in the place of all that it shows, a half answer included, shows nothing twice. Calls that
wait for the person are asked about once more, since no token is stored. What came of calls that the earlier process has
left running is told as soon as it is known, or known to be unknown.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from antiphon.clock import Clock
from antiphon.prompts.composer import Composer
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.closing import FULL, INTERNAL, TAKEN_OVER, Close
from antiphon.protocol.errors import ErrorCode
from antiphon.session.live import Live as Live
from antiphon.session.models import ModelFactories
from antiphon.session.outbox import Link, Outbox
from antiphon.session.restoring import restore
from antiphon.session.runner import UNKNOWN_CONVERSATION, Runner
from antiphon.session.speaking import Synthesize
from antiphon.session.state import BUSY
from antiphon.session.stored_session import FIRST_LEASE, HANDLE_MS, LEASE_MS, StoredSession, Stores, new_record
from antiphon.storage.base import STORE_UNAVAILABLE, StorageError, StoreUnavailable
from antiphon.storage.sessions import Fenced, SessionRecord
from antiphon.telemetry.log import get_logger
from antiphon.tools.executor import Executor
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, UserMessage

RENEW_S: Final = LEASE_MS / 1000 / 3
LEFT_S: Final = 4.0
"""How long a visit waits for a call that an earlier one has left running: until it is known whether anybody runs it."""
STORE_CLOSE: Final = msgspec.structs.replace(FULL, reason="the server cannot reach its database; try again later")
STORE_ERROR: Final = s.Error(STORE_UNAVAILABLE, ErrorCode.UNAVAILABLE, retryable=True)
RESUME_REJECTED: Final = "This session could not be resumed: its handle is unknown, used or expired."

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Handles:
    """How the handles of sessions are made and known; only their hashes are kept."""

    new: Callable[[], str]
    hash: Callable[[str], str]


@dataclass(slots=True)
class Hub:
    executor: Executor
    stores: Stores
    factories: ModelFactories
    handles: Handles
    clock: Clock
    owner: str
    """Names this process in leases."""
    zone: ZoneInfo
    synthesize: Synthesize | None = None
    """Speaks a text beside the conversation; None if this server cannot speak."""
    composer: Composer = field(default_factory=Composer)
    sessions: dict[str, Live] = field(default_factory=dict)
    _renewing: asyncio.Task[None] | None = None
    _leaving: tuple[str, float] | None = None
    """Why this process is about to stop, and when, by the monotonic clock."""

    @property
    def has_voice(self) -> bool:
        return Mode.VOICE in self.factories

    async def enter(self, user: str, hello: c.Hello, link: Link, *, authenticated: bool = False) -> Live:
        """A client is there: its session, resumed if it can be, told of itself."""
        self._renewing = self._renewing or asyncio.create_task(self._renew())
        if hello.resume is not None:
            live = await self._resume(user, hello, link, authenticated=authenticated)
            if live is not None:
                return live
        mode = Mode.TEXT if hello.mode is c.Mode.TEXT or not self.has_voice else Mode.VOICE
        handle = self.handles.new()
        record = new_record(user, self.owner, self.handles.hash(handle), self.clock.now_ms(), mode)
        live = self._make(record, handle, Outbox(), stored=False, authenticated=authenticated)
        self._start(live)
        outbox = live.runner.outbox
        outbox.attach(link, hello.audio)
        outbox.send(s.StateChanged(s.State.IDLE))
        if hello.resume is not None:
            outbox.send(s.Error(RESUME_REJECTED, "resume_rejected"))
            outbox.send(s.Notice(s.NoticeKind.WARNING, "Could not resume; this is a new session.", "new_session"))
        try:
            await self._greet(live, hello)
        except BaseException:
            self._forget(live)
            raise
        return live

    async def visit(
        self, user: str, conversation_id: str | None, link: Link, *, authenticated: bool = False
    ) -> Live | None:
        """A client that comes for one message only; None if it has no such conversation.

        All visits to a conversation are one session, which has the conversation's own id: whichever process the next
        one comes to knows what waits for a yes. The store keeps it; `depart` takes it out of memory again.
        """
        record = await self._visited(user, conversation_id)
        if record is None:
            return None
        stored = record.lease_token > FIRST_LEASE
        live = self._make(record, "", Outbox(keeps=False), stored=stored, authenticated=authenticated)
        self._start(live)
        live.runner.outbox.attach(link, c.AudioForm.JSON)
        try:
            await live.runner.writer.load()
            if stored:
                await self._tell_left(live.runner.tools)
        except BaseException:
            await self.depart(live)
            raise
        return live

    async def _tell_left(self, tools: ToolSession) -> None:
        """What an earlier visit has left running is told by this one, unless it still runs."""
        await self.executor.find_left(tools)
        for record in list(tools.left.values()):
            left = await self.executor.await_left(record, tools, patience_s=LEFT_S)
            if left is not None:
                tools.unheard.append(left)

    async def depart(self, live: Live) -> None:
        """The end of a visit. What is under way is given up; what was done is stored."""
        self._forget(live)
        if live.task is not None:
            await asyncio.wait([live.task])

    def is_busy(self, conversation_id: str) -> bool:
        """Whether a session of this process is making an answer in this conversation."""
        return any(
            live.runner.conversation_id == conversation_id and live.runner.state.phase in BUSY
            for live in self.sessions.values()
        )

    def leave(self, live: Live, link: Link, *, for_good: bool) -> None:
        """A socket is gone. Without a goodbye, its session waits for it to come back."""
        if not live.runner.outbox.detach(link) or self.sessions.get(live.id) is not live:
            return
        if for_good:
            live.runner.post(lambda: self._end(live))
            return
        live.runner.post(live.runner.save)
        live.park(lambda: self._retire(live))

    async def drain(self, time_left_s: float, reason: str) -> None:
        """Tells every client to come back, and lets each session come to the end of its turn."""
        sessions = list(self.sessions.values())
        self._leaving = (reason, self.clock.monotonic() + time_left_s)
        for live in sessions:
            self._tell_leaving(live)
        with suppress(TimeoutError):
            async with asyncio.timeout(time_left_s):
                await asyncio.gather(*(live.settle() for live in sessions), return_exceptions=True)
        # Answers that take longer are made anew elsewhere. What was said of them is stored, so that it is numbered on.
        unsaved = [live.runner.stored.save_messages(live.runner.outbox) for live in self.sessions.values()]
        await asyncio.gather(*unsaved, return_exceptions=True)

    async def aclose(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
        for live in self.sessions.values():
            live.stop()
        tasks = [self._renewing, *(live.task for live in self.sessions.values())]
        await asyncio.gather(*(task for task in tasks if task is not None), return_exceptions=True)

    # Beginning.

    def _make(self, record: SessionRecord, handle: str, outbox: Outbox, *, stored: bool, authenticated: bool) -> Live:
        tools = ToolSession(
            record.id,
            record.user,
            self.executor.registry.snapshot(),
            mode=Mode(record.mode) if self.has_voice else Mode.TEXT,
            authenticated=authenticated,
            turn=record.turn,
            pinned_version=record.tools_version,
            zone=self.zone,
        )
        runner = Runner(
            stored=StoredSession(self.stores, self.clock, record, is_stored=stored),
            outbox=outbox,
            tools=tools,
            executor=self.executor,
            factories=self.factories,
            clock=self.clock,
            composer=self.composer,
            synthesize=self.synthesize,
        )
        live = Live(runner, record.user, handle, record.handle_hash, record.previous_handle_hash)
        runner.introduce = lambda: live.introduce(resumed=True)
        return live

    def _start(self, live: Live) -> None:
        live.task = asyncio.create_task(self._run(live))
        if live.id in self.sessions:
            # Another process had it in the meantime, and it has come back before this one noticed.
            self._forget(self.sessions[live.id], TAKEN_OVER)
        self.sessions[live.id] = live

    def _tell_leaving(self, live: Live) -> None:
        if self._leaving is not None:
            reason, at_s = self._leaving
            left_ms = max(0, int((at_s - self.clock.monotonic()) * 1000))
            live.runner.outbox.send(s.GoAway(left_ms, reason, live.handle or None), once=True)

    async def _greet(self, live: Live, hello: c.Hello) -> None:
        writer = live.runner.writer
        if hello.conversation_id is not None and not await writer.load(hello.conversation_id):
            live.runner.outbox.send(UNKNOWN_CONVERSATION)
        for brought in hello.initial_messages:
            made = UserMessage if brought.role is c.Role.USER else AssistantMessage
            writer.bring(made(brought.content))
        live.introduce(resumed=False)
        if writer.transcript.entries:
            live.runner.tell_history()
        self._tell_leaving(live)

    # Coming back.

    async def _visited(self, user: str, conversation_id: str | None) -> SessionRecord | None:
        now_ms = self.clock.now_ms()
        fresh = new_record(user, self.owner, self.handles.hash(self.handles.new()), now_ms)
        if conversation_id is None:
            return msgspec.structs.replace(fresh, id=fresh.conversation_id)
        if await self.stores.conversations.get(conversation_id, user) is None:
            return None
        try:
            return await self.stores.sessions.take_lease(conversation_id, self.owner, now_ms, now_ms + LEASE_MS)
        except Fenced:
            return msgspec.structs.replace(fresh, id=conversation_id, conversation_id=conversation_id)

    async def _resume(self, user: str, hello: c.Hello, link: Link, *, authenticated: bool) -> Live | None:
        last_n = hello.last_n or 0
        live = await self._find(user, hello, authenticated=authenticated)
        if live is None:
            return None
        outbox = live.runner.outbox
        await outbox.is_released()
        # No waiting from here on: nothing is said in between, and whoever closes the socket finds the session.
        before, said_before = outbox.attach(link, hello.audio), outbox.last_n
        if before is not None:
            before.close(TAKEN_OVER)
        live.introduce(resumed=True)
        outbox.replay(last_n, said_before)
        if outbox.lacks(last_n):
            live.runner.tell_history()
        if not live.runner.is_restoring:
            outbox.send(s.StateChanged(s.State(live.runner.state.phase)))
        live.runner.come_back(last_n)
        self._tell_leaving(live)
        return live

    async def _find(self, user: str, hello: c.Hello, *, authenticated: bool) -> Live | None:
        """The session of the client's handle, which gives way to a new one."""
        assert hello.resume is not None
        used, handle = self.handles.hash(hello.resume), self.handles.new()
        now_ms, sessions = self.clock.now_ms(), self.stores.sessions
        live = next((each for each in self.sessions.values() if each.opens_with(used) and each.user == user), None)
        if live is None:
            record = await sessions.rotate(used, self.handles.hash(handle), user, now_ms, now_ms + HANDLE_MS)
        else:
            record = await self._rename(live, used, handle)
            if live.runner.stored.holds(record) and self.sessions.get(live.id) is live:
                return live
            # It has gone on elsewhere, from where it is taken now.
            self._forget(live, TAKEN_OVER)
        if record is None:
            return None
        try:
            record = await sessions.take_lease(record.id, self.owner, now_ms, now_ms + LEASE_MS)
            return await self._restore(record, handle, hello.last_n or 0, authenticated=authenticated)
        except Fenced:
            return None

    async def _rename(self, live: Live, used: str, handle: str) -> SessionRecord | None:
        """A session in memory, no longer parked, gets another handle: its record, if the handle is still good."""
        live.unpark()
        live.handle, live.handle_hash, live.previous_hash = handle, self.handles.hash(handle), used
        try:
            return await live.runner.stored.rename(used, live.handle_hash)
        except BaseException:
            if live.runner.outbox.link is None:
                live.park(lambda: self._retire(live))
            raise

    async def _restore(self, record: SessionRecord, handle: str, seen_n: int, *, authenticated: bool) -> Live:
        live = self._make(record, handle, Outbox(), stored=True, authenticated=authenticated)
        tools = live.runner.tools
        await self.executor.find_left(tools)
        # A letter, since the question is to come after the history, and before the turn that is taken up.
        live.runner.post(lambda: self.executor.confirm_again(tools))
        await restore(live.runner, record, await self.stores.messages.after(record.id, 0), seen_n)
        self._start(live)
        return live

    # Going on, and ending.

    async def _run(self, live: Live) -> None:
        try:
            await live.runner.run()
        except Fenced:
            log.info("session_taken_over", session=live.id)
            self._forget(live, TAKEN_OVER)
        except StoreUnavailable as error:
            log.error("session_failed", session=live.id, error=str(error))
            self.expel(live, STORE_ERROR, STORE_CLOSE)
        except Exception:
            log.exception("session_failed", session=live.id)
            self._forget(live, INTERNAL)

    async def _retire(self, live: Live) -> None:
        """Nobody came back in time, unless somebody does at this moment. The store has the session from now on."""
        await live.runner.hang_up()
        await live.runner.save()
        if live.parking is not None:
            self._finish(live)

    async def _end(self, live: Live) -> None:
        try:
            await live.runner.hang_up()
            await live.runner.stored.end()
        finally:
            self._finish(live)

    def _finish(self, live: Live) -> None:
        """To be called by a letter of the session itself, whose task ends after it."""
        self._remove(live)
        live.unpark()
        live.runner.end()

    def _forget(self, live: Live, close: Close | None = None) -> None:
        self._remove(live)
        live.stop(close)

    def _remove(self, live: Live) -> None:
        """Another one may have taken its place already."""
        if self.sessions.get(live.id) is live:
            del self.sessions[live.id]

    def expel(self, live: Live, error: s.Error, close: Close) -> None:
        """Stops a session at once and tells its client why. The store still has it."""
        live.runner.outbox.send(error, once=True)
        self._forget(live, close)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            for live in list(self.sessions.values()):
                try:
                    is_ours = await live.runner.stored.renew()
                except StorageError as error:
                    log.warning("lease_not_renewed", session=live.id, error=str(error))
                    continue
                if not is_ours:
                    self._forget(live, TAKEN_OVER)
