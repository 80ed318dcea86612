"""The health of a model: each failure is one line in the log, and the last one is kept for `/ready`."""

from dataclasses import dataclass

from antiphon.clock import Clock, SystemClock
from antiphon.models.base import FailureKind, ModelError
from antiphon.telemetry.log import get_logger

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LastFailure:
    kind: FailureKind
    status: int | None
    """The HTTP status of the model's server, if it refused."""
    at_ms: int


class ModelHealth:
    """The health of one model, for all sessions of a process. Nothing that people said is logged or kept."""

    def __init__(self, name: str, clock: Clock | None = None) -> None:
        self._name = name
        self._clock = clock or SystemClock()
        self.last_failure: LastFailure | None = None
        """None if the last answer succeeded, or if there was none yet."""

    def note_success(self) -> None:
        self.last_failure = None

    def note_failure(self, error: BaseException) -> None:
        if isinstance(error, ModelError):
            log.warning("model_failed", model=self._name, kind=error.kind, status=error.status)
            kind, status = error.kind, error.status
        else:
            log.error("model_failed", model=self._name, kind=FailureKind.UNEXPECTED, exc_info=error)
            kind, status = FailureKind.UNEXPECTED, None
        self.last_failure = LastFailure(kind, status, self._clock.now_ms())
