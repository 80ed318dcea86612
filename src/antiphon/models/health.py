"""The health of a model: each failure is a line in the log, the last one is kept for `/ready`, and all are counted."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from antiphon.clock import Clock, SystemClock
from antiphon.models.base import FailureKind
from antiphon.security.quota import Buckets, Rate
from antiphon.telemetry.log import get_logger

LINES: Final = Rate(per_s=1, burst=20)
"""How many lines a model's failures of one kind may write: a client may make it fail as often as it asks."""

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LastFailure:
    kind: FailureKind
    status: int | None
    """The HTTP status of the model's server, if it refused."""
    at_ms: int


class ModelHealth:
    """The health of one model, for all sessions of a process. Nothing that people said is logged or kept."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self.last_failure: LastFailure | None = None
        """None if the last answer succeeded, or if there was none yet."""
        self.is_warming = False
        """Whether the model's server is reading the prompt ahead of time, so that answers may have to wait for that."""
        self.answers = 0
        """How many answers were generated to their end."""
        self.failures: Counter[FailureKind] = Counter()
        self._lines = Buckets(LINES)
        self._left_out: Counter[FailureKind] = Counter()
        """Failures without a line of their own."""
        self.input_tokens = 0
        self.output_tokens = 0

    def note_success(self) -> None:
        self.answers += 1
        self.last_failure = None

    def note_failure(self, model: str, kind: FailureKind, status: int | None = None) -> None:
        """The model could not be connected, has ended the connection, or has failed to answer."""
        self.failures[kind] += 1
        self.last_failure = LastFailure(kind, status, self._clock.now_ms())
        self._log(model, kind, status)

    def _log(self, model: str, kind: FailureKind, status: int | None) -> None:
        now_s = self._clock.monotonic()
        if self._lines.wait_s(kind, 1, now_s) > 0:
            self._left_out[kind] += 1
            return
        self._lines.take(kind, 1, now_s)
        left_out = self._left_out.pop(kind, 0)
        more = {"lines_left_out": left_out} if left_out else {}
        log.warning("model_failed", model=model, kind=kind, status=status, **more)

    def note_usage(self, input_tokens: int, output_tokens: int) -> None:
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens
