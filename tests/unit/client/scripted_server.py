"""A server on a real socket that plays one script per connection, and records what it receives."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from antiphon.protocol import codec
from antiphon.protocol.client_messages import ClientMessage, Hello, Mode
from antiphon.protocol.closing import Close
from antiphon.protocol.server_messages import Response, ResponseChunk, ServerMessage, Session, State, StateChanged


def introduction(handle: str, *, resumed: bool = False, session_id: str = "s1") -> Session:
    return Session(
        session_id=session_id,
        conversation_id="c1",
        resume=handle,
        resumed=resumed,
        mode=Mode.TEXT,
        tools_version="1.0.0",
        expires_in_s=7200,
    )


class Caller:
    """One connection, as the server has it. Messages are numbered on from `n`."""

    def __init__(self, connection: ServerConnection) -> None:
        self.connection = connection
        self.n = 0

    async def say(self, *messages: ServerMessage) -> None:
        for message in messages:
            self.n += 1
            await self.connection.send(codec.encode(message, self.n))

    async def greet(self, handle: str = "h1") -> None:
        await self.say(StateChanged(State.IDLE), introduction(handle))

    async def resume(self, handle: str, *missed: ServerMessage, after_n: int, state: State = State.IDLE) -> None:
        """Introduces the session, repeats what was said after `after_n`, and says the state."""
        self.n = after_n + len(missed)
        await self.say(introduction(handle, resumed=True))
        introduced, self.n = self.n, after_n
        await self.say(*missed)
        self.n = introduced
        await self.say(StateChanged(state))

    async def answer(self, text: str) -> None:
        await self.say(
            StateChanged(State.PROCESSING),
            ResponseChunk(text, is_first=True),
            Response(text),
            StateChanged(State.IDLE),
        )

    async def hear(self) -> ClientMessage:
        frame = await self.connection.recv()
        message = codec.decode(frame)
        assert isinstance(message, ClientMessage)
        return message

    async def close(self, close: Close) -> None:
        await self.connection.close(close.code, close.reason)

    async def vanish(self) -> None:
        """Without a close frame, as when a cable is cut."""
        self.connection.transport.abort()

    async def stay(self) -> None:
        """Until the client goes."""
        await self.connection.wait_closed()


Scene = Callable[[Caller], Awaitable[None]]


@dataclass
class ScriptedServer:
    url: str = ""
    hellos: list[Hello] = field(default_factory=list)
    close_codes: list[int | None] = field(default_factory=list)


@asynccontextmanager
async def play(*scenes: Scene) -> AsyncIterator[ScriptedServer]:
    """Each connection says hello and gets the next scene; the last one is played for all that follow."""
    server = ScriptedServer()

    async def receive(connection: ServerConnection) -> None:
        caller = Caller(connection)
        hello = await caller.hear()
        assert isinstance(hello, Hello)
        server.hellos.append(hello)
        with suppress(ConnectionClosed):
            await scenes[min(len(server.hellos), len(scenes)) - 1](caller)
        await connection.wait_closed()
        server.close_codes.append(connection.close_code)

    async with serve(receive, "127.0.0.1", 0, compression=None) as listening:
        server.url = f"ws://127.0.0.1:{listening.sockets[0].getsockname()[1]}/ws"
        yield server
