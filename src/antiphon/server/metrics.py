"""Metrics of the sessions and models of a process, converted to Prometheus families when scraped."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from antiphon.continuity.counters import ReconnectOutcome
from antiphon.server.deps import NamedHealth
from antiphon.session.hub import Hub
from antiphon.tools.spec import Mode

Counts = Counter[tuple[str, ...]]
"""Numbers by the values of their labels."""


class SessionCollector(Collector):
    """Exports the number of sessions to Prometheus."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def collect(self) -> Iterable[GaugeMetricFamily]:
        sessions = list(self._hub.sessions.values())
        parked = sum(active.runner.outbox.link is None for active in sessions)
        gauge = GaugeMetricFamily("antiphon_sessions", "Sessions in this process", labels=["client"])
        gauge.add_metric(["connected"], len(sessions) - parked)
        gauge.add_metric(["parked"], parked)
        return [gauge]


class ModelCollector(Collector):
    """Exports the answers, failures and tokens of the models to Prometheus."""

    def __init__(self, healths: Mapping[Mode, Sequence[NamedHealth]]) -> None:
        self._healths = healths

    def collect(self) -> Iterable[CounterMetricFamily]:
        # Two models may have the same name at different addresses, and Prometheus refuses a sample that comes twice.
        answers: Counts = Counter()
        failures: Counts = Counter()
        tokens: Counts = Counter()
        for named in chain.from_iterable(self._healths.values()):
            answers[named.name,] += named.health.answers
            for kind, count in named.health.failures.items():
                failures[named.name, kind] += count
            tokens[named.name, "input"] += named.health.input_tokens
            tokens[named.name, "output"] += named.health.output_tokens
        lost = "Failed answers, refused and lost connections"
        return [
            count_family("antiphon_model_answers", "Answers generated to their end", ["model"], answers),
            count_family("antiphon_model_failures", lost, ["model", "kind"], failures),
            count_family("antiphon_model_tokens", "Tokens counted", ["model", "direction"], tokens),
        ]


class EnergyCollector(Collector):
    """Exports the energy of the sessions, and what happened to their upstream connections, to Prometheus."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def collect(self) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
        counters = self._hub.models.counters
        changes: Counts = Counter({(str(mode), reason): n for (mode, reason), n in counters.energy_changes.items()})
        reconnects: Counts = Counter({(str(outcome),): counters.reconnects[outcome] for outcome in ReconnectOutcome})
        fallbacks: Counts = Counter({(str(mode),): counters.fallbacks[mode] for mode in self._hub.models.ladders})
        go_aways: Counts = Counter({(): counters.go_aways})
        return [
            *self._gauges(),
            count_family("antiphon_energy_changes", "Changes of the level of a session", ["mode", "reason"], changes),
            count_family("antiphon_upstream_reconnects", "Connections made again", ["outcome"], reconnects),
            count_family("antiphon_upstream_go_aways", "Ends that a provider has announced", [], go_aways),
            count_family("antiphon_model_fallbacks", "Sessions that got a fallback model", ["mode"], fallbacks),
        ]

    def _gauges(self) -> Iterable[GaugeMetricFamily]:
        levels = GaugeMetricFamily("antiphon_energy_level", "Sessions at this level", labels=["mode", "level"])
        cooling = GaugeMetricFamily(
            "antiphon_rung_cooling_seconds", "Time until a model is used again", labels=["mode", "level", "model"]
        )
        sessions = [active.runner.models.energy() for active in self._hub.sessions.values()]
        for mode, ladder in self._hub.models.ladders.items():
            at = Counter(each[mode] for each in sessions)
            for level in range(ladder.max_level, -1, -1):
                levels.add_metric([mode, str(level)], at[level])
            for level, rung in ladder.rungs.items():
                cooling.add_metric([mode, str(level), rung.name], rung.cooling_s())
        return [levels, cooling]


def count_family(name: str, description: str, labels: Sequence[str], counts: Counts) -> CounterMetricFamily:
    family = CounterMetricFamily(name, description, labels=labels)
    for values, count in counts.items():
        family.add_metric(values, count)
    return family
