"""Turns as traces and metrics: those that fail, are interrupted, or ask before they act."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from antiphon.models.live import CascadeParts, Timings
from antiphon.protocol import client_messages as c
from antiphon.session import stopwatch
from antiphon.tools import executor
from antiphon.tools.call import ToolCall
from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok
from tests.fakes.calls import Client, ScriptedServers
from tests.fakes.gates import make_action, make_tool
from tests.fakes.scripted_live import PROFILE, WAITING, Barge, Call, Fail, Hear, Say, Step, Use

SPEAKING = replace(WAITING, name="cascade (m)", cascade=CascadeParts("m", "an ear", "a mouth"))


@dataclass
class Traced:
    exporter: InMemorySpanExporter
    tracer: trace.Tracer

    @property
    def spans(self) -> list[ReadableSpan]:
        return sorted(
            self.exporter.get_finished_spans(), key=lambda span: (span.start_time or 0, span.parent is not None)
        )

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.spans]

    def one(self, name: str) -> ReadableSpan:
        [found] = [span for span in self.spans if span.name == name]
        return found

    def attributes(self, name: str) -> Mapping[str, Any]:
        return dict(self.one(name).attributes or {})

    def ms(self, name: str) -> float:
        span = self.one(name)
        assert span.start_time is not None
        assert span.end_time is not None
        return (span.end_time - span.start_time) / 1e6


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[Traced]:
    """Traces of sessions and of the gate, without a tracer for the whole process."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("tests")
    for module in (stopwatch, executor):
        monkeypatch.setattr(module, "find_tracer", lambda name: tracer)
    yield Traced(exporter, tracer)
    provider.shutdown()


async def call(servers: ScriptedServers, *script: Step, tools: Any = (), **options: Any) -> Client:
    """A client that has spoken the first turn of the script."""
    client = await Client(servers.open(*tools, text=[], voice=script, **options)).enter()
    await client.say(c.StartListening(), seconds=0.1)
    await client.speak(0.82)
    return client


async def test_the_stages_of_a_turn_last_as_long_as_they_took(servers: ScriptedServers, traced: Traced) -> None:
    timings = Timings(silence_ms=310, stt_ms=240, wait_ms=200, known_ms=150, last_stt_ms=140)
    script = (Hear("hi", timings=timings), Use(7, 3), Say("Hello.", first_text_ms=100, first_audio_ms=300))
    client = await call(servers, *script, profile=SPEAKING)
    await client.settle(3)
    await client.say(c.PlaybackDone())
    assert traced.names == ["turn", "end_of_turn", "stt", "model", "tts", "heard"]
    assert traced.ms("end_of_turn") == 310
    assert traced.ms("stt") == 140
    assert traced.attributes("stt") == {"antiphon.stt.total_ms": 240, "antiphon.engine": "an ear"}
    assert traced.attributes("model")["gen_ai.request.model"] == "m"
    assert traced.attributes("model")["gen_ai.usage.input_tokens"] == 7
    assert traced.attributes("model")["antiphon.first_output_ms"] == pytest.approx(100, abs=20)
    assert traced.attributes("tts")["antiphon.first_audio_ms"] == pytest.approx(200, abs=20)
    assert traced.attributes("turn")["antiphon.total_ms"] == pytest.approx(310 + 200 + 300, abs=20)
    assert traced.attributes("heard") == {"antiphon.reported": True}


async def test_an_answer_that_is_not_reported_as_heard_is_marked(servers: ScriptedServers, traced: Traced) -> None:
    client = await call(servers, Hear("hi"), Say("Hello.", audio_ms=2_000))
    await client.settle(15)
    assert traced.attributes("heard") == {"antiphon.reported": False}


