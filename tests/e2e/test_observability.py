"""Traces and metrics of a real server: a spoken turn with a tool, one of Gemini on the simulator, and a typed one."""

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.request import Request, urlopen

import promql_parser
import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from antiphon.client import Mode, connect
from antiphon.client.speaking import Exchange
from antiphon.protocol import server_messages as s
from antiphon.telemetry.metrics import Stage
from tests.e2e.questions import PRODUCT, TOKYO
from tests.e2e.voices import RMS, SLT, Person, VoiceServer, calling, make_clips, serve
from tests.fakes.otlp_collector import CollectedTrace, Collector, collecting
from tests.fakes.tree import ROOT
from tests.wire.simulators import run_simulator

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(180)]

MODEL: Final = "gemini-3.8-live"
DOCS: Final = ROOT / "docs"
FROM_PROMETHEUS: Final = "instance"
"""The label that Prometheus adds to every sample."""


@dataclass(frozen=True)
class Observed:
    collector: Collector
    metrics: str
    spoken: Exchange
    announced: str
    session_id: str
    """The session of the spoken turn."""
    ready: dict[str, Any]

    def turn(self, mode: str, energy: int) -> CollectedTrace:
        """The only turn of this mode at this level of energy."""
        wanted = {"antiphon.mode": mode, "antiphon.energy_level": energy}
        [found] = [turn for turn in self.collector.turns if wanted.items() <= turn.root.attributes.items()]
        return found


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Observed]:
    """A turn of Gemini, one of the local voice on a lower level of energy, and a typed one. The server has stopped when
    tests see it, so everything was sent."""
    clips = make_clips(models_dir, [(SLT, TOKYO.text), (RMS, PRODUCT.text)])
    folder = tmp_path_factory.mktemp("observed")
    with (
        collecting() as collector,
        run_simulator("gemini-live", "--tls-dir", "tls", folder=tmp_path_factory.mktemp("sim")) as gemini,
    ):
        certificate = re.search(r"SSL_CERT_FILE=(\S+)", gemini.announced)
        assert certificate is not None
        (folder / "antiphon.toml").write_text(
            f'[model]\nvoice = "gemini-live:https://localhost:{gemini.port}#{MODEL}"\n'
        )
        variables = {
            "GEMINI_API_KEY": "any",
            "SSL_CERT_FILE": certificate[1],
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
        }
        with serve(folder, models_dir, **variables) as server:

            async def talk() -> tuple[Exchange, str]:
                async with calling(server.url) as person:
                    assert TOKYO.is_answered_by(await person.say(clips[SLT, TOKYO.text], patient=True))
                async with calling(server.url) as person:
                    session_id = next(each.session_id for each in person.told if isinstance(each, s.Session))
                    await asyncio.to_thread(set_level, server, 1, session_id)
                    spoken = await person.say(clips[RMS, PRODUCT.text], patient=True)
                async with connect(server.url, mode=Mode.TEXT) as session:
                    assert PRODUCT.is_answered_by(await Person(session).ask("what is 17 times 6"))
                return spoken, session_id

            spoken, session_id = asyncio.run(talk())
            with urlopen(f"{http(server)}/metrics", timeout=20) as answer:
                metrics = answer.read().decode()
            ready = server.get("/ready")
        yield Observed(collector, metrics, spoken, "\n".join(server.announced), session_id, ready)


def http(server: VoiceServer) -> str:
    return server.url.replace("ws:", "http:").removesuffix("/ws")


def set_level(server: VoiceServer, level: int, session_id: str) -> None:
    body = {"mode": "voice", "level": level, "session_id": session_id}
    urlopen(Request(f"{http(server)}/api/energy", json.dumps(body).encode(), method="PUT"), timeout=20).close()


# The traces.


