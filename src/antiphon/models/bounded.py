"""Limits on what a model may say and call, the same for every model and every way to reach it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Final, cast

from antiphon.models.base import CallRequested, Event, FailureKind, ModelError, Prompt, TextDelta, TextModel, warm

MAX_TURN_S: Final = 110.0
"""How long a model may take for its messages of one turn. `POST /api/chat` gives up a little later than this, so that
it reports the same reason."""
MAX_ANSWER_CHARS: Final = 100_000
"""The longest text of one message: two hours of speech. A model that says more is stuck."""
MAX_CALLS: Final = 32
"""The most calls of one message. The gate runs far fewer in a turn."""
MAX_CALL_CHARS: Final = 256 * 1024
"""The most characters in all calls of one message: names, ids and arguments. The gate takes 64 KiB of each."""

REPEATED_CHARS: Final = 6_000
"""How much text must be one repeated passage before the model counts as stuck."""
LEAST_REPEATS: Final = 8
_PROBE_CHARS: Final = 64
_CHECK_EVERY_CHARS: Final = 2_000

TOO_MANY_CALLS: Final = f"asked for more than {MAX_CALLS} tool calls in one message"


class LimitExceeded(Exception):
    """A model exceeded a limit. The text continues a sentence that begins with the model's name."""


class Repetition(LimitExceeded):
    """The model repeats the same passage."""


class BoundedModel:
    """Any text model, kept within the limits. What it said before it exceeded one has been passed on."""

    def __init__(self, model: TextModel) -> None:
        self.profile = model.profile
        self._model = model

    async def warm(self, prompt: Prompt) -> bool:
        return await warm(self._model, prompt)

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        text, calls = AnswerText(), 0
        try:
            async with aclosing(cast(AsyncGenerator[Event, None], self._model.reply(prompt))) as events:
                async for event in events:
                    match event:
                        case TextDelta(text=piece):
                            text.add(piece)
                        case CallRequested():
                            calls += 1
                    if calls > MAX_CALLS:
                        raise LimitExceeded(TOO_MANY_CALLS)
                    yield event
        except LimitExceeded as error:
            raise explain_limit(self.profile.name, error) from None


class TurnTimer:
    """The time that a model has for its messages of one turn. The time of its tools is not counted."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._limit_s = self._left_s = MAX_TURN_S

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Raises `ModelError` when the time is up."""
        clock = asyncio.get_running_loop().time
        started_s = clock()
        try:
            async with asyncio.timeout(self._left_s) as limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            message = f"{self._name} took longer than {self._limit_s:.0f} seconds, so I stopped waiting for it."
            raise ModelError(message, kind=FailureKind.TIMEOUT) from None
        finally:
            self._left_s -= clock() - started_s


def explain_limit(name: str, error: LimitExceeded) -> ModelError:
    kind = FailureKind.LOOPED if isinstance(error, Repetition) else FailureKind.TOO_LONG
    return ModelError(f"{name} {error}, so I stopped it.", kind=kind)


def is_repetitive(text: str) -> bool:
    """Whether a text of `REPEATED_CHARS` is one repeated passage."""
    probe_at = len(text) - _PROBE_CHARS
    period = probe_at - text.rfind(text[probe_at:], 0, len(text) - 1)
    is_short = period <= REPEATED_CHARS // LEAST_REPEATS
    return len(text) == REPEATED_CHARS and is_short and text[period:] == text[:-period]


class AnswerText:
    """Measures the text of one message as it comes. It keeps no more of it than is searched for repetitions."""

    def __init__(self) -> None:
        self._chars = 0
        self._recent: list[str] = []
        self._recent_chars = 0
        """How many characters came since the text was last searched for repetitions."""
        self._tail = ""

    def add(self, piece: str) -> None:
        """Raises `LimitExceeded`."""
        self._chars += len(piece)
        if self._chars > MAX_ANSWER_CHARS:
            raise LimitExceeded(f"gave an answer of more than {MAX_ANSWER_CHARS:,} characters")
        self._recent.append(piece)
        self._recent_chars += len(piece)
        if self._recent_chars >= _CHECK_EVERY_CHARS:
            self._tail = "".join((self._tail, *self._recent))[-REPEATED_CHARS:]
            self._recent, self._recent_chars = [], 0
            if is_repetitive(self._tail):
                raise Repetition("repeated itself over and over")
