"""The seam to a model that converses: every model behind a session, local or a provider's, is a `LiveModel`.

Code at the use sites asks the profile what a model can do. It never asks which one it is.

A turn has an id. The session makes it for what it asks for (`respond`, `say`, `end_audio`), and the model for what it
hears; ids of one conversation are unique. A spoken turn starts with `TurnStarted`. Everything that
belongs to a turn names its id and may come in any order: a transcript may come after the answer, or never, and parts of
two turns may be mixed. Each turn ends with one `TurnComplete`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol

from msgspec import Struct

from antiphon.models.base import FailureKind, ModelError
from antiphon.models.expectation import Expectation
from antiphon.models.health import ModelHealth
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, TranscriptView


class Timings(Struct, frozen=True):
    """How long it took to know what the user said, for a model that measures it."""

    silence_ms: float
    """From the user's last sound to the decision that the turn was over."""
    stt_ms: float
    """How long recognition took in all, including pieces that were recognised in advance."""
    wait_ms: float = 0.0
    """From the decision to the text; 0 if the text was there by then."""
    known_ms: float = 0.0
    """From the decision to the end of recognition; negative if that came first."""
    last_stt_ms: float = 0.0
    """How long the last recognition took, which gave the final text."""


class SpeechStarted(Struct, frozen=True):
    """The user has begun to speak. Only models that can tell send it, and nothing may come of it: it may be a noise."""

    turn: str
    """The id that the turn will have, unless the session ends the audio itself."""


class TurnStarted(Struct, frozen=True):
    """The user has finished a turn, or the model has begun to answer one. Only `SpeechStarted` and interim transcripts
    may precede it."""

    turn: str
    continues: str | None = None
    """The turn that this one replaces: the user went on speaking after it, and its answer is void."""
    completes: str | None = None
    """The turn before, if a few words came after its answer had begun and only complete it. The text is of both."""


class InputTranscript(Struct, frozen=True):
    """What the user said, as far as it is known. A final one is never empty."""

    turn: str
    text: str
    is_final: bool
    timings: Timings | None = None
    """Set on final transcripts only, by models that can tell."""


class OutputText(Struct, frozen=True):
    """The next piece of the answer's text."""

    turn: str
    text: str


class OutputAudio(Struct, frozen=True):
    """A piece of the answer's audio, never empty: PCM16, mono, at the profile's rate."""

    turn: str
    pcm: bytes
    text: str = ""
    """What it says, if that is known."""
    last: bool = False
    """No more audio comes for this answer. A model that cannot know this never sets it."""
    is_filler: bool = False
    """It only fills the wait for the answer, and is no part of it."""


class ToolCalls(Struct, frozen=True):
    """All calls of one model message. The model waits for their results."""

    turn: str
    calls: tuple[ToolCall, ...]


class ToolCancelled(Struct, frozen=True):
    """The model no longer needs these results: calls that can be stopped are stopped, and their results are not sent in
    this turn. The result of an action that cannot be stopped is sent in the next one."""

    turn: str
    ids: tuple[str, ...]


class Interrupted(Struct, frozen=True):
    """The user speaks while the answer is generated or played: the rest of it is dropped. If it was being generated,
    `TurnComplete` follows. The session calls `interrupt` with the part that was heard."""

    turn: str | None
    """None for an answer that the client is playing and that this connection did not generate."""


class Held(Struct, frozen=True):
    """Somebody may speak over the answer. It should wait, without being dropped, until it is known what was said.
    `Resumed` or `Interrupted` follows, unless the session drops the answer first. Only models that judge the words send
    it. It comes again when it has become certain that somebody speaks."""

    turn: str | None
    """As in `Interrupted`."""
    is_certain: bool = True
    """Whether somebody certainly speaks. It may still be a laugh, or an "okay"."""


class Resumed(Struct, frozen=True):
    """It was a noise, or nothing that wants an answer: the answer goes on where it was held."""

    turn: str | None


class GenerationComplete(Struct, frozen=True):
    """The whole answer has been generated; it may still be playing."""

    turn: str
    is_local: bool = False
    """Whether the offline assistant answered in place of the model, whose health this therefore does not show."""
    expects: Expectation = Expectation.NOTHING
    """What the answer asks the user for."""


class TurnComplete(Struct, frozen=True):
    """The last event of a turn, sent exactly once, even if the turn is empty, dropped or failed. Only a transcript may
    follow."""

    turn: str


class TurnFailed(Struct, frozen=True):
    """The answer failed. What was said so far stays in the transcript. `TurnComplete` follows; the model stays open."""

    turn: str | None
    """None if the user's speech could not be understood, so that there is no turn. Then no `TurnComplete` follows."""
    message: str
    """A sentence that can be shown to the user."""
    retryable: bool = True
    rate_limited: bool = False
    retry_after_s: float | None = None
    kind: FailureKind | None = None
    """What is wrong with the model; None if it is not to blame."""
    status: int | None = None
    """The HTTP status of the model's server, if it refused."""

    @classmethod
    def because_of(cls, error: ModelError, turn: str | None) -> "TurnFailed":
        return cls(turn, str(error), error.retryable, error.rate_limited, error.retry_after_s, error.kind, error.status)


