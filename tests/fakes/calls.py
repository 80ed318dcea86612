"""A client and a server in one process on the virtual clock, with all messages that the client received."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from itertools import count
from random import Random
from typing import Any, Final, TypeVar
from zoneinfo import ZoneInfo

from antiphon.continuity.energy import MAX_LEVELS, Ladder
from antiphon.continuity.summarizer import Summarizer
from antiphon.models.live import LiveProfile, ModelFactory
from antiphon.models.text_live import text_factory
from antiphon.protocol import client_messages as c
from antiphon.protocol import codec
from antiphon.protocol import server_messages as s
from antiphon.protocol.closing import Close
from antiphon.session.call_summaries import CallSummaries
from antiphon.session.event_log import EventLog
from antiphon.session.hub import ActiveSession, Handles, Hub
from antiphon.session.models import SharedModels
from antiphon.session.nodes import Nodes
from antiphon.session.speaking import Synthesize
from antiphon.session.stored_session import Stores
from antiphon.tools.context import Offer
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool
from tests.fakes.gates import Gate
from tests.fakes.scripted import ScriptedModel
from tests.fakes.scripted_live import PROFILE, ScriptedLive

Message = TypeVar("Message", bound=s.ServerMessage)


class LoopClock:
    """A clock that follows the time of the loop, so that an hour of waiting takes no real time."""

    def now(self, zone: tzinfo) -> datetime:
        return datetime.fromtimestamp(self.now_ms() / 1000, UTC).astimezone(zone)

    def now_ms(self) -> int:
        return 1_767_268_800_000 + round(asyncio.get_running_loop().time() * 1000)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


@dataclass(eq=False)
class FakeLink:
    received: list[s.ServerMessage] = field(default_factory=list)
    audio: list[s.SpeechFrame] = field(default_factory=list)
    closed: Close | None = None

    def send(self, frame: str | bytes, *, is_replay: bool = False) -> None:
        if isinstance(frame, bytes):
            self.audio.append(codec.decode_audio(frame))
        else:
            self.received.append(codec.decode_server(frame))

    def close(self, close: Close) -> None:
        self.closed = close


SOUND: Final = 8 * (20 * b"\x00\x40" + 20 * b"\x00\xc0")
"""A frame of microphone audio that is loud enough to be speech."""


class Server:
    """A server process: a hub with stores that it may share with another one."""

    def __init__(
        self,
        *tools: Tool,
        models: dict[Mode, ModelFactory],
        database: Any = None,
        owner: str = "one",
        synthesize: Synthesize | None = None,
        summarizer: Summarizer | None = None,
        offers: Mapping[str, Offer] | None = None,
    ) -> None:
        options = {} if offers is None else {"offers": offers}
        self.gate = Gate(*tools, database=database, clock=LoopClock(), **options)  # type: ignore[arg-type]
        self.database = self.gate.database
        self.ladders: dict[Mode, Ladder] = {}
        self.hub = Hub(
            executor=self.gate.executor,
            stores=Stores(
                self.database.conversations,
                self.database.sessions,
                self.database.messages,
                self.database.blocks,
                self.database.voice_calls,
                self.database.changes,
            ),
            models=SharedModels(self.ladders, random=Random(1)),
            handles=Handles(
                new=(f"handle-{owner}-{n}" for n in count()).__next__, hash=lambda handle: f"hash of {handle}"
            ),
            clock=LoopClock(),
            owner=owner,
            zone=ZoneInfo("UTC"),
            synthesize=synthesize,
            summaries=None if summarizer is None else CallSummaries(self.database.voice_calls, summarizer),
            events=EventLog(self.database.events, LoopClock()),
        )
        self.nodes = Nodes(
            self.hub,
            self.database.commands,
            self.database.changes,
            lambda user: self.database.overview.sessions(20, user=user),
        )
        for mode, factory in models.items():
            self.use(mode, factory)

    def use(self, mode: Mode, *factories: ModelFactory) -> None:
        """Gives the server models for a mode: one for all levels, or one for each level, the highest first."""
        clock = LoopClock()
        levels = range(MAX_LEVELS[mode], 0, -1)
        by_level = dict(zip(levels, factories * (len(levels) if len(factories) == 1 else 1), strict=False))
        self.ladders[mode] = Ladder.of(mode, by_level, clock.monotonic)

    async def aclose(self) -> None:
        await self.hub.aclose()
        await self.gate.executor.aclose()


@asynccontextmanager
async def looking(*servers: Server) -> AsyncIterator[None]:
    """Lets the servers look for what the others have left for them."""
    tasks = [asyncio.create_task(server.nodes.run()) for server in servers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Client:
    def __init__(self, server: Server, user: str = "ann") -> None:
        self.server = server
        self.user = user
        self.link = FakeLink()
        self.live: ActiveSession | None = None

    async def enter(self, **hello: Any) -> "Client":
        self.live = await self.server.hub.attach(self.user, c.Hello(**hello), self.link)
        await self.settle()
        return self

    async def say(self, message: c.ClientMessage, seconds: float = 5) -> None:
        """Sends a message, and waits `seconds` for its consequences."""
        assert self.live is not None
        self.live.runner.post(message)
        await self.settle(seconds)

    async def write(self, text: str, seconds: float = 5) -> None:
        await self.say(c.TextMessage(text), seconds)

    async def speak(self, seconds: float, *, playing: bool = False) -> None:
        """Sends microphone audio in real time."""
        assert self.live is not None
        for _ in range(round(seconds * 50)):
            self.live.runner.hear(SOUND, playing=playing)
            await asyncio.sleep(0.02)

    async def settle(self, seconds: float = 0.01) -> None:
        await asyncio.sleep(seconds)

    def drop(self, *, for_good: bool = False) -> None:
        assert self.live is not None
        self.server.hub.detach(self.live, self.link, for_good=for_good)

    @property
    def received(self) -> list[s.ServerMessage]:
        return self.link.received

    def every(self, kind: type[Message]) -> list[Message]:
        return [message for message in self.received if isinstance(message, kind)]

    def last(self, kind: type[Message]) -> Message:
        return self.every(kind)[-1]

    @property
    def states(self) -> list[str]:
        return [message.state.value for message in self.every(s.StateChanged)]

    @property
    def handle(self) -> str:
        return self.last(s.Session).resume

    @property
    def last_n(self) -> int:
        return max(message.n for message in self.received)


class ScriptedServers:
    """Servers with scripted models, closed together. A text model serves all sessions of its server."""

    def __init__(self) -> None:
        self.opened: list[Server] = []
        self.script = ScriptedModel([])
        self.voice = ScriptedLive()
        """The voice model that was connected last, or is about to be."""
        self.next_voice: list[Any] = []
        """The script of the model that replaces this one after it is lost or closed."""

    def open(
        self,
        *tools: Tool,
        text: Sequence[Any] | None = None,
        voice: Sequence[Any] | None = None,
        profile: LiveProfile = PROFILE,
        **rest: Any,
    ) -> Server:
        models: dict[Mode, ModelFactory] = {}
        if text is not None:
            self.script = script = ScriptedModel(list(text))
            models[Mode.TEXT] = text_factory(script)
        if voice is not None:
            self.voice = ScriptedLive(voice, profile=profile)
            models[Mode.VOICE] = ModelFactory(profile, self._make_voice)
        server = Server(*tools, models=models, **rest)
        self.opened.append(server)
        return server

    def _make_voice(self) -> ScriptedLive:
        if self.voice.context is not None:
            self.voice = ScriptedLive(self.next_voice, profile=self.voice.profile)
        return self.voice

    async def aclose(self) -> None:
        for server in self.opened:
            await server.aclose()
