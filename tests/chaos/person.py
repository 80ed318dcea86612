"""A person at a client: speaks, types, listens, and loses the connection. It keeps everything that it was sent."""

import asyncio
import base64
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Final

from antiphon.protocol import client_messages as c
from antiphon.protocol import codec
from antiphon.protocol import server_messages as s
from antiphon.protocol.closing import Close
from antiphon.protocol.limits import MICROPHONE_HZ, SPEECH_HZ
from antiphon.session.hub import ActiveSession
from antiphon.sound_format import WAV_HEADER_BYTES
from tests.chaos.sound import Tones
from tests.fakes.calls import Server

FRAME_MS: Final = 100
"""Longer than a real client's: the frames of a whole run would take most of its time."""
LEAD_FRAMES: Final = 5
"""How much silence precedes speech: the microphone is open before somebody speaks."""
PAUSE_MS: Final = 1_500
"""How long somebody is silent after a question."""
RESTING: Final = (s.State.IDLE, s.State.LISTENING)
COME_BACK_S: Final = 0.3
"""How long a client waits before it reconnects by itself."""


@dataclass(eq=False)
class Heard:
    """The speech of one turn, in the order in which it came."""

    pcm: bytes = b""
    pieces: list[int] = field(default_factory=list)


class _Link:
    def __init__(self, take: "Callable[[_Link, str | bytes], None]", lose: "Callable[[_Link, Close], None]") -> None:
        self._take = take
        self._lose = lose

    def send(self, frame: str | bytes, *, is_replay: bool = False) -> None:
        self._take(self, frame)

    def close(self, close: Close) -> None:
        self._lose(self, close)