class Usage(Struct, frozen=True):
    """What an answer cost, where the provider counts it."""

    turn: str
    input_tokens: int
    output_tokens: int


class ResumptionUpdate(Struct, frozen=True):
    """A newer handle to resume the upstream session with; None if it cannot be resumed at this point."""

    handle: str | None


class GoAway(Struct, frozen=True):
    """The connection behind the model ends soon."""

    time_left_ms: int


class CloseKind(StrEnum):
    """Why the connection behind a model ended."""

    INTENDED = "intended"
    """The provider closed a session that was complete."""
    GO_AWAY = "go_away"
    """Its time was over, as announced."""
    TRANSIENT = "transient"
    """The network or the provider failed; the next try may succeed."""
    QUOTA = "quota"
    """A rate limit or a quota was exceeded."""
    DEAD_HANDLE = "dead_handle"
    """The resumption handle is unknown or has expired."""
    CONFIGURATION = "configuration"
    """The key, the model's name or the set-up was refused. Trying again will not help."""


class Closed(Struct, frozen=True):
    """The last event of all."""

    reason: str
    """A sentence that can be shown to the user."""
    kind: CloseKind = CloseKind.TRANSIENT
    retry_after_s: float | None = None

    @property
    def retryable(self) -> bool:
        return self.kind is not CloseKind.CONFIGURATION


