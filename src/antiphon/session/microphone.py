"""The way of microphone audio to the model. What comes while no model listens yet is kept, up to five seconds of it."""

from collections import deque
from collections.abc import Callable
from typing import Final

from antiphon.protocol.limits import MICROPHONE_HZ
from antiphon.session.models import SessionModels
from antiphon.session.recording import CallRecording
from antiphon.session.state import Phase, SessionState

BYTES_PER_MS: Final = 2 * MICROPHONE_HZ // 1000
MIN_SPEECH_MS: Final = 300
MAX_WAITING_MS: Final = 5_000
"""How much audio is kept: the newest."""


class Microphone:
    """Audio does not pass the mailbox: it changes no state, and fifty frames a second must not wait in line."""

    def __init__(self, models: SessionModels, state: Callable[[], SessionState], recording: CallRecording) -> None:
        self._models = models
        self._recording = recording
        self._state = state
        self._waiting: deque[tuple[bytes, bool]] | None = None
        """None while audio goes straight to the model."""
        self._waiting_bytes = 0
        self._heard_bytes = 0
        """What the model was sent since the last turn."""

    @property
    def has_heard_speech(self) -> bool:
        return self._heard_bytes >= MIN_SPEECH_MS * BYTES_PER_MS

    @property
    def is_waiting(self) -> bool:
        """Whether a model that listens is about to be there."""
        return self._waiting is not None

    def begin_turn(self) -> None:
        self._heard_bytes = 0

    def wait(self) -> None:
        """A model that listens is about to be there: what comes is kept until `open`."""
        if self._waiting is None:
            self._waiting, self._waiting_bytes = deque(), 0

    def hear(self, pcm: bytes, playing: bool) -> None:
        """`playing`: the client is playing the assistant's speech, which its microphone may pick up."""
        if self._waiting is not None:
            self._recording.hear(pcm, is_waiting=True)
            self._keep(pcm, playing)
        elif self._state().phase is not Phase.IDLE:
            self._recording.hear(pcm, is_waiting=False)
            self._pass_on(pcm, playing)

    def open(self) -> None:
        """Passes on what has waited, in its order; drops it if the session does not listen."""
        waiting, self._waiting = self._waiting, None
        if waiting and self._state().phase is not Phase.IDLE:
            for pcm, playing in waiting:
                self._pass_on(pcm, playing)

    def _keep(self, pcm: bytes, playing: bool) -> None:
        assert self._waiting is not None
        self._waiting.append((pcm, playing))
        self._waiting_bytes += len(pcm)
        while self._waiting_bytes > MAX_WAITING_MS * BYTES_PER_MS:
            self._waiting_bytes -= len(self._waiting.popleft()[0])

    def _pass_on(self, pcm: bytes, playing: bool) -> None:
        connection = self._models.connection
        if connection is not None and connection.send_audio(pcm, playing=playing):
            self._heard_bytes += len(pcm)
