"""One connection to a live model, and what comes of each thing that it is asked."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final

from antiphon.models.base import FailureKind, ModelError
from antiphon.models.live import (
    Closed,
    GoAway,
    InputTranscript,
    LiveContext,
    LiveEvent,
    LiveModel,
    OutputAudio,
    OutputText,
    ResumptionUpdate,
    SpeechStarted,
    ToolAnswer,
    ToolCalls,
    TurnComplete,
    TurnFailed,
    TurnStarted,
    Usage,
)
from antiphon.sound_format import MICROPHONE_HZ, SAMPLE_BYTES
from antiphon.tools.call import ToolCall

FRAME_S: Final = 0.02
FRAME: Final = bytes(round(FRAME_S * MICROPHONE_HZ) * SAMPLE_BYTES)
LATE_TRANSCRIPT_S: Final = 3.0
"""How long to wait for the transcript of a question whose answer is complete."""
HEARD_WITHIN_S: Final = 20.0
"""How long after a spoken request it must be noticed."""


@dataclass(slots=True)
class Exchange:
    """One request and the answer to it, measured."""

    turn: str | None
    """None until the model has begun the turn of what it hears."""
    began_s: float
    """When the request was sent, or the last sound of a spoken one."""
    first_audio_ms: float | None = None
    audio_bytes: int = 0
    text: str = ""
    heard: str = ""
    """What the model understood of a spoken request."""
    calls: list[ToolCall] = field(default_factory=list)
    after_results: str = ""
    """What was said after the results of the calls."""
    audio_after_results: bool = False
    usage: Usage | None = None


class ProbedConnection:
    """Reads the events of a model all the time, so that none is late because nobody waited for it."""

    def __init__(self, model: LiveModel, *, result: Any, limit_s: float) -> None:
        """Every call gets the result. `limit_s` is the time for one answer."""
        self.connect_ms = 0.0
        self.handle: str | None = None
        """The newest resumption handle."""
        self.goes_away_ms: int | None = None
        self.is_lost = False
        self._model = model
        self._result = result
        self._limit_s = limit_s
        self._clock = asyncio.get_running_loop().time
        self._events: asyncio.Queue[LiveEvent] = asyncio.Queue()
        self._reader: asyncio.Task[None] | None = None
        self._count = 0

    async def open(self, context: LiveContext) -> None:
        """Raises `ModelError`."""
        began_s = self._clock()
        try:
            async with asyncio.timeout(self._limit_s):
                await self._model.connect(context)
        except TimeoutError:
            name = self._model.profile.name
            message = f"{name} did not open a session within {self._limit_s:.0f} seconds."
            raise ModelError(message, kind=FailureKind.TIMEOUT) from None
        self.connect_ms = (self._clock() - began_s) * 1_000
        self._reader = asyncio.create_task(self._read())

    async def close(self) -> None:
        await self._model.close()
        if self._reader is not None:
            await self._reader

    async def ask(self, text: str) -> Exchange:
        """Types a request. Raises `ModelError` if there is no whole answer."""
        self._count += 1
        turn = f"probe{self._count}"
        exchange = Exchange(turn, self._clock())
        self._model.respond(turn, text)
        await self._follow(exchange, self._limit_s)
        return exchange

    async def speak(self, pcm: bytes) -> Exchange | None:
        """Speaks a request at the pace of a microphone, and is silent until the answer is complete. Returns None if
        nothing was heard. Raises `ModelError` if the answer fails."""
        microphone = asyncio.create_task(self._send_audio(pcm))
        spoken_s = len(pcm) / SAMPLE_BYTES / MICROPHONE_HZ
        exchange = Exchange(None, self._clock() + spoken_s)
        try:
            await self._follow(exchange, spoken_s + HEARD_WITHIN_S)
            if not exchange.heard:
                await self._wait_for_transcript(exchange)
        except ModelError as error:
            if exchange.turn is None and not exchange.heard and error.kind is FailureKind.TIMEOUT:
                return None
            raise
        finally:
            microphone.cancel()
            await asyncio.wait([microphone])
        return exchange

    async def wait_for_handle(self, limit_s: float) -> None:
        """Waits for a resumption handle, which may come some time after an answer."""
        try:
            async with asyncio.timeout(limit_s):
                while self.handle is None:
                    self._note(await self._events.get())
        except (TimeoutError, ModelError):
            return

    async def _read(self) -> None:
        async for event in self._model.events():
            self._events.put_nowait(event)

    async def _send_audio(self, pcm: bytes) -> None:
        """Sends the sound, and then silence until it is cancelled."""
        start_s, sent = self._clock(), 0
        while True:
            frame = pcm[sent * len(FRAME) : (sent + 1) * len(FRAME)]
            self._model.send_audio(frame.ljust(len(FRAME), b"\0"))
            sent += 1
            await asyncio.sleep(max(0.0, start_s + sent * FRAME_S - self._clock()))

    async def _follow(self, exchange: Exchange, first_s: float) -> None:
        """Takes events until the answer is complete. `first_s` is the time in which a spoken request must be heard."""
        is_heard = exchange.turn is not None
        try:
            async with asyncio.timeout(first_s) as limit:
                while True:
                    event = await self._events.get()
                    if not is_heard and isinstance(event, SpeechStarted | InputTranscript | TurnStarted):
                        is_heard = True
                        # Only once, so that a server which hears without end cannot make this wait without end.
                        limit.reschedule(self._clock() + self._limit_s)
                    self._note(event)
                    match event:
                        case TurnStarted(turn=turn) if exchange.turn is None or event.continues == exchange.turn:
                            exchange.turn = turn
                        case TurnFailed(turn=turn) if turn in (None, exchange.turn):
                            raise _as_error(event)
                        case ToolCalls(turn=turn, calls=calls) if turn == exchange.turn:
                            exchange.calls += calls
                            self._model.send_tool_results(turn, [ToolAnswer(call, self._result) for call in calls])
                        case TurnComplete(turn=turn) if turn == exchange.turn:
                            return
                        case _:
                            self._measure(exchange, event)
        except TimeoutError:
            message = f"{self._model.profile.name} did not finish an answer within {self._limit_s:.0f} seconds."
            raise ModelError(message, kind=FailureKind.TIMEOUT) from None

    def _measure(self, exchange: Exchange, event: LiveEvent) -> None:
        match event:
            case OutputAudio(turn=turn, pcm=pcm) if turn == exchange.turn:
                if exchange.first_audio_ms is None:
                    exchange.first_audio_ms = (self._clock() - exchange.began_s) * 1_000
                exchange.audio_bytes += len(pcm)
                exchange.audio_after_results |= bool(exchange.calls)
            case OutputText(turn=turn, text=text) if turn == exchange.turn:
                exchange.text += text
                exchange.after_results += text if exchange.calls else ""
            case InputTranscript(turn=turn, text=text) if exchange.turn in (None, turn):
                exchange.heard = text
            case Usage(turn=turn) if turn == exchange.turn:
                exchange.usage = event

    def _note(self, event: LiveEvent) -> None:
        """Takes note of what concerns the connection. Raises `ModelError` if it has ended."""
        match event:
            case ResumptionUpdate(handle=handle):
                self.handle = handle or self.handle
            case GoAway(time_left_ms=left_ms):
                self.goes_away_ms = left_ms
            case Closed(reason=reason):
                self.is_lost = True
                raise ModelError(reason, kind=FailureKind.UNREACHABLE)

    async def _wait_for_transcript(self, exchange: Exchange) -> None:
        try:
            async with asyncio.timeout(LATE_TRANSCRIPT_S):
                while not exchange.heard:
                    event = await self._events.get()
                    self._note(event)
                    self._measure(exchange, event)
        except TimeoutError:
            return


def _as_error(failed: TurnFailed) -> ModelError:
    return ModelError(failed.message, retryable=failed.retryable, kind=failed.kind or FailureKind.UNEXPECTED)
