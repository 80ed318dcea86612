"""The trace of a turn: one span for the turn and one for each stage. Nothing that people said is in it.

The spans of tools are made while they run, so that what a handler traces belongs to them. All others are made at the
end of the turn, from its times: the path of audio frames makes none.
"""

from collections.abc import Sequence
from contextvars import Context, copy_context

from opentelemetry import context as otel_context
from opentelemetry.trace import Span, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.util.types import AttributeValue

from antiphon.models.live import CascadeParts
from antiphon.protocol.server_messages import TurnMetrics
from antiphon.session.turn_times import ModelStep, TurnTimes

Attributes = dict[str, AttributeValue]


class TurnTrace:
    def __init__(self, tracer: Tracer, turn: TurnTimes) -> None:
        self._tracer = tracer
        self._turn = turn
        self._root: Span | None = None

    def context(self) -> Context:
        """Returns a context in which new spans are children of the turn's."""
        context = copy_context()
        context.run(otel_context.attach, set_span_in_context(self._started()))
        return context

    def finish(
        self,
        number: int,
        *,
        models: Sequence[str],
        session_id: str,
        conversation_id: str,
        energy: int | None,
        metrics: TurnMetrics | None,
    ) -> None:
        """Makes the spans of all stages. `models` are the names of those that the steps were asked of."""
        turn, root = self._turn, self._started()
        ended_ms = turn.ended_ms or turn.asked_ms
        root.set_attributes(
            {
                "session.id": session_id,
                "gen_ai.conversation.id": conversation_id,
                "gen_ai.request.model": models[-1],
                "antiphon.turn": number,
                "antiphon.mode": str(turn.mode),
                "antiphon.spoken": turn.spoken,
                "antiphon.outcome": str(turn.outcome),
                "antiphon.interrupted": turn.is_interrupted,
            }
        )
        if energy is not None:
            root.set_attribute("antiphon.energy_level", energy)
        if metrics is not None and metrics.total_ms is not None:
            root.set_attribute("antiphon.total_ms", metrics.total_ms)
        if turn.failure is not None:
            root.set_attribute("error.type", turn.failure)
            root.set_status(Status(StatusCode.ERROR, turn.failure))
        cascade = next((each.profile.cascade for each in turn.steps if each.profile is not None), None)
        self._trace_hearing(cascade)
        for step, model in zip(turn.steps, models, strict=True):
            self._trace_model(step, model, ended_ms)
        self._trace_speech(cascade, ended_ms)
        root.end(_ns(ended_ms))

    def _started(self) -> Span:
        """Returns the span of the turn. It begins with the user's last sound, or with the recognition of the words if
        that came first. Both are known by the time that the first tool is called."""
        if self._root is None:
            began_ms = min(self._turn.began_ms, self._turn.recognized_ms[0])
            # A turn is a trace of its own, whatever has led to it.
            self._root = self._tracer.start_span("turn", context=otel_context.Context(), start_time=_ns(began_ms))
        return self._root

    def _trace_hearing(self, cascade: CascadeParts | None) -> None:
        turn, timings = self._turn, self._turn.timings
        if turn.silence_ms is not None:
            self._add("end_of_turn", turn.began_ms, turn.decided_ms, {"antiphon.silence_ms": turn.silence_ms})
        if timings is None:
            return
        attributes: Attributes = {"antiphon.stt.total_ms": timings.stt_ms}
        if cascade is not None and cascade.recognizer:
            attributes["antiphon.engine"] = cascade.recognizer
        self._add("stt", *turn.recognized_ms, attributes)

    def _trace_model(self, step: ModelStep, model: str, ended_ms: int) -> None:
        attributes: Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": model,
            "antiphon.called_tools": step.called_tools,
        }
        events: dict[str, float | None] = {"first_output": step.first_ms}
        if step.input_tokens or step.output_tokens:
            attributes["gen_ai.usage.input_tokens"] = step.input_tokens
            attributes["gen_ai.usage.output_tokens"] = step.output_tokens
        if step.first_ms is not None:
            attributes["antiphon.first_output_ms"] = step.first_ms - step.began_ms
        is_native = step.profile is not None and step.profile.cascade is None and step.profile.hears
        if self._turn.said_ms is not None and _is_within(self._turn.said_ms, step):
            events["first_token"] = self._turn.said_ms
        if is_native and self._turn.voiced_ms is not None and _is_within(self._turn.voiced_ms, step):
            events["first_audio"] = self._turn.voiced_ms
        self._add("model", step.began_ms, step.last_ms or ended_ms, attributes, events)

    def _trace_speech(self, cascade: CascadeParts | None, ended_ms: int) -> None:
        turn = self._turn
        if turn.voiced_ms is None or turn.last_audio_ms is None:
            return
        if cascade is not None and cascade.synthesizer is not None and turn.said_ms is not None:
            first_ms = max(0, turn.voiced_ms - turn.said_ms)
            attributes: Attributes = {"antiphon.first_audio_ms": first_ms, "antiphon.engine": cascade.synthesizer}
            self._add("tts", turn.said_ms, turn.last_audio_ms, attributes, {"first_audio": turn.voiced_ms})
        # An answer that the client has not reported to have played may still have been heard.
        self._add("heard", turn.voiced_ms, ended_ms, {"antiphon.reported": turn.was_heard})

    def _add(
        self,
        name: str,
        began_ms: float,
        ended_ms: float,
        attributes: Attributes,
        events: dict[str, float | None] | None = None,
    ) -> None:
        parent = set_span_in_context(self._started(), otel_context.Context())
        span = self._tracer.start_span(name, parent, attributes=attributes, start_time=_ns(began_ms))
        for event, at_ms in (events or {}).items():
            if at_ms is not None:
                span.add_event(event, timestamp=_ns(at_ms))
        span.end(_ns(max(began_ms, ended_ms)))


def _is_within(at_ms: int, step: ModelStep) -> bool:
    return step.last_ms is not None and step.began_ms <= at_ms <= step.last_ms


def _ns(ms: float) -> int:
    # Through microseconds: a float has no room for today's nanoseconds, and spans would begin before their parents.
    return round(ms * 1_000) * 1_000
