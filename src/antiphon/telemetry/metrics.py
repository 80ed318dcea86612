"""Metrics of tool calls, turns, engines and the store: plain numbers on the hot path, converted to Prometheus families
when scraped."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

Counts = Counter[tuple[str, ...]]
"""Numbers by the values of their labels."""

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


@dataclass(slots=True)
class Durations:
    """A histogram of durations since the process started."""

    total_ms: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(DURATION_BUCKETS_MS) + 1))

    def add(self, duration_ms: float) -> None:
        self.total_ms += duration_ms
        self.buckets[bisect_left(DURATION_BUCKETS_MS, duration_ms)] += 1


@dataclass(slots=True)
class DurationsByLabels:
    """A histogram for each combination of the values of labels. The caller sees to it that there are few."""

    all: dict[tuple[str, ...], Durations] = field(default_factory=dict)

    def add(self, duration_ms: float, *labels: str) -> None:
        found = self.all.get(labels)
        if found is None:
            found = self.all[labels] = Durations()
        found.add(duration_ms)

    def export(self, name: str, description: str, labels: Sequence[str]) -> HistogramMetricFamily:
        family = HistogramMetricFamily(name, description, labels=labels)
        for values, each in self.all.items():
            family.add_metric(values, _cumulative(each.buckets), each.total_ms)
        return family


def count_family(name: str, description: str, labels: Sequence[str], counts: Counts) -> CounterMetricFamily:
    family = CounterMetricFamily(name, description, labels=labels)
    for values, count in counts.items():
        family.add_metric(values, count)
    return family


class Stage(StrEnum):
    """A part of a turn whose duration is measured."""

    END_OF_TURN = "end_of_turn"
    """From the user's last sound to the decision that the turn is over."""
    STT = "stt"
    FIRST_TOKEN = "first_token"
    """From the final transcript to the first word of the answer."""
    TOOLS = "tools"
    """All rounds of tools of the turn."""
    FIRST_AUDIO = "first_audio"
    """From the first word to the first audio."""
    TOTAL = "total"
    """From the user's last sound to the first audio, or the first word in text."""
    HEARD = "heard"
    """From the first audio to the client's report that it has played the answer."""


class TurnOutcome(StrEnum):
    """How a turn ended."""

    ANSWERED = "answered"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    SILENT = "silent"
    """Without an answer, and without an error."""


class TurnStats:
    """The turns of all sessions since the process started."""

    def __init__(self) -> None:
        self.stages = DurationsByLabels()
        self.outcomes: Counts = Counter()
        self.first_outputs = DurationsByLabels()
        self.answers = DurationsByLabels()

    def count(self, mode: str, outcome: TurnOutcome, stages: Mapping[Stage, float]) -> None:
        for each in TurnOutcome:
            self.outcomes[mode, each] += each is outcome
        for stage, duration_ms in stages.items():
            self.stages.add(duration_ms, stage, mode)

    def count_model(self, model: str, first_output_ms: float, duration_ms: float) -> None:
        self.first_outputs.add(first_output_ms, model)
        self.answers.add(duration_ms, model)


class TurnCollector(Collector):
    """Exports how long the stages of turns took, and how turns ended, to Prometheus."""

    def __init__(self, stats: TurnStats) -> None:
        self._stats = stats

    def collect(self) -> Iterable[CounterMetricFamily | HistogramMetricFamily]:
        stats = self._stats
        first = "Time from a request to a model to its first text, audio or tool call"
        return [
            stats.stages.export("antiphon_turn_stage_ms", "Time of the stages of turns", ["stage", "mode"]),
            count_family("antiphon_turns", "Turns by how they ended", ["mode", "outcome"], stats.outcomes),
            stats.first_outputs.export("antiphon_model_first_output_ms", first, ["model"]),
            stats.answers.export("antiphon_model_duration_ms", "Time of a request to a model", ["model"]),
        ]


class EngineStats:
    """How the requests to one speech engine went since the process started."""

    def __init__(self, engine: str = "") -> None:
        self.engine = engine
        """The engine's name, which is the label."""
        self.durations = DurationsByLabels()
        self.first_audio = DurationsByLabels()
        """Only of an engine that speaks."""
        self.errors: Counts = Counter()
        self.last_failed = False
        """Whether the last request failed. An engine that only had no time for optional work has not failed."""

    def begin(self, engine: str, kinds: Iterable[str]) -> None:
        """Sets the engine's name, and lists the kinds of errors that it may have."""
        self.engine = engine
        for kind in kinds:
            self.errors[engine, kind] += 0

    def note_success(self, duration_ms: float) -> None:
        self.last_failed = False
        self.durations.add(duration_ms, self.engine)

    def note_failure(self, kind: str) -> None:
        self.last_failed = True
        self.errors[self.engine, kind] += 1


class EngineCollector(Collector):
    """Exports the time and the errors of speech recognition and synthesis to Prometheus."""

    def __init__(self, stt: EngineStats | None, tts: EngineStats | None) -> None:
        self._stt = stt or EngineStats()
        self._tts = tts or EngineStats()

    def collect(self) -> Iterable[CounterMetricFamily | HistogramMetricFamily]:
        stt, tts, labels = self._stt, self._tts, ["engine"]
        return [
            stt.durations.export("antiphon_stt_duration_ms", "Time to recognise speech", labels),
            count_family("antiphon_stt_errors", "Failed recognitions", ["engine", "kind"], stt.errors),
            tts.first_audio.export("antiphon_tts_first_audio_ms", "Time to the first audio of a text", labels),
            tts.durations.export("antiphon_tts_duration_ms", "Time to speak a text", labels),
            count_family("antiphon_tts_errors", "Failed syntheses", ["engine", "kind"], tts.errors),
        ]


STORE_ERRORS: Final = ("storage", "unavailable")
"""The codes of the errors of a store, which are counted from the start."""


class StoreStats:
    """The units of work of a database since the process started."""

    def __init__(self) -> None:
        self.durations = DurationsByLabels()
        self.errors: Counts = Counter({(code,): 0 for code in STORE_ERRORS})

    def note_error(self, code: str) -> None:
        self.errors[code,] += 1


class StoreCollector(Collector):
    """Exports the latency and the errors of the store to Prometheus."""

    def __init__(self, stats: StoreStats) -> None:
        self._stats = stats

    def collect(self) -> Iterable[CounterMetricFamily | HistogramMetricFamily]:
        units = "Time of a unit of work, with the wait for its turn"
        return [
            self._stats.durations.export("antiphon_store_duration_ms", units, ["kind"]),
            count_family("antiphon_store_errors", "Units of work that failed", ["code"], self._stats.errors),
        ]


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