def test_a_spoken_turn_with_a_tool_is_one_trace_with_every_stage(observed: Observed) -> None:
    turn = observed.turn("voice", 1)
    print(turn.tree())
    assert sorted(turn.names) == sorted(["end_of_turn", "stt", "model", "tool calculate", "model", "tts", "heard"])
    assert {span.parent_id for span in turn.spans} == {turn.root.span_id}
    assert turn.root.parent_id == b""
    began = [turn.one(name).start_ns for name in ("end_of_turn", "tool calculate", "tts", "heard")]
    assert began == sorted(began)
    assert all(turn.root.start_ns <= span.start_ns <= span.end_ns <= turn.root.end_ns for span in turn.spans)
    metrics = observed.spoken.metrics
    assert metrics is not None
    assert turn.one("end_of_turn").ms == pytest.approx(metrics.end_of_turn_ms, abs=1)
    assert turn.root.attributes["antiphon.total_ms"] == pytest.approx(metrics.total_ms)
    assert turn.one("stt").attributes["antiphon.engine"] == "moonshine"
    assert turn.one("tts").attributes["antiphon.engine"] == "hibari"
    assert "first_audio" in turn.one("tts").events
    assert turn.one("tool calculate").attributes["antiphon.gate"] == "ran"
    assert turn.one("tool calculate").attributes["antiphon.outcome"] == "ok"
    # The client has played the answer, which takes as long as its audio.
    assert turn.one("heard").attributes["antiphon.reported"] is True
    assert turn.one("heard").ms >= 1000 * observed.spoken.answer_s - 600


def test_a_turn_of_gemini_is_one_trace_without_engines_of_ours(observed: Observed) -> None:
    turn = observed.turn("voice", 3)
    print(turn.tree())
    assert sorted(turn.names) == sorted(["end_of_turn", "model", "tool get_current_time", "model", "heard"])
    assert {span.parent_id for span in turn.spans} == {turn.root.span_id}
    assert turn.root.attributes["gen_ai.request.model"] == f"gemini-live:{MODEL}"
    # The server has heard itself when the user became silent.
    assert turn.one("end_of_turn").ms > 50
    first, second = (span for span in turn.spans if span.name == "model")
    assert first.attributes["antiphon.called_tools"]
    # On a slow machine, the simulator says "One moment." before the tool is called.
    assert {"first_token", "first_audio"} <= {*first.events, *second.events}
    assert turn.one("tool get_current_time").start_ns >= first.end_ns - 1_000_000


def test_a_typed_turn_is_a_trace_too(observed: Observed) -> None:
    turn = observed.turn("text", 2)
    print(turn.tree())
    assert sorted(turn.names) == ["model", "model", "tool calculate"]
    assert turn.root.attributes["gen_ai.request.model"] == "builtin"
    assert turn.root.attributes["antiphon.spoken"] is False


def test_turns_say_whose_they_are_but_not_what_was_said(observed: Observed) -> None:
    spoken = observed.turn("voice", 1).root
    assert spoken.attributes["session.id"] == observed.session_id
    assert spoken.attributes["antiphon.turn"] == 1
    assert spoken.attributes["antiphon.outcome"] == "answered"
    assert spoken.attributes["antiphon.interrupted"] is False
    assert spoken.resource["service.name"] == "antiphon"
    assert spoken.resource["deployment.environment.name"] == "test"
    sent = b"".join(request.body for request in observed.collector.requests).lower()
    for words in ("seventeen", "tokyo", "time is it", observed.spoken.response.strip().lower()):
        assert words.encode() not in sent, words
    assert "local" not in [value for span in observed.collector.spans for value in span.attributes.values()]


def test_the_server_says_where_its_traces_go(observed: Observed) -> None:
    assert f"Traces are sent to {observed.collector.url}." in observed.announced


# The metrics, and what is written about them.


def families(text: str) -> dict[str, Metric]:
    """The metrics of a scrape, by the names under which they are queried."""
    found = {}
    for family in text_string_to_metric_families(text):
        found[f"{family.name}_total" if family.type == "counter" else family.name] = family
    return found


def label_names(family: Metric) -> set[str]:
    return {name for sample in family.samples for name in sample.labels} - {"le"}


