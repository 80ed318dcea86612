"""A session without a server, for the virtual clock: a test says what comes, and sees what goes out and when."""

import asyncio
from collections.abc import AsyncIterator

from antiphon.client import Incoming, Session
from antiphon.protocol.client_messages import ClientMessage, Hello


class ScriptedSession(Session):
    def __init__(self) -> None:
        super().__init__(lambda: asyncio.Future(), Hello(), backoff=None)
        self.sent: list[tuple[float, ClientMessage]] = []
        """Seconds on the loop's clock, and the message."""
        self.audio: list[tuple[float, bytes, bool]] = []
        self._came: asyncio.Queue[Incoming | BaseException | None] = asyncio.Queue()

    def come(self, *incoming: Incoming, in_s: float = 0.0) -> None:
        """Schedules messages from the server: in the next iteration of the loop, unless a time is given."""
        for each in incoming:
            asyncio.get_running_loop().call_later(in_s, self._came.put_nowait, each)

    def end(self, error: BaseException | None = None) -> None:
        self._came.put_nowait(error)

    async def messages(self) -> AsyncIterator[Incoming]:
        while (each := await self._came.get()) is not None:
            if isinstance(each, BaseException):
                raise each
            yield each

    async def send(self, message: ClientMessage) -> None:
        self.sent.append((asyncio.get_running_loop().time(), message))

    async def send_audio(self, pcm: bytes, *, playing: bool = False) -> None:
        self.audio.append((asyncio.get_running_loop().time(), pcm, playing))
