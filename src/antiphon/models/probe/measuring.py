"""Asks a text model once, and measures its answer."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, cast

from antiphon.models.base import (
    CallRequested,
    Event,
    FailureKind,
    ModelError,
    Prompt,
    TextDelta,
    TextModel,
    TokensUsed,
)
from antiphon.models.written_calls.model import WrittenCallsModel
from antiphon.tools.call import ToolCall

CHARACTERS_PER_TOKEN: Final = 4
"""About how many characters of English text a token has, for servers that do not count tokens."""


@dataclass(slots=True)
class Answer:
    """One message of a model, measured."""

    first_ms: float | None = None
    """From the request to the first word or call."""
    total_ms: float = 0.0
    text: str = ""
    pieces: int = 0
    calls: list[ToolCall] = field(default_factory=list)
    """Calls that the model made in the protocol's own format."""
    written_calls: list[ToolCall] = field(default_factory=list)
    """Calls that the model wrote as text."""
    usage: TokensUsed | None = None

    @property
    def said_tokens(self) -> int:
        """About how many tokens the text and the calls have."""
        said = len(self.text) + sum(len(call.name) + len(str(call.args)) for call in self.calls)
        return max(1, said // CHARACTERS_PER_TOKEN)

    @property
    def tokens_per_s(self) -> float | None:
        """None if it all came at once."""
        spent_ms = self.total_ms - (self.first_ms or 0.0)
        tokens = self.usage.output_tokens if self.usage is not None else self.said_tokens
        return tokens * 1_000 / spent_ms if spent_ms >= 1 and self.pieces > 1 and tokens > 1 else None


async def ask(model: TextModel, prompt: Prompt, limit_s: float) -> Answer:
    """Raises `ModelError`, also if the answer takes longer than the limit."""
    clock = asyncio.get_running_loop().time
    began_s, answer = clock(), Answer()
    watched = _Watched(model, answer)

    def note_first() -> None:
        if answer.first_ms is None:
            answer.first_ms = (clock() - began_s) * 1_000

    try:
        async with (
            asyncio.timeout(limit_s),
            aclosing(cast(AsyncGenerator[Event, None], WrittenCallsModel(watched).reply(prompt))) as events,
        ):
            async for event in events:
                match event:
                    case TextDelta(text=text):
                        note_first()
                        answer.text += text
                        answer.pieces += 1
                    case CallRequested(call=call):
                        note_first()
                        if call not in answer.calls:
                            answer.written_calls.append(call)
                    case TokensUsed():
                        answer.usage = event
    except TimeoutError:
        message = f"{model.profile.name} did not finish an answer within {limit_s:.0f} seconds."
        raise ModelError(message, kind=FailureKind.TIMEOUT) from None
    answer.total_ms = (clock() - began_s) * 1_000
    return answer


class _Watched:
    """Notes the calls that a model makes as it should."""

    def __init__(self, model: TextModel, answer: Answer) -> None:
        self.profile = model.profile
        self._model = model
        self._answer = answer

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        async with aclosing(cast(AsyncGenerator[Event, None], self._model.reply(prompt))) as events:
            async for event in events:
                if isinstance(event, CallRequested):
                    self._answer.calls.append(event.call)
                yield event