class UpstreamError(ModelError):
    """The connection to a provider could not be made, or has ended."""

    def __init__(
        self,
        message: str,
        close_kind: CloseKind,
        *,
        kind: FailureKind | None = None,
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(
            message,
            retryable=close_kind is not CloseKind.CONFIGURATION,
            rate_limited=close_kind is CloseKind.QUOTA,
            retry_after_s=retry_after_s,
            kind=kind or _FAILURE_KINDS[close_kind],
            status=status,
        )
        self.close_kind = close_kind

    def as_event(self) -> Closed:
        return Closed(str(self), self.close_kind, self.retry_after_s)


_FAILURE_KINDS: Final[Mapping[CloseKind, FailureKind]] = {
    CloseKind.INTENDED: FailureKind.CUT_OFF,
    CloseKind.GO_AWAY: FailureKind.CUT_OFF,
    CloseKind.TRANSIENT: FailureKind.SERVER_ERROR,
    CloseKind.QUOTA: FailureKind.RATE_LIMITED,
    CloseKind.DEAD_HANDLE: FailureKind.REFUSED,
    CloseKind.CONFIGURATION: FailureKind.REFUSED,
}


LiveEvent = (
    SpeechStarted
    | TurnStarted
    | InputTranscript
    | OutputText
    | OutputAudio
    | ToolCalls
    | ToolCancelled
    | Interrupted
    | Held
    | Resumed
    | GenerationComplete
    | TurnComplete
    | TurnFailed
    | Usage
    | ResumptionUpdate
    | GoAway
    | Closed
)


@dataclass(frozen=True, slots=True)
class CascadeParts:
    """The names of the parts that a cascade is made of."""

    text_model: str
    recognizer: str = ""
    synthesizer: str | None = None


@dataclass(frozen=True, slots=True)
class LiveProfile:
    name: str
    hears: bool
    """Whether it takes audio."""
    output_hz: int
    """The rate of its audio; 0 if answers come as text only."""
    needs_network: bool
    tool_schemas: str
    """Which of the registry's provider schemas it takes."""
    keeps_context: bool = False
    """Whether it keeps its own context. Otherwise it reads the transcript."""
    waits_to_answer: bool = False
    """Whether the session must ask for the answer to what it hears, by `respond`. The session sees the words first: a
    yes may let a tool run. Other models answer by themselves."""
    resumes: bool = False
    """Whether the provider gives handles to resume its session with, by `ResumptionUpdate`."""
    voices: tuple[str, ...] = ()
    """The names of its own voices, the default one first. A cascade has those of its speech engine instead."""
    max_session_s: float | None = None
    """How long the provider lets a connection last; None if there is no such limit, or none is known."""
    context_tokens: int | None = None
    """How many tokens it takes in all: prompt, tools, conversation and answer. None if that is not known."""
    tools_per_turn: int = 0
    """How many tools it is given for a request; 0 means all of them. Then the prompt has only the names of the rest."""
    cascade: CascadeParts | None = None
    """What it is made of; None for a model that hears and speaks by itself, or that only writes."""

    @property
    def speaks(self) -> bool:
        return self.output_hz > 0


Names = Callable[[], Awaitable[Sequence[str]]]


class Prefetch(Protocol):
    async def __call__(self, calls: Sequence[ToolCall]) -> "Sequence[ToolAnswer] | None":
        """Returns the results that these calls would have now, in order; None if they cannot be run without side
        effects. If the calls are really made soon after, they return the same."""
        ...


@dataclass(frozen=True, slots=True)
class LiveContext:
    """The context that a model is connected with."""

    system: str
    transcript: TranscriptView
    """The conversation as it grows, for a model that keeps no context of its own."""
    history: Sequence[Message]
    """The conversation before the current turn, for a model that keeps its own context. It contains no instructions."""
    tools: Sequence[Mapping[str, Any]]
    mode: Mode
    prefetch: Prefetch | None = None
    """For a model that prepares its answer while the user may still continue."""
    mode_note: str = ""
    """The end of `system`, which is all that differs between voice and text."""
    allows_local: bool = True
    """Whether the offline assistant may answer in place of the model. It would not follow the instructions of a client
    application."""
    summary: str = ""
    """What was said before the transcript and the history begin. It is part of `system`, too."""
    names: Names | None = None
    """Returns names that this user is likely to say, the most likely first, for a model that can be biased."""


class ToolAnswer(Struct, frozen=True):
    """The result of one call, for the model that made it."""

    call: ToolCall
    content: Any
    """JSON: the data, or {"error": …}."""
    spoken: str | None = None
    ok: bool = True


def messages_of(said: str, answers: Sequence[ToolAnswer], *, key: str) -> list[Message]:
    """Returns a model's message and the results of its calls, joined by ids: the provider's, or made from the key."""
    joined = [(answer.call.id or f"call_{key}_{place}", answer) for place, answer in enumerate(answers)]
    calls = tuple(CallMade(id, answer.call.name, answer.call.args, answer.call.extra) for id, answer in joined)
    results = [ToolMessage(id, answer.call.name, answer.content, answer.spoken, answer.ok) for id, answer in joined]
    return [AssistantMessage(said, calls), *results]


class LiveModel(Protocol):
    """One conversation's connection to a model.

    Methods may be called while `events` is being read, but not before `connect` has returned. They return at once, and
    their results arrive as events: a model on another machine queues its input, so that the caller never waits for a
    network. Before `connect` and after `close`, `respond` and `say` raise `ModelError`, and the rest is ignored, except
    that `send_audio` raises if the model cannot hear. After `close`, and after `Closed`, no more events come.
    """

    @property
    def profile(self) -> LiveProfile: ...

    async def connect(self, context: LiveContext, resume: str | None = None) -> None:
        """Raises `ModelError` if the model cannot be reached or refuses. `resume` is the handle of an earlier
        `ResumptionUpdate`."""
        ...

    def events(self) -> AsyncIterator[LiveEvent]: ...

    def set_voice(self, voice: str | None, speed: float) -> None:
        """Sets the voice by its name, None for the model's own, and the speed, where 1 is normal. A model without a
        voice, or with only one, ignores it. May be called before `connect`."""
        ...

    def send_audio(self, pcm: bytes, *, playing: bool = False) -> None:
        """Sends microphone audio: PCM16, 16 kHz, mono, in real time.

        `playing`: the client is playing the assistant's speech, which its microphone may pick up.
        """
        ...

    def end_audio(self, turn: str) -> None:
        """Ends the user's turn, which gets this id, since no more audio comes for now. `TurnStarted` follows, or only
        `TurnComplete` if no words were heard."""
        ...

    def respond(self, turn: str, text: str, ran: Sequence[ToolAnswer] = ()) -> None:
        """Asks for an answer to a turn of the user. The answer in progress is dropped.

        `text` is what the user typed, or said to a model that waits to answer. `ran` are calls that the turn itself let
        run (a person's yes). The text may be empty then: the yes was a button. A model that reads the transcript finds
        both there.
        """
        ...

    def say(self, turn: str, text: str) -> None:
        """Speaks exactly these words: a greeting, a reminder, a farewell. The answer in progress is dropped."""
        ...

    def send_tool_results(self, turn: str, answers: Sequence[ToolAnswer]) -> None:
        """Sends the results of one `ToolCalls`, once, without those of cancelled calls. Results for a dropped answer,
        and of calls that the model did not make, only become part of the context of the next turn."""
        ...

    def interrupt(self, turn: str, heard: str | None = None) -> None:
        """Drops the rest of the answer to this turn. If it was being generated, `TurnComplete` follows.

        `heard` is what the user heard of it: a model that keeps its own context forgets the rest of the words, but not
        what tools did. None means that it was read as it arrived.
        """
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ModelFactory:
    """Makes the models of one kind, and says what they can do before one is made."""

    profile: LiveProfile
    make: Callable[[], LiveModel]
    """A model that is not connected yet."""
    health: ModelHealth = field(default_factory=ModelHealth)
    """How the connections and answers of these models end. All sessions of a process share it."""
