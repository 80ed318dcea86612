"""Metrics of the sessions and models of a process, converted to Prometheus families when scraped."""

import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from antiphon import __version__
from antiphon.continuity.counters import ReconnectOutcome
from antiphon.models.base import FailureKind
from antiphon.security.quota import Kind, Quota
from antiphon.server.deps import NamedHealth
from antiphon.server.refusals import AUTH_REASONS, RefusalCounts, RefusalReason
from antiphon.session.hub import Hub
from antiphon.telemetry.metrics import Counts, count_family
from antiphon.tools.registry import Registry
from antiphon.tools.spec import Mode


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
            # Every kind is listed from the start: an alert on an increase would miss a counter that begins at 1.
            for kind in FailureKind:
                failures[named.name, kind] += named.health.failures[kind]
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


class RefusalCollector(Collector):
    """Exports how many callers and requests were refused, and why, to Prometheus."""

    def __init__(self, callers: RefusalCounts, requests: RefusalCounts, quota: Quota) -> None:
        self._callers = callers
        self._requests = requests
        self._quota = quota

    def collect(self) -> Iterable[CounterMetricFamily]:
        callers: Counts = Counter({(reason,): self._callers[reason] for reason in AUTH_REASONS})
        others = (reason for reason in RefusalReason if reason not in AUTH_REASONS)
        requests: Counts = Counter({(reason,): self._requests[reason] for reason in others})
        # Wrong tokens are among the callers, and lines of the log are no requests.
        kinds = (kind for kind in Kind if kind not in (Kind.WRONG_TOKEN, Kind.LOG_LINE))
        quota: Counts = Counter({(kind,): self._quota.refusals[kind] for kind in kinds})
        wrong = "Requests refused for their origin, host or size"
        return [
            count_family("antiphon_auth_refusals", "Callers refused", ["reason"], callers),
            count_family("antiphon_request_refusals", wrong, ["reason"], requests),
            count_family("antiphon_quota_refusals", "What was over a quota", ["kind"], quota),
        ]


class BuildCollector(Collector):
    """Exports the versions of this server, its Python and its tools to Prometheus."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def collect(self) -> Iterable[GaugeMetricFamily]:
        info = GaugeMetricFamily("antiphon_build_info", "Always 1", labels=["version", "python", "registry"])
        info.add_metric([__version__, platform.python_version(), self._registry.version], 1)
        return [info]
