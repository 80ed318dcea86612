"""Where the time of a turn goes, as the client is told at its end."""

from antiphon.models.live import Timings
from antiphon.protocol.server_messages import TurnMetrics


class Stopwatch:
    """Milliseconds of one clock. What did not happen in a turn stays unknown."""

    def __init__(self) -> None:
        self._asked_ms: int | None = None
        self._said_ms: int | None = None
        self._voiced_ms: int | None = None
        self._timings: Timings | None = None

    def ask(self, now_ms: int) -> None:
        """A turn of the user is over: from now on its answer is waited for."""
        self._asked_ms, self._said_ms, self._voiced_ms, self._timings = now_ms, None, None, None

    def note(self, timings: Timings) -> None:
        """How long it took to know what the user said."""
        self._timings = timings

    def say(self, now_ms: int) -> None:
        self._said_ms = self._said_ms or now_ms

    def voice(self, now_ms: int) -> None:
        self._voiced_ms = self._voiced_ms or now_ms

    def read(self, turn: int) -> TurnMetrics | None:
        """None for a turn without a question or without an answer."""
        asked, said, voiced, timings = self._asked_ms, self._said_ms, self._voiced_ms, self._timings
        self._asked_ms = None
        first = voiced or said
        if asked is None or first is None:
            return None
        before_ms = 0.0 if timings is None else timings.silence_ms + timings.wait_ms
        return TurnMetrics(
            turn,
            end_of_turn_ms=None if timings is None else timings.silence_ms,
            stt_ms=None if timings is None else timings.stt_ms,
            first_token_ms=None if said is None else said - asked,
            first_audio_ms=None if voiced is None or said is None else voiced - said,
            total_ms=before_ms + first - asked,
        )
