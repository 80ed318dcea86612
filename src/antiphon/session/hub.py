"""The sessions of one process: how they begin, are resumed, parked and taken over, and end.

A session whose client comes back to the same process goes on as if nothing had happened. In another process, or
later, it is restored from the store, and the process that had it before is fenced. The client is then sent what it
had missed and the history, since it may have seen less than was stored, or more. An answer that was stored is spoken
as far as the client has not heard it. A turn without an answer is answered now, with the calls that were already run
for it: it keeps its number for the gate, so that calls are recalled instead of run again. A client that replaces
everything it shows, half an answer included, with the history shows nothing twice. Calls that wait for approval are
asked about again, since no token is stored. The outcome of calls that the earlier process left running is told as
soon as it is known, or known to be lost.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from antiphon.clock import Clock
from antiphon.errors import AntiphonError
from antiphon.prompts.composer import Composer
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.closing import FULL, INTERNAL, TAKEN_OVER, Close
from antiphon.protocol.errors import ErrorCode
from antiphon.session.active import ActiveSession as ActiveSession
from antiphon.session.call_summaries import CallSummaries
from antiphon.session.commands import UNKNOWN_CONVERSATION
from antiphon.session.event_log import EventLog
from antiphon.session.hooks import HookQueue, SessionHooks
from antiphon.session.models import SharedModels
from antiphon.session.outbox import Link, Outbox
from antiphon.session.recording import CallRecording, Recordings
from antiphon.session.restoring import restore
from antiphon.session.resume_state import ResumeState
from antiphon.session.runner import Runner
from antiphon.session.speaking import Synthesize
from antiphon.session.state import BUSY
from antiphon.session.stored_session import (
    FIRST_LEASE,
    HANDLE_MS,
    LEASE_MS,
    REQUEST_LEASE_MS,
    StoredSession,
    Stores,
    new_record,
)
from antiphon.storage.base import STORE_UNAVAILABLE, StorageError, StoreUnavailable
from antiphon.storage.sessions import Fenced, SessionRecord
from antiphon.telemetry.log import get_logger
from antiphon.tools.executor import Executor
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, UserMessage

RENEW_S: Final = LEASE_MS / 1000 / 3
RENEW_REQUESTS_S: Final = REQUEST_LEASE_MS / 1000 / 3
LEFT_S: Final = 4.0
"""How long a request waits for a call that an earlier one left running: by then it is known whether it still runs."""
STORE_CLOSE: Final = msgspec.structs.replace(FULL, reason="the server cannot reach its database; try again later")
STORE_ERROR: Final = s.Error(STORE_UNAVAILABLE, ErrorCode.UNAVAILABLE, retryable=True)
RESUME_REJECTED: Final = "This session could not be resumed: its handle is unknown, used or expired."

log = get_logger(__name__)


class ConversationBusy(AntiphonError):
    """The last message of the conversation is still being answered, in this process or in another."""

    code = "busy"


@dataclass(frozen=True, slots=True)
class Handles:
    """Makes and hashes the handles of sessions. Only hashes are kept."""

    new: Callable[[], str]
    hash: Callable[[str], str]
    valid_ms: int = HANDLE_MS
    """How long after its last use a handle is valid."""


@dataclass(slots=True)
class Hub:
    executor: Executor
    stores: Stores
    models: SharedModels
    handles: Handles
    clock: Clock
    owner: str
    """The name of this process in leases."""
    zone: ZoneInfo
    synthesize: Synthesize | None = None
    """Speaks a text outside the conversation; None if this server cannot speak."""
    summaries: CallSummaries | None = None
    """Has a model summarise calls after they have ended; None for extractive summaries."""
    events: EventLog | None = None
    """Stores latencies and changes of the model for the operator; None if nobody reads them."""
    recordings: Recordings | None = None
    """Records calls, if the settings say so."""
    composer: Composer = field(default_factory=Composer)
    hooks: HookQueue = field(default_factory=HookQueue)
    sessions: dict[str, ActiveSession] = field(default_factory=dict)
    _renewing: dict[bool, asyncio.Task[None]] = field(default_factory=dict)
    """Renew the leases: True those of requests, which are shorter, False all others."""
    _ending: set[asyncio.Task[None]] = field(default_factory=set)
    """Sessions that are over, and whose models are still being closed."""
    _stopping: tuple[str, float] | None = None
    """The reason for which this process is about to stop, and the time, by the monotonic clock."""

    @property
    def has_voice(self) -> bool:
        return Mode.VOICE in self.models.ladders

    async def attach(self, user: str, hello: c.Hello, link: Link, *, authenticated: bool = False) -> ActiveSession:
        """Gives a client its session, resumed if that is possible, and sends it the `session` message."""
        self._renew_leases(of_requests=False)
        if hello.resume is not None:
            active = await self._resume(user, hello, link, authenticated=authenticated)
            if active is not None:
                return active
        mode = Mode.TEXT if hello.mode is c.Mode.TEXT or not self.has_voice else Mode.VOICE
        handle = self.handles.new()
        record = self._new_record(user, handle, mode, LEASE_MS)
        active = self._make(record, handle, Outbox(), stored=False, authenticated=authenticated)
        self._start(active)
        outbox = active.runner.outbox
        outbox.attach(link, hello.audio, hello.features)
        outbox.send(s.StateChanged(s.State.IDLE))
        if hello.resume is not None:
            outbox.send(s.Error(RESUME_REJECTED, "resume_rejected"))
            outbox.send(s.Notice(s.NoticeKind.WARNING, "Could not resume; this is a new session.", "new_session"))
        try:
            await self._begin(active, hello)
        except BaseException:
            self._drop(active)
            raise
        self._tell_started(active, resumed=False)
        return active

    async def begin_request(
        self, user: str, conversation_id: str | None, link: Link, *, authenticated: bool = False
    ) -> ActiveSession | None:
        """Gives the client of a single request its session; None if it has no such conversation.

        All requests of a conversation share one session, which has the conversation's id, so any process knows which
        calls wait for approval. Its lease is held for the time of one request: raises `ConversationBusy` while another
        process holds it, or makes an answer in this conversation for another client. The store keeps the session;
        `end_request` removes it from memory, and releases the lease. The caller sees to it that there is one request
        of a conversation at a time in this process.
        """
        self._renew_leases(of_requests=True)
        record = await self._record_for_request(user, conversation_id)
        if record is None:
            return None
        stored, resumed = conversation_id is not None, record.lease_token > FIRST_LEASE
        active = self._make(record, "", Outbox(keeps=False), stored=stored, authenticated=authenticated)
        active.is_of_request = True
        self._start(active)
        active.runner.outbox.attach(link, c.AudioForm.JSON)
        try:
            await active.runner.writer.load()
            if resumed:
                await self._take_over_calls(active.runner.tools)
        except BaseException:
            await self.end_request(active)
            raise
        self._tell_started(active, resumed=resumed)
        return active

    async def _take_over_calls(self, tools: ToolSession) -> None:
        """Takes over the outcome of calls that an earlier request left running, unless they still run."""
        await self.executor.find_left(tools)
        for record in list(tools.left.values()):
            left = await self.executor.await_left(record, tools, patience_s=LEFT_S)
            if left is not None:
                tools.unheard.append(left)

    async def end_request(self, active: ActiveSession) -> None:
        """Ends the session of a request. The turn under way is given up; what was done is stored."""
        self._drop(active)
        if active.task is not None:
            await asyncio.wait([active.task])
        try:
            await active.runner.stored.release()
        except StorageError as error:
            # This process may claim the session all the same, and others when the lease is over.
            log.warning("lease_not_released", session=active.id, error=str(error))

    def connected(self, user: str | None = None) -> list[ActiveSession]:
        """Lists the sessions that have a client now, of one user or of all."""
        wanted = [each for each in self.sessions.values() if user is None or each.user == user]
        return [each for each in wanted if each.runner.outbox.link is not None]

    async def is_busy(self, conversation_id: str) -> bool:
        """Whether a session, in this process or in another, is making an answer in this conversation."""
        own = [each for each in self.sessions.values() if each.runner.conversation_id == conversation_id]
        if any(active.runner.state.phase in BUSY for active in own):
            return True
        held = await self.stores.sessions.held_in(conversation_id, self.clock.now_ms())
        others = [record for record in held if record.lease_owner != self.owner]
        return any(msgspec.json.decode(record.state, type=ResumeState).is_busy for record in others)

    def detach(self, active: ActiveSession, link: Link, *, for_good: bool) -> None:
        """The socket of a client has closed. Unless the client has left for good, its session is parked."""
        if not active.runner.outbox.detach(link) or self.sessions.get(active.id) is not active:
            return
        if for_good:
            active.runner.post(lambda: self._end(active))
            return
        active.runner.post(active.runner.save)
        active.park(lambda: self._retire(active))

    async def drain(self, time_left_s: float, reason: str) -> None:
        """Tells every client to reconnect, and waits for the turns under way."""
        sessions = list(self.sessions.values())
        self._stopping = (reason, self.clock.monotonic() + time_left_s)
        for active in sessions:
            self._send_go_away(active)
        with suppress(TimeoutError):
            async with asyncio.timeout(time_left_s):
                await asyncio.gather(*(active.settle() for active in sessions), return_exceptions=True)
        # Answers that take longer are made again elsewhere. What was sent of them is stored, so that numbers continue.
        unsaved = [active.runner.stored.save_messages(active.runner.outbox) for active in self.sessions.values()]
        await asyncio.gather(*unsaved, return_exceptions=True)
        # Others need not wait for the end of the leases to know that this process does not run the sessions any more.
        held = [active.runner.stored for active in self.sessions.values() if not active.is_of_request]
        await asyncio.gather(*(stored.release() for stored in held), return_exceptions=True)

    async def aclose(self) -> None:
        for renewing in self._renewing.values():
            renewing.cancel()
        for active in self.sessions.values():
            active.stop()
        tasks = [*self._renewing.values(), *self._ending, *(active.task for active in self.sessions.values())]
        await asyncio.gather(*(task for task in tasks if task is not None), return_exceptions=True)
        if self.summaries is not None:
            await self.summaries.aclose()
        if self.events is not None:
            await self.events.aclose()

    # Starting.

    def _make(
        self, record: SessionRecord, handle: str, outbox: Outbox, *, stored: bool, authenticated: bool
    ) -> ActiveSession:
        session = StoredSession(self.stores, self.clock, record, is_stored=stored, handle_ms=self.handles.valid_ms)
        if self.events is not None:
            outbox.observe = self.events.observer(session)
        tools = ToolSession(
            record.id,
            record.user,
            self.executor.registry.snapshot(),
            mode=Mode(record.mode) if self.has_voice else Mode.TEXT,
            authenticated=authenticated,
            turn=record.turn,
            pinned_version=record.tools_version,
            conversation=lambda: session.record.conversation_id,
            zone=self.zone,
        )
        runner = Runner(
            stored=session,
            outbox=outbox,
            tools=tools,
            executor=self.executor,
            models=self.models,
            clock=self.clock,
            composer=self.composer,
            hooks=SessionHooks(self.hooks, record.id, record.user, self.clock.now_ms),
            recording=CallRecording(outbox, self.clock, self.recordings),
            synthesize=self.synthesize,
            summaries=self.summaries,
        )
        active = ActiveSession(runner, record.user, handle, record.handle_hash, record.previous_handle_hash)
        runner.introduce = lambda: active.introduce(resumed=True)
        return active

    def _new_record(self, user: str, handle: str, mode: Mode, lease_ms: int) -> SessionRecord:
        return new_record(
            user,
            self.owner,
            self.handles.hash(handle),
            now_ms=self.clock.now_ms(),
            handle_ms=self.handles.valid_ms,
            lease_ms=lease_ms,
            mode=mode,
        )

    def _start(self, active: ActiveSession) -> None:
        active.task = asyncio.create_task(self._run(active))
        if active.id in self.sessions:
            # Another process had the session meanwhile, and it came back before this one noticed.
            self._drop(self.sessions[active.id], TAKEN_OVER)
        self.sessions[active.id] = active

    def _tell_started(self, active: ActiveSession, *, resumed: bool) -> None:
        runner = active.runner
        runner.hooks.start(runner.conversation_id, runner.tools.mode, resumed=resumed, is_request=active.is_of_request)

    def _send_go_away(self, active: ActiveSession) -> None:
        if self._stopping is not None:
            reason, at_s = self._stopping
            left_ms = max(0, int((at_s - self.clock.monotonic()) * 1000))
            active.runner.outbox.send(s.GoAway(left_ms, reason, active.handle or None), once=True)

    async def _begin(self, active: ActiveSession, hello: c.Hello) -> None:
        writer = active.runner.writer
        if hello.conversation_id is not None and not await writer.load(hello.conversation_id):
            active.runner.outbox.send(UNKNOWN_CONVERSATION)
        for brought in hello.initial_messages:
            made = UserMessage if brought.role is c.Role.USER else AssistantMessage
            writer.bring(made(brought.content))
        active.introduce(resumed=False)
        active.runner.calls.recording.tell()
        if writer.transcript.entries:
            active.runner.tell_history()
        self._send_go_away(active)

    # Resuming.

    async def _record_for_request(self, user: str, conversation_id: str | None) -> SessionRecord | None:
        fresh = self._new_record(user, self.handles.new(), Mode.TEXT, REQUEST_LEASE_MS)
        if conversation_id is None:
            return msgspec.structs.replace(fresh, id=fresh.conversation_id)
        if await self.stores.conversations.get(conversation_id, user) is None:
            return None
        wanted = msgspec.structs.replace(fresh, id=conversation_id, conversation_id=conversation_id)
        if await self.is_busy(conversation_id) or (claimed := await self.stores.sessions.claim(wanted)) is None:
            raise ConversationBusy("The last message of this conversation is still being answered.")
        return claimed

    async def _resume(self, user: str, hello: c.Hello, link: Link, *, authenticated: bool) -> ActiveSession | None:
        last_n = hello.last_n or 0
        active = await self._find(user, hello, authenticated=authenticated)
        if active is None:
            return None
        outbox = active.runner.outbox
        await outbox.is_released()
        # No awaiting from here on: nothing is sent in between, and a socket that closes finds its session.
        before, said_before = outbox.attach(link, hello.audio, hello.features), outbox.last_n
        if before is not None:
            before.close(TAKEN_OVER)
        active.introduce(resumed=True)
        active.runner.drop_old_speech()
        outbox.replay(last_n, said_before)
        if outbox.lacks(last_n):
            active.runner.tell_history()
        if not active.runner.is_restoring:
            outbox.send(s.StateChanged(s.State(active.runner.state.phase)))
        # After the replay, whose messages have lower numbers.
        active.runner.calls.recording.tell()
        active.runner.come_back(last_n)
        self._send_go_away(active)
        return active

    async def _find(self, user: str, hello: c.Hello, *, authenticated: bool) -> ActiveSession | None:
        """Finds the session that a handle belongs to, and gives it a new handle."""
        assert hello.resume is not None
        used, handle = self.handles.hash(hello.resume), self.handles.new()
        now_ms, sessions = self.clock.now_ms(), self.stores.sessions
        active = next((each for each in self.sessions.values() if each.opens_with(used) and each.user == user), None)
        if active is None:
            expires_ms = now_ms + self.handles.valid_ms
            record = await sessions.rotate(used, self.handles.hash(handle), user, now_ms, expires_ms)
        else:
            record = await self._rename(active, used, handle)
            if active.runner.stored.holds(record) and self.sessions.get(active.id) is active:
                return active
            # It went on in another process, from which it is taken over now.
            self._drop(active, TAKEN_OVER)
        if record is None:
            return None
        try:
            record = await sessions.take_lease(record.id, self.owner, now_ms, now_ms + LEASE_MS)
            return await self._restore(record, handle, hello.last_n or 0, authenticated=authenticated)
        except Fenced:
            return None

    async def _rename(self, active: ActiveSession, used: str, handle: str) -> SessionRecord | None:
        """Gives a session in memory a new handle, and unparks it. Returns its record, if the old handle was valid."""
        active.unpark()
        active.handle, active.handle_hash, active.previous_hash = handle, self.handles.hash(handle), used
        try:
            return await active.runner.stored.rename(used, active.handle_hash)
        except BaseException:
            if active.runner.outbox.link is None:
                active.park(lambda: self._retire(active))
            raise

    async def _restore(self, record: SessionRecord, handle: str, seen_n: int, *, authenticated: bool) -> ActiveSession:
        active = self._make(record, handle, Outbox(), stored=True, authenticated=authenticated)
        tools = active.runner.tools
        await self.executor.find_left(tools)
        # Through the mailbox, so that the question comes after the history and before the turn that is restored.
        active.runner.post(lambda: self.executor.confirm_again(tools))
        sent = await self.stores.messages.after(record.id, 0)
        await restore(active.runner, record, sent, seen_n=seen_n, now_ms=self.clock.now_ms())
        self._start(active)
        self._tell_started(active, resumed=True)
        return active

    # Running and ending.

    async def _run(self, active: ActiveSession) -> None:
        try:
            await active.runner.run()
        except Fenced:
            log.info("session_taken_over", session=active.id)
            self._drop(active, TAKEN_OVER)
        except StoreUnavailable as error:
            log.error("session_failed", session=active.id, error=str(error))
            self.stop_session(active, STORE_ERROR, STORE_CLOSE)
        except Exception:
            log.exception("session_failed", session=active.id)
            self._drop(active, INTERNAL)
        finally:
            active.runner.hooks.end(active.runner.conversation_id)

    async def _retire(self, active: ActiveSession) -> None:
        """The client did not come back in time, unless it does right now. Then only the store has the session."""
        try:
            await active.runner.hang_up()
            await active.runner.save()
        except StoreUnavailable:
            # Only this process knows what happened last, so it keeps the session.
            if active.parking is not None:
                active.park(lambda: self._retire(active))
            return
        if active.parking is not None:
            self._finish(active)

    async def _end(self, active: ActiveSession) -> None:
        try:
            await active.runner.hang_up()
            await active.runner.stored.end()
        finally:
            self._finish(active)

    def _finish(self, active: ActiveSession) -> None:
        """To be called from the session's own mailbox: its task ends afterwards."""
        self._remove(active)
        active.unpark()
        active.runner.end()

    def _drop(self, active: ActiveSession, close: Close | None = None) -> None:
        self._remove(active)
        active.stop(close)

    def _remove(self, active: ActiveSession) -> None:
        """Another session object may have taken its place already."""
        if self.sessions.get(active.id) is active:
            del self.sessions[active.id]
        if active.task is not None and not active.task.done():
            self._ending.add(active.task)
            active.task.add_done_callback(self._ending.discard)

    def stop_session(self, active: ActiveSession, error: s.Error, close: Close) -> None:
        """Stops a session at once and tells its client why. The store keeps it."""
        active.runner.outbox.send(error, once=True)
        self._drop(active, close)

    def _renew_leases(self, *, of_requests: bool) -> None:
        """Begins to renew the leases of the sessions of requests, or of all others, unless it has begun before."""
        if of_requests not in self._renewing:
            self._renewing[of_requests] = asyncio.create_task(self._renew(of_requests=of_requests))

    async def _renew(self, *, of_requests: bool) -> None:
        while True:
            await asyncio.sleep(RENEW_REQUESTS_S if of_requests else RENEW_S)
            for active in [each for each in self.sessions.values() if each.is_of_request is of_requests]:
                try:
                    is_ours = await active.runner.stored.renew()
                except StorageError as error:
                    log.warning("lease_not_renewed", session=active.id, error=str(error))
                    continue
                if not is_ours:
                    self._drop(active, TAKEN_OVER)
