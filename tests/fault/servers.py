"""Server processes that share one database, and clients that lose their connections to them."""

import asyncio
import json
import pickle
import signal
import sqlite3
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import psycopg
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.fakes.fork_server import Forked

PATIENCE_S: Final = 15.0
"""How long to wait for one message. Other tests may be using all cores."""
LOOK_FIRST: Final = "look first and "
BOOK: Final = "book "
ROLES: Final = "who said what"
RECITE: Final = "recite"
RECITED: Final = (
    *("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliet", "kilo", "lima"),
    *("mike", "november", "oscar", "papa", "quebec", "romeo", "sierra", "tango", "uniform", "victor", "whiskey"),
)
QUESTION_WORDS: Final = ("look", "first", "and", RECITE, *map(str, range(1, len(RECITED) + 1)))
"""The words that these servers recognize."""
DIES_AFTER: Final = "dies-after="
RESTARTING: Final = "The server is restarting."

Message = dict[str, Any]


def story(asked: str) -> str:
    """The answer of the model to "tell NAME COUNT"."""
    name, count = asked.removeprefix(LOOK_FIRST).split()[1:]
    return "".join(f"{name}.{number} " for number in range(int(count)))


def recital(asked: str) -> str:
    """The answer of the model to "recite COUNT": sentences of three words."""
    words = RECITED[: int(asked.split()[-1])]
    sentences = [" ".join(words[at : at + 3]) for at in range(0, len(words), 3)]
    return "".join(f"{sentence.capitalize()}. " for sentence in sentences)


@dataclass(frozen=True)
class Served:
    process: Forked
    port: int

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    async def kill(self) -> None:
        """kill -9: no handler runs, nothing is flushed."""
        self.process.kill()
        await asyncio.to_thread(self.process.wait)

    def terminate(self) -> None:
        """Sends SIGTERM, as an orchestrator does."""
        self.process.send_signal(signal.SIGTERM)


class Endpoint(Protocol):
    """Something with an address that a client can connect to."""

    @property
    def url(self) -> str: ...


@dataclass(frozen=True)
class Node:
    """What a server process is started with."""

    folder: Path
    url: str
    """The address of the database."""
    drain_s: float = 5.0
    model: str = "storyteller"
    """ "storyteller", "native" for one whose voice only it has, or "builtin" for the offline assistant, slowly."""
    clock_ms: int = 0
    """How far its clock is ahead of the real time."""
    lease_ms: int | None = None
    """How long a lease of a session holds; None is the usual time."""


class Servers:
    """Any number of server processes that share a folder and a database."""

    def __init__(self, folder: Path, url: str = "sqlite") -> None:
        self.folder = folder
        self.url = url
        self._started: list[Served] = []

    @property
    def place(self) -> Path | str:
        """Where the database is: a file, or the address of a Postgres database."""
        return self.folder / "antiphon.db" if self.url == "sqlite" else self.url

    async def start(self, **options: Any) -> Served:
        """`options` are those of `Node`."""
        node = Node(self.folder, self.url, **options)
        with (self.folder / "log").open("ab") as log:
            process = Forked.start("tests.fault.server_child", stderr=log)
        process.stdin.write(pickle.dumps(node))
        process.stdin.close()
        port = await asyncio.to_thread(process.stdout.readline)
        assert port, f"the server did not start:\n{self.log}"
        served = Served(process, int(port))
        self._started.append(served)
        return served

    async def end(self) -> None:
        for served in self._started:
            await served.kill()
            served.process.stdout.close()

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def turns(self, conversation_id: str) -> list[Message]:
        """All messages of a conversation, as they are stored."""
        rows = self.rows("SELECT body FROM turns WHERE conversation_id = ? ORDER BY seq", conversation_id)
        return [json.loads(body) for (body,) in rows]

    def words(self, conversation_id: str) -> list[tuple[str, str]]:
        """Who said what, as it is stored."""
        return [(turn["role"], turn["text"]) for turn in self.turns(conversation_id) if turn.get("text")]

    def rows(self, query: str, *params: object) -> list[Any]:
        if self.url != "sqlite":
            with psycopg.connect(self.url, autocommit=True) as connected:
                return connected.execute(query.replace("?", "%s").encode(), params).fetchall()
        with closing(sqlite3.connect(self.folder / "antiphon.db", timeout=10)) as connection:
            return connection.execute(query, params).fetchall()


@asynccontextmanager
async def servers_in(folder: Path, url: str = "sqlite") -> AsyncIterator[Servers]:
    servers = Servers(folder, url)
    try:
        yield servers
    finally:
        await servers.end()


