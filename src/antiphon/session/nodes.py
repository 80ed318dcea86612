"""What the sessions of several processes have to do with each other.

A process that is asked to do something with a session that runs elsewhere stores a command for it. The process that
runs the session carries it out and stores the result. A command may also be for all sessions of a process: then it is
one command for each process that holds leases. Sessions of one conversation learn the turns that others add.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import uuid4

import msgspec

from antiphon.errors import AntiphonError
from antiphon.session.active import ActiveSession
from antiphon.session.hub import Hub
from antiphon.session.state import RESTING
from antiphon.storage.base import StorageError
from antiphon.storage.changes import Changes, Topic, repeat, wait_for_change
from antiphon.storage.commands import CommandStore, SessionCommand
from antiphon.storage.sessions import SessionRecord
from antiphon.telemetry.log import get_logger

POLL_S: Final = 1.0
"""How often other processes' work is looked for, whether or not there was a hint."""
PAUSE_S: Final = 0.05
"""How long hints are collected before the database is asked."""
REACH_S: Final = 5.0
"""How long the process that runs a session may take until it has carried out a short command."""

Handler = Callable[[ActiveSession, Any], Awaitable[Any]]
"""Carries out a command in a session of this process. What it gets and returns can be written as JSON."""
NodeHandler = Callable[[Any], Awaitable[Any]]
"""Carries out a command that concerns all sessions of this process."""

log = get_logger(__name__)


class CommandRefused(AntiphonError):
    """The session could not do what it was told. `reason` is for the program that asked."""

    code = "command_refused"

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


UNREACHED: Final = "unreached"
"""The reason if the process that runs the session does not answer."""


class _Result(msgspec.Struct):
    value: Any = None
    reason: str | None = None
    message: str = ""


class NodeAnswers(NamedTuple):
    """What the other processes have answered to a command for all sessions."""

    results: Sequence[Any]
    unreached: Sequence[str]
    """The names of the processes that hold leases, and have not answered in time or have failed."""


