"""A text model that can be asked ahead of time: the answer to what will probably be said is on its way already."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any, cast

from antiphon.models.base import CallRequested, Event, OutputText, Prompt, TextModel
from antiphon.models.cascade.begun import Begun
from antiphon.models.cascade.chores import Chores
from antiphon.models.live import Prefetch, note
from antiphon.speech.clauses import Clauses
from antiphon.tools.call import ToolCall, number


class Ahead:
    """Nothing comes of an answer that was begun ahead until the same prompt is given in earnest: its calls have not
    been made, its words were not said."""

    def __init__(self, model: TextModel, on_first_clause: Callable[[str], None] = lambda clause: None) -> None:
        """`on_first_clause` is told how an answer will begin, as soon as that is known."""
        self.profile = model.profile
        self._model = model
        self._on_first_clause = on_first_clause
        self._prompt: Prompt | None = None
        """That it thinks about."""
        self._begun: list[tuple[Prompt, Begun[Event]]] = []
        """Messages of the answer that nobody has asked for yet."""
        self._thinking: asyncio.Task[None] | None = None
        self._chores = Chores()

    def prepare(self, prompt: Prompt, prefetch: Prefetch | None = None) -> None:
        """With `prefetch`, an answer that needs tools is thought to its end."""
        if prompt != self._prompt:
            self.drop()
            self._prompt = prompt
            self._thinking = self._chores.start(self._think(prompt, prefetch))

    def drop(self) -> None:
        if self._thinking is not None:
            self._thinking.cancel()
        for _, begun in self._begun:
            begun.give_up()
        self._prompt, self._begun = None, []

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        begun = self._find(prompt)
        if begun is None:
            self.drop()
        source = self._model.reply(prompt) if begun is None else begun.take()
        async with aclosing(cast(AsyncGenerator[Event, None], source)) as events:
            async for event in events:
                yield event

    async def aclose(self) -> None:
        self.drop()
        await self._chores.aclose()

    def _find(self, prompt: Prompt) -> Begun[Event] | None:
        found = next((each for each in self._begun if each[0] == prompt), None)
        if found is None:
            return None
        self._begun.remove(found)
        return found[1]

    async def _think(self, prompt: Prompt, prefetch: Prefetch | None) -> None:
        """One message of the model, and if it has calls whose results can be prefetched, the next."""
        said, calls = await self._think_message(prompt, is_first=True)
        if not calls or prefetch is None:
            return
        answers = await prefetch(number(calls))
        if answers is not None:
            messages: list[Any] = list(prompt.messages)
            note(messages, said, answers)
            await self._think_message(replace(prompt, messages=tuple(messages)), is_first=not said)

    async def _think_message(self, prompt: Prompt, *, is_first: bool) -> tuple[str, list[ToolCall]]:
        """Its words and its calls. `is_first`: nothing is said before it."""
        begun = Begun(self._model.reply(prompt), self._chores)
        self._begun.append((prompt, begun))
        said, calls, clauses = "", list[ToolCall](), Clauses()
        async for event in begun.watch():
            match event:
                case OutputText(text=text):
                    is_first = is_first and not self._tell_first(clauses.push(text))
                    said += text
                case CallRequested(call=call):
                    calls.append(call)
        if is_first:
            self._tell_first(clauses.finish())
        return said, calls

    def _tell_first(self, clauses: list[str]) -> bool:
        if clauses:
            self._on_first_clause(clauses[0])
        return bool(clauses)
