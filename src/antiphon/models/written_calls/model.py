"""A text model whose calls may be written as text: they become calls, and are never shown or spoken.

Text is passed on at once if it cannot be the beginning of a call, which its first characters tell. Only text that
begins like a call waits for the end of the message.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

from antiphon.models.base import (
    CallRequested,
    Event,
    MessageComplete,
    ModelError,
    Prompt,
    StopReason,
    TextDelta,
    TextModel,
    warm,
)
from antiphon.models.bounded import MAX_CALLS, TOO_MANY_CALLS, LimitExceeded, explain_limit
from antiphon.models.written_calls.formats import HEAD_CHARS, Tools, Verdict, judge
from antiphon.models.written_calls.reader import parse_calls
from antiphon.tools.call import ToolCall


class WrittenCallsModel:
    """Any text model, with its written calls recognised. The model must limit the length of its messages."""

    def __init__(self, model: TextModel) -> None:
        self.profile = model.profile
        self._model = model

    async def warm(self, prompt: Prompt) -> bool:
        return await warm(self._model, prompt)

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        held, written = _HeldText(_tools_of(prompt.tools)), list[ToolCall]()
        has_ended = False
        try:
            async with aclosing(cast(AsyncGenerator[Event, None], self._model.reply(prompt))) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        if text := held.push(event.text):
                            yield TextDelta(text)
                        continue
                    if not has_ended:
                        has_ended = True
                        written, text = held.finish()
                        if text:
                            yield TextDelta(text)
                    if isinstance(event, CallRequested):
                        # The model also asked in the way that it should, so what it wrote is not asked for twice.
                        written = []
                    if isinstance(event, MessageComplete):
                        for call in self._limited(written):
                            yield CallRequested(call)
                        yield MessageComplete(StopReason.CALLS) if written else event
                    else:
                        yield event
        except ModelError:
            # No call is made of a message that was cut off.
            if not has_ended and (text := held.abandon()):
                yield TextDelta(text)
            raise

    def _limited(self, calls: list[ToolCall]) -> list[ToolCall]:
        if len(calls) > MAX_CALLS:
            raise explain_limit(self.profile.name, LimitExceeded(TOO_MANY_CALLS))
        return calls


class _HeldText:
    """The text of one message, held back while it may be a call."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._pieces: list[str] = []
        self._head = ""
        """The first characters after the space that a message may begin with."""
        self._verdict = Verdict.UNDECIDED

    def push(self, piece: str) -> str:
        """Returns what can be passed on."""
        if self._verdict is Verdict.TEXT:
            return piece
        self._pieces.append(piece)
        if self._verdict is Verdict.UNDECIDED:
            self._head = (self._head + piece).lstrip()[:HEAD_CHARS]
            self._verdict = judge(self._head, self._tools)
        return self._take() if self._verdict is Verdict.TEXT else ""

    def finish(self) -> tuple[list[ToolCall], str]:
        """Returns the calls that the message consists of, or else the text that was held back."""
        text = self._take()
        calls = parse_calls(text, self._tools)
        return (calls, "") if calls else ([], text)

    def abandon(self) -> str:
        """Returns the text that was held back, unless it is the beginning of a call."""
        return "" if self._verdict is Verdict.MAYBE_CALL else self._take()

    def _take(self) -> str:
        text, self._pieces = "".join(self._pieces), []
        return text


def _tools_of(schemas: Sequence[Mapping[str, Any]]) -> Tools:
    """Returns the schemas of the arguments by the names of their tools."""
    functions = [schema.get("function", schema) for schema in schemas]
    return {function["name"]: function.get("parameters") or {} for function in functions if "name" in function}
