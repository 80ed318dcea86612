"""A caller and a cascade of fake engines, which record all that is said and asked."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from antiphon.models.cascade.cascade import Cascade
from antiphon.tools.call import ToolCall
from antiphon.transcript import Message
from tests.fakes.paced import Paced, results_of
from tests.fakes.scripted import ScriptedModel
from tests.fakes.voice import Caller, FakeEngines, Tones, calling

CALL: Final = ToolCall("call_0123456789", "read_it", {})
LONG_ANSWER: Final = (
    "It is going to be sunny today, with some clouds in the evening. It will be warm. Take a hat with you."
)


@dataclass
class Call:
    fakes: FakeEngines
    model: Paced
    tones: Tones
    cascade: Cascade
    caller: Caller

    @property
    def asked(self) -> list[Message]:
        """The last message of each prompt."""
        return [prompt.messages[-1] for prompt in self.model.prompts]

    def give_results(self) -> None:
        """Sends the results of the last calls."""
        calls = self.caller.calls
        self.caller.add_runs(calls.turn, results_of(calls))
        self.cascade.send_tool_results(calls.turn, results_of(calls))

    @property
    def prompt(self) -> list[Message]:
        """The conversation as the model was last given it."""
        return list(self.model.prompts[-1].messages)

    async def wait_for(self, happened: Callable[[], object]) -> None:
        async with asyncio.timeout(30):
            while not happened():
                await self.caller.be_silent(20)

    async def wait_for_event(self, kind: type[object], times: int = 1) -> None:
        await self.wait_for(lambda: sum(isinstance(event, kind) for event in self.caller.events) >= times)


@asynccontextmanager
async def talk(
    *script: str | list[ToolCall], speaks: bool = True, answers: bool = True, prepares_answers: bool = True
) -> AsyncIterator[Call]:
    fakes, model, tones = FakeEngines(), Paced(ScriptedModel(list(script))), Tones()
    fakes.recognizer.tells_interim = False
    before = asyncio.all_tasks()
    cascade = fakes.cascade(model, tones if speaks else None, prepares_answers=prepares_answers)
    async with calling(cascade, fakes.words.say, answers=answers) as caller:
        await caller.be_silent(500)
        yield Call(fakes, model, tones, cascade, caller)
    assert model.open == tones.open == 0
    await fakes.batched_vad.aclose()
    assert asyncio.all_tasks() == before
