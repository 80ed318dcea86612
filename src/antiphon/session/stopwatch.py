"""Where the time of a turn goes, as the client is told at its end."""

from antiphon.protocol.server_messages import TurnMetrics


class Stopwatch:
    """Milliseconds of one clock. What did not happen in a turn stays unknown."""

    def __init__(self) -> None:
        self._asked_ms: int | None = None
        self._said_ms: int | None = None
        self._voiced_ms: int | None = None

    def ask(self, now_ms: int) -> None:
        """The user's turn is over; the answer begins to be waited for."""
        self._asked_ms, self._said_ms, self._voiced_ms = now_ms, None, None

    def say(self, now_ms: int) -> None:
        self._said_ms = self._said_ms or now_ms

    def voice(self, now_ms: int) -> None:
        self._voiced_ms = self._voiced_ms or now_ms

    def read(self, turn: int) -> TurnMetrics | None:
        """None for a turn without a question or without an answer."""
        asked, said, voiced = self._asked_ms, self._said_ms, self._voiced_ms
        self._asked_ms = None
        first = voiced or said
        if asked is None or first is None:
            return None
        return TurnMetrics(
            turn,
            first_token_ms=None if said is None else said - asked,
            first_audio_ms=None if voiced is None or said is None else voiced - said,
            total_ms=first - asked,
        )
