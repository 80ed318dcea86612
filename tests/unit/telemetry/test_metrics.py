from prometheus_client import CollectorRegistry, generate_latest

from antiphon.telemetry.metrics import CallCollector, CallStats, UnderstandingCollector, UnderstandingStats


def stats_of(*calls: tuple[str, float, bool]) -> CallStats:
    stats = CallStats()
    for outcome, duration_ms, cache_hit in calls:
        stats.count(outcome, duration_ms, cache_hit)
    return stats


def scrape(**stats: CallStats) -> dict[str, float]:
    """What Prometheus would read: each sample's name and labels, and its value."""
    registry = CollectorRegistry()
    registry.register(CallCollector(lambda: stats))
    lines = generate_latest(registry).decode().splitlines()
    samples = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in samples}


def test_a_tool_that_was_never_called_has_an_empty_summary() -> None:
    assert CallStats().summary() == {"calls": 0, "errors": 0, "cache_hits": 0, "average_ms": 0.0}


def test_a_summary_counts_errors_hits_and_the_average() -> None:
    stats = stats_of(("ok", 10.0, False), ("ok", 0.0, True), ("TRANSIENT", 5.0, False))
    assert stats.summary() == {"calls": 3, "errors": 1, "cache_hits": 1, "average_ms": 5.0}


def test_calls_are_exported_by_tool_and_outcome() -> None:
    samples = scrape(calculate=stats_of(("ok", 1.0, False), ("ok", 1.0, False), ("VALIDATION", 1.0, False)))
    assert samples['antiphon_tool_calls_total{outcome="ok",tool="calculate"}'] == 2
    assert samples['antiphon_tool_calls_total{outcome="VALIDATION",tool="calculate"}'] == 1


def test_cache_hits_are_exported_by_tool() -> None:
    samples = scrape(a=stats_of(("ok", 1.0, True)), b=stats_of(("ok", 1.0, False)))
    assert samples['antiphon_tool_cache_hits_total{tool="a"}'] == 1
    assert samples['antiphon_tool_cache_hits_total{tool="b"}'] == 0


def test_the_buckets_of_a_histogram_are_cumulative() -> None:
    samples = scrape(a=stats_of(("ok", 0.5, False), ("ok", 7.0, False), ("ok", 60_000.0, False)))
    bucket = 'antiphon_tool_duration_ms_bucket{{le="{}",tool="a"}}'.format
    assert [samples[bucket(edge)] for edge in ("1.0", "5.0", "10.0", "30000.0", "+Inf")] == [1, 1, 2, 2, 3]


def test_a_duration_on_the_edge_of_a_bucket_belongs_to_it() -> None:
    samples = scrape(a=stats_of(("ok", 5.0, False)))
    assert samples['antiphon_tool_duration_ms_bucket{le="5.0",tool="a"}'] == 1
    assert samples['antiphon_tool_duration_ms_bucket{le="1.0",tool="a"}'] == 0


def test_a_histogram_has_the_sum_and_the_number_of_its_calls() -> None:
    samples = scrape(a=stats_of(("ok", 1.5, False), ("ok", 2.5, False)))
    assert samples['antiphon_tool_duration_ms_sum{tool="a"}'] == 4.0
    assert samples['antiphon_tool_duration_ms_count{tool="a"}'] == 2


def test_a_scrape_sees_the_calls_of_that_moment() -> None:
    stats = CallStats()
    assert 'antiphon_tool_calls_total{outcome="ok",tool="a"}' not in scrape(a=stats)
    stats.count("ok", 1.0, False)
    assert scrape(a=stats)['antiphon_tool_calls_total{outcome="ok",tool="a"}'] == 1


def test_what_people_said_is_exported_by_the_tier_that_understood_it() -> None:
    stats = UnderstandingStats()
    stats.count("grammar", 1.5)
    stats.count("grammar", 2.5)
    stats.count("meaning", 6.0)
    registry = CollectorRegistry()
    registry.register(UnderstandingCollector(stats))
    exported = generate_latest(registry).decode()
    assert 'antiphon_understood_total{tier="grammar"} 2.0' in exported
    assert 'antiphon_understanding_duration_ms_sum{tier="meaning"} 6.0' in exported
