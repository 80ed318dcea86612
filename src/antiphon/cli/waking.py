"""`antiphon talk --mic --wake-word NAME`: nothing leaves this machine until somebody says the wake word."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final, Protocol

from antiphon.client import Incoming
from antiphon.client.call import Call, SoundCard
from antiphon.protocol import server_messages as s

SLEEP_AFTER_S: Final = 8.0
"""How much silence after an answer ends the conversation."""
CHECK_EVERY_S: Final = 0.25
MAX_KEPT_PIECES: Final = 250
"""How much of what follows the wake word is kept until the call hears it: five seconds."""


class Waker(Protocol):
    """Finds the wake word. `antiphon.audio.wake_word.WakeWord` is one."""

    def hear(self, pcm: bytes) -> bytes | None:
        """Returns what was said after the wake word, once it was heard."""
        ...

    def reset(self) -> None: ...


class WakingSoundCard:
    """A sound card that stays open, and listens for the wake word between calls.

    What is said right after the wake word is kept for the call, so "hey Jarvis, what time is it" is one request.
    """

    def __init__(self, card: SoundCard, waker: Waker) -> None:
        self._card = card
        self._waker = waker
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        # The sound card's threads call `_hear` and `_play`, the event loop the rest.
        self._lock = Lock()
        self._kept: deque[bytes] = deque(maxlen=MAX_KEPT_PIECES)
        self._is_awake = False
        self._call: tuple[Callable[[bytes], None], Callable[[int], bytes]] | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        with self._card.open(self._hear, self._play):
            yield

    async def wait(self) -> None:
        """Returns when the wake word is heard. From then on all that is said is kept for a call."""
        with self._lock:
            self._waker.reset()
            self._kept.clear()
            self._woken.clear()
            self._is_awake = False
        await self._woken.wait()

    @contextmanager
    def open(self, hear: Callable[[bytes], None], play: Callable[[int], bytes]) -> Iterator[None]:
        """Implements `antiphon.client.call.SoundCard` for one call."""
        with self._lock:
            while self._kept:
                hear(self._kept.popleft())
            self._call = hear, play
        try:
            yield
        finally:
            with self._lock:
                self._call = None

    def _hear(self, pcm: bytes) -> None:
        with self._lock:
            if self._call is not None:
                self._call[0](pcm)
            elif self._is_awake:
                self._kept.append(pcm)
            elif (said := self._waker.hear(pcm)) is not None:
                self._is_awake = True
                self._kept.append(said)
                self._loop.call_soon_threadsafe(self._woken.set)

    def _play(self, size_bytes: int) -> bytes:
        with self._lock:
            call = self._call
        return bytes(size_bytes) if call is None else call[1](size_bytes)


class Silence:
    """Measures how long nobody has said anything in a call, from what the server sends."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._since_s = now_s()
        self._is_listening = True

    def take(self, incoming: Incoming) -> None:
        match incoming:
            case s.StateChanged(state=state):
                self._is_listening = state is s.State.LISTENING
                self.interrupt()
            case s.Transcript() | s.ResponseChunk() | s.SpeechFrame() | s.Audio() | s.ConfirmationRequest():
                self.interrupt()

    def interrupt(self) -> None:
        self._since_s = self._now_s()

    @property
    def lasts_s(self) -> float:
        return self._now_s() - self._since_s if self._is_listening else 0.0


async def run_until_silent(call: Call, silence: Silence) -> None:
    """Runs a call until the server ends it, or until nobody has spoken for `SLEEP_AFTER_S`."""
    running = asyncio.create_task(call.run())
    try:
        while not running.done() and silence.lasts_s < SLEEP_AFTER_S:
            await asyncio.wait([running], timeout=CHECK_EVERY_S)
            if call.is_playing:
                silence.interrupt()
    finally:
        running.cancel()
        await asyncio.wait([running])
    if not running.cancelled():
        running.result()