async def test_an_interrupted_turn_is_marked(servers: ScriptedServers, traced: Traced) -> None:
    client = await call(servers, Hear("count"), Say("One two three four.", audio_ms=4_000), Barge(after_ms=2_000))
    await client.settle(5)
    assert traced.attributes("turn")["antiphon.interrupted"]
    assert traced.attributes("turn")["antiphon.outcome"] == "interrupted"
    assert traced.ms("heard") == pytest.approx(2_000, abs=50)
    assert client.server.hub.models.turns.outcomes["voice", "interrupted"] == 1


async def test_a_failed_turn_has_an_error_without_its_text(servers: ScriptedServers, traced: Traced) -> None:
    client = await call(servers, Hear("hi"), Fail("The words of somebody"))
    await client.settle(2)
    assert traced.attributes("turn")["error.type"] == "model_failed"
    assert not traced.one("turn").status.is_ok
    assert "somebody" not in "".join(span.to_json() for span in traced.spans)
    assert client.server.hub.models.turns.outcomes["voice", "failed"] == 1


async def test_a_model_that_hears_by_itself_has_no_engines(servers: ScriptedServers, traced: Traced) -> None:
    heard = Hear("hi", after_ms=1_300, transcript="after")
    client = await call(servers, heard, Say("Hello.", audio_ms=500), profile=PROFILE)
    assert client.live is not None
    for _ in range(25):
        client.live.runner.hear(bytes(640))
        await client.settle(0.02)
    await client.settle(15)
    assert traced.names == ["turn", "end_of_turn", "model", "heard"]
    # The server has heard the silence before the answer.
    assert traced.ms("end_of_turn") == pytest.approx(480, abs=40)
    events = [event.name for event in traced.one("model").events]
    assert events == ["first_output", "first_token", "first_audio"]


async def test_what_a_handler_traces_belongs_to_its_tool(servers: ScriptedServers, traced: Traced) -> None:
    async def look(args: Args, context: Context) -> ToolResult:
        with traced.tracer.start_as_current_span("request of the handler"):
            return ok("found")

    tool = make_tool("read_it", look)
    client = await Client(servers.open(tool, text=[[ToolCall(None, "read_it", {})], "Found."])).enter(mode=c.Mode.TEXT)
    await client.write("read it")
    assert traced.names.count("model") == 2
    turn, called, inner = (traced.one(name) for name in ("turn", "tool read_it", "request of the handler"))
    assert called.parent is not None
    assert inner.parent is not None
    assert (turn.parent, called.parent.span_id, inner.parent.span_id) == (
        None,
        turn.context.span_id,
        called.context.span_id,
    )


async def test_a_tool_that_waits_for_approval_is_asked_and_then_runs_in_the_turn_of_the_yes(
    servers: ScriptedServers, traced: Traced
) -> None:
    tool = make_action("book", requires_confirmation=True, preview=lambda args: "Book it?")
    text = [[ToolCall("c1", "book", {})], "Shall I?", "Booked."]
    client = await Client(servers.open(tool, text=text)).enter(mode=c.Mode.TEXT)
    await client.write("book it")
    await client.write("yes")
    decisions = [dict(span.attributes or {})["antiphon.gate"] for span in traced.spans if span.name == "tool book"]
    assert decisions == ["asked", "ran"]
    turns = [span.context.trace_id for span in traced.spans if span.name == "turn"]
    assert [span.context.trace_id for span in traced.spans if span.name == "tool book"] == turns


async def test_a_tool_that_a_model_made_up_does_not_name_its_span(servers: ScriptedServers, traced: Traced) -> None:
    client = await call(servers, Hear("hi"), Call("no_such_tool"), Say("Sorry.", audio_ms=100))
    await client.settle(8)
    assert traced.attributes("tool")["antiphon.gate"] == "refused"
    assert traced.attributes("tool")["gen_ai.tool.name"] == "no_such_tool"


async def test_without_tracing_turns_are_still_counted(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=["Hello."])).enter(mode=c.Mode.TEXT)
    await client.write("hi")
    turns = client.server.hub.models.turns
    assert turns.outcomes["text", "answered"] == 1
    assert ("total", "text") in turns.stages.all
