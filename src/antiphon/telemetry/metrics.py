"""Metrics of tool calls: plain numbers on the hot path, converted to Prometheus families when scraped."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

DURATION_BUCKETS_MS: Final = (1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 2_500.0, 5_000.0, 30_000.0)


@dataclass(slots=True)
class CallStats:
    """The outcomes of the calls to one tool since the process started."""

    outcomes: dict[str, int] = field(default_factory=dict)
    cache_hits: int = 0
    total_ms: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(DURATION_BUCKETS_MS) + 1))

    def count(self, outcome: str, duration_ms: float, cache_hit: bool) -> None:
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        self.cache_hits += cache_hit
        self.total_ms += duration_ms
        self.buckets[bisect_left(DURATION_BUCKETS_MS, duration_ms)] += 1

    @property
    def calls(self) -> int:
        return sum(self.outcomes.values())

    def summary(self) -> dict[str, Any]:
        calls = self.calls
        return {
            "calls": calls,
            "errors": calls - self.outcomes.get("ok", 0),
            "cache_hits": self.cache_hits,
            "average_ms": round(self.total_ms / calls, 3) if calls else 0.0,
        }


class CallCollector(Collector):
    """Exports the statistics of all tools to Prometheus."""

    def __init__(self, stats: Callable[[], Mapping[str, CallStats]]) -> None:
        self._stats = stats

    def collect(self) -> Iterable[CounterMetricFamily | HistogramMetricFamily]:
        calls = CounterMetricFamily("antiphon_tool_calls", "Calls through the gate", labels=["tool", "outcome"])
        hits = CounterMetricFamily("antiphon_tool_cache_hits", "Calls answered from an earlier run", labels=["tool"])
        durations = HistogramMetricFamily("antiphon_tool_duration_ms", "Time in the gate", labels=["tool"])
        for tool, stats in self._stats().items():
            for outcome, count in stats.outcomes.items():
                calls.add_metric([tool, outcome], count)
            hits.add_metric([tool], stats.cache_hits)
            durations.add_metric([tool], _cumulative(stats.buckets), stats.total_ms)
        return [calls, hits, durations]


@dataclass(slots=True)
class UnderstandingStats:
    """How the offline assistant has understood what people said since the process started, by tier."""

    tiers: dict[str, CallStats] = field(default_factory=dict)

    def count(self, tier: str, duration_ms: float) -> None:
        self.tiers.setdefault(tier, CallStats()).count("ok", duration_ms, cache_hit=False)


class UnderstandingCollector(Collector):
    """Exports how many requests each tier understood, and how long it took, to Prometheus."""

    def __init__(self, stats: UnderstandingStats) -> None:
        self._stats = stats

    def collect(self) -> Iterable[CounterMetricFamily | HistogramMetricFamily]:
        requests = CounterMetricFamily(
            "antiphon_understood", "What users said, by how it was understood", labels=["tier"]
        )
        durations = HistogramMetricFamily("antiphon_understanding_duration_ms", "Time to understand", labels=["tier"])
        for tier, stats in self._stats.tiers.items():
            requests.add_metric([tier], stats.calls)
            durations.add_metric([tier], _cumulative(stats.buckets), stats.total_ms)
        return [requests, durations]


def _cumulative(buckets: list[int]) -> list[tuple[str, float]]:
    edges = [*(str(edge) for edge in DURATION_BUCKETS_MS), "+Inf"]
    total = 0
    out: list[tuple[str, float]] = []
    for edge, count in zip(edges, buckets, strict=True):
        total += count
        out.append((edge, total))
    return out
