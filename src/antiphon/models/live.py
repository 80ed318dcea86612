"""The seam to a brain that listens and speaks: every voice behind a session, local or a provider's, is a `LiveModel`.

Code at the use sites asks the profile what a model can do. It never asks which one it is.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from msgspec import Struct

from antiphon.models.base import OutputText, Usage
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage


class Timings(Struct, frozen=True):
    """How long it took to know what the user said, for a model that can tell. Comes right before the final text."""

    silence_ms: float
    """From the user's last sound to the decision that the turn was over."""
    stt_ms: float
    """What recognition took in all, of pieces that were recognised in advance too."""
    wait_ms: float = 0.0
    """From the decision to the text; nothing, if the text was there by then."""


class InputTranscript(Struct, frozen=True):
    """What the user said, as far as it is known. A final one ends the user's turn, and is never empty."""

    text: str
    is_final: bool
    goes_on: bool = False
    """The user went on after the final text before this one, and its answer is void. Both make one turn: this is the
    text of all of it."""


class OutputAudio(Struct, frozen=True):
    """A piece of the answer for the ear, never empty: PCM16, mono, at the profile's rate."""

    pcm: bytes
    text: str = ""
    """What it says, if that is known."""
    last: bool = False
    """No more audio comes for this answer. A model that cannot know so never says it."""


class ToolCalls(Struct, frozen=True):
    """All calls of one model message. The model waits for their results."""

    calls: tuple[ToolCall, ...]


class ToolCancelled(Struct, frozen=True):
    """The model no longer wants these results: they are stopped where they can be, and not sent."""

    ids: tuple[str, ...]


class Interrupted(Struct, frozen=True):
    """The user speaks while the answer is made or played: the rest of it is void. If it was being made, `TurnComplete`
    follows. What was heard of it is told by `interrupt`."""


class GenerationComplete(Struct, frozen=True):
    """The answer is made; it may still be playing."""


class TurnComplete(Struct, frozen=True):
    """The last event of an answer, once for each: also of one that is empty, void or failed."""


class TurnFailed(Struct, frozen=True):
    """There is no more of this answer: what was said of it stays said. `TurnComplete` follows, and the model lives.

    Between answers: what the user said could not be understood. Then `TurnComplete` follows only after `end_audio`.
    """

    message: str
    """A sentence that can be shown to the user."""
    retryable: bool = True
    rate_limited: bool = False
    retry_after_s: float | None = None


class ResumptionUpdate(Struct, frozen=True):
    """A newer handle to come back with, if the model can be resumed at this point."""

    handle: str | None


class GoAway(Struct, frozen=True):
    """The connection behind the model ends soon."""

    time_left_ms: int


class Closed(Struct, frozen=True):
    """The last event of all. A retryable reason may be gone the next time."""

    reason: str
    retryable: bool = True


LiveEvent = (
    Timings
    | InputTranscript
    | OutputText
    | OutputAudio
    | ToolCalls
    | ToolCancelled
    | Interrupted
    | GenerationComplete
    | TurnComplete
    | TurnFailed
    | ResumptionUpdate
    | GoAway
    | Usage
    | Closed
)


@dataclass(frozen=True, slots=True)
class LiveProfile:
    name: str
    speaks: bool
    """Whether answers come as audio; else only as text."""
    hears: bool
    """Whether it takes audio."""
    output_hz: int
    resumable: bool
    needs_network: bool
    tool_schemas: str
    """Which of the registry's provider schemas it takes."""
    waits_to_answer: bool = False
    """Whether what it hears is answered only when it is given back by `send_text`. Whoever listens has then seen the
    words first: it may be a yes that lets a tool run."""


class Prefetch(Protocol):
    async def __call__(self, calls: Sequence[ToolCall]) -> "Sequence[ToolAnswer] | None":
        """What these calls would give, in their order, if they were made now; None if that cannot be known without any
        effect. Whoever makes them after all, soon, gets the same."""
        ...


