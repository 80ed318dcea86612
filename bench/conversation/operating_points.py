"""False cut-offs and delays of a turn detector, by the protocol of LiveKit's eot-bench.

A policy has a threshold for the detector's score, a delay before which nothing is done, and a time-out after which the
turn ends whatever the score is. All policies are tried. What counts is the best share of pauses that are cut off at a
given mean delay, and the best mean delay at a given share.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

THRESHOLDS: Final = np.round(np.arange(0, 1.001, 0.01), 2)
ACTION_DELAYS_MS: Final = range(200, 1_001, 100)
TIMEOUTS_MS: Final = range(1_000, 3_501, 500)
LATENCY_BUDGETS_MS: Final = (300, 600)
CUT_OFF_BUDGETS: Final = (0.05, 0.10)

PUBLISHED: Final = (
    ("LiveKit Turn Detector v1 (cloud)", 0.099, 0.045, 543, 295),
    ("LiveKit Turn Detector v1-mini", 0.278, 0.121, 1_070, 698),
    ("Smart Turn v3.2", 0.352, 0.148, 1_051, 739),
    ("silence alone", 0.556, 0.217, 1_600, 1_000),
)
"""What eot-bench publishes for its English recordings of people: cut-offs at 300 and 600 ms, delays at 5 and 10 %."""

_LENGTHS_MS: Final = (200, 300, 600, 1_000, 1_600, 5_000)
_SHARES: Final = (0.0, 0.444, 0.783, 0.90, 0.95, 1.0)
"""How long its speakers pause, as the published figures of silence alone tell: 44.4 % pause for less than 300 ms."""
PAUSES_MS: Final = np.exp(np.interp((np.arange(200) + 0.5) / 200, _SHARES, np.log(_LENGTHS_MS)))
"""Lengths with that distribution. Every pause of ours is judged with each of them, so chance plays no part."""

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class OperatingPoints:
    cut_offs: tuple[float | None, ...]
    """The least share of pauses that are cut off, for each latency budget; None if no policy is as fast."""
    delays_ms: tuple[float | None, ...]
    """The least mean delay after the end of a turn, for each cut-off budget."""


def find_operating_points(pauses: Sequence[float], ends: Sequence[float]) -> OperatingPoints:
    """Tries all policies on the scores of pauses and of ends."""
    policies = list(_policies(np.array(pauses), np.array(ends)))
    return OperatingPoints(
        tuple(
            min((cut for cut, delay_ms in policies if delay_ms <= budget_ms + 1e-6), default=None)
            for budget_ms in LATENCY_BUDGETS_MS
        ),
        tuple(
            min((delay_ms for cut, delay_ms in policies if cut <= budget + 1e-9), default=None)
            for budget in CUT_OFF_BUDGETS
        ),
    )


def silence_alone() -> OperatingPoints:
    """What a fixed silence gives."""
    delays_ms = np.arange(200, 5_001, 10)
    cut = np.array([float(np.mean(each < PAUSES_MS)) for each in delays_ms])
    return OperatingPoints(
        tuple(float(cut[delays_ms <= budget].min()) for budget in LATENCY_BUDGETS_MS),
        tuple(float(delays_ms[cut <= budget + 1e-9].min()) for budget in CUT_OFF_BUDGETS),
    )


def _policies(pauses: Scores, ends: Scores) -> "list[tuple[float, float]]":
    found = []
    for timeout_ms in TIMEOUTS_MS:
        outlast = float(np.mean(timeout_ms < PAUSES_MS))
        for delay_ms in ACTION_DELAYS_MS:
            acted = float(np.mean(min(delay_ms, timeout_ms) < PAUSES_MS))
            for threshold in THRESHOLDS:
                fired, detected = float(np.mean(pauses >= threshold)), float(np.mean(ends >= threshold))
                cut = fired * acted + (1 - fired) * outlast
                found.append((cut, detected * min(delay_ms, timeout_ms) + (1 - detected) * timeout_ms))
    return found
