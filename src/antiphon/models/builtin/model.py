"""The offline assistant as a `TextModel`: it matches requests by a grammar, calls tools and phrases their results."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final, Protocol

from antiphon.models.base import (
    CallRequested,
    Event,
    MessageComplete,
    Prompt,
    StopReason,
    TextDelta,
    TextProfile,
)
from antiphon.models.builtin import replies
from antiphon.models.builtin.recall import Memory
from antiphon.models.builtin.understanding import (
    Ask,
    PlannedCall,
    Remember,
    Run,
    Say,
    Understanding,
    Understood,
    words_of,
)
from antiphon.models.completeness import Completeness
from antiphon.tools.affirmation import verdict
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool
from antiphon.transcript import AssistantMessage, Message, ToolMessage, UserMessage

PROFILE: Final = TextProfile(name="builtin", needs_network=False, context_tokens=10_000_000)
"""It reads any number of messages."""


class Toolbox(Protocol):
    """The part of a registry snapshot that is used here."""

    @property
    def tools(self) -> Mapping[str, Tool]: ...


class BuiltinModel:
    """Stateless: it reads the past from the messages. Keep one per snapshot, since compiling takes time."""

    profile = PROFILE

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._compiled: tuple[Mapping[str, Tool], Understanding] | None = None

    @property
    def _understanding(self) -> Understanding:
        """The compiled sentences. They are compiled again when the toolbox has other tools, as after a reload."""
        tools = self._toolbox.tools
        if self._compiled is None or self._compiled[0] is not tools:
            self._compiled = tools, Understanding(tools)
        return self._compiled[1]

    def compile(self) -> None:
        """Compiles the grammar now, in this thread, instead of at the first prompt."""
        self._understanding  # noqa: B018

    def completeness(self, text: str, mode: Mode) -> Completeness:
        """Judges how complete a request the text is."""
        return self._understanding.completeness(text, mode)

    def describe_tools(self) -> Mapping[str, Sequence[str]]:
        """Returns what describes each tool: its summary, and sentences that ask for it."""
        asked = self._understanding.sentences
        return {id: (tool.summary, *asked.get(id, ())) for id, tool in self._toolbox.tools.items()}

    def find_request(self, text: str, mode: Mode) -> Run | None:
        """Returns the calls that the text asks for, if the whole text is a request in the sentences of the tools."""
        return self._understanding.find_request(text, mode)

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        said = max((n for n, m in enumerate(prompt.messages) if isinstance(m, UserMessage)), default=0)
        understood = self._understand(prompt.messages[: said + 1], prompt.mode)
        results = _last_results(prompt.messages)
        if isinstance(understood, Run) and not results:
            for call in understood.calls:
                yield CallRequested(ToolCall(None, call.tool_id, dict(call.args)))
            yield MessageComplete(StopReason.CALLS)
            return
        # Results that arrived after the last turn was interrupted come first, except questions already answered.
        answered = {message.name for message in results}
        late = _last_results(prompt.messages[:said])
        sentences = [
            replies.result(each, None) for each in late if not (each.name in answered and replies.is_question(each))
        ]
        if results:
            sentences += _put_into_words(results, understood)
        elif isinstance(understood, Ask):
            sentences.append(understood.question)
        elif isinstance(understood, Say):
            sentences.append(understood.text)
        elif isinstance(understood, Remember):
            memory = Memory(prompt.messages[:said], prompt.summary, prompt.mode, words_of=words_of)
            sentences.append(memory.answer(understood.recall))
        yield TextDelta(" ".join(sentences))
        yield MessageComplete(StopReason.DONE)

    def _understand(self, messages: Sequence[Message], mode: Mode) -> Understood:
        """Returns what the last message, the user's, asks for."""
        text = messages[-1].text if messages and isinstance(messages[-1], UserMessage) else ""
        answer = verdict(text)
        if answer is None:
            return self._understanding.understand(text, mode)
        asked = self._question_before(messages, mode)
        if asked is not None:
            return Run((asked.call,)) if answer else Say(replies.LEFT_ALONE)
        # "cancel that" can be a tool's sentence too.
        understood = self._understanding.understand(text, mode)
        return understood if isinstance(understood, Run) else Say(replies.NOTHING_ASKED)

    def _question_before(self, messages: Sequence[Message], mode: Mode) -> Ask | None:
        """Repeats the guess that the assistant has just asked about, from the words that led to it.

        The question's text is only compared: another model may have written it, or it may have been interrupted.
        """
        match messages[-3:-1]:
            case [UserMessage(text=text), AssistantMessage(text=question, calls=())]:
                understood = self._understanding.understand(text, mode)
                if isinstance(understood, Ask) and understood.question == question:
                    return understood
        return None


def _last_results(messages: Sequence[Message]) -> list[ToolMessage]:
    results: list[ToolMessage] = []
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            break
        results.insert(0, message)
    return results


def _put_into_words(results: Sequence[ToolMessage], understood: Understood) -> list[str]:
    calls: list[PlannedCall] = list(understood.calls) if isinstance(understood, Run) else []
    sentences = []
    for message in results:
        call = next((call for call in calls if call.tool_id == message.name), None)
        if call is not None:
            calls.remove(call)
        sentences.append(replies.result(message, None if call is None else call.say))
    return sentences
