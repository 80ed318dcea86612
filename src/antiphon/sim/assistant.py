"""The model behind the simulators: the offline assistant, which calls the tools that the client has declared.

A tool with the name of a built-in one is called by that tool's sentences: "what time is it" calls the client's
`get_current_time`. Any other is called by its name: "call get_weather with Oslo", or with a JSON object. If the client
tells it to say exact words, it says them.
"""

import asyncio
import json
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from antiphon.models.base import CallRequested, Event, MessageComplete, Prompt, StopReason, TextDelta, TextProfile
from antiphon.models.builtin import BuiltinModel, replies
from antiphon.models.completeness import Completeness
from antiphon.prompts.composer import CLIENT_HEADING, SUMMARY_HEADING
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool
from antiphon.transcript import Message, ToolMessage, UserMessage

PROFILE: Final = TextProfile(name="simulated", needs_network=False)
MAX_COMPILED: Final = 16
"""How many sets of tools are kept compiled. Clients of one test usually declare the same tools."""
MAX_CALLS: Final = 4

WORDS: Final[Mapping[str, str]] = {
    "calculate": "The result is {result}.",
    "calculate_date": "It's {weekday}, {date}.",
    "get_current_date": "It's {weekday}, {date}.",
    "get_current_time": "It's {time} in {place}.",
    "get_day_of_week": "{date} is a {weekday}.",
    "get_uptime": "It has been up for {uptime}.",
    "tell_joke": "{joke}",
}
"""How results of the built-in tools are put into words. Over a provider's wire, only their data comes back."""

_CALL: Final = re.compile(
    r"(?:please )?(?:call|use|run) (?:the )?(?:tool )?(?P<name>[\w .:-]+?)(?: with (?P<words>.+?))?[.!?]?\s*",
    re.IGNORECASE | re.DOTALL,
)
_SEVERAL: Final = re.compile(r"\s+and (?=(?:call|use|run) )", re.IGNORECASE)
_SAY: Final = re.compile(
    r"\bsay exactly (?:these|the following) words\b[^\n:\]]*[:\]]\s*(?P<words>\S.*)", re.IGNORECASE | re.DOTALL
)
"""How clients have a model say given words, such as a greeting."""
_NOT_LETTERS: Final = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class _Toolbox:
    tools: Mapping[str, Tool]


class ToolAssistant:
    """A text model. `known` are the built-in tools, of which only the sentences are used."""

    profile = PROFILE

    def __init__(self, known: Mapping[str, Tool]) -> None:
        self._known = known
        self._whole = BuiltinModel(_Toolbox(known))
        self._compiled: OrderedDict[frozenset[str], BuiltinModel] = OrderedDict()

    async def compile(self) -> None:
        """Compiles the grammar of all tools now, so that the first spoken turn does not wait for it."""
        await asyncio.to_thread(self._whole.compile)

    def completeness(self, text: str, mode: Mode) -> Completeness:
        if _CALL.fullmatch(text) is not None:
            return Completeness.EXTENDABLE
        return self._whole.completeness(text, mode)

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        if (words := _words_to_say(prompt)) is not None:
            yield TextDelta(words)
            yield MessageComplete(StopReason.DONE)
            return
        declared = _declared(prompt.tools)
        has_results = bool(prompt.messages) and isinstance(prompt.messages[-1], ToolMessage)
        if not has_results and (calls := find_calls(_last_words(prompt.messages), declared)):
            for call in calls:
                yield CallRequested(call)
            yield MessageComplete(StopReason.CALLS)
            return
        if not has_results and (told := _told_result(_last_words(prompt.messages))) is not None:
            yield TextDelta(replies.result(_with_words(told), None))
            yield MessageComplete(StopReason.DONE)
            return
        assistant = await self._assistant(frozenset(name for name in declared if name in self._known))
        messages = [_with_words(each) if isinstance(each, ToolMessage) else each for each in prompt.messages]
        summary = prompt.summary or _told_summary(prompt)
        async for event in assistant.reply(replace(prompt, messages=messages, summary=summary)):
            if isinstance(event, CallRequested):
                name, args = event.call.name, event.call.args
                event = CallRequested(ToolCall(None, name, fit_arguments(args, declared[name])))
            yield event

    async def _assistant(self, names: frozenset[str]) -> BuiltinModel:
        """Returns an offline assistant that knows these tools and no other."""
        if names not in self._compiled:
            assistant = BuiltinModel(_Toolbox({name: self._known[name] for name in sorted(names)}))
            await asyncio.to_thread(assistant.compile)
            self._compiled[names] = assistant
        self._compiled.move_to_end(names)
        while len(self._compiled) > MAX_COMPILED:
            self._compiled.popitem(last=False)
        return self._compiled[names]


