"""A scripted `LiveModel` for load tests: it takes a fixed length of audio, answers at fixed times, and costs little.

Everything that it says carries the time at which it was due, in nanoseconds of the monotonic clock, which all processes
of a machine share, so the receiver knows how long it took. The time at which it was due counts, not the time at which
the event loop got to it: a late event loop would otherwise hide its own delay.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from struct import Struct as Layout
from typing import Final

from antiphon.models.live import (
    GenerationComplete,
    InputTranscript,
    LiveContext,
    LiveEvent,
    LiveProfile,
    ModelFactory,
    OutputAudio,
    OutputText,
    ToolAnswer,
    TurnComplete,
    TurnStarted,
)

HEARS_MS: Final = 800
"""How much audio makes a turn of the user."""
SPEECH_AT_MS: Final = (150, 250, 350)
"""When the pieces come, after the transcript. Each comes as text and as audio at the same time."""
PIECE_MS: Final = 400
RESTS_MS: Final = 2_000
"""How long it does not listen after the transcript: the client plays the answer, with half a second to spare."""

STAMP: Final = Layout("<Q")
"""The first samples of each piece of audio, in both directions: when it was due or sent."""

_BYTES_PER_MS: Final = 2 * 16
_OUTPUT_HZ: Final = 22_050
_SILENCE: Final = bytes(2 * _OUTPUT_HZ * PIECE_MS // 1000 - STAMP.size)


_PROFILE: Final = LiveProfile(
    name="load",
    hears=True,
    output_hz=_OUTPUT_HZ,
    needs_network=False,
    tool_schemas="openai_realtime",
    keeps_context=True,
)


class LoadModel:
    profile = _PROFILE

    def __init__(self) -> None:
        self._turns = 0
        self._outbox: deque[LiveEvent] = deque()
        self._stirred = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._listening = True
        self._heard_bytes = 0
        self._closed = False

    async def connect(self, context: LiveContext, resume: str | None = None) -> None:
        """Ignores the context, like a model on another machine."""

    async def events(self) -> AsyncIterator[LiveEvent]:
        while not self._closed:
            while self._outbox:
                yield self._outbox.popleft()
            self._stirred.clear()
            await self._stirred.wait()

    def set_voice(self, voice: str | None, speed: float) -> None:
        """Ignored, since its speech is silence."""

    def send_audio(self, pcm: bytes, *, playing: bool = False) -> None:
        if not self._listening:
            return
        self._heard_bytes += len(pcm)
        if self._heard_bytes >= HEARS_MS * _BYTES_PER_MS:
            self._heard_bytes = 0
            self._listening = False
            # When the client sent it, not when it arrives here: the way in is part of what a session costs.
            self._turns += 1
            self._emit(TurnStarted(self._turn))
            self._emit(InputTranscript(self._turn, str(*STAMP.unpack_from(pcm)), is_final=True))
            self._speak_at(asyncio.get_running_loop().time(), 0)

    def end_audio(self, turn: str) -> None:
        self._heard_bytes = 0

    def respond(self, turn: str, text: str, ran: Sequence[ToolAnswer] = ()) -> None:
        raise NotImplementedError("The clients of this bench only speak.")

    def say(self, turn: str, text: str) -> None:
        raise NotImplementedError("Nothing makes the server of this bench speak of its own accord.")

    def send_tool_results(self, turn: str, answers: Sequence[ToolAnswer]) -> None:
        raise NotImplementedError("This model calls no tools.")

    def interrupt(self, turn: str, heard: str | None = None) -> None:
        """Ignored: only a session that is ending interrupts, and it closes the model next."""

    async def close(self) -> None:
        self._closed = True
        self._stirred.set()
        if self._timer is not None:
            self._timer.cancel()

    def _speak_at(self, begun_s: float, piece: int) -> None:
        due_s = begun_s + SPEECH_AT_MS[piece] / 1000
        self._timer = asyncio.get_running_loop().call_at(due_s, self._speak, begun_s, due_s, piece)

    def _speak(self, begun_s: float, due_s: float, piece: int) -> None:
        # The loop's time is the monotonic clock in seconds.
        due_ns = int(due_s * 1e9)
        text = f"{due_ns} "
        self._emit(OutputText(self._turn, text))
        self._emit(OutputAudio(self._turn, STAMP.pack(due_ns) + _SILENCE, text))
        if piece + 1 < len(SPEECH_AT_MS):
            self._speak_at(begun_s, piece + 1)
            return
        self._emit(GenerationComplete(self._turn))
        self._emit(TurnComplete(self._turn))
        self._timer = asyncio.get_running_loop().call_at(begun_s + RESTS_MS / 1000, self._listen)

    @property
    def _turn(self) -> str:
        return f"m{self._turns}"

    def _listen(self) -> None:
        self._listening = True

    def _emit(self, event: LiveEvent) -> None:
        self._outbox.append(event)
        self._stirred.set()


LOAD_MODEL: Final = ModelFactory(_PROFILE, LoadModel)
