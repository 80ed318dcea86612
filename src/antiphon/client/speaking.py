"""Speaks a recording to a session in real time, and collects the answer."""

import asyncio
import base64
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from antiphon.client.events import Incoming, NoAnswer
from antiphon.protocol import server_messages as s
from antiphon.protocol.client_messages import ClientMessage, Interrupt, PlaybackDone
from antiphon.protocol.limits import MICROPHONE_HZ, SPEECH_HZ
from antiphon.sound_format import WAV_HEADER_BYTES

if TYPE_CHECKING:
    from antiphon.client.session import Session

FRAME_MS: Final = 20
FRAME_BYTES: Final = 2 * MICROPHONE_HZ * FRAME_MS // 1000
QUIET: Final = 300
"""The largest sample, of 32,767, that counts as silence at the end of a recording."""
MAX_HEARING_S: Final = 15.0
"""How long after the end of a recording its transcript must arrive."""
MAX_ANSWER_S: Final = 60.0
SETTLED_S: Final = 2.0
"""How long to wait after a recording that ends in noise before the answer to its words counts as the last one."""


@dataclass(slots=True)
class Exchange:
    """What was said, and the answer. Times are in seconds after the end of the recorded speech.

    If the server takes the recording for several turns, this is the last of them.
    """

    interims: list[str] = field(default_factory=list)
    transcript: str = ""
    response: str = ""
    pcm: bytes = b""
    """The audio of the answer: PCM16, 22,050 Hz, mono."""
    tools: list[s.ToolCall] = field(default_factory=list)
    results: list[s.ToolResult] = field(default_factory=list)
    questions: list[s.ConfirmationRequest] = field(default_factory=list)
    states: list[s.State] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    metrics: s.TurnMetrics | None = None
    transcript_s: float | None = None
    first_word_s: float | None = None
    first_audio_s: float | None = None
    turn: int | None = None
    """The turn whose answer began in this exchange."""

    @property
    def answer_s(self) -> float:
        """The duration of the answer's audio."""
        return len(self.pcm) / 2 / SPEECH_HZ

    def take(self, incoming: Incoming, at_s: float) -> None:
        match incoming:
            case s.Transcript(text=text, is_final=False):
                self.interims.append(text)
            case s.Transcript(text=text, turn=turn):
                # A provider's transcript may come after the answer of its turn, or never.
                if self.transcript or self.turn not in (None, turn):
                    self._begin_turn()
                self.transcript, self.transcript_s = text, at_s
            case s.ResponseChunk():
                self.turn = incoming.turn if incoming.is_first else self.turn
                self.first_word_s = at_s if self.first_word_s is None else self.first_word_s
            case s.Response(text=text):
                self.response = text
            case s.Audio(data=data):
                self._hear(base64.b64decode(data)[WAV_HEADER_BYTES:], at_s)
            case s.SpeechFrame(pcm=pcm):
                self._hear(pcm, at_s)
            case s.ToolCall():
                self.tools.append(incoming)
            case s.ToolResult():
                self.results.append(incoming)
            case s.ConfirmationRequest():
                self.questions.append(incoming)
            case s.StateChanged(state=state):
                self.states.append(state)
            case s.Error(message=message):
                self.errors.append(message)
            case s.TurnMetrics(turn=turn) if self.transcript or turn == self.turn:
                # Others belong to an earlier turn that this speech has interrupted.
                self.metrics = incoming

    @property
    def is_over(self) -> bool:
        rests = self.states[-1:] in ([s.State.LISTENING], [s.State.IDLE])
        return self.metrics is not None or (bool(self.errors) and rests)

    def _hear(self, pcm: bytes, at_s: float) -> None:
        self.pcm += pcm
        self.first_audio_s = at_s if self.first_audio_s is None else self.first_audio_s

    def _begin_turn(self) -> None:
        """Resets the answer: what was said before belongs to another turn, or was not complete."""
        self.response, self.pcm, self.metrics = "", b"", None
        self.first_word_s = self.first_audio_s = self.turn = None
        for told in (self.tools, self.results, self.questions, self.errors):
            told.clear()


