"""The model behind a session: connected when it is first needed, listened to, given up, and replaced."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Final

from antiphon.models import live
from antiphon.models.base import ModelError, OutputText
from antiphon.models.live import LiveContext, LiveModel, ToolAnswer
from antiphon.session import events as e
from antiphon.session.speech import Speech
from antiphon.tools.spec import Mode

OF_AN_ANSWER: Final = (e.Said, e.Voiced, e.ToolsWanted, e.Made, e.TurnOver, e.Failed)

NO_MODEL: Final = {
    Mode.TEXT: "This server has no model for text.",
    Mode.VOICE: "Voice is not available on this server. You can go on in text.",
}

ModelMaker = Callable[[Mode], LiveModel | None]
"""A model of a mode, not connected yet; None if this server has none."""

Work = Callable[[], Coroutine[object, object, None]]


@dataclass(frozen=True, slots=True)
class FromModel:
    """Something that a model did, on its way through the session's mailbox."""

    model: LiveModel
    event: e.Event


class Brain:
    """Every answer of a model ends with one `TurnOver`. That is how what belongs to a void answer is told apart."""

    def __init__(
        self,
        make_model: ModelMaker,
        describe: Callable[[LiveModel, Mode], LiveContext],
        post: Callable[[FromModel | Work], None],
    ) -> None:
        """`describe` says what a model is connected with; `post` reaches the mailbox."""
        self._make_model = make_model
        self._describe = describe
        self._post = post
        self._model: LiveModel | None = None
        self._listener: asyncio.Task[None] | None = None
        self._voice: str | None = None
        self._speed = 1.0
        self._answering = False
        """Whether the model owes the end of an answer."""
        self._void = 0
        """Answers that were given up and whose ends have not come yet."""

    @property
    def name(self) -> str | None:
        """Of the model, while one is connected."""
        return None if self._model is None else self._model.profile.name

    def admits(self, letter: FromModel) -> bool:
        """Whether an event still matters: not that of an earlier model, nor a part of a void answer."""
        if letter.model is not self._model:
            return False
        event = letter.event
        if isinstance(event, OF_AN_ANSWER) and not isinstance(event, e.Lost) and self._void:
            self._void -= isinstance(event, e.TurnOver)
            return False
        if isinstance(event, e.TurnOver):
            self._answering = False
        elif isinstance(event, e.Heard) and event.is_final and not event.waits:
            self._answering = True
        return True

    async def wake(self, mode: Mode) -> None:
        """Sees to it that a model is connected. Raises `ModelError`; then there is none."""
        if self._model is not None:
            return
        model = self._make_model(mode)
        if model is None:
            raise ModelError(NO_MODEL[mode], retryable=False)
        await model.connect(self._describe(model, mode))
        model.set_voice(self._voice, self._speed)
        self._listener = asyncio.create_task(self._listen(model))
        self._model = model

    def set_voice(self, voice: str | None, speed: float) -> None:
        """For this model, and those that come after it."""
        self._voice, self._speed = voice, speed
        if self._model is not None:
            self._model.set_voice(voice, speed)

    def hear(self, pcm: bytes, playing: bool) -> bool:
        """Whether there is a model that listens."""
        model = self._model
        if model is None or not model.profile.hears:
            return False
        try:
            model.send_audio(pcm, playing=playing)
        except ModelError as error:
            self._post(FromModel(model, e.Failed(str(error), error.retryable)))
        return True

    async def end_audio(self) -> None:
        if self._model is not None:
            # One that waits owes words, or that there were none: neither is an answer that could be void.
            self._answering = not self._model.profile.waits_to_answer
            await self._model.end_audio()

    async def ask(self, text: str, ran: Sequence[ToolAnswer] = ()) -> None:
        if self._model is not None:
            self._answering = True
            await self._model.send_text(text, ran)

    async def say(self, text: str) -> None:
        if self._model is not None:
            self._answering = True
            await self._model.say(text)

    async def tell(self, answers: Sequence[ToolAnswer]) -> None:
        if self._model is not None:
            await self._model.send_tool_results(answers)

    async def interrupt(self, heard: str | None) -> None:
        if self._model is not None:
            self._void += self._answering
            self._answering = False
            await self._model.interrupt(heard)

    async def close(self) -> None:
        """Gives the model up; the next one is connected when it is needed."""
        listener, self._listener = self._listener, None
        model, self._model = self._model, None
        self._answering, self._void = False, 0
        try:
            if listener is not None:
                listener.cancel()
                # Not `await listener`: its cancellation could not be told from that of the caller.
                await asyncio.wait([listener])
        finally:
            if model is not None:
                await model.close()

    async def _listen(self, model: LiveModel) -> None:
        translation = _Translation(model)
        lost = e.Lost(f"The connection to {model.profile.name} has ended.")
        async for event in model.events():
            for translated in translation.of(event):
                self._post(FromModel(model, translated))
            if isinstance(event, live.Closed):
                lost = e.Lost(event.reason, event.retryable)
        self._post(FromModel(model, lost))
        self._post(lambda: self._lose(model))

    async def _lose(self, model: LiveModel) -> None:
        """The model has closed by itself."""
        if model is self._model:
            await self.close()


class _Translation:
    """A model's events in the session's words."""

    def __init__(self, model: LiveModel) -> None:
        self._speech = Speech(model.profile.output_hz)
        self._waits = model.profile.waits_to_answer
        self._timings: live.Timings | None = None

    def of(self, event: live.LiveEvent) -> Sequence[e.Event]:
        match event:
            case live.Timings():
                self._timings = event
            case live.InputTranscript(text=text, is_final=True, goes_on=goes_on):
                timings, self._timings = self._timings, None
                return (e.Heard(text, True, goes_on, self._waits, timings),)
            case live.InputTranscript(text=text):
                return (e.Heard(text, False),)
            case OutputText(text=text):
                return (e.Said(text),)
            case live.OutputAudio():
                return _some(self._speech.take(event))
            case live.ToolCalls(calls=calls):
                return (e.ToolsWanted(calls),)
            case live.Interrupted():
                return (e.BargedIn(),)
            case live.GenerationComplete():
                return (*_some(self._speech.finish()), e.Made())
            case live.TurnComplete():
                self._speech.drop()
                return (e.TurnOver(),)
            case live.TurnFailed(message=message, retryable=retryable):
                return (e.Failed(message, retryable),)
        return ()


def _some(voiced: e.Voiced | None) -> Sequence[e.Event]:
    return () if voiced is None else (voiced,)
