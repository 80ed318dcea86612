"""Whatever Gemini's server sends, and whenever a session does something: the rules of live models hold."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from google.genai import types
from google.genai.live import AsyncSession
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon.models.live import LiveEvent, ToolAnswer, TurnComplete, TurnStarted
from antiphon.models.providers.gemini_live import GeminiLive
from tests.contract.live_models import check_order
from tests.fakes.gemini_server import gemini_client
from tests.fakes.gemini_talk import (
    COMPLETE,
    GEMINI_25,
    GEMINI_31,
    GEMINI_38,
    GEMINI_THINKING,
    GENERATED,
    IDLE,
    INTERRUPTED,
    audio,
    calls,
    content,
    hears,
    speaks,
)
from tests.fakes.virtual_loop import VirtualLoop

LONG_S = 250.0
"""Longer than any answer may take."""


class Driver:
    """A model without a network: what it sends goes nowhere, and the test says what the server sends."""

    def __init__(self, name: str) -> None:
        self.model = GeminiLive(gemini_client(name))
        # What it sends waits in its queue, which nobody writes.
        self.model._session = cast(AsyncSession, object())
        self.model._upstream.open()
        self.events: list[LiveEvent] = []
        self.turns: list[str] = []
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for event in self.model.events():
            self.events.append(event)
            if isinstance(event, TurnStarted):
                self.turns.append(event.turn)

    def make_turn(self, kind: str = "asked") -> str:
        self.turns.append(f"{kind}-{len(self.turns)}")
        return self.turns[-1]

    async def receive(self, message: dict[str, Any]) -> None:
        self.model._take(types.LiveServerMessage.model_validate(message))

    async def ask(self) -> None:
        self.model.respond(self.make_turn(), "hello")

    async def say(self) -> None:
        self.model.say(self.make_turn(), "Good morning.")

    async def interrupt(self) -> None:
        if self.turns:
            self.model.interrupt(self.turns[-1], "Hel")

    async def end_audio(self) -> None:
        self.model.end_audio(self.make_turn("ended"))

    async def send_audio(self) -> None:
        self.model.send_audio(bytes(640))

    async def give_results(self) -> None:
        answer = self.model._turns.answer
        if answer is not None and answer.open_calls:
            self.model.send_tool_results(answer.turn, [ToolAnswer(call, "noon") for call in answer.open_calls])


Action = Callable[[Driver], Awaitable[None]]


def receives(message: dict[str, Any]) -> Action:
    return lambda driver: driver.receive(message)


def waits(seconds: float) -> Action:
    return lambda driver: asyncio.sleep(seconds)


ACTIONS = [
    Driver.ask,
    Driver.say,
    Driver.interrupt,
    Driver.end_audio,
    Driver.send_audio,
    Driver.give_results,
    *(waits(seconds) for seconds in (0.0, 0.3, 1.2, 6.0, 40.0)),
    *(
        receives(message)
        for message in (
            speaks("Hello "),
            content(outputTranscription={"text": "there. "}),
            content(modelTurn=audio(b"\1\2\3")),
            content(modelTurn={"parts": [{"text": "Plain."}]}),
            hears("What "),
            hears("time?", finished=True),
            calls("function-call-1"),
            calls("function-call-2", None),
            {"toolCallCancellation": {"ids": ["function-call-1"]}},
            GENERATED,
            COMPLETE,
            IDLE,
            content(turnComplete=True, interactionStatus="IN_PROGRESS"),
            content(generationComplete=True, turnComplete=True),
            INTERRUPTED,
            content(interrupted=True, turnComplete=True),
            {"usageMetadata": {"promptTokenCount": 3, "responseTokenCount": 4}},
        )
    ),
]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    name=st.sampled_from([GEMINI_38, GEMINI_THINKING, GEMINI_31, GEMINI_25]),
    actions=st.lists(st.sampled_from(ACTIONS), max_size=30),
)
def test_turns_begin_and_end_once_whatever_happens(name: str, actions: list[Action]) -> None:
    async def run() -> None:
        driver = Driver(name)
        for action in actions:
            await action(driver)
            await asyncio.sleep(0)
        for _ in range(len(actions) + 1):
            await driver.give_results()
            await asyncio.sleep(LONG_S)
        await driver.model.close()
        await driver.reading
        check_order(driver.events, lambda turn: turn.startswith("asked-"))
        ended = [event.turn for event in driver.events if isinstance(event, TurnComplete)]
        assert sorted(ended) == sorted(set(driver.turns))

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(run())
