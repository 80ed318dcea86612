"""The local voice as a `LiveModel`: it hears turns, recognises them, has a text model answer, and says the answer."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any

from antiphon.models.base import OutputText, TextModel
from antiphon.models.cascade.listening import Listening, Senses
from antiphon.models.cascade.mind import Mind
from antiphon.models.cascade.mouth import Mouth
from antiphon.models.live import (
    GenerationComplete,
    InputTranscript,
    Interrupted,
    LiveContext,
    LiveEvent,
    LiveProfile,
    OutputAudio,
    Timings,
    ToolAnswer,
    ToolCalls,
    TurnComplete,
    TurnFailed,
)
from antiphon.speech.base import Synthesizer


class Cascade:
    """One session's. It does not answer what it hears by itself: the session sees the words first, and then gives
    them back by `send_text`."""

    def __init__(
        self, senses: Senses, model: TextModel, synthesizer: Synthesizer | None, usual_voice: str | None = None
    ) -> None:
        """Without a synthesizer the answers are to be read. The usual voice is spoken with until another is chosen."""
        self.profile = LiveProfile(
            name=f"cascade ({model.profile.name})",
            speaks=synthesizer is not None,
            hears=True,
            output_hz=0 if synthesizer is None else synthesizer.output_hz,
            resumable=True,
            needs_network=model.profile.needs_network,
            tool_schemas="openai_chat",
            waits_to_answer=True,
        )
        self._senses = senses
        self._mind = Mind(model)
        self._mouth = None if synthesizer is None else Mouth(synthesizer, usual_voice, self._emit)
        self._listening: Listening | None = None
        self._events: asyncio.Queue[LiveEvent | None] = asyncio.Queue()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._owed = 0
        """Answers that the mind was asked for and whose ends it has not told yet."""
        self._void = 0
        """How many of these nobody wants any more."""
        self._is_ending = False
        """Whether the session has ended the audio, and waits for a turn or for word that there is none."""
        self._last_turn = ""

    async def connect(self, context: LiveContext, resume: str | None = None) -> None:
        await self._mind.connect(context)
        self._listening = Listening(self._senses, self)
        self._spawn(self._follow_thoughts())

    async def events(self) -> AsyncIterator[LiveEvent]:
        while (event := await self._events.get()) is not None:
            yield event

    def set_voice(self, voice: str | None, speed: float) -> None:
        if self._mouth is not None:
            self._mouth.choose(voice, speed)

    async def send_audio(self, pcm: bytes, *, playing: bool = False) -> None:
        if self._listening is not None:
            self._listening.push(pcm, playing=playing)

    async def end_audio(self) -> None:
        self._is_ending = True
        if self._listening is not None:
            await self._listening.end()

    async def send_text(self, text: str, ran: Sequence[ToolAnswer] = ()) -> None:
        self._begin()
        await self._mind.send_text(text, ran)

    async def say(self, text: str) -> None:
        self._begin()
        await self._mind.say(text)

    async def send_tool_results(self, answers: Sequence[ToolAnswer]) -> None:
        await self._mind.send_tool_results(answers)

    async def interrupt(self, heard: str | None = None) -> None:
        self._stop_speaking()
        await self._mind.interrupt(heard)

    async def close(self) -> None:
        if self._listening is not None:
            await self._listening.close()
        if self._mouth is not None:
            await self._mouth.close()
        await self._mind.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._events.put_nowait(None)

    # What is heard.

    def is_audible(self) -> bool:
        return self._mouth is not None and self._mouth.is_audible

    def on_speech(self, *, goes_on: bool) -> None:
        if goes_on or self._owed or self.is_audible():
            self._stop_speaking()
            self._emit(Interrupted())

    def on_guess(self, text: str, *, is_pausing: bool) -> None:
        if not self._is_ending:
            self._emit(InputTranscript(text, is_final=False))
        if is_pausing:
            self._spawn(self._mind.think_ahead(text))

    def on_more(self) -> None:
        self._spawn(self._mind.think_again())

    def on_turn(self, text: str, timings: Timings, *, goes_on: bool) -> None:
        self._is_ending = False
        if goes_on:
            self._mind.take_back(self._last_turn)
        self._last_turn = text
        self._emit(timings)
        self._emit(InputTranscript(text, is_final=True, goes_on=goes_on))

    def on_nothing(self) -> None:
        if self._is_ending:
            self._is_ending = False
            self._emit(TurnComplete())

    def on_failure(self, message: str) -> None:
        self._emit(TurnFailed(message))
        self.on_nothing()

    # What is thought and said.

    async def _follow_thoughts(self) -> None:
        async for event in self._mind.events():
            is_void = self._void > 0
            if isinstance(event, TurnComplete):
                self._owed -= 1
                self._void = max(0, self._void - 1)
            if not is_void:
                self._pass_on(event)
            elif isinstance(event, TurnComplete):
                self._emit(event)

    def _pass_on(self, event: LiveEvent) -> None:
        mouth = self._mouth
        if mouth is None:
            self._emit(event)
        elif isinstance(event, GenerationComplete | TurnFailed | TurnComplete):
            mouth.then(event)
        else:
            self._emit(event)
            if isinstance(event, OutputText):
                mouth.say(event.text)
            elif isinstance(event, ToolCalls):
                mouth.pause()

    def _begin(self) -> None:
        self._stop_speaking()
        self._owed += 1
        if self._listening is not None:
            self._listening.expect_answer()

    def _stop_speaking(self) -> None:
        self._void = self._owed
        if self._mouth is not None:
            self._mouth.hush()

    def _emit(self, event: LiveEvent) -> None:
        if self._listening is not None:
            if isinstance(event, OutputAudio | TurnComplete):
                # From the first sound of the answer on, whoever speaks begins a turn of its own.
                self._listening.settle()
            if isinstance(event, OutputAudio):
                self._listening.played(event.pcm, self.profile.output_hz)
        self._events.put_nowait(event)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
