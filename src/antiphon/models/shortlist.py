"""Gives a model only the tools that are closest to what was asked, for models that cannot cope with all of them.

The choice depends on nothing but the conversation. Tools are only added while it goes on, and keep their order, so that
a server's prefix cache holds from turn to turn; the list begins anew when it becomes too long.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from antiphon.models.base import Event, Prompt, TextModel, warm
from antiphon.models.tool_ranking import Ranker, Texts
from antiphon.transcript import AssistantMessage, Message, UserMessage

ALWAYS: Final = ("describe_tool", "list_tools")
"""Tools about tools: with them, a model finds those that were left out."""
DESCRIBED: Final = "tool_id"
"""The argument of `describe_tool`. A model that has read a tool's documentation is given the tool."""
GROWTH: Final = 3
"""How many times the number of tools per turn the list may grow to."""

Schema = Mapping[str, Any]


class ShortlistModel:
    """Any text model, with few tools per turn."""

    def __init__(
        self,
        model: TextModel,
        ranker: Ranker,
        tools_per_turn: int,
        describe: Callable[[], Texts] = dict,
    ) -> None:
        """`describe` returns texts about tools, besides their schemas, by the name of the tool."""
        self.profile = replace(model.profile, tools_per_turn=tools_per_turn)
        self._model = model
        self._ranker = ranker
        self._count = tools_per_turn
        self._describe = describe

    async def warm(self, prompt: Prompt) -> bool:
        # The ranker reads the texts of the tools. Which of them the first request needs is not known yet.
        await self.choose(prompt)
        return await warm(self._model, replace(prompt, tools=_pick(prompt.tools, ())))

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        chosen = replace(prompt, tools=await self.choose(prompt))
        async for event in self._model.reply(chosen):
            yield event

    async def choose(self, prompt: Prompt) -> Sequence[Schema]:
        """Returns the tools for this prompt, those that were chosen first in this conversation first."""
        if len(prompt.tools) <= self._count:
            return prompt.tools
        texts, names = self._texts(prompt.tools), list[str]()
        for message in prompt.messages:
            match message:
                case UserMessage(text=text) if text.strip():
                    nearest = list(await self._ranker.rank(text, texts))[: self._count]
                    merged = list(dict.fromkeys([*names, *nearest]))
                    names = merged if len(merged) <= GROWTH * self._count else nearest
                case _:
                    names = list(dict.fromkeys([*names, *_used(message)]))
        return _pick(prompt.tools, names)

    def _texts(self, tools: Sequence[Schema]) -> Texts:
        more = self._describe()
        return {
            name: (name.replace("_", " "), str(schema["function"].get("description", "")), *more.get(name, ()))
            for schema in tools
            if (name := _name(schema)) not in ALWAYS
        }


def _name(schema: Schema) -> str:
    return str(schema["function"]["name"])


def _pick(tools: Sequence[Schema], names: Sequence[str]) -> Sequence[Schema]:
    by_name = {_name(schema): schema for schema in tools}
    return tuple(by_name[name] for name in dict.fromkeys([*ALWAYS, *names]) if name in by_name)


def _used(message: Message) -> list[str]:
    """Returns the tools that a message calls, or asks the documentation of."""
    if not isinstance(message, AssistantMessage):
        return []
    described = [call.args.get(DESCRIBED) for call in message.calls if isinstance(call.args, dict)]
    return [*(call.name for call in message.calls), *(name for name in described if isinstance(name, str))]
