"""The connection to one model: it connects beside the session's mailbox, takes commands at any time, and reads events.

A connection is used once: it is connecting, then open, and at last closed by the session or lost. Then the session
makes another one. The session never waits for a network: commands that come while the connection is being made are
carried out once it is open.
"""

import asyncio
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct
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


class Opened(Struct, frozen=True):
    """The model is connected."""


class ConnectFailed(Struct, frozen=True):
    """The model could not be connected."""

    error: ModelError


class FromModel(Struct, frozen=True):
    """Something that happened to a connection, on its way through the session's mailbox."""

    connection: "ModelConnection"
    event: LiveEvent | Opened | ConnectFailed


Command = Callable[[LiveModel], None]


class ModelConnection:
    def __init__(
        self,
        factory: ModelFactory,
        context: LiveContext,
        post: Callable[[FromModel], None],
        *,
        resume: str | None = None,
        voice: tuple[str | None, float] = (None, 1.0),
    ) -> None:
        """Begins to connect. `post` reaches the session's mailbox; `resume` is a handle of an earlier connection, and
        `voice` the voice and speed to speak with."""
        self.profile = factory.profile
        self.state = ConnectionState.CONNECTING
        self.was_opened = False
        self.resume_handle = resume
        """The newest handle to resume the upstream session with."""
        self.go_away: live.GoAway | None = None
        """Set once the provider has announced the end of the connection."""
        self.close_kind: live.CloseKind | None = None
        """Why the model has ended the connection, if it has."""
        self._post = post
        self._health = factory.health
        self._said_turn: str | None = None
        """The last turn whose words the session gave. A local model says those even if its server is down."""
        self._model = factory.make()
        self.set_voice(*voice)
        self._commands: list[tuple[str | None, Command]] = []
        """Commands that wait for the connection to be open, each with the turn that it is about."""
        self._resampler = SpeechResampler(self.profile.output_hz)
        self._task = asyncio.create_task(self._run(context))
        self._closing: asyncio.Task[None] | None = None

    # Commands.

    def set_voice(self, voice: str | None, speed: float) -> None:
        """Sets the voice by its name, None for the default one."""
        self._model.set_voice(voice or next(iter(self.profile.voices), None), speed)

    def send_audio(self, pcm: bytes, *, playing: bool) -> bool:
        """Whether the model listens. Nothing is kept for one that does not yet."""
        if self.state is not ConnectionState.OPEN or not self.profile.hears:
            return False
        self._perform(None, lambda model: model.send_audio(pcm, playing=playing))
        return True

    def end_audio(self, turn: str) -> None:
        self._order(turn, lambda model: model.end_audio(turn))

    def respond(self, turn: str, text: str, ran: Sequence[ToolAnswer] = ()) -> None:
        self._order(turn, lambda model: model.respond(turn, text, ran))

    def say(self, turn: str, text: str) -> None:
        self._said_turn = turn
        self._order(turn, lambda model: model.say(turn, text))

    def send_tool_results(self, turn: str, answers: Sequence[ToolAnswer]) -> None:
        self._order(turn, lambda model: model.send_tool_results(turn, answers))

    def interrupt(self, turn: str, heard: str | None) -> None:
        """What waits of this turn is not wanted any more."""
        self._commands = [(of, command) for of, command in self._commands if of != turn]
        if self.state is ConnectionState.OPEN:
            self._perform(turn, lambda model: model.interrupt(turn, heard))

    def close(self) -> None:
        """Gives the model up. No event of it is posted from now on; `wait_closed` returns when it is gone."""
        if self._closing is None:
            self.state = ConnectionState.CLOSING
            self._closing = asyncio.create_task(self._close())

    @property
    def is_closed(self) -> bool:
        return self._closing is not None and self._closing.done()

    async def wait_closed(self) -> None:
        if self._closing is not None:
            await asyncio.wait([self._closing])

    # The life of the connection.

    def _order(self, turn: str, command: Command) -> None:
        if self.state is ConnectionState.OPEN:
            self._perform(turn, command)
        elif self.state is ConnectionState.CONNECTING:
            self._commands.append((turn, command))

    def _perform(self, turn: str | None, command: Command) -> None:
        try:
            command(self._model)
        except ModelError as error:
            self._tell(live.TurnFailed.because_of(error, turn))

    async def _run(self, context: LiveContext) -> None:
        try:
            await self._connect(context)
        except ModelError as error:
            self.state = ConnectionState.LOST
            self._health.note_failure(self.profile.name, error.kind, error.status)
            self._tell(ConnectFailed(error))
            return
        self.state, self.was_opened = ConnectionState.OPEN, True
        commands, self._commands = self._commands, []
        for turn, command in commands:
            self._perform(turn, command)
        self._tell(Opened())
        closed = live.Closed(f"The connection to {self.profile.name} has ended.")
        try:
            async for event in self._model.events():
                if isinstance(event, live.Closed):
                    closed = event
                else:
                    self._take(event)
        except Exception:
            log.exception("model_events_failed", model=self.profile.name)
        self.state, self.close_kind = ConnectionState.LOST, closed.kind
        if closed.kind is live.CloseKind.DEAD_HANDLE:
            self.resume_handle = None
        log.warning("model_connection_lost", model=self.profile.name, kind=closed.kind)
        if closed.kind in CLOSE_FAILURES:
            self._health.note_failure(self.profile.name, CLOSE_FAILURES[closed.kind])
        self._tell(closed)

    async def _connect(self, context: LiveContext) -> None:
        try:
            async with asyncio.timeout(CONNECT_DEADLINE_S):
                await self._model.connect(context, self.resume_handle)
        except TimeoutError:
            message = f"{self.profile.name} could not be reached within {CONNECT_DEADLINE_S:.0f} seconds."
            raise ModelError(message, kind=FailureKind.TIMEOUT) from None
        except ModelError:
            raise
        except Exception as error:
            log.exception("model_connect_failed", model=self.profile.name)
            message = f"{self.profile.name} failed unexpectedly. Please try again."
            raise ModelError(message, kind=FailureKind.UNEXPECTED) from error

    def _take(self, event: LiveEvent) -> None:
        """Keeps what concerns the connection, and passes on what concerns the conversation."""
        match event:
            case live.ResumptionUpdate(handle=handle):
                self.resume_handle = handle or self.resume_handle
            case live.GoAway():
                self.go_away = event
                log.info("model_goes_away", model=self.profile.name, time_left_ms=event.time_left_ms)
            case live.Usage():
                self._health.note_usage(event.input_tokens, event.output_tokens)
                self._tell(event)
            case live.TurnFailed(kind=FailureKind() as kind):
                self._health.note_failure(self.profile.name, kind, event.status)
                self._tell(event)
            case live.OutputAudio():
                for piece in self._resampler.push(event):
                    self._tell(piece)
            case live.GenerationComplete(turn=turn):
                if turn != self._said_turn and not event.is_local:
                    self._health.note_success()
                for piece in self._resampler.finish(turn):
                    self._tell(piece)
                self._tell(event)
            case live.TurnComplete(turn=turn):
                self._resampler.drop(turn)
                self._tell(event)
            case _:
                self._tell(event)

    def _tell(self, event: LiveEvent | Opened | ConnectFailed) -> None:
        if self.state is not ConnectionState.CLOSING:
            self._post(FromModel(self, event))

    async def _close(self) -> None:
        try:
            self._task.cancel()
            # Not `await self._task`: its cancellation could not be told from that of this task.
            await asyncio.wait([self._task])
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
