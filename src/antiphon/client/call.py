"""A conversation through a microphone and a loudspeaker, for as long as it lasts."""

import asyncio
import base64
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Lock
from typing import Final, Protocol

from antiphon.client.events import Incoming, NewSession
from antiphon.client.session import Session
from antiphon.client.speaking import WAV_HEADER_BYTES
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.limits import SPEECH_HZ

BYTES_PER_S: Final = 2 * SPEECH_HZ
TAIL_BYTES: Final = BYTES_PER_S * 3 // 20
"""0.15 s: what a sound card was given last is heard a little later."""


class Playback:
    """Speech of one answer after another: PCM16, 22,050 Hz, mono."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: deque[bytes] = deque()
        self._turn = 0
        self._played_bytes = 0
        self._silent_bytes = TAIL_BYTES
        """Taken since the last sound."""

    def add(self, turn: int, pcm: bytes) -> None:
        with self._lock:
            if turn != self._turn:
                self._turn, self._played_bytes = turn, 0
            self._waiting.append(pcm)

    def take(self, size_bytes: int) -> bytes:
        """So much of what is next, with silence after its end."""
        taken = bytearray()
        with self._lock:
            while self._waiting and len(taken) < size_bytes:
                piece = self._waiting.popleft()
                room = size_bytes - len(taken)
                taken += piece[:room]
                if piece[room:]:
                    self._waiting.appendleft(piece[room:])
            self._played_bytes += len(taken)
            self._silent_bytes = 0 if len(taken) == size_bytes else self._silent_bytes + size_bytes
        return bytes(taken.ljust(size_bytes, b"\0"))

    def clear(self) -> None:
        """Nothing more of this answer is heard."""
        with self._lock:
            self._waiting.clear()
            self._silent_bytes = TAIL_BYTES

    @property
    def turn(self) -> int:
        """The answer that was put in last."""
        return self._turn

    @property
    def played_ms(self) -> float:
        """Of that answer."""
        return self._played_bytes * 1000 / BYTES_PER_S

    @property
    def is_playing(self) -> bool:
        """Whether a microphone beside the loudspeaker may hear it."""
        with self._lock:
            return bool(self._waiting) or self._silent_bytes < TAIL_BYTES


TICK_S: Final = 0.1
REPORT_TICKS: Final = 3
"""How often it is told how much was played: a server takes four reports a second."""
MAX_WAITING: Final = 250
"""Frames that wait while a connection stalls: what was said longer ago would be an answer to something else."""


class SoundCard(Protocol):
    def open(self, hear: Callable[[bytes], None], play: Callable[[int], bytes]) -> AbstractContextManager[None]:
        """Runs both ways until it is closed, in threads of its own.

        `hear` is given what the microphone hears, PCM16 mono at 16,000 Hz, in pieces of some 20 ms; `play` is asked for
        so many bytes of PCM16 mono at 22,050 Hz when the loudspeaker needs them.
        """
        ...


class Call:
    """In a session that listens already. `tell` sees everything that comes."""

    def __init__(self, session: Session, card: SoundCard, tell: Callable[[Incoming], None]) -> None:
        self._session = session
        self._card = card
        self._tell = tell
        self._playback = Playback()
        self._heard: asyncio.Queue[bytes] = asyncio.Queue()
        self._complete = 0
        """The last answer of which no more audio comes."""
        self._done = 0
        """The last answer that was reported as played."""
        self._is_over = False

    async def run(self) -> None:
        """Until the server ends the call. Raises `Disconnected`."""
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
                        # The last words are still heard.
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
                        # A connection that is gone is told to whoever reads.
                        task.exception()

    async def _take(self, incoming: Incoming) -> None:
        match incoming:
            case s.SpeechFrame(turn=turn, pcm=pcm):
                self._playback.add(turn, pcm)
            case s.Audio(turn=turn, data=data):
                self._playback.add(turn, base64.b64decode(data)[WAV_HEADER_BYTES:])
            case s.GenerationComplete(turn=turn):
                self._complete = turn
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
        """What was heard, so that an answer that is cut off is remembered as far as it came. Ends with the call."""
        ticks = 0
        while self._playback.is_playing or not self._is_over:
            await asyncio.sleep(TICK_S)
            ticks += 1
            turn, is_playing = self._playback.turn, self._playback.is_playing
            if self._is_over:
                continue
            if is_playing and ticks % REPORT_TICKS == 0:
                await self._session.send(c.Playback(turn, self._playback.played_ms))
            elif not is_playing and turn == self._complete > self._done:
                self._done = turn
                await self._session.send(c.PlaybackDone(turn))