async def say(
    session: "Session", pcm: bytes, tell: Callable[[Incoming], None] = lambda incoming: None, *, patient: bool = True
) -> Exchange:
    """Sends 16 kHz speech to a session that is listening, and returns after the time that playing the answer takes.

    The microphone stays open meanwhile and sends silence. `tell` is called with everything that arrives. Without
    `patient`, the answer is interrupted when it is complete, and counts as heard. Raises `NoAnswer` or `Disconnected`.
    """
    loop = asyncio.get_running_loop()
    exchange, began_s = Exchange(), loop.time()
    spoken_until_s = began_s + end_of_speech_ms(pcm) / 1000
    sent_until_s = began_s + len(pcm) / 2 / MICROPHONE_HZ
    microphone = asyncio.create_task(_speak(session, pcm, began_s))
    playing: asyncio.Task[None] | None = None
    try:
        async with asyncio.timeout_at(sent_until_s + MAX_HEARING_S) as deadline:
            async for incoming in session.messages():
                tell(incoming)
                exchange.take(incoming, loop.time() - spoken_until_s)
                match incoming:
                    case s.Transcript(is_final=True):
                        deadline.reschedule(max(loop.time(), sent_until_s) + MAX_ANSWER_S)
                        await _stop(playing)
                    case s.GenerationComplete(turn=turn) if exchange.first_audio_s is not None:
                        over_s = spoken_until_s + exchange.first_audio_s + exchange.answer_s
                        done = PlaybackDone(turn) if patient else Interrupt(played_ms=1000 * exchange.answer_s)
                        playing = asyncio.create_task(_send_at(session, done, over_s if patient else 0.0))
                    case s.EndVoiceSession(reason=reason) if not exchange.is_over:
                        raise NoAnswer(f"The server ended the call ({reason}).")
                if exchange.is_over and (loop.time() >= spoken_until_s or isinstance(incoming, s.EndVoiceSession)):
                    return exchange
                if exchange.is_over:
                    deadline.reschedule(sent_until_s + SETTLED_S)
    except TimeoutError:
        if exchange.is_over:
            return exchange
        raise NoAnswer(_explain(exchange)) from None
    finally:
        await _stop(microphone)
        await _stop(playing)
    raise NoAnswer("The server ended the session.")


def end_of_speech_ms(pcm: bytes) -> int:
    """Returns where the speech ends, or 0 if there is none. Most recordings end with silence."""
    samples = array("h", pcm)
    last = next((at for at in range(len(samples) - 1, -1, -1) if abs(samples[at]) > QUIET), -1)
    return (last + 1) * 1000 // MICROPHONE_HZ


async def _speak(session: "Session", pcm: bytes, began_s: float) -> None:
    loop = asyncio.get_running_loop()
    for number, frame in enumerate(_frames(pcm)):
        # By the clock, since sleeps are always a little too long, and that would add up.
        await asyncio.sleep(max(0.0, began_s + number * FRAME_MS / 1000 - loop.time()))
        await session.send_audio(frame)


def _frames(pcm: bytes) -> Iterator[bytes]:
    for at in range(0, len(pcm), FRAME_BYTES):
        yield pcm[at : at + FRAME_BYTES].ljust(FRAME_BYTES, b"\0")
    while True:
        yield bytes(FRAME_BYTES)


async def _send_at(session: "Session", message: ClientMessage, at_s: float) -> None:
    await asyncio.sleep(max(0.0, at_s - asyncio.get_running_loop().time()))
    await session.send(message)


async def _stop(task: "asyncio.Task[None] | None") -> None:
    if task is not None:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            # A lost connection is reported to the reader of the messages.
            task.exception()


def _explain(exchange: Exchange) -> str:
    if not exchange.transcript:
        return f"No speech was recognized within {MAX_HEARING_S:.0f} seconds after the end of the recording."
    return f"There was no answer to {exchange.transcript!r} within {MAX_ANSWER_S:.0f} seconds."