class Nodes:
    def __init__(
        self,
        hub: Hub,
        commands: CommandStore,
        changes: Changes,
        list_sessions: Callable[[str | None], Awaitable[Sequence[SessionRecord]]],
    ) -> None:
        """`list_sessions` returns the newest sessions of a user, or of all users, in whichever process they run."""
        self.hub = hub
        self._commands = commands
        self._changes = changes
        self._list_sessions = list_sessions
        self._handlers: dict[str, Handler] = {}
        self._node_handlers: dict[str, NodeHandler] = {}
        self._working: set[asyncio.Task[None]] = set()
        self._changed = changes.subscribe(Topic.COMMANDS, Topic.CONVERSATIONS, Topic.PEOPLE)

    def offer(self, kind: str, handler: Handler) -> None:
        """Has the commands of a kind carried out by `handler`, in the sessions of this process."""
        self._handlers[kind] = handler

    def offer_for_all(self, kind: str, handler: NodeHandler) -> None:
        """Has the commands of a kind for all sessions of this process carried out by `handler`."""
        self._node_handlers[kind] = handler

    async def elsewhere(self, user: str | None) -> Sequence[SessionRecord]:
        """Lists the sessions of a user, or of all users, that other processes run now, the newest first."""
        now_ms, own = self.hub.clock.now_ms(), self.hub.sessions
        found = await self._list_sessions(user)
        return [each for each in found if each.lease_until_ms > now_ms and each.id not in own]

    async def tell(self, session_id: str, kind: str, body: Any, *, within_s: float = REACH_S) -> Any:
        """Has a command carried out by the process that runs the session, and returns the result.

        Raises `CommandRefused`. A command that was not taken in time is not carried out later.
        """
        [result] = await self._ask([session_id], kind, body, within_s)
        if result.reason is not None:
            raise CommandRefused(result.reason, result.message)
        return result.value

    async def tell_others(
        self, kind: str, body: Any, *, user: str | None = None, within_s: float = REACH_S
    ) -> NodeAnswers:
        """Has a command carried out by each of the other processes that run sessions of this user, or of any user.

        Other processes know of a session from its first turn on, when its lease is stored.
        """
        holders = await self.hub.stores.sessions.holders(self.hub.clock.now_ms(), user)
        others = [each for each in holders if each != self.hub.owner]
        results = await self._ask(others, kind, body, within_s) if others else []
        return NodeAnswers(
            [each.value for each in results if each.reason is None],
            [node for node, each in zip(others, results, strict=True) if each.reason is not None],
        )

    async def _ask(self, targets: Sequence[str], kind: str, body: Any, within_s: float) -> Sequence[_Result]:
        """Gives each of the sessions or processes the command, and returns the result of each."""
        expires_ms = self.hub.clock.now_ms() + round(min(within_s, REACH_S) * 1000)
        encoded = msgspec.json.encode(body)
        commands = [SessionCommand(uuid4().hex, each, kind, encoded, expires_ms) for each in targets]
        ids = [command.id for command in commands]
        found: Mapping[str, bytes] = {}
        done = self._changes.subscribe(Topic.COMMANDS)
        try:
            for command in commands:
                await self._commands.put(command)
            self._changes.announce(Topic.COMMANDS)
            with suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    while len(found) < len(ids):
                        await wait_for_change(done, POLL_S)
                        found = await self._commands.results(ids)
        finally:
            self._changes.unsubscribe(done)
            for id in ids:
                with suppress(StorageError):
                    await self._commands.remove(id)
        unreached = _Result(reason=UNREACHED, message="The server that runs the session does not answer.")
        return [msgspec.json.decode(found[id], type=_Result) if id in found else unreached for id in ids]

    async def run(self) -> None:
        """Looks for what other processes have left for the sessions of this one, until it is cancelled."""
        try:
            await repeat(self.look, self._wait, "other_nodes_not_heard")
        finally:
            for task in self._working:
                task.cancel()
            await asyncio.gather(*self._working, return_exceptions=True)

    async def look(self) -> None:
        """Begins to carry out the commands that wait, and has sessions read turns that are new to them."""
        sessions = dict(self.hub.sessions)
        # Also without sessions: others may ask this process as long as they find leases of it.
        for command in await self._commands.take([self.hub.owner, *sessions], self.hub.clock.now_ms()):
            task = asyncio.create_task(self._carry_out(command, sessions.get(command.session_id)))
            self._working.add(task)
            task.add_done_callback(self._working.discard)
        if not sessions:
            return
        await self._refresh(list(sessions.values()))
        now_ms = self.hub.clock.now_ms()
        for active in sessions.values():
            if active.runner.client.blocked_until_ms > now_ms:
                active.runner.post(partial(active.runner.client.tell_unblocked, now_ms))

    async def _wait(self) -> None:
        await wait_for_change(self._changed, POLL_S)
        await asyncio.sleep(PAUSE_S)

    async def _carry_out(self, command: SessionCommand, active: ActiveSession | None) -> None:
        """`active` is None if the command is for all sessions of this process."""
        try:
            handle = self._find_handler(command.kind, active)
            result = _Result(await handle(msgspec.json.decode(command.body)))
        except CommandRefused as refused:
            result = _Result(reason=refused.reason, message=str(refused))
        except Exception:
            log.exception("command_failed", session=command.session_id, kind=command.kind)
            result = _Result(reason="internal", message="The server that runs the session has failed.")
        with suppress(StorageError):
            await self._commands.finish(command.id, msgspec.json.encode(result))
            self._changes.announce(Topic.COMMANDS)

    def _find_handler(self, kind: str, active: ActiveSession | None) -> NodeHandler:
        if active is None and kind in self._node_handlers:
            return self._node_handlers[kind]
        if active is not None and kind in self._handlers:
            return partial(self._handlers[kind], active)
        raise CommandRefused("unknown", f"This server does not know the command {kind!r}.")

    async def _refresh(self, sessions: Sequence[ActiveSession]) -> None:
        """Has sessions without a turn under way read the turns that other sessions have added to their conversation."""
        resting = [each for each in sessions if each.runner.state.phase in RESTING and not each.is_of_request]
        stored = await self.hub.stores.conversations.last_seqs({each.runner.conversation_id for each in resting})
        for active in resting:
            runner = active.runner
            if stored.get(runner.conversation_id, 0) > runner.writer.last_seq:
                runner.post(partial(_read_turns_of_others, active))


async def _read_turns_of_others(active: ActiveSession) -> None:
    runner = active.runner
    if runner.state.phase in RESTING and await runner.writer.read_turns_of_others():
        runner.is_behind = True
        if not active.speaks_only:
            runner.tell_history()
