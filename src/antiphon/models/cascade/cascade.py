"""The local voice as a `LiveModel`: it hears turns, recognises them, has a text model answer, and says the answer."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence

from antiphon.models.base import ModelError, OutputText, TextModel
from antiphon.models.cascade.listening import Listening
from antiphon.models.cascade.mind import Mind
from antiphon.models.cascade.mouth import Mouth
from antiphon.models.cascade.senses import Senses
from antiphon.models.health import ModelHealth
from antiphon.models.live import (
    Closed,
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
from antiphon.telemetry.log import get_logger

log = get_logger(__name__)


class Cascade:
    """One session's. It does not answer what it hears by itself: the session sees the words first, and then gives
    them back by `send_text`."""

    def __init__(
        self,
        senses: Senses,
        model: TextModel,
        synthesizer: Synthesizer | None,
        usual_voice: str | None = None,
        *,
        thinks_ahead: bool = True,
        speaks_ahead: bool = True,
        health: ModelHealth | None = None,
    ) -> None:
        """Without a synthesizer the answers are to be read. The usual voice is spoken with until another is chosen.

        If it thinks ahead, the model is asked about what somebody has probably said, some of it in vain. If it speaks
        ahead, the same is true of the synthesizer.
        """
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
        self._thinks_ahead = thinks_ahead
        self._mouth = None if synthesizer is None else Mouth(synthesizer, usual_voice, self._tell)
        self._mind = (
            Mind(model, self._think, self._mouth.prepare, health)
            if self._mouth is not None and speaks_ahead
            else Mind(model, self._think, health=health)
        )
        self._listening: Listening | None = None
        self._events: asyncio.Queue[LiveEvent | None] = asyncio.Queue()
        self._is_closed = False
        self._owed = 0
        """Answers that were asked for and whose ends have not been told yet."""
        self._void = 0
        """How many of these, the first ones, nobody wants any more."""
        self._told: list[str] = []
        """The user's last turn, until it is settled: more than one text if it went on, each a part of the next."""
        self._given: str | None = None
        """Which of these was given back last."""

    async def connect(self, context: LiveContext, resume: str | None = None) -> None:
        await self._mind.connect(context)
        if self._is_closed:
            raise ModelError(f"The conversation with {self.profile.name} is closed. Connect a new one.")
        self._listening = Listening(self._senses, self)

    async def events(self) -> AsyncIterator[LiveEvent]:
        while not self._is_closed:
            event = await self._events.get()
            if event is None or self._is_closed:
                return
            yield event

    def set_voice(self, voice: str | None, speed: float) -> None:
        if self._mouth is not None:
            self._mouth.choose(voice, speed)

    def send_audio(self, pcm: bytes, *, playing: bool = False) -> None:
        if self._listening is not None:
            self._listening.push(pcm, playing=playing)

    async def end_audio(self) -> None:
        if self._listening is not None:
            await self._listening.end()

    async def send_text(self, text: str, ran: Sequence[ToolAnswer] = ()) -> None:
        is_spoken = text in self._told
        if is_spoken:
            self._take_back()
        else:
            self._move_on()
        await self._ask(self._mind.send_text(text, ran))
        if is_spoken:
            self._given = text

    async def say(self, text: str) -> None:
        self._move_on()
        await self._ask(self._mind.say(text))

    async def send_tool_results(self, answers: Sequence[ToolAnswer]) -> None:
        await self._mind.send_tool_results(answers)

    async def interrupt(self, heard: str | None = None) -> None:
        self._move_on()
        self._fall_silent()
        await self._mind.interrupt(heard)

    async def close(self) -> None:
        self._is_closed = True
        self._events.put_nowait(None)
        if self._listening is not None:
            await self._listening.close()
        if self._mouth is not None:
            await self._mouth.close()
        await self._mind.close()

    # What is heard.

    def is_answering(self) -> bool:
        return self._owed > self._void or (self._mouth is not None and self._mouth.is_audible)

    def on_doubt(self, *, is_open: bool) -> None:
        if self._mouth is not None:
            self._mouth.hold(is_open)

    def on_speech(self, *, goes_on: bool) -> None:
        if goes_on:
            self._take_back()
        self._give_way()

    def on_words(self, text: str) -> None:
        self._emit(InputTranscript(text, is_final=False))

    def on_guess(self, text: str) -> None:
        if self._thinks_ahead:
            self._mind.think_ahead(text)

    def on_more(self) -> None:
        self._mind.think_again()
        if self._mouth is not None:
            self._mouth.forget()

    def on_turn(self, text: str, timings: Timings, *, goes_on: bool) -> None:
        if self.is_answering():
            # It began while the user was already speaking.
            self._give_way()
        if not goes_on:
            self._told, self._given = [], None
        self._told.append(text)
        self._emit(timings)
        self._emit(InputTranscript(text, is_final=True, goes_on=goes_on))

    def on_nothing(self) -> None:
        # The end of an answer that is under way tells the same.
        if self._owed == self._void:
            self._emit(TurnComplete())

    def on_failure(self, message: str) -> None:
        log.warning("turn_not_understood", engine=self._senses.recognizer.name, reason=message)
        self._emit(TurnFailed(message))

    # What is thought and said.

    def _think(self, event: LiveEvent) -> None:
        """What comes from the mind. It belongs to the first answer that is owed."""
        try:
            self._pass_on(event)
        except Exception:
            # Whoever waits for the end of this answer would wait for ever.
            log.exception("voice_failed", model=self.profile.name)
            self._emit(Closed("The voice failed unexpectedly."))
            self._events.put_nowait(None)

    def _pass_on(self, event: LiveEvent) -> None:
        if self._void:
            if isinstance(event, TurnComplete):
                self._void -= 1
                self._owed -= 1
                self._emit(event)
        elif self._mouth is None:
            self._tell(event)
        elif isinstance(event, GenerationComplete | TurnFailed | TurnComplete):
            self._mouth.then(event)
        else:
            self._emit(event)
            if isinstance(event, OutputText):
                self._mouth.say(event.text)
            elif isinstance(event, ToolCalls):
                self._mouth.pause()

    def _tell(self, event: LiveEvent) -> None:
        """What comes of an answer that is not void."""
        if isinstance(event, OutputAudio | TurnComplete):
            # From the first sound of the answer on, whoever speaks begins a turn of its own.
            self._settle()
        if isinstance(event, TurnComplete):
            self._owed -= 1
        elif isinstance(event, OutputAudio) and self._listening is not None:
            self._listening.played(event.pcm, self.profile.output_hz)
        self._emit(event)

    async def _ask(self, asking: Awaitable[None]) -> None:
        self._fall_silent()
        self._owed += 1
        if self._listening is not None:
            self._listening.expect_answer()
        try:
            await asking
        except ModelError:
            self._owed -= 1
            raise

    def _give_way(self) -> None:
        """The user speaks."""
        self._emit(Interrupted())
        self._fall_silent()
        self._mind.stop()

    def _fall_silent(self) -> None:
        if self._mouth is not None:
            self._mouth.hush()
        self._void = self._owed

    def _move_on(self) -> None:
        """Whoever has seen the last turn wants something else now. One that is not given back has not been seen."""
        if self._told[-1:] == [self._given]:
            self._settle()

    def _settle(self) -> None:
        if self._listening is not None and self._listening.settle():
            self._told, self._given = [], None

    def _take_back(self) -> None:
        """What was given back of this turn was not all of it."""
        if self._given is not None:
            self._mind.take_back(self._given)
            self._given = None

    def _emit(self, event: LiveEvent) -> None:
        if not self._is_closed:
            self._events.put_nowait(event)
