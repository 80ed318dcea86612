"""A voice call through a microphone and a loudspeaker."""

import asyncio
import base64
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Lock
from typing import Final, Protocol

from antiphon.client.events import Incoming, NewSession
from antiphon.client.session import Session
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.limits import SPEECH_HZ
from antiphon.sound_format import WAV_HEADER_BYTES

BYTES_PER_S: Final = 2 * SPEECH_HZ
TAIL_BYTES: Final = BYTES_PER_S * 3 // 20
"""0.15 s, since a sound card plays its last samples a little later."""

MAX_HELD_BYTES: Final = 4 * BYTES_PER_S
"""How long playback is held at most. The server decides sooner, unless the connection is lost."""


class Playback:
    """Queues the speech of answers for a loudspeaker: PCM16, 22,050 Hz, mono.

    The event loop adds to it, and the thread of the sound card takes from it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: deque[bytes] = deque()
        self._turn = 0
        self._played_bytes = 0
        self._silent_bytes = TAIL_BYTES
        """The bytes of silence that were taken since the last speech."""
        self._hold_left = 0
        """The bytes of silence to play before it goes on by itself. 0 if it is not held."""

    def add(self, turn: int, pcm: bytes) -> None:
        with self._lock:
            if turn != self._turn:
                self._turn, self._played_bytes = turn, 0
            self._waiting.append(pcm)

    def take(self, size_bytes: int) -> bytes:
        """Takes the next bytes, filled up with silence."""
        taken = bytearray()
        with self._lock:
            is_held = self._hold_left > 0
            self._hold_left = max(0, self._hold_left - size_bytes)
            while self._waiting and not is_held and len(taken) < size_bytes:
                piece = self._waiting.popleft()
                room = size_bytes - len(taken)
                taken += piece[:room]
                if piece[room:]:
                    self._waiting.appendleft(piece[room:])
            self._played_bytes += len(taken)
            self._silent_bytes = 0 if len(taken) == size_bytes else self._silent_bytes + size_bytes
        return bytes(taken.ljust(size_bytes, b"\0"))

    def hold(self) -> None:
        """Stops, and keeps the rest of this answer until `resume` or `clear`."""
        with self._lock:
            self._hold_left = MAX_HELD_BYTES if self._waiting else 0

    def resume(self) -> None:
        with self._lock:
            self._hold_left = 0

    def clear(self) -> None:
        """Drops the rest of this answer."""
        with self._lock:
            self._hold_left = 0
            self._waiting.clear()
            self._silent_bytes = TAIL_BYTES

    @property
    def turn(self) -> int:
        """The turn of the answer that was added last."""
        return self._turn

    @property
    def played_ms(self) -> float:
        """How much of that answer was played."""
        return self._played_bytes * 1000 / BYTES_PER_S

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to play, and a microphone near the loudspeaker cannot pick it up any more."""
        with self._lock:
            return not self._waiting and self._silent_bytes >= TAIL_BYTES

    @property
    def is_playing(self) -> bool:
        """Whether a microphone near the loudspeaker may pick it up."""
        with self._lock:
            return (bool(self._waiting) and not self._hold_left) or self._silent_bytes < TAIL_BYTES


TICK_S: Final = 0.1
REPORT_TICKS: Final = 3
"""The ticks between two playback reports: a server accepts four reports a second."""
MAX_WAITING: Final = 250
"""How many frames wait while a connection stalls. Older speech would be out of context."""


class SoundCard(Protocol):
    def open(self, hear: Callable[[bytes], None], play: Callable[[int], bytes]) -> AbstractContextManager[None]:
        """Records and plays in its own threads until it is closed.

        `hear` is called with microphone audio, PCM16 mono at 16,000 Hz, in pieces of about 20 ms; `play` is called with
        a number of bytes, and returns as much PCM16 mono at 22,050 Hz for the loudspeaker.
        """
        ...


class Call:
    """A call in a session that is already listening. `tell` is called with everything that arrives."""

    def __init__(self, session: Session, card: SoundCard, tell: Callable[[Incoming], None]) -> None:
        self._session = session
        self._card = card
        self._tell = tell
        self._playback = Playback()
        self._heard: asyncio.Queue[bytes] = asyncio.Queue()
        self._complete = 0
        """The last answer whose audio is complete."""
        self._done = 0
        """The last answer that was reported as played."""
        self._is_over = False

    @property
    def is_playing(self) -> bool:
        return self._playback.is_playing

    async def run(self) -> None:
        """Runs until the server ends the call. Raises `Disconnected`."""
        loop = asyncio.get_running_loop()

        def hear(pcm: bytes) -> None:
            loop.call_soon_threadsafe(self._hear, pcm)

        with self._card.open(hear, self._playback.take):
            listening, reporting = tasks = [asyncio.create_task(work()) for work in (self._listen, self._report)]
            try:
                async for incoming in self._session.messages():
                    self._tell(incoming)
                    await self._take(incoming)
                    if isinstance(incoming, s.EndVoiceSession):
                        # The last words are still played.
                        self._is_over = True
                        listening.cancel()
                        await reporting
                        return
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
                for task in tasks:
                    if not task.cancelled():
                        # A lost connection is reported to the reader of the messages.
                        task.exception()

    async def _take(self, incoming: Incoming) -> None:
        match incoming:
            case s.SpeechFrame(turn=turn, pcm=pcm):
                self._playback.add(turn, pcm)
            case s.Audio(turn=turn, data=data):
                self._playback.add(turn, base64.b64decode(data)[WAV_HEADER_BYTES:])
            case s.GenerationComplete(turn=turn):
                self._complete = turn
            case s.Hold():
                self._playback.hold()
            case s.Resume():
                self._playback.resume()
            case s.StateChanged(state=s.State.INTERRUPTED):
                self._playback.clear()
                self._done = self._playback.turn
            case NewSession():
                self._playback.clear()
                self._complete = self._done = 0
                await self._session.send(c.StartListening())

    def _hear(self, pcm: bytes) -> None:
        if self._heard.qsize() == MAX_WAITING:
            self._heard.get_nowait()
        self._heard.put_nowait(pcm)

    async def _listen(self) -> None:
        while True:
            pcm = await self._heard.get()
            await self._session.send_audio(pcm, playing=self._playback.is_playing)

    async def _report(self) -> None:
        """Reports what was played, so that an interrupted answer is stored only as far as it was heard."""
        ticks = 0
        while not (self._playback.is_over and self._is_over):
            await asyncio.sleep(TICK_S)
            ticks += 1
            turn, is_played = self._playback.turn, self._playback.is_over
            if self._is_over:
                continue
            if not is_played and ticks % REPORT_TICKS == 0:
                await self._session.send(c.Playback(turn, self._playback.played_ms))
            elif is_played and turn == self._complete > self._done:
                self._done = turn
                await self._session.send(c.PlaybackDone(turn))
