"""When the stages of one turn began and ended. What clients, metrics and traces are told is made from this."""

from dataclasses import dataclass, field

from antiphon.models.live import LiveProfile, Timings
from antiphon.protocol.server_messages import TurnMetrics
from antiphon.telemetry.metrics import Stage, TurnOutcome
from antiphon.tools.spec import Mode


@dataclass(slots=True)
class ModelStep:
    """One request to the model: from the question, or from the results of tools, to its last output."""

    began_ms: int
    first_ms: int | None = None
    """The first text, audio or tool call."""
    last_ms: int | None = None
    profile: LiveProfile | None = None
    """The model that answered. It is known at its first output: another one may take over before."""
    called_tools: bool = False
    input_tokens: int = 0
    output_tokens: int = 0

    def note_output(self, now_ms: int, profile: LiveProfile | None) -> None:
        if self.first_ms is None:
            self.first_ms, self.profile = now_ms, profile
        self.last_ms = now_ms


@dataclass(slots=True)
class ToolRound:
    """The calls of one message of the model, which run at the same time."""

    began_ms: int
    ended_ms: int | None = None


@dataclass(slots=True)
class TurnTimes:
    """The times are Unix times in milliseconds. What did not happen in a turn stays unknown."""

    id: str
    mode: Mode
    spoken: bool
    asked_ms: int
    """When the user's turn was over and its text known, or when the model began to answer it."""
    steps: list[ModelStep] = field(default_factory=list)
    rounds: list[ToolRound] = field(default_factory=list)
    timings: Timings | None = None
    """How the words were recognised, by a model that measures it."""
    heard_silence_ms: float | None = None
    """How long the microphone had been quiet by then, for a model that recognises the end of turns by itself."""
    said_ms: int | None = None
    """The first word of the answer."""
    voiced_ms: int | None = None
    """The first audio of the answer."""
    last_audio_ms: int | None = None
    ended_ms: int | None = None
    was_heard: bool = False
    """Whether the client has played the answer to its end."""
    is_interrupted: bool = False
    is_local: bool = False
    """Whether the offline assistant answered in place of the model."""
    failure: str | None = None
    """The code of the error that the client was told."""

    def __post_init__(self) -> None:
        self.steps.append(ModelStep(self.asked_ms))

    @property
    def step(self) -> ModelStep:
        """The request to the model that is under way."""
        return self.steps[-1]

    @property
    def silence_ms(self) -> float | None:
        """From the user's last sound to the decision that the turn is over; None if that is not known."""
        return self.heard_silence_ms if self.timings is None else self.timings.silence_ms

    @property
    def decided_ms(self) -> float:
        """When it was decided that the user's turn is over."""
        return self.asked_ms - (0.0 if self.timings is None else self.timings.wait_ms)

    @property
    def began_ms(self) -> float:
        """The user's last sound, as far as it is known."""
        return self.decided_ms - (self.silence_ms or 0.0)

    @property
    def recognized_ms(self) -> tuple[float, float]:
        """When the recognition that gave the final text began and ended."""
        timings = self.timings or Timings(0.0, 0.0)
        known_ms = self.decided_ms + timings.known_ms
        return known_ms - timings.last_stt_ms, known_ms

    @property
    def tools_ms(self) -> int | None:
        """How long tools ran in all; None if there were none."""
        took = [each.ended_ms - each.began_ms for each in self.rounds if each.ended_ms is not None]
        return sum(took) if took else None

    @property
    def outcome(self) -> TurnOutcome:
        if self.failure is not None:
            return TurnOutcome.FAILED
        if self.is_interrupted:
            return TurnOutcome.INTERRUPTED
        has_answer = self.said_ms is not None or self.voiced_ms is not None
        return TurnOutcome.ANSWERED if has_answer else TurnOutcome.SILENT

    def note_text(self, now_ms: int, profile: LiveProfile | None) -> None:
        self.said_ms = self.said_ms or now_ms
        self.step.note_output(now_ms, profile)

    def note_audio(self, now_ms: int, profile: LiveProfile | None) -> None:
        self.voiced_ms = self.voiced_ms or now_ms
        self.last_audio_ms = now_ms
        if profile is None or profile.cascade is None:
            # Otherwise a synthesizer has made it of the model's words.
            self.step.note_output(now_ms, profile)

    def note_calls(self, now_ms: int, profile: LiveProfile | None) -> None:
        self.step.note_output(now_ms, profile)
        self.step.called_tools = True
        self.rounds.append(ToolRound(now_ms))

    def note_results(self, now_ms: int) -> None:
        """The results of the calls are there: the model goes on."""
        if self.rounds:
            self.rounds[-1].ended_ms = now_ms
            self.steps.append(ModelStep(now_ms))

    def metrics(self, number: int) -> TurnMetrics | None:
        """Returns what the client is told; None for a turn without an answer."""
        asked, said, voiced, timings = self.asked_ms, self.said_ms, self.voiced_ms, self.timings
        first = voiced or said
        if first is None:
            return None
        return TurnMetrics(
            number,
            end_of_turn_ms=self.silence_ms,
            stt_ms=None if timings is None else timings.stt_ms,
            first_token_ms=None if said is None else said - asked,
            # A model that speaks by itself may send audio before the words of it.
            first_audio_ms=None if voiced is None or said is None else max(0, voiced - said),
            total_ms=first - self.began_ms,
        )

    def stages(self, metrics: TurnMetrics | None) -> dict[Stage, float]:
        """Returns how long each stage took that there was."""
        heard_ms = None
        if self.was_heard and self.ended_ms is not None and self.voiced_ms is not None:
            heard_ms = self.ended_ms - self.voiced_ms
        found: dict[Stage, float | None] = {Stage.TOOLS: self.tools_ms, Stage.HEARD: heard_ms}
        if metrics is not None:
            found |= {
                Stage.END_OF_TURN: metrics.end_of_turn_ms,
                Stage.STT: metrics.stt_ms,
                Stage.FIRST_TOKEN: metrics.first_token_ms,
                Stage.FIRST_AUDIO: metrics.first_audio_ms,
                Stage.TOTAL: metrics.total_ms,
            }
        return {stage: took_ms for stage, took_ms in found.items() if took_ms is not None}
