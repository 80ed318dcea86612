"""Measures the turns of a session: it sees the effects of the machine, and makes the client's message, the metrics and
the trace at the end of each turn."""

from collections.abc import Callable
from contextvars import Context
from typing import Final

from antiphon.clock import Clock
from antiphon.models.live import LiveProfile, Usage
from antiphon.protocol import server_messages as s
from antiphon.protocol.errors import ErrorCode
from antiphon.session import effects as fx
from antiphon.session.machine import MODEL_FAILED
from antiphon.session.models import SessionModels
from antiphon.session.turn_times import TurnTimes
from antiphon.session.turn_trace import TurnTrace
from antiphon.telemetry.metrics import TurnStats
from antiphon.telemetry.tracing import find_tracer
from antiphon.tools.session import ToolSession

FAILURES: Final = frozenset({MODEL_FAILED, ErrorCode.INTERNAL, ErrorCode.UNAVAILABLE})
"""Errors that the turn has failed by."""
OFFLINE_ASSISTANT: Final = "builtin"
UNKNOWN_MODEL: Final = "unknown"


class Stopwatch:
    def __init__(
        self,
        *,
        clock: Clock,
        models: SessionModels,
        tools: ToolSession,
        conversation_id: Callable[[], str],
        stats: TurnStats,
    ) -> None:
        self._clock = clock
        self._models = models
        self._tools = tools
        self._conversation_id = conversation_id
        self._stats = stats
        self._tracer = find_tracer("antiphon.session")
        self._turn: TurnTimes | None = None
        self._trace: TurnTrace | None = None

    def see(self, effect: fx.Effect) -> None:
        """Notes the time of an effect. To be called before it is carried out."""
        match effect:
            case fx.BeginTurn(turn=turn, spoken=spoken):
                self._turn = TurnTimes(turn, self._tools.mode, spoken, self._clock.now_ms())
                if spoken and self._models.connection is not None:
                    self._turn.heard_silence_ms = self._models.connection.heard.silence_ms
                self._trace = None if self._tracer is None else TurnTrace(self._tracer, self._turn)
            case _ if self._turn is None:
                pass
            case fx.Send(message=s.ResponseChunk()):
                self._turn.note_text(self._clock.now_ms(), self._profile)
            case fx.SendAudio(is_filler=False):
                self._turn.note_audio(self._clock.now_ms(), self._profile)
            case fx.StoreUser(turn=turn, timings=timings) if turn == self._turn.id and timings is not None:
                self._turn.timings = timings
            case fx.RunTools():
                self._turn.note_calls(self._clock.now_ms(), self._profile)
            case fx.InterruptModel(turn=turn) if turn == self._turn.id:
                self._turn.is_interrupted = True
            case fx.Send(message=s.Error(code=code)) if code in FAILURES:
                self._turn.failure = code

    def ask_model(self, turn: str) -> None:
        """The model is asked to answer. Until then, the user's words were stored and checked."""
        if self._turn is not None and self._turn.id == turn and self._turn.step.first_ms is None:
            self._turn.step.began_ms = self._clock.now_ms()

    def note_results(self, turn: str) -> None:
        """The tools of the turn are done."""
        if self._turn is not None and self._turn.id == turn:
            self._turn.note_results(self._clock.now_ms())

    def note_usage(self, usage: Usage) -> None:
        if self._turn is not None and self._turn.id == usage.turn:
            self._turn.step.input_tokens += usage.input_tokens
            self._turn.step.output_tokens += usage.output_tokens

    def note_local(self, turn: str) -> None:
        """The offline assistant has answered in place of the model."""
        if self._turn is not None and self._turn.id == turn:
            self._turn.is_local = True

    def context(self) -> Context | None:
        """Returns the context for the turn's tools, in which their spans belong to its trace; None without a trace."""
        return None if self._trace is None else self._trace.context()

    def end(self, number: int, *, was_heard: bool) -> s.TurnMetrics | None:
        """The turn is over. Returns what the client is told; None for a turn without a question or an answer."""
        turn, turn_trace = self._turn, self._trace
        self._turn = self._trace = None
        if turn is None:
            return None
        turn.ended_ms = self._clock.now_ms()
        turn.was_heard = was_heard and not turn.is_interrupted and turn.voiced_ms is not None
        metrics = turn.metrics(number)
        self._stats.count(turn.mode, turn.outcome, turn.stages(metrics))
        for step in turn.steps:
            if step.first_ms is not None and step.last_ms is not None:
                first_ms, took_ms = step.first_ms - step.began_ms, step.last_ms - step.began_ms
                self._stats.count_model(model_of(turn, step.profile), max(0, first_ms), max(0, took_ms))
        if turn_trace is not None:
            turn_trace.finish(
                number,
                models=[model_of(turn, step.profile) for step in turn.steps],
                session_id=self._tools.id,
                conversation_id=self._conversation_id(),
                energy=self._models.energy().get(turn.mode),
                metrics=metrics,
            )
        return metrics

    @property
    def _profile(self) -> LiveProfile | None:
        return None if self._models.connection is None else self._models.connection.profile


def model_of(turn: TurnTimes, profile: LiveProfile | None) -> str:
    """Returns the name of what has answered, as the model's other metrics have it."""
    if turn.is_local:
        return OFFLINE_ASSISTANT
    if profile is None:
        return UNKNOWN_MODEL
    return profile.name if profile.cascade is None else profile.cascade.text_model
