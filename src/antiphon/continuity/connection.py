"""The connection to one model. It is used once: it is connecting, then open, and at last closed by us or lost."""

import asyncio
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from msgspec.structs import replace

from antiphon.audio.resample import Resampler
from antiphon.models import live
from antiphon.models.base import FailureKind, ModelError
from antiphon.models.live import LiveContext, LiveEvent, LiveModel, ModelFactory, ToolAnswer
from antiphon.protocol.limits import SPEECH_HZ
from antiphon.telemetry.log import get_logger

CONNECT_DEADLINE_S: Final = 10.0
"""How long a model may take to connect."""

CLOSE_FAILURES: Final = {
    live.CloseKind.TRANSIENT: FailureKind.UNREACHABLE,
    live.CloseKind.QUOTA: FailureKind.RATE_LIMITED,
    live.CloseKind.CONFIGURATION: FailureKind.REFUSED,
}
"""The kinds of a close that are failures of the model."""

log = get_logger(__name__)


class ConnectionState(StrEnum):
    CONNECTING = "connecting"
    OPEN = "open"
    CLOSING = "closing"
    LOST = "lost"
    """It could not be opened, or the model has ended it."""


Command = Callable[[LiveModel], None]


class ModelConnection:
    def __init__(
        self,
        factory: ModelFactory,
        take: "Callable[[ModelConnection, LiveEvent], None]",
        *,
        voice: tuple[str | None, float] = (None, 1.0),
    ) -> None:
        """`take` is called with every event of the model. `voice` is the voice and speed to speak with."""
        self.profile = factory.profile
        self.state = ConnectionState.CONNECTING
        self._take_event = take
        self._health = factory.health
        self._said_turn: str | None = None
        """The last turn whose words the session gave. A local model says those even if its server is down."""
        self._model = factory.make()
        self.set_voice(*voice)
        self._resampler = SpeechResampler(self.profile.output_hz)
        self._reading: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    async def connect(self, context: LiveContext, resume: str | None = None) -> None:
        """Connects, and reads events from then on. Raises `ModelError`, after which it cannot be used."""
        try:
            await self._connect(context, resume)
        except ModelError as error:
            self.state = ConnectionState.LOST
            self._health.note_failure(self.profile.name, error.kind, error.status)
            raise
        if self.state is ConnectionState.CONNECTING:
            self.state = ConnectionState.OPEN
            self._reading = asyncio.create_task(self._read())

    def set_voice(self, voice: str | None, speed: float) -> None:
        """Sets the voice by its name, None for the default one."""
        self._model.set_voice(voice or next(iter(self.profile.voices), None), speed)

    def send_audio(self, pcm: bytes, *, playing: bool) -> None:
        self._perform(None, lambda model: model.send_audio(pcm, playing=playing))

    def end_audio(self, turn: str) -> None:
        self._perform(turn, lambda model: model.end_audio(turn))

    def respond(self, turn: str, text: str, ran: Sequence[ToolAnswer] = ()) -> None:
        self._perform(turn, lambda model: model.respond(turn, text, ran))

    def say(self, turn: str, text: str) -> None:
        self._said_turn = turn
        self._perform(turn, lambda model: model.say(turn, text))

    def send_tool_results(self, turn: str, answers: Sequence[ToolAnswer]) -> None:
        self._perform(turn, lambda model: model.send_tool_results(turn, answers))

    def interrupt(self, turn: str, heard: str | None) -> None:
        self._perform(turn, lambda model: model.interrupt(turn, heard))

    def close(self) -> None:
        """Gives the model up. No event of it is passed on from now on; `wait_closed` returns when it is gone."""
        if self._closing is None:
            self.state = ConnectionState.CLOSING
            self._closing = asyncio.create_task(self._close())

    @property
    def is_closed(self) -> bool:
        return self._closing is not None and self._closing.done()

    async def wait_closed(self) -> None:
        if self._closing is not None:
            await asyncio.wait([self._closing])

    def _perform(self, turn: str | None, command: Command) -> None:
        """Gives the model a command. If it refuses, that is a failure of the turn."""
        if self.state is ConnectionState.OPEN:
            try:
                command(self._model)
            except ModelError as error:
                self._tell(live.TurnFailed.because_of(error, turn))

    async def _connect(self, context: LiveContext, resume: str | None) -> None:
        try:
            async with asyncio.timeout(CONNECT_DEADLINE_S):
                await self._model.connect(context, resume)
        except TimeoutError:
            message = f"{self.profile.name} could not be reached within {CONNECT_DEADLINE_S:.0f} seconds."
            raise ModelError(message, kind=FailureKind.TIMEOUT) from None
        except ModelError:
            raise
        except Exception as error:
            log.exception("model_connect_failed", model=self.profile.name)
            message = f"{self.profile.name} failed unexpectedly. Please try again."
            raise ModelError(message, kind=FailureKind.UNEXPECTED) from error

    async def _read(self) -> None:
        closed = live.Closed(f"The connection to {self.profile.name} has ended.")
        try:
            async for event in self._model.events():
                if isinstance(event, live.Closed):
                    closed = event
                else:
                    self._take(event)
        except Exception:
            log.exception("model_events_failed", model=self.profile.name)
        if self.state is not ConnectionState.CLOSING:
            self.state = ConnectionState.LOST
            log.warning("model_connection_lost", model=self.profile.name, kind=closed.kind)
            if closed.kind in CLOSE_FAILURES:
                self._health.note_failure(self.profile.name, CLOSE_FAILURES[closed.kind])
            self._take_event(self, closed)

    def _take(self, event: LiveEvent) -> None:
        """Notes what concerns the health of the model, and brings audio to the rate of the wire."""
        match event:
            case live.GoAway():
                log.info("model_goes_away", model=self.profile.name, time_left_ms=event.time_left_ms)
            case live.Usage():
                self._health.note_usage(event.input_tokens, event.output_tokens)
            case live.TurnFailed(kind=FailureKind() as kind):
                self._health.note_failure(self.profile.name, kind, event.status)
            case live.OutputAudio():
                for piece in self._resampler.push(event):
                    self._tell(piece)
                return
            case live.GenerationComplete(turn=turn):
                if turn != self._said_turn and not event.is_local:
                    self._health.note_success()
                for piece in self._resampler.finish(turn):
                    self._tell(piece)
            case live.TurnComplete(turn=turn):
                self._resampler.drop(turn)
        self._tell(event)

    def _tell(self, event: LiveEvent) -> None:
        if self.state is not ConnectionState.CLOSING:
            self._take_event(self, event)

    async def _close(self) -> None:
        try:
            if self._reading is not None:
                self._reading.cancel()
                # Not `await self._reading`: its cancellation could not be told from that of this task.
                await asyncio.wait([self._reading])
        finally:
            try:
                await self._model.close()
            except Exception:
                log.exception("model_close_failed", model=self.profile.name)