class Person:
    def __init__(self, tones: Tones, user: str = "ann") -> None:
        self.user = user
        self.received: list[s.ServerMessage] = []
        self.log: list[str] = []
        self.heard: dict[int, Heard] = {}
        """What was spoken, by turn."""
        self.problems: list[str] = []
        """What a server must never do."""
        self.session: s.Session | None = None
        self.state = s.State.IDLE
        self.mode = c.Mode.TEXT
        self.queue: tuple[s.QueuedText, ...] = ()
        self.stopped_s: list[float] = []
        """When the person has interrupted an answer with the button, or hung up."""
        self.last_n = 0
        self._seen: set[int] = set()
        self.server: Server | None = None
        self.connections = 0
        self._tones = tones
        self._link: _Link | None = None
        self._active: ActiveSession | None = None
        self._played_at_s = 0.0
        """When all audio that has come will have been played."""
        self._done: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()

    # The connection.

    async def enter(self, server: Server) -> None:
        """Connects, and resumes the session if there is one."""
        link = _Link(self._take, self._lose)
        self.server, self._link = server, link
        self.connections += 1
        hello = c.Hello(mode=c.Mode.TEXT)
        if self.session is not None:
            hello = c.Hello(resume=self.session.resume, last_n=self.last_n)
        active = await server.hub.attach(self.user, hello, link)
        if self._link is link:
            self._active = active
        else:
            server.hub.detach(active, link, for_good=False)

    def drop(self) -> None:
        """Loses the connection without a goodbye."""
        link, active, self._link, self._active = self._link, self._active, None, None
        self._forget_playback()
        if link is not None and active is not None and self.server is not None:
            self.server.hub.detach(active, link, for_good=False)

    @property
    def is_connected(self) -> bool:
        return self._active is not None

    def _lose(self, link: _Link, close: Close) -> None:
        if link is not self._link:
            return
        if not close.come_back:
            self.problems.append(f"closed: the server closed the connection for good: {close.reason}")
        self.drop()
        self._start(self._come_back())

    async def _come_back(self) -> None:
        await asyncio.sleep(COME_BACK_S)
        if self._link is None and self.server is not None:
            await self.enter(self.server)

    async def aclose(self) -> None:
        self._forget_playback()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # What the person does.

    def send(self, message: c.ClientMessage) -> bool:
        """Returns whether there was a connection."""
        if self._active is None:
            return False
        if isinstance(message, c.Interrupt | c.EndVoice):
            self.stopped_s.append(asyncio.get_running_loop().time())
        self._active.settle_handle()
        self._active.runner.post(message)
        return True

    def renew_model(self) -> bool:
        """Asks for a new session of the model. Returns whether there was a connection."""
        if self._active is None:
            return False
        self._active.runner.models.renew()
        return True

    async def speak(self, text: str) -> None:
        """Speaks, and is silent then for as long as it takes to be understood."""
        size = 2 * MICROPHONE_HZ * FRAME_MS // 1_000
        pcm = bytes(LEAD_FRAMES * size) + self._tones.say(text)
        pcm += bytes(2 * MICROPHONE_HZ * PAUSE_MS // 1_000)
        for at in range(0, len(pcm), size):
            if self._active is not None:
                self._active.runner.hear(pcm[at : at + size].ljust(size, b"\0"), playing=self.is_playing)
            await asyncio.sleep(FRAME_MS / 1_000)

    @property
    def is_playing(self) -> bool:
        return asyncio.get_running_loop().time() < self._played_at_s

    @property
    def rests(self) -> bool:
        return self.state in RESTING and not self.queue and not self.is_playing

    async def wait_for(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Returns whether it has become true in time."""
        try:
            async with asyncio.timeout(timeout_s):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    # What the person is told.

    def every(self, kind: type[s.ServerMessage]) -> list[s.ServerMessage]:
        return [message for message in self.received if isinstance(message, kind)]

    def words(self, turn: int) -> list[str]:
        return self._tones.decode(self.heard[turn].pcm, SPEECH_HZ)

    def _take(self, link: _Link, frame: str | bytes) -> None:
        if link is not self._link:
            return
        assert isinstance(frame, str)
        message = codec.decode_server(frame)
        # The introduction of a resumed session comes before what was missed, but has a higher number.
        if message.n in self._seen:
            self.problems.append(f"replayed: {type(message).__name__} {message.n}")
        self._seen.add(message.n)
        self.last_n = max(self.last_n, message.n)
        self.received.append(message)
        self.log.append(f"{asyncio.get_running_loop().time():.3f} {str(message)[:200]}")
        match message:
            case s.StateChanged(state=state):
                self.state = state
                if state is s.State.INTERRUPTED:
                    self._forget_playback()
            case s.Session():
                if self.session is not None and not message.resumed:
                    self.problems.append("session_lost: the session could not be resumed")
                self.session, self.mode = message, message.mode
            case s.Queued(messages=messages):
                self.queue = messages
            case s.Audio(turn=turn, seq=seq, data=data) if turn:
                self._hear(turn, seq, base64.b64decode(data)[WAV_HEADER_BYTES:])
            case s.GenerationComplete(turn=turn):
                self._report_playback(turn)
            case s.EndVoiceSession():
                self.mode = c.Mode.TEXT
                self._forget_playback()
        self._changed.set()

    def _hear(self, turn: int, seq: int, pcm: bytes) -> None:
        heard = self.heard.setdefault(turn, Heard())
        heard.pcm += pcm
        heard.pieces.append(seq)
        now_s = asyncio.get_running_loop().time()
        self._played_at_s = max(self._played_at_s, now_s) + len(pcm) / 2 / SPEECH_HZ

    def _report_playback(self, turn: int) -> None:
        if turn in self.heard:
            self._done = asyncio.get_running_loop().call_at(self._played_at_s, self._finish_playback, turn)

    def _finish_playback(self, turn: int) -> None:
        self.send(c.PlaybackDone(turn))
        self._changed.set()

    def _forget_playback(self) -> None:
        self._played_at_s = 0.0
        if self._done is not None:
            self._done.cancel()
            self._done = None
