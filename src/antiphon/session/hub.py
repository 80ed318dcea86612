"""The sessions of one process: begun, resumed, parked, taken over, ended."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from antiphon.clock import Clock
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.closing import INTERNAL, TAKEN_OVER, Close
from antiphon.session.keeper import FIRST_LEASE, HANDLE_MS, LEASE_MS, Keeper, Stores, new_record
from antiphon.session.machine import BUSY
from antiphon.session.outbox import Link, Outbox
from antiphon.session.preferences import Preferences
from antiphon.session.runner import ModelMaker, Runner
from antiphon.storage.sessions import Fenced, SessionRecord
from antiphon.telemetry.log import get_logger
from antiphon.tools.executor import Executor
from antiphon.tools.session import ToolSession
from antiphon.transcript import AssistantMessage, UserMessage

PARKED_S: Final = 120.0
"""So long a session waits in memory for its client; then only in the store."""
RENEW_S: Final = LEASE_MS / 1000 / 3
RESUME_REJECTED: Final = "This session could not be resumed: its handle is unknown, used or expired."

log = get_logger(__name__)


@dataclass(eq=False, slots=True)
class Live:
    """A session that this process runs."""

    runner: Runner
    user: str
    handle_hash: str
    task: asyncio.Task[None] | None = None
    parking: asyncio.TimerHandle | None = None

    @property
    def id(self) -> str:
        return self.runner.tools.id


@dataclass(frozen=True, slots=True)
class Handles:
    """How the handles of sessions are made and known; only their hashes are kept."""

    new: Callable[[], str]
    hash: Callable[[str], str]


@dataclass(slots=True)
class Hub:
    executor: Executor
    stores: Stores
    make_model: ModelMaker
    handles: Handles
    clock: Clock
    owner: str
    """Names this process in leases."""
    zone: ZoneInfo
    sessions: dict[str, Live] = field(default_factory=dict)
    _renewing: asyncio.Task[None] | None = None

    async def enter(self, user: str, hello: c.Hello, link: Link, *, authenticated: bool = False) -> Live:
        """A client is there: its session, resumed if it can be, told of itself."""
        self._renewing = self._renewing or asyncio.create_task(self._renew())
        if hello.resume is not None:
            live = await self._resume(user, hello, link)
            if live is not None:
                return live
        live = self._begin(user, authenticated)
        live.runner.outbox.attach(link, hello.audio)
        live.runner.outbox.send(s.StateChanged(s.State.IDLE))
        if hello.resume is not None:
            live.runner.outbox.send(s.Error(RESUME_REJECTED, "resume_rejected"))
            notice = s.Notice(s.NoticeKind.WARNING, "Could not resume; this is a new session.", "new_session")
            live.runner.outbox.send(notice)
        await self._greet(live, hello)
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
        live = self._start(record, Outbox(), stored=stored, authenticated=authenticated)
        live.runner.outbox.attach(link, c.AudioForm.JSON)
        try:
            await live.runner.keeper.load()
        except BaseException:
            await self.depart(live)
            raise
        return live

    async def depart(self, live: Live) -> None:
        """The end of a visit. What is under way is given up; what was done is stored."""
        await self._end(live)
        if live.task is not None:
            await asyncio.wait([live.task])

    def is_busy(self, conversation_id: str) -> bool:
        """Whether a session of this process is making an answer in this conversation."""
        return any(
            live.runner.keeper.conversation_id == conversation_id and live.runner.session.phase in BUSY
            for live in self.sessions.values()
        )

    def leave(self, live: Live, link: Link, *, for_good: bool) -> None:
        """A socket is gone. Without a goodbye, its session waits for it to come back."""
        if not live.runner.outbox.detach(link) or live.id not in self.sessions:
            return
        if for_good:
            live.runner.post(live.runner.keeper.end)
            live.runner.post(lambda: self._end(live))
            return
        live.runner.post(lambda: self._save(live))
        live.parking = asyncio.get_running_loop().call_later(PARKED_S, live.runner.post, lambda: self._end(live))

    async def drain(self, time_left_s: float, reason: str) -> None:
        """Tells every client to come back, and lets each session come to the end of its turn."""
        sessions = list(self.sessions.values())
        for live in sessions:
            live.runner.outbox.send(s.GoAway(int(time_left_s * 1000), reason))
        rests = [asyncio.create_task(live.runner.rest()) for live in sessions]
        if rests:
            _, busy = await asyncio.wait(rests, timeout=time_left_s)
            for task in busy:
                task.cancel()
        await asyncio.gather(*(self._save(live) for live in sessions), return_exceptions=True)

    async def aclose(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
        tasks = [live.task for live in self.sessions.values() if live.task is not None]
        for live in self.sessions.values():
            if live.parking is not None:
                live.parking.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, *([self._renewing] if self._renewing else []), return_exceptions=True)

    # Beginning.

    def _begin(self, user: str, authenticated: bool) -> Live:
        handle_hash = self.handles.hash(self.handles.new())
        record = new_record(user, self.owner, handle_hash, self.clock.now_ms())
        return self._start(record, Outbox(), stored=False, authenticated=authenticated)

    def _start(self, record: SessionRecord, outbox: Outbox, *, stored: bool, authenticated: bool) -> Live:
        tools = ToolSession(
            record.id,
            record.user,
            self.executor.registry.snapshot(),
            authenticated=authenticated,
            turn=record.turn,
            pinned_version=record.tools_version,
            zone=self.zone,
        )
        keeper = Keeper(self.stores, self.clock, record, stored=stored)
        runner = Runner(keeper, outbox, tools, self.executor, self.make_model, self.clock)
        live = Live(runner, record.user, record.handle_hash)
        live.task = asyncio.create_task(self._run(live))
        self.sessions[record.id] = live
        return live

    async def _greet(self, live: Live, hello: c.Hello) -> None:
        keeper = live.runner.keeper
        if hello.conversation_id is not None and not await keeper.load(hello.conversation_id):
            live.runner.outbox.send(s.Error("You have no such conversation.", "unknown_conversation"))
        for brought in hello.initial_messages:
            made = UserMessage if brought.role is c.Role.USER else AssistantMessage
            keeper.bring(made(brought.content))
        await self._introduce(live, resumed=False)
        if keeper.messages:
            live.runner.tell_history()

    async def _introduce(self, live: Live, *, resumed: bool) -> None:
        """A new handle with every introduction: whoever has an older one cannot come in with it."""
        handle = self.handles.new()
        live.handle_hash = self.handles.hash(handle)
        await live.runner.keeper.rename(live.handle_hash)
        tools = live.runner.tools
        live.runner.outbox.send(
            s.Session(
                session_id=tools.id,
                conversation_id=live.runner.keeper.conversation_id,
                resume=handle,
                resumed=resumed,
                mode=c.Mode(tools.mode),
                tools_version=tools.snapshot.version,
                expires_in_s=HANDLE_MS // 1000,
            )
        )

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

    async def _resume(self, user: str, hello: c.Hello, link: Link) -> Live | None:
        assert hello.resume is not None
        live = await self._find(user, self.handles.hash(hello.resume))
        if live is None:
            return None
        if live.parking is not None:
            live.parking.cancel()
            live.parking = None
        outbox = live.runner.outbox
        before = outbox.attach(link, hello.audio)
        if before is not None:
            before.close(TAKEN_OVER)
        said_before = outbox.last_n
        await self._introduce(live, resumed=True)
        outbox.replay(hello.last_n or 0, said_before)
        outbox.send(s.StateChanged(s.State(live.runner.session.phase)))
        return live

    async def _find(self, user: str, handle_hash: str) -> Live | None:
        for live in self.sessions.values():
            if live.handle_hash == handle_hash and live.user == user:
                return live
        now_ms = self.clock.now_ms()
        # The handle is used up by this, whoever else tries it at the same moment.
        used = self.handles.hash(self.handles.new())
        record = await self.stores.sessions.rotate(handle_hash, used, user, now_ms, now_ms + HANDLE_MS)
        if record is None:
            return None
        record = await self.stores.sessions.take_lease(record.id, self.owner, now_ms, now_ms + LEASE_MS)
        outbox = Outbox()
        outbox.restore(list(await self.stores.messages.after(record.id, 0)))
        live = self._start(record, outbox, stored=True, authenticated=False)
        live.runner.preferences = msgspec.json.decode(record.state, type=Preferences)
        await live.runner.keeper.load()
        return live

    # Going on, and ending.

    async def _run(self, live: Live) -> None:
        try:
            await live.runner.run()
        except Fenced:
            log.info("session_taken_over", session=live.id)
            self._forget(live, TAKEN_OVER)
        except Exception:
            log.exception("session_failed", session=live.id)
            self._forget(live, INTERNAL)

    async def _save(self, live: Live) -> None:
        await live.runner.save()
        await live.runner.keeper.save_messages(live.runner.outbox)

    async def _end(self, live: Live) -> None:
        self.sessions.pop(live.id, None)
        if live.task is not None:
            live.task.cancel()

    def _forget(self, live: Live, close: Close) -> None:
        self.sessions.pop(live.id, None)
        link = live.runner.outbox.link
        if link is not None:
            link.close(close)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            for live in list(self.sessions.values()):
                if not await live.runner.keeper.renew():
                    self._forget(live, TAKEN_OVER)
                    await self._end(live)