class SpeechResampler:
    """Brings a model's audio to the rate of the wire. A resampler holds back a moment of sound, so the words of a piece
    may come out with the next one."""

    def __init__(self, hz: int) -> None:
        self._hz = hz
        self._turn: str | None = None
        self._resampler: Resampler | None = None
        self._text = ""
        """The words of pieces that were too short to come out."""

    def push(self, piece: live.OutputAudio) -> Sequence[live.OutputAudio]:
        if piece.turn != self._turn:
            self._turn, self._resampler, self._text = piece.turn, None, ""
        pcm = piece.pcm if self._hz == SPEECH_HZ else self._resample(piece.pcm, last=piece.last)
        return self._voice(pcm, piece)

    def finish(self, turn: str) -> Sequence[live.OutputAudio]:
        """The rest of the answer's audio, if the model did not say which piece was its last."""
        if self._resampler is None or turn != self._turn:
            return ()
        return self._voice(self._resample(b"", last=True), live.OutputAudio(turn, b"", "", last=True))

    def drop(self, turn: str) -> None:
        """The turn is over. What was held back of it must not be heard at the beginning of the next."""
        if turn == self._turn:
            self._turn, self._resampler, self._text = None, None, ""

    def _resample(self, pcm: bytes, *, last: bool) -> bytes:
        if self._resampler is None:
            self._resampler = Resampler(self._hz, SPEECH_HZ)
        resampled = self._resampler.push(pcm, last=last)
        if last:
            self._resampler = None
        return resampled

    def _voice(self, pcm: bytes, piece: live.OutputAudio) -> Sequence[live.OutputAudio]:
        self._text += piece.text
        if not pcm:
            return ()
        said, self._text = self._text, ""
        return (replace(piece, pcm=pcm, text=said),)