def _words_to_say(prompt: Prompt) -> str | None:
    """Finds the words that the client's instructions, or its last message, tell the model to say."""
    instructions = prompt.system.partition(CLIENT_HEADING)[2].removesuffix(prompt.mode_note)
    last = prompt.messages[-1] if prompt.messages else None
    found = _SAY.search(instructions) or (_SAY.search(last.text) if isinstance(last, UserMessage) else None)
    return found["words"].strip() if found else None


def _told_summary(prompt: Prompt) -> str:
    """Finds the summary of an earlier part of the conversation in the client's instructions."""
    return prompt.system.partition(SUMMARY_HEADING)[2].strip().partition("\n\n")[0]


def _told_result(words: str) -> ToolMessage | None:
    """Finds the result of a tool in a note: a client that was given no id for a call can only tell it in words.

    The note has a JSON object with the keys "tool" and "result" somewhere.
    """
    start = words.find("{")
    try:
        told, _ = json.JSONDecoder().raw_decode(words, start) if start >= 0 else (None, 0)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or not {"tool", "result"} <= told.keys():
        return None
    return ToolMessage("", str(told["tool"]), told["result"])


def _with_words(message: ToolMessage) -> ToolMessage:
    """Returns the message with words for its result, if it is one of a built-in tool."""
    if message.spoken is not None or not message.ok:
        return message
    words, data = WORDS.get(message.name), message.content
    if words is None or not isinstance(data, dict):
        return message
    try:
        return ToolMessage(message.call_id, message.name, data, words.format_map(data))
    except KeyError:
        return message  # the client's tool has the same name, but other results


def find_calls(words: str, declared: Mapping[str, Mapping[str, Any]]) -> list[ToolCall]:
    """Finds the tools that the words ask for by name; [] if they ask for anything else too."""
    by_letters = {_NOT_LETTERS.sub("", name).casefold(): name for name in declared}
    calls: list[ToolCall] = []
    for part in _SEVERAL.split(words.strip())[:MAX_CALLS]:
        found = _CALL.fullmatch(part)
        name = by_letters.get(_NOT_LETTERS.sub("", found["name"]).casefold()) if found else None
        if found is None or name is None:
            return []
        calls.append(ToolCall(None, name, _arguments(found["words"] or "", declared[name])))
    return calls


def fit_arguments(args: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns arguments that the schema allows: without unknown ones, and with examples of those that are missing."""
    properties: Mapping[str, Any] = schema.get("properties") or {}
    given = args if isinstance(args, dict) else {}
    fitting = {name: value for name, value in given.items() if name in properties}
    missing = [name for name in schema.get("required") or () if name not in fitting and name in properties]
    return fitting | {name: _example(properties[name]) for name in missing}


def _arguments(words: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    try:
        given = json.loads(words)
    except ValueError:
        given = None
    if isinstance(given, dict):
        return given
    properties: Mapping[str, Any] = schema.get("properties") or {}
    first = next(iter(schema.get("required") or properties), None)
    if not words or first is None:
        return fit_arguments({}, schema)
    return fit_arguments({first: _read(words, properties.get(first) or {})}, schema)


def _read(words: str, schema: Mapping[str, Any]) -> Any:
    """Reads spoken words as a value of the schema's type, as far as that is possible."""
    kind = str(schema.get("type", "string")).lower()
    try:
        if kind == "integer":
            return int(words)
        if kind == "number":
            return float(words)
    except ValueError:
        return _example(schema)
    if kind == "boolean":
        return words.casefold() in ("yes", "true", "on", "1")
    return words if kind == "string" else _example(schema)


def _example(schema: Mapping[str, Any]) -> Any:
    for key in ("default", "const"):
        if schema.get(key) is not None:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    match str(schema.get("type", "string")).lower():
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "array":
            return []
        case "object":
            return fit_arguments({}, schema)
    return "example"


def _declared(tools: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Returns the parameters of the tools in the format of chat completions, by their names."""
    functions = [tool.get("function") or {} for tool in tools]
    return {str(each["name"]): each.get("parameters") or {} for each in functions if each.get("name")}


def _last_words(messages: Sequence[Message]) -> str:
    return next((each.text for each in reversed(messages) if isinstance(each, UserMessage)), "")
