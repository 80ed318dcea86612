"""A text model as a `LiveModel`: it cannot hear or speak, and answers what is typed."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from antiphon.models.base import ModelError, TextModel
from antiphon.models.health import ModelHealth
from antiphon.models.live import LiveContext, LiveEvent, LiveProfile, ModelFactory, ToolAnswer, TurnComplete
from antiphon.models.text_chat import TextChat


class EventQueue:
    """The events of a live model, until it is closed."""

    def __init__(self) -> None:
        self.is_closed = False
        self._queue: asyncio.Queue[LiveEvent | None] = asyncio.Queue()

    def put(self, event: LiveEvent) -> None:
        if not self.is_closed:
            self._queue.put_nowait(event)

    def finish(self) -> None:
        """Ends the stream after the events that are in the queue."""
        self._queue.put_nowait(None)

    def close(self) -> None:
        """Ends the stream at once and drops the events that are in the queue."""
        self.is_closed = True
        self.finish()

    async def read(self) -> AsyncIterator[LiveEvent]:
        while not self.is_closed:
            event = await self._queue.get()
            if event is None or self.is_closed:
                return
            yield event


def profile_of(model: TextModel) -> LiveProfile:
    """Returns the profile of a text model as a live model."""
    profile = model.profile
    return LiveProfile(
        name=profile.name,
        hears=False,
        output_hz=0,
        needs_network=profile.needs_network,
        tool_schemas="openai_chat",
        context_tokens=profile.context_tokens,
        tools_per_turn=profile.tools_per_turn,
    )


class TextLiveModel:
    """A `TextChat` as a `LiveModel`."""

    def __init__(self, model: TextModel) -> None:
        self.profile = profile_of(model)
        self._queue = EventQueue()
        self._chat = TextChat(model, self._queue.put)

    async def connect(self, context: LiveContext, resume: str | None = None) -> None:
        self._chat.connect(context)

    def events(self) -> AsyncIterator[LiveEvent]:
        return self._queue.read()

    def set_voice(self, voice: str | None, speed: float) -> None:
        """Does nothing: the model has no voice."""

    def send_audio(self, pcm: bytes, *, playing: bool = False) -> None:
        message = f"{self.profile.name} cannot hear. Type to it, or set model.voice to a model that listens."
        raise ModelError(message, retryable=False)

    def end_audio(self, turn: str) -> None:
        """Completes an empty turn, since nothing was heard."""
        if self._chat.is_open:
            self._queue.put(TurnComplete(turn))

    def respond(self, turn: str, text: str, ran: Sequence[ToolAnswer] = ()) -> None:
        self._stop()
        self._chat.respond(turn)

    def say(self, turn: str, text: str) -> None:
        self._stop()
        self._chat.say(turn, text)

    def send_tool_results(self, turn: str, answers: Sequence[ToolAnswer]) -> None:
        self._chat.send_tool_results(turn, answers)

    def interrupt(self, turn: str, heard: str | None = None) -> None:
        if self._chat.turn == turn:
            self._stop()

    async def close(self) -> None:
        self._queue.close()
        await self._chat.close()

    def _stop(self) -> None:
        turn = self._chat.stop()
        if turn is not None:
            self._queue.put(TurnComplete(turn))


def text_factory(model: TextModel, health: ModelHealth | None = None) -> ModelFactory:
    """Makes the live models of a text model."""
    return ModelFactory(profile_of(model), lambda: TextLiveModel(model), health or ModelHealth())
