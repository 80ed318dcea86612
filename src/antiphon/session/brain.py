"""The model behind a session: connected when it is first needed, listened to, given up, and replaced."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from antiphon.models import live
from antiphon.models.base import ModelError, OutputText
from antiphon.models.live import LiveContext, LiveModel, ToolAnswer
from antiphon.session import events as e
from antiphon.tools.spec import Mode

OF_AN_ANSWER: Final = (e.Said, e.Voiced, e.ToolsWanted, e.Made, e.TurnOver, e.Failed)

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
        self.make_model = make_model
        self._describe = describe
        self._post = post
        self._model: LiveModel | None = None
        self._listener: asyncio.Task[None] | None = None
        self._answering = False
        """Whether the model owes the end of an answer."""
        self._void = 0
        """Answers that were given up and whose ends have not come yet."""

    def admits(self, letter: FromModel) -> bool:
        """Whether an event still matters: not that of an earlier model, nor a part of a void answer."""
        if letter.model is not self._model:
            return False
        event = letter.event
        if isinstance(event, OF_AN_ANSWER) and self._void:
            self._void -= isinstance(event, e.TurnOver)
            return False
        if isinstance(event, e.TurnOver):
            self._answering = False
        elif isinstance(event, e.Heard) and event.is_final:
            self._answering = True
        return True

    async def wake(self, mode: Mode) -> None:
        """Sees to it that a model is connected. Raises `ModelError`."""
        if self._model is None:
            model = self.make_model(mode)
            if model is None:
                raise ModelError("This server has no model for this mode.", retryable=False)
            await self.connect(model, mode)

    async def connect(self, model: LiveModel, mode: Mode) -> None:
        """Raises `ModelError`; then there is no model."""
        await model.connect(self._describe(model, mode))
        self._listener = asyncio.create_task(self._listen(model))
        self._model = model

    async def hear(self, pcm: bytes) -> bool:
        """Whether there is a model that listens."""
        model = self._model
        if model is None or not model.profile.hears:
            return False
        try:
            await model.send_audio(pcm)
        except ModelError as error:
            self._post(FromModel(model, e.Failed(str(error), error.retryable)))
        return True

    async def end_audio(self) -> None:
        if self._model is not None:
            self._answering = True
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

    async def interrupt(self) -> None:
        if self._model is not None:
            self._void += self._answering
            self._answering = False
            await self._model.interrupt()

    async def close(self) -> None:
        """Gives the model up; the next one is connected when it is needed."""
        listener, self._listener = self._listener, None
        model, self._model = self._model, None
        self._answering, self._void = False, 0
        if listener is not None:
            listener.cancel()
            with suppress(asyncio.CancelledError):
                await listener
        if model is not None:
            await model.close()

    async def _listen(self, model: LiveModel) -> None:
        async for event in model.events():
            translated = _translate(event, model.profile.output_hz)
            if translated is not None:
                self._post(FromModel(model, translated))
        self._post(lambda: self._lose(model))

    async def _lose(self, model: LiveModel) -> None:
        """The model has closed by itself."""
        if model is self._model:
            await self.close()


def _translate(event: live.LiveEvent, output_hz: int) -> e.Event | None:
    match event:
        case live.InputTranscript(text=text, is_final=is_final):
            return e.Heard(text, is_final)
        case OutputText(text=text):
            return e.Said(text)
        case live.OutputAudio(pcm=pcm, text=text):
            return e.Voiced(pcm, len(pcm) * 1000 // (2 * output_hz), text)
        case live.ToolCalls(calls=calls):
            return e.ToolsWanted(calls)
        case live.Interrupted():
            return e.BargedIn()
        case live.GenerationComplete():
            return e.Made()
        case live.TurnComplete():
            return e.TurnOver()
        case live.TurnFailed(message=message, retryable=retryable):
            return e.Failed(message, retryable)
        case live.Closed(reason=reason, retryable=retryable):
            return e.Failed(reason, retryable)
    return None
