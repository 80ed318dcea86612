"""Lets the offline assistant answer what it knows for certain, and a model everything else.

The assistant is asked if the whole message of the user is a sentence of a tool, or follows up on a request that it has
answered itself ("and in London?"), or is a number, an address or a name that it has asked for. It also puts the results
of its own calls into words. Both read the same conversation, so the model sees what the assistant did.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from itertools import takewhile
from typing import Final, cast

import msgspec

from antiphon.models.base import CallRequested, Event, MessageComplete, ModelError, Prompt, TextModel, warm
from antiphon.models.builtin import BuiltinModel
from antiphon.models.builtin.replies import is_question
from antiphon.models.builtin.understood import PlannedCall, Run
from antiphon.tools.affirmation import verdict
from antiphon.tools.errors import ErrorType
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage

MARK: Final = {"model": "builtin"}
"""`ToolCall.extra` of the assistant's calls: by this its calls are known when their results arrive."""

_MISUNDERSTOOD: Final = frozenset({ErrorType.VALIDATION, ErrorType.NOT_FOUND})
"""Failures that may be due to the words: "the final" is not a date that the tool knows, but a model may."""

_REQUEST: Final = re.compile(
    r"\W*(?:(?:please|and|so|ok|okay|well|then|now|hey|hi|hello)\W+)*"
    r"(?:what|how|when|which|who|whose|where|why|is|are|was|were|will|do|does|did|can|could|would|have|has|"
    r"tell|give|show|say|open|go|take|start|stop|end|set|turn|switch|find|search|get|list|read|play|make|add|remind|"
    r"calculate|compute|convert|multiply|divide|subtract|count|let|i)\b",
    re.IGNORECASE,
)
"""How a request begins that needs no question before it. "Two plus two" may be a request or an answer."""


class LocalFirstModel:
    """An offline assistant and a model as one text model, with the profile of the model."""

    def __init__(self, assistant: BuiltinModel, model: TextModel) -> None:
        self.profile = model.profile
        self.assistant = assistant
        self._model = model

    def answers_locally(self, prompt: Prompt) -> bool:
        """Whether the offline assistant writes the next message, which costs nothing."""
        match prompt.messages[-1:]:
            case [UserMessage(text=text)] if prompt.allows_local:
                return self._is_request(text, prompt)
            case [ToolMessage()]:
                return _are_local(prompt.messages) and not _needs_model(prompt.messages)
        return False

    async def warm(self, prompt: Prompt) -> bool:
        return await warm(self._model, prompt)

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        await self.assistant.prepare(prompt)
        if self.answers_locally(prompt):
            async for event in self._reply_locally(prompt):
                yield event
            return
        has_begun = False
        try:
            async with aclosing(cast(AsyncGenerator[Event, None], self._model.reply(prompt))) as events:
                async for event in events:
                    has_begun = True
                    yield event
            return
        except ModelError:
            if has_begun or not _are_local(prompt.messages):
                raise
        # A request that the assistant alone understood has failed. It can at least say why.
        async for event in self._reply_locally(prompt):
            yield event

    async def _reply_locally(self, prompt: Prompt) -> AsyncIterator[Event]:
        async for event in self.assistant.reply(prompt):
            match event:
                case CallRequested(call=call):
                    yield CallRequested(msgspec.structs.replace(call, extra=MARK))
                case MessageComplete():
                    yield msgspec.structs.replace(event, is_local=True)
                case _:
                    yield event

    def _is_request(self, text: str, prompt: Prompt) -> bool:
        before = prompt.messages[:-1]
        if (answer := self.assistant.find_answer(prompt.messages, prompt.mode)) is not None:
            return _are_offered(answer.calls if isinstance(answer, Run) else [answer.call], prompt)
        match before[-1:]:
            case [ToolMessage()] if not _are_local(before):
                # The model's last answer was interrupted before it told what its tools did.
                return False
            case [AssistantMessage(text=said)] if _asks(said) and not _stands_alone(text):
                return False
        request = self._find_follow_up(prompt) or self.assistant.find_request(text, prompt.mode)
        return request is not None and _are_offered(request.calls, prompt)

    def _find_follow_up(self, prompt: Prompt) -> Run | None:
        """Returns the calls that the text asks for after a request which the assistant has answered itself."""
        found = self.assistant.find_follow_up(prompt.messages, prompt.mode)
        if found is None:
            return None
        request, referred = found
        return request if all(call.extra == MARK for call in referred) else None


def _are_offered(calls: Sequence[PlannedCall], prompt: Prompt) -> bool:
    """Whether the session has the tools: it may have fewer than the assistant has sentences for."""
    offered = {tool["function"]["name"] for tool in prompt.tools}
    return all(call.tool_id in offered for call in calls)


def _asks(said: str) -> bool:
    return said.rstrip(" \n\"'”’)*_").endswith("?")


def _stands_alone(text: str) -> bool:
    """Whether the text is a request whatever was asked before it, and not the answer to a question."""
    return verdict(text) is None and _REQUEST.match(text) is not None


def _runs(messages: Sequence[Message]) -> Iterator[tuple[CallMade | None, ToolMessage]]:
    """Yields each result with its call, which is in the message before it: ids may repeat from turn to turn."""
    calls: dict[str, CallMade] = {}
    for message in messages:
        match message:
            case AssistantMessage():
                calls = {call.id: call for call in message.calls}
            case ToolMessage():
                yield calls.get(message.call_id), message


def _last_runs(messages: Sequence[Message]) -> list[tuple[CallMade | None, ToolMessage]]:
    """Returns the results that the messages end with, and their calls."""
    count = sum(1 for _ in takewhile(lambda message: isinstance(message, ToolMessage), reversed(messages)))
    return list(_runs(messages))[-count:] if count else []


def _are_local(messages: Sequence[Message]) -> bool:
    """Whether the messages end with results of calls that the assistant made."""
    runs = _last_runs(messages)
    return bool(runs) and all(call is not None and _is_local(call, messages) for call, _ in runs)


def _is_local(call: CallMade, messages: Sequence[Message]) -> bool:
    """Whether the assistant made the call, or asked the user for the approval that let it run."""
    return call.extra == MARK or any(
        asked is not None and asked.extra == MARK and (asked.name, asked.args) == (call.name, call.args)
        for asked, result in _runs(messages)
        if is_question(result)
    )


def _needs_model(messages: Sequence[Message]) -> bool:
    """Whether a call of the assistant was refused for its arguments. The model may know what was meant."""
    return any(_error_type(result) in _MISUNDERSTOOD for _, result in _last_runs(messages))


def _error_type(result: ToolMessage) -> object:
    match result:
        case ToolMessage(ok=False, content={"error": {"type": type}}):
            return type
    return None
