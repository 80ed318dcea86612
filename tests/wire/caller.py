"""A client for tests that uses plain JSON, and records all messages that it receives."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.frames import Close

PATIENCE_S = 10.0

Message = dict[str, Any]


class Caller:
    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.received: list[Message] = []
        self.audio: list[bytes] = []
        """Binary frames."""

    async def send(self, type: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": type, **fields}))

    async def hear(self) -> Message | bytes:
        """The next frame."""
        frame = await asyncio.wait_for(self.socket.recv(), PATIENCE_S)
        if isinstance(frame, bytes):
            self.audio.append(frame)
            return frame
        message: Message = json.loads(frame)
        self.received.append(message)
        return message

    async def until(self, type: str, **fields: Any) -> Message:
        """The next message of this type with these fields. Messages before it are kept in `received`."""
        while True:
            message = await self.hear()
            if isinstance(message, dict) and message["type"] == type and fields.items() <= message.items():
                return message

    async def ask(self, text: str) -> str:
        """Sends a typed turn, and returns the answer."""
        await self.send("text_message", text=text)
        answer: str = (await self.until("response"))["text"]
        await self.until("state")
        return answer

    async def is_answered(self) -> bool:
        """Whether the session still accepts messages, once everything before was received."""
        mark = len(self.received)
        await self.send("ping", t=mark)
        await self.until("pong", t=mark)
        return True

    async def closing(self) -> Close:
        """Reads the remaining messages, and returns how the server closed."""

        async def hear_on() -> None:
            while True:
                await self.hear()

        with pytest.raises(ConnectionClosed) as closed:
            await hear_on()
        assert closed.value.rcvd is not None, "the connection was cut without a close frame"
        return closed.value.rcvd

    def every(self, type: str) -> list[Message]:
        return [message for message in self.received if message["type"] == type]

    @property
    def states(self) -> list[str]:
        return [message["state"] for message in self.every("state")]

    @property
    def session(self) -> Message:
        """The last `session` message of the server."""
        return self.every("session")[-1]


@asynccontextmanager
async def call(url: str, hello: Message | None = None, **options: Any) -> AsyncIterator[Caller]:
    """A client that has sent the hello, if one is given, and received its session. It leaves with a goodbye."""
    async with connect(url, max_size=None, **options) as socket:
        caller = Caller(socket)
        if hello is not None:
            await caller.send("hello", **hello)
        await caller.until("session")
        yield caller


async def closing_after(url: str, *frames: str | bytes, **options: Any) -> tuple[int, Caller]:
    """The code with which the server closes after these frames, and the client that has sent them."""
    async with connect(url, **options) as socket:
        caller = Caller(socket)
        # The server may close before it has read all of them, or any.
        with suppress(ConnectionClosed):
            for frame in frames:
                await socket.send(frame)
        return (await caller.closing()).code, caller