class Client:
    """A client as a person sees it: across reconnects, it shows one conversation."""

    def __init__(self) -> None:
        self.received: list[Message] = []
        """All messages received, over all connections."""
        self.shown: list[tuple[str, str]] = []
        """Who said what, in finished turns."""
        self.half: str | None = None
        """The part of the current answer received so far."""
        self.handle = ""
        self.last_n = 0
        self.state = ""
        self.waiting: list[str] = []
        """Typed messages queued behind the current answer."""
        self.session: Message = {}
        self._socket: ClientConnection | None = None

    async def connect(self, served: Endpoint, **hello: Any) -> "Client":
        self._socket = await connect(served.url, compression=None, max_size=None)
        await self.send("hello", **{"mode": "text", **hello})
        self.session = await self.until("session")
        return self

    async def resume(self, served: Endpoint) -> "Client":
        return await self.connect(served, resume=self.handle, last_n=self.last_n)

    def twin(self) -> "Client":
        """Another window of the same person, with the state of this one."""
        twin = Client()
        twin.received, twin.shown, twin.half = [*self.received], [*self.shown], self.half
        twin.handle, twin.last_n = self.handle, self.last_n
        return twin

    async def send(self, type: str, **fields: Any) -> None:
        assert self._socket is not None
        await self._socket.send(json.dumps({"type": type, **fields}))

    async def hear(self) -> Message:
        assert self._socket is not None
        # `wait_for` of Python 3.11 may lose a cancellation, and a test that has failed would go on for ever.
        async with asyncio.timeout(PATIENCE_S):
            message: Message = json.loads(await self._socket.recv())
        self.received.append(message)
        self._show(message)
        return message

    async def hear_some(self, count: int) -> None:
        for _ in range(count):
            await self.hear()

    async def until(self, type: str, **fields: Any) -> Message:
        while True:
            message = await self.hear()
            if message["type"] == type and fields.items() <= message.items():
                return message

    async def ask(self, text: str) -> None:
        """Runs a whole turn."""
        await self.send("text_message", text=text)
        await self.rest()

    async def rest(self) -> None:
        """Waits until the current or imminent answer is over."""
        await self.until("state", state="processing")
        await self.until("state", state="idle")

    async def rest_for_good(self) -> None:
        """Waits until all questions are answered, including the queued ones."""
        await self.send("ping", t=1)
        await self.until("pong")
        while self.state != "idle" or self.waiting:
            await self.hear()

    async def hear_out(self) -> int | None:
        """Reads until the connection ends, and returns its close code; None if it was cut."""
        try:
            while True:
                await self.hear()
        except ConnectionClosed as closed:
            return None if closed.rcvd is None else closed.rcvd.code

    def cut(self) -> None:
        """Drops the connection without telling the server."""
        assert self._socket is not None
        self._socket.transport.abort()

    async def leave(self) -> None:
        assert self._socket is not None
        await self._socket.close()

    def every(self, type: str) -> list[Message]:
        return [message for message in self.received if message["type"] == type]

    @property
    def conversation_id(self) -> str:
        return str(self.session["conversation_id"])

    @property
    def numbers(self) -> list[int]:
        return [message["n"] for message in self.received]

    def _show(self, message: Message) -> None:
        match message:
            case {"type": "session"}:
                # Its number is ahead of the replayed messages after it.
                self.handle = message["resume"]
                return
            case {"type": "state"}:
                self.state = message["state"]
            case {"type": "queued"}:
                self.waiting = [each["text"] for each in message["messages"]]
            case {"type": "history"}:
                # An unfinished answer may already have calls but no text.
                self.shown = [(turn["role"], turn["content"]) for turn in message["turns"] if turn["content"]]
                self.half = None
            case {"type": "transcript", "is_final": True}:
                self.shown.append(("user", message["text"]))
            case {"type": "response_chunk"}:
                assert message["is_first"] or self.half is not None
                self.half = message["text"] if message["is_first"] else f"{self.half}{message['text']}"
            case {"type": "response"}:
                assert self.half in (None, message["text"])
                self.shown.append(("assistant", message["text"]))
                self.half = None
        self.last_n = max(self.last_n, message["n"])


@asynccontextmanager
async def leaving(clients: Iterable[Client]) -> AsyncIterator[None]:
    """Closes the connections of the clients at the end."""
    try:
        yield
    finally:
        await asyncio.gather(*(client.leave() for client in clients))


def dangling_calls(turns: list[Message]) -> list[str]:
    """Calls that are not directly followed by their results."""
    dangling = []
    for place, turn in enumerate(turns):
        calls = [call["id"] for call in turn.get("calls", ())]
        results = [after.get("call_id") for after in turns[place + 1 : place + 1 + len(calls)]]
        dangling += [] if sorted(calls) == sorted(map(str, results)) else calls
    return dangling
