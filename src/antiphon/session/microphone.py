"""The way of microphone audio to the model. What comes while none listens waits for one, up to five seconds of it."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from antiphon.protocol.limits import MICROPHONE_HZ
from antiphon.session.brain import Brain, Work
from antiphon.session.state import Phase, Session
from antiphon.session.voice import Voice
from antiphon.tools.spec import Mode

BYTES_PER_MS: Final = 2 * MICROPHONE_HZ // 1000
MIN_SPEECH_MS: Final = 300
MAX_WAITING_MS: Final = 5_000
"""Of more, the newest is kept."""
REOPEN_S: Final = 1.0
"""A call that has lost its model gets another one, this long after the last at the earliest."""


class Microphone:
    """Past the mailbox: audio changes no state, and fifty frames a second must not wait in line."""

    def __init__(
        self, brain: Brain, voice: Voice, session: Callable[[], Session], post: Callable[[Work], None]
    ) -> None:
        self._brain = brain
        self._voice = voice
        self._session = session
        self._post = post
        self._waiting: deque[tuple[bytes, bool]] | None = None
        """None while audio goes straight to the model."""
        self._waiting_bytes = 0
        self._heard_bytes = 0
        """Since the last turn."""
        self._reopened_s = -REOPEN_S
        self._reopening: asyncio.TimerHandle | None = None

    @property
    def has_heard_speech(self) -> bool:
        return self._heard_bytes >= MIN_SPEECH_MS * BYTES_PER_MS

    def begin_turn(self) -> None:
        self._heard_bytes = 0

    def wait(self) -> None:
        """Somebody is about to speak: what comes is kept until `open`."""
        if self._waiting is None:
            self._waiting, self._waiting_bytes = deque(), 0

    def hear(self, pcm: bytes, playing: bool) -> None:
        """`playing`: the client plays the assistant's speech, which its microphone may hear."""
        if self._waiting is not None:
            self._keep(pcm, playing)
        elif self._session().phase is not Phase.IDLE and not self._pass_on(pcm, playing) and self._is_deaf():
            self.wait()
            self._keep(pcm, playing)
            now_s = asyncio.get_running_loop().time()
            delay_s = max(0.0, self._reopened_s + REOPEN_S - now_s)
            self._reopening = asyncio.get_running_loop().call_later(delay_s, self._post, self._reopen)

    def open(self) -> None:
        """Passes on what has waited, in its order; drops it if nobody listens."""
        if self._session().phase is Phase.IDLE:
            self._waiting = None
        while self._waiting:
            pcm, playing = self._waiting.popleft()
            self._waiting_bytes -= len(pcm)
            self._pass_on(pcm, playing)
        self._waiting = None

    def close(self) -> None:
        if self._reopening is not None:
            self._reopening.cancel()

    def _is_deaf(self) -> bool:
        return self._session().mode is Mode.VOICE and self._brain.name is None

    def _keep(self, pcm: bytes, playing: bool) -> None:
        assert self._waiting is not None
        self._waiting.append((pcm, playing))
        self._waiting_bytes += len(pcm)
        while self._waiting_bytes > MAX_WAITING_MS * BYTES_PER_MS:
            self._waiting_bytes -= len(self._waiting.popleft()[0])

    def _pass_on(self, pcm: bytes, playing: bool) -> bool:
        if not self._brain.hear(pcm, playing):
            return False
        self._heard_bytes += len(pcm)
        return True

    async def _reopen(self) -> None:
        """The call has lost its model, or has come from another process without one."""
        self._reopened_s = asyncio.get_running_loop().time()
        await self._voice.reopen()
        self.open()
