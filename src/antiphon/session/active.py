"""A session that runs in this process."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Final

from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.closing import Close
from antiphon.session.runner import Runner
from antiphon.session.state import Phase
from antiphon.tools.spec import Mode

PARKED_S: Final = 120.0
"""How long a parked session stays in memory. After that only the store has it."""


@dataclass(eq=False, slots=True)
class ActiveSession:
    runner: Runner
    user: str
    handle: str
    """The newest handle. It is kept in memory only."""
    handle_hash: str
    previous_hash: str | None = None
    """The hash of the handle before it, as long as the client may not have received the newest."""
    task: asyncio.Task[None] | None = None
    parking: asyncio.TimerHandle | None = None
    """None while a client is connected."""
    token_id: str | None = None
    """The access token that the client has used; the session ends when it expires. None if none was required."""

    is_of_request: bool = False
    """Whether the client leaves with the answer to its one request."""
    speaks_only: bool = False
    """Whether the client is one of another protocol, which has no message for what rings."""

    @property
    def takes_reminders(self) -> bool:
        """Whether the client can be told that a reminder rings: by a message, or at least by speech."""
        if self.is_of_request or self.runner.application.holds_answers:
            return False
        return not self.speaks_only or self.runner.state.mode is Mode.VOICE

    @property
    def id(self) -> str:
        return self.runner.tools.id

    def opens_with(self, handle_hash: str) -> bool:
        return handle_hash in (self.handle_hash, self.previous_hash)

    def settle_handle(self) -> None:
        """The client has sent something on its new connection, so it has received the newest handle."""
        if self.previous_hash is not None:
            self.previous_hash = None
            self.runner.post(self.runner.stored.settle_handle)

    def introduce(self, *, resumed: bool) -> None:
        tools, levels = self.runner.tools, self.runner.models.energy()
        introduction = s.Session(
            session_id=tools.id,
            conversation_id=self.runner.conversation_id,
            resume=self.handle,
            resumed=resumed,
            mode=c.Mode(tools.mode),
            tools_version=tools.snapshot.version,
            expires_in_s=self.runner.stored.handle_ms // 1000,
            energy=s.EnergyLevels(levels[Mode.VOICE], levels[Mode.TEXT]) if set(levels) == set(Mode) else None,
        )
        # Sent once: a stored message would contain the handle itself, and a replay would bring back a used one.
        self.runner.outbox.send(introduction, once=True)

    def park(self, retire: Callable[[], Coroutine[object, object, None]]) -> None:
        """`retire` is put into the mailbox if the client does not come back in time."""
        self.parking = asyncio.get_running_loop().call_later(PARKED_S, self.runner.post, retire)

    def unpark(self) -> None:
        if self.parking is not None:
            self.parking.cancel()
            self.parking = None

    async def settle(self) -> None:
        """Returns when the turn under way is over and everything that another process needs is stored."""
        if not (self.runner.state.phase is Phase.SPEAKING and self.runner.outbox.link is None):
            await self.runner.rest()
        saved: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def save() -> None:
            await self.runner.save()
            saved.set_result(None)

        self.runner.post(save)
        if self.task is not None:
            await asyncio.wait([saved, self.task], return_when=asyncio.FIRST_COMPLETED)

    def stop(self, close: Close | None = None) -> None:
        self.unpark()
        link = self.runner.outbox.link
        if link is not None and close is not None:
            link.close(close)
        if self.task is not None:
            self.task.cancel()
