"""A text model with network latency, and the session's side of a conversation with a live model."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from antiphon.models.base import Event, Prompt, TextModel, TextProfile
from antiphon.models.live import (
    GenerationComplete,
    InputTranscript,
    Interrupted,
    LiveContext,
    LiveEvent,
    LiveModel,
    OutputAudio,
    OutputText,
    SpeechStarted,
    ToolAnswer,
    ToolCalls,
    TurnComplete,
    TurnStarted,
    messages_of,
)
from antiphon.tools.spec import Mode
from antiphon.transcript import Entry, Message, Transcript

PACE_S: Final = 0.1
LONG_S: Final = 60.0
"""Longer than any answer of a fake model takes."""


class Paced:
    """Slows down another model, records its prompts, and counts the replies that are still open."""

    def __init__(self, model: TextModel) -> None:
        self._model = model
        self.prompts: list[Prompt] = []
        self.open = 0

    @property
    def profile(self) -> TextProfile:
        return self._model.profile

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        self.prompts.append(prompt)
        self.open += 1
        try:
            async for event in self._model.reply(prompt):
                await asyncio.sleep(PACE_S)
                yield event
        finally:
            self.open -= 1


class Listener:
    """Reads the events of a model all the time, and keeps the transcript of the conversation, as a session does."""

    def __init__(self, model: LiveModel, transcript: Transcript | None = None, *, answers: bool = True) -> None:
        """If it answers, it asks a model that waits for the answers to what it heard, and tells a model that noticed an
        interruption that nothing was heard of the answer."""
        self.model = model
        self.transcript = transcript or Transcript()
        self.events: list[LiveEvent] = []
        """All but `speech` and `fillers`."""
        self.speech: list[SpeechStarted] = []
        """Apart from the others, since only some models tell it, and it may come to nothing."""
        self.fillers: list[OutputAudio] = []
        """Audio that fills the wait for an answer."""
        self.turn = ""
        """The id of the last turn that began."""
        self._answers = answers
        self._turns_made = 0
        self._said: defaultdict[str, str] = defaultdict(str)
        """The words of answers that are not in the transcript yet, by turn."""
        self._cut: set[str] = set()
        """Turns whose answers were interrupted. Their words no longer grow."""
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for event in self.model.events():
            if isinstance(event, OutputAudio) and event.is_filler:
                self.fillers.append(event)
            else:
                self.take(event)

    def take(self, event: LiveEvent) -> None:
        if isinstance(event, SpeechStarted):
            self.speech.append(event)
            return
        self.events.append(event)
        match event:
            case TurnStarted(turn=turn, continues=continued):
                self.turn = turn
                if continued is not None:
                    self.transcript.continue_as(continued, turn)
                elif self.transcript.user_entry(turn) is None:
                    self.transcript.set_user(turn, "", spoken=True)
            case InputTranscript(turn=turn, text=text, is_final=True):
                self.transcript.set_user(turn, text, spoken=True)
                if self._answers and self.model.profile.waits_to_answer:
                    self.model.respond(turn, text)
            case OutputText(turn=turn, text=text) if turn not in self._cut:
                self._said[turn] += text
            case GenerationComplete(turn=turn) | TurnComplete(turn=turn):
                self._store_answer(turn)
            case Interrupted(turn=turn) if self._answers:
                self.interrupt("", turn)

    def _store_answer(self, turn: str) -> None:
        if said := self._said.pop(turn, "").strip():
            self.transcript.set_answer(turn, said)

    @property
    def text(self) -> str:
        """The words of all answers."""
        return "".join(event.text for event in self.events if isinstance(event, OutputText)).strip()

    @property
    def kinds(self) -> list[type[LiveEvent]]:
        """The types of the events in order, with consecutive text deltas merged."""
        kinds = [type(event) for event in self.events]
        return [kind for place, kind in enumerate(kinds) if kinds[place - 1 : place] != [kind]]

    @property
    def calls(self) -> ToolCalls:
        """The most recent tool calls."""
        return next(event for event in reversed(self.events) if isinstance(event, ToolCalls))

    def of(self, turn: str) -> list[LiveEvent]:
        """The events of this turn."""
        return [event for event in self.events if getattr(event, "turn", None) == turn]

    def make_turn(self, kind: str = "asked") -> str:
        self._turns_made += 1
        self.turn = f"{kind}-{self._turns_made}"
        return self.turn

    def is_asked(self, turn: str) -> bool:
        """Whether the listener has asked for this turn: it was not spoken."""
        return turn.startswith("asked-")

    async def settle(self) -> None:
        """Waits until no more events come on their own."""
        await asyncio.sleep(LONG_S)

    def respond(self, text: str, ran: Sequence[ToolAnswer] = ()) -> str:
        """Types these words, and returns the id of the turn."""
        for turn in list(self._said):
            self._store_answer(turn)
        turn = self.make_turn()
        if text:
            self.transcript.set_user(turn, text)
        self.add_runs(turn, ran)
        self.model.respond(turn, text, ran)
        return turn

    async def ask(self, text: str, ran: Sequence[ToolAnswer] = ()) -> str:
        """Types these words, waits for the answer, and returns the id of the turn."""
        turn = self.respond(text, ran)
        await self.settle()
        return turn

    async def say(self, text: str) -> str:
        turn = self.make_turn()
        self.model.say(turn, text)
        await self.settle()
        return turn

    async def end_audio(self) -> str:
        turn = self.make_turn("spoken")
        self.model.end_audio(turn)
        await self.settle()
        return turn

    async def give_results(self) -> None:
        """Sends the results of the last calls."""
        calls = self.calls
        answers = results_of(calls)
        self.add_runs(calls.turn, answers)
        self.model.send_tool_results(calls.turn, answers)
        await self.settle()

    def add_runs(self, turn: str, answers: Sequence[ToolAnswer]) -> None:
        if answers:
            for message in messages_of("", answers, key=f"{turn}_{len(self.transcript.entries)}"):
                self.transcript.add(Entry(turn, message))

    def interrupt(self, heard: str | None = None, turn: str | None = None) -> None:
        """Interrupts the last turn, or another one, of whose answer the user heard this much."""
        turn = turn or self.turn
        self._cut.add(turn)
        self._store_answer(turn)
        if heard is not None and self.transcript.answer_entry(turn) is not None:
            self.transcript.set_answer(turn, heard)
        self.model.interrupt(turn, heard)


@asynccontextmanager
async def listening(
    model: LiveModel, *history: Message, answers: bool = True, tools: Sequence[Mapping[str, Any]] = ()
) -> AsyncIterator[Listener]:
    """Opens a connection. Closing it at the end also ends the reading of events."""
    transcript = Transcript(Entry(f"before-{place}", message) for place, message in enumerate(history))
    await model.connect(LiveContext("You are a helpful assistant.", transcript, history, tools, Mode.TEXT))
    listener = Listener(model, transcript, answers=answers)
    try:
        yield listener
    finally:
        await model.close()
        await listener.reading


def results_of(calls: ToolCalls, content: object = "noon") -> list[ToolAnswer]:
    return [ToolAnswer(call, content, f"It's {content}.") for call in calls.calls]