@dataclass(frozen=True, slots=True)
class LiveContext:
    """What a model is connected with."""

    system: str
    messages: Sequence[Message]
    """The conversation so far: context, not orders."""
    tools: Sequence[Mapping[str, Any]]
    mode: Mode
    prefetch: Prefetch | None = None
    """For a model that thinks of its answer while the user may not have finished."""


class ToolAnswer(Struct, frozen=True):
    """The result of one call, for the model that made it."""

    call: ToolCall
    content: Any
    """JSON: the data, or {"error": …}."""
    spoken: str | None = None
    ok: bool = True


def note(messages: list[Message], said: str, answers: Sequence[ToolAnswer] = ()) -> None:
    """Adds a model's message and the results of its calls, joined by ids: the provider's, or made up here."""
    at = len(messages)
    joined = [(answer.call.id or f"call_{at}_{place}", answer) for place, answer in enumerate(answers)]
    calls = tuple(CallMade(id, answer.call.name, answer.call.args, answer.call.extra) for id, answer in joined)
    messages.append(AssistantMessage(said, calls))
    messages += [ToolMessage(id, answer.call.name, answer.content, answer.spoken, answer.ok) for id, answer in joined]


def forget_unheard(messages: list[Message], begin: int, heard: str) -> None:
    """Cuts an answer, which is all messages from `begin` on, to its first words: as many as were heard.

    What tools did in it stays; a message that is left without words and calls goes.
    """
    left = len(heard.split())
    kept: list[Message] = []
    for message in messages[begin:]:
        if isinstance(message, AssistantMessage):
            words = message.text.split()[:left]
            left -= len(words)
            message = AssistantMessage(" ".join(words), message.calls)
            if not words and not message.calls:
                continue
        kept.append(message)
    messages[begin:] = kept


class LiveModel(Protocol):
    """One conversation's connection to a brain. Methods may be called while `events` is being read, not before
    `connect` is done. After `close`, and after `Closed`, nothing more comes."""

    @property
    def profile(self) -> LiveProfile: ...

    async def connect(self, context: LiveContext, resume: str | None = None) -> None:
        """Raises `ModelError` if it cannot be reached or refuses."""
        ...

    def events(self) -> AsyncIterator[LiveEvent]: ...

    def set_voice(self, voice: str | None, speed: float) -> None:
        """How to speak from now on: a voice by its name, None for the model's own, and 1 for its usual speed. A model
        without a voice, or without a choice, passes it over."""
        ...

    def send_audio(self, pcm: bytes, *, playing: bool = False) -> None:
        """Microphone audio: PCM16, 16 kHz, mono, at the pace of speech. It is taken at once: a model that is somewhere
        else queues it, since nobody may have to wait for a network at every frame.

        `playing`: the client is playing the assistant's speech, which its microphone may hear.
        """
        ...

    async def end_audio(self) -> None:
        """No more audio comes for now: what was heard is the user's turn. If no words were, `TurnComplete` follows."""
        ...

    async def send_text(self, text: str, ran: Sequence[ToolAnswer] = ()) -> None:
        """A typed turn of the user. It ends what the model is saying.

        `ran` are calls that the turn itself let run (a person's yes), which the model is told after the words. The
        words may be empty then: the yes was a button.
        """
        ...

    async def say(self, text: str) -> None:
        """Speaks of its own accord, in these words: a greeting, a reminder, a farewell. An answer like any other."""
        ...

    async def send_tool_results(self, answers: Sequence[ToolAnswer]) -> None:
        """All results of one `ToolCalls`, once. Those of a void answer, and of calls that it did not make, change
        nothing now; a model that can, knows of them in the next turn."""
        ...

    async def interrupt(self, heard: str | None = None) -> None:
        """The user wants silence: the answer under way is void, and `TurnComplete` follows. Between answers none does.

        `heard` is what the user heard of the answer, be it under way or the last one, whether it was void before or
        whole: the model forgets the rest of its words, and keeps what tools did. None: it was read as it came.
        """
        ...

    async def close(self) -> None: ...
