"""The health of a model: counts, the last failure, and lines in the log."""

from typing import Any

import pytest
import structlog

from antiphon.models.base import FailureKind
from antiphon.models.health import ModelHealth
from tests.fakes.calls import LoopClock


class StillClock(LoopClock):
    now_s = 100.0

    def now_ms(self) -> int:
        return round(self.now_s * 1000)

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


def lines(logged: list[Any]) -> list[tuple[str, int | None, int]]:
    return [(line["kind"], line["status"], line.get("lines_left_out", 0)) for line in logged]


def test_each_failure_is_a_line_without_content(clock: StillClock) -> None:
    health = ModelHealth(clock)
    with structlog.testing.capture_logs() as logged:
        health.note_failure("m", FailureKind.REFUSED, 401)
        health.note_failure("m", FailureKind.TIMEOUT)
    assert lines(logged) == [("refused", 401, 0), ("timeout", None, 0)]
    assert {line["event"] for line in logged} == {"model_failed"}


def test_a_model_that_fails_all_the_time_is_one_line_a_second_with_a_count(clock: StillClock) -> None:
    health = ModelHealth(clock)
    with structlog.testing.capture_logs() as logged:
        for _ in range(20):
            health.note_failure("m", FailureKind.SERVER_ERROR, 500)
        for _ in range(25):
            clock.now_s += 0.125
            health.note_failure("m", FailureKind.SERVER_ERROR, 500)
    assert [left_out for _, _, left_out in lines(logged)] == [*([0] * 20), 7, 7, 7]
    assert health.failures[FailureKind.SERVER_ERROR] == 45
    assert health.last_failure is not None