def test_the_documentation_lists_every_metric_with_its_type_and_labels(observed: Observed) -> None:
    rows = re.findall(
        r"^\| `(antiphon_\w+)` \| (\w+) \|(.*?)\| .+ \|$", (DOCS / "observability.md").read_text(), re.MULTILINE
    )
    documented = {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    scraped = {
        name: (family.type, label_names(family))
        for name, family in families(observed.metrics).items()
        if name.startswith("antiphon_")
    }
    assert documented == scraped


def test_every_stage_and_engine_was_measured(observed: Observed) -> None:
    scraped = families(observed.metrics)
    stages = {(each.labels["stage"], each.labels["mode"]) for each in scraped["antiphon_turn_stage_ms"].samples}
    assert stages >= {(str(stage), "voice") for stage in Stage}
    assert {each.labels["engine"] for each in scraped["antiphon_stt_duration_ms"].samples} == {"moonshine"}
    assert {each.labels["engine"] for each in scraped["antiphon_tts_duration_ms"].samples} == {"hibari"}
    models = {each.labels["model"] for each in scraped["antiphon_model_first_output_ms"].samples}
    assert models == {"builtin", f"gemini-live:{MODEL}"}


def dashboard_queries() -> list[str]:
    dashboard = json.loads((DOCS / "grafana-dashboard.json").read_text())
    return [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]


@pytest.mark.parametrize("query", dashboard_queries())
def test_the_queries_of_the_dashboard_match_metrics_that_exist(observed: Observed, query: str) -> None:
    samples = [sample for family in families(observed.metrics).values() for sample in family.samples]
    parsed = promql_parser.parse(query.replace("$__rate_interval", "5m"))
    selectors, grouped = selectors_of(parsed)
    assert selectors
    known: set[str] = set()
    for selector in selectors:
        matching = [sample for sample in samples if sample.name == selector.name]
        assert matching, f"there is no {selector.name}"
        known |= {name for sample in matching for name in sample.labels}
        for matcher in selector.matchers.matchers:
            if matcher.name == FROM_PROMETHEUS:
                continue
            values = {sample.labels.get(matcher.name) for sample in matching}
            assert values != {None}, f"{selector.name} has no label {matcher.name}"
            if matcher.op == promql_parser.MatchOp.Equal:
                assert matcher.value in values, f"{selector.name} has no {matcher.name} {matcher.value}"
    assert grouped <= known, f"no metric of the query has {grouped - known}"


def selectors_of(expression: Any) -> tuple[list[Any], set[str]]:
    """The selectors of a query, and the labels that it groups by."""
    match type(expression).__name__:
        case "VectorSelector":
            return [expression], set()
        case "MatrixSelector":
            return [expression.vector_selector], set()
        case "AggregateExpr":
            selectors, grouped = selectors_of(expression.expr)
            return selectors, grouped | set(expression.modifier.labels if expression.modifier else ())
        case "Call":
            inner = expression.args
        case "BinaryExpr":
            inner = [expression.lhs, expression.rhs]
        case "ParenExpr" | "UnaryExpr":
            inner = [expression.expr]
        case _:
            inner = []
    found = [selectors_of(each) for each in inner]
    return [each for selectors, _ in found for each in selectors], {each for _, grouped in found for each in grouped}


def test_every_metric_of_the_server_is_on_the_dashboard(observed: Observed) -> None:
    queries = " ".join(dashboard_queries())
    names = {name.removesuffix("_total") for name in families(observed.metrics) if name.startswith("antiphon_")}
    assert {name for name in names if not re.search(rf"\b{name}(_bucket|_total)?\b", queries)} == set()


# The parts.


def test_ready_lists_the_parts(observed: Observed) -> None:
    assert observed.ready["status"] == "ok"
    assert {part["name"]: part["status"] for part in observed.ready["parts"]} == dict.fromkeys(
        ["store", "text_model", "voice", "stt", "tts"], "ok"
    )
