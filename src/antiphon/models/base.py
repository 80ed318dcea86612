"""The seam to a text model: one prompt in, one message out as a stream of events.

The caller runs the calls through the gate, adds the message and the results to the conversation, and asks again until
a message has no calls.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol, runtime_checkable

from msgspec import Struct

from antiphon.errors import AntiphonError
from antiphon.models.expectation import Expectation
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.transcript import Message, UserMessage

COMPLETED: Final = (
    "I had not finished when you acted on the first words of this. Do not do again what you have already done for "
    "them. Change or undo it if you can, and say what you did."
)


class FailureKind(StrEnum):
    """What went wrong with a model, for the log and for `/ready`."""

    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    """The request, the key or the model's name was not accepted."""
    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    REDIRECTED = "redirected"
    INVALID_RESPONSE = "invalid_response"
    CUT_OFF = "cut_off"
    """The answer ended without its end mark."""
    TOO_LONG = "too_long"
    """A limit of ours was exceeded."""
    LOOPED = "looped"
    EMPTY = "empty"
    UNEXPECTED = "unexpected"


class ModelError(AntiphonError):
    """A model cannot be reached, or refuses. The text can be shown to the user."""

    code = "model"

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = True,
        rate_limited: bool = False,
        retry_after_s: float | None = None,
        kind: FailureKind = FailureKind.REFUSED,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.rate_limited = rate_limited
        """Only this costs energy; any other failure may not happen again."""
        self.retry_after_s = retry_after_s
        self.kind = kind
        self.status = status
        """The HTTP status of the model's server, if it refused."""


class TextDelta(Struct, frozen=True):
    """The next piece of a message's text."""

    text: str


class CallRequested(Struct, frozen=True):
    call: ToolCall


class TokensUsed(Struct, frozen=True):
    """What the message cost, where the provider counts it."""

    input_tokens: int
    output_tokens: int


class StopReason(StrEnum):
    DONE = "done"
    CALLS = "calls"
    """It waits for the results of its calls."""


class MessageComplete(Struct, frozen=True):
    """The last event of every message."""

    reason: StopReason
    is_local: bool = False
    """Whether the offline assistant wrote it in place of the model, whose health it therefore does not show."""
    expects: Expectation = Expectation.NOTHING
    """What the message asks the user for. It decides how long pauses may be while they answer by voice."""


Event = TextDelta | CallRequested | TokensUsed | MessageComplete


@dataclass(frozen=True, slots=True)
class Completion:
    """The user has completed a request whose first words were taken for all of it. Their last message has all words."""

    first_words: str
    is_answered: bool
    """Whether their answer had begun: then they are a message of their own, with its calls. Otherwise those calls
    follow the user's last message."""


@dataclass(frozen=True, slots=True)
class Prompt:
    system: str
    messages: Sequence[Message]
    """Ends with the user's message or with the results of the calls of the message before them."""
    tools: Sequence[Mapping[str, Any]]
    """The tools that may be called, each as this provider's schema."""
    mode: Mode
    mode_note: str = ""
    """The end of `system`, which is all that differs between voice and text."""
    allows_local: bool = True
    """Whether the offline assistant may answer in place of the model. It would not follow the instructions of a client
    application."""
    summary: str = ""
    """What was said before the messages begin. It is part of `system`, too."""
    completion: Completion | None = None
    """Set if something was called for the first words of what is now the user's last message."""

    @property
    def told_messages(self) -> Sequence[Message]:
        """The messages for a language model, which is told in the user's last one if it was completed late."""
        told = list(self.messages)
        for place in reversed(range(len(told) if self.completion is not None else 0)):
            match told[place]:
                case UserMessage(text=text):
                    told[place] = UserMessage(f"{text}\n\n({COMPLETED})")
                    break
        return told


@dataclass(frozen=True, slots=True)
class TextProfile:
    """What a model can do. Code asks this instead of asking which model it is."""

    name: str
    needs_network: bool
    tools_per_turn: int = 0
    """How many tools it is given for a request; 0 means all of them."""
    context_tokens: int | None = None
    """How many tokens it takes in all: prompt, tools, conversation and answer. None if that is not known."""


class TextModel(Protocol):
    """Keeps nothing between prompts: one instance serves any number of conversations at once."""

    @property
    def profile(self) -> TextProfile: ...

    def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        """Streams one message. Closing the iterator stops it."""
        ...


@runtime_checkable
class Warmable(Protocol):
    """A text model whose server can read a prompt ahead of time, or a wrapper of any text model."""

    async def warm(self, prompt: Prompt) -> bool:
        """Has the server load the model and read the prompt, so that later prompts which begin alike are answered
        sooner. Returns False, and does nothing, if that costs money or is of no use. Raises `ModelError`."""
        ...


async def warm(model: TextModel, prompt: Prompt) -> bool:
    """Warms a model if it can be warmed, and returns whether it was."""
    return isinstance(model, Warmable) and await model.warm(prompt)
