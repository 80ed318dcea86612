"""A spoken turn by program: recorded speech goes out at the pace of speech, and the answer is taken as it comes."""

import asyncio
import base64
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from antiphon.client.events import Incoming
from antiphon.client.session import Session
from antiphon.protocol import server_messages as s
from antiphon.protocol.client_messages import PlaybackDone

INPUT_HZ: Final = 16_000
OUTPUT_HZ: Final = 22_050
FRAME_MS: Final = 20
FRAME_BYTES: Final = 2 * INPUT_HZ * FRAME_MS // 1000
WAV_HEADER_BYTES: Final = 44
QUIET: Final = 300
"""The largest sample that still counts as silence, of 32,767: where recorded speech ends."""
MAX_ANSWER_S: Final = 60.0


@dataclass(slots=True)
class Exchange:
    """What was said, and what came of it. Times are seconds after the last sound of the speech that was sent."""

    interims: list[str] = field(default_factory=list)
    transcript: str = ""
    response: str = ""
    pcm: bytes = b""
    """The answer's audio: PCM16, 22,050 Hz, mono."""
    tools: list[s.ToolCall] = field(default_factory=list)
    states: list[s.State] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    metrics: s.TurnMetrics | None = None
    transcript_s: float | None = None
    first_word_s: float | None = None
    first_audio_s: float | None = None


async def say(session: Session, pcm: bytes, tell: Callable[[Incoming], None] = lambda incoming: None) -> Exchange:
    """Says 16 kHz speech into a session that listens, and returns when the answer has been given time to be played.

    The microphone stays open meanwhile, and hears silence. `tell` sees everything that comes. Raises `TimeoutError`
    if there is no answer within a minute.
    """
    loop = asyncio.get_running_loop()
    exchange, began_s = Exchange(), loop.time()
    spoken_until_s = began_s + end_of_speech_ms(pcm) / 1000
    microphone = asyncio.create_task(_speak(session, pcm, began_s))
    playing: asyncio.Task[None] | None = None
    try:
        async with asyncio.timeout(len(pcm) / 2 / INPUT_HZ + MAX_ANSWER_S):
            async for incoming in session.messages():
                tell(incoming)
                _take(exchange, incoming, loop.time() - spoken_until_s)
                if isinstance(incoming, s.GenerationComplete) and exchange.first_audio_s is not None:
                    over_s = spoken_until_s + exchange.first_audio_s + len(exchange.pcm) / 2 / OUTPUT_HZ
                    playing = asyncio.create_task(_end_playback(session, incoming.turn, over_s - loop.time()))
                if isinstance(incoming, s.TurnMetrics) or (exchange.errors and _rests(exchange)):
                    return exchange
    finally:
        for task in (microphone, playing):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
    return exchange


def end_of_speech_ms(pcm: bytes) -> int:
    """Where the last sound is. What follows it is silence, which a recording mostly has at its end."""
    samples = array("h", pcm)
    last = next((at for at in range(len(samples) - 1, -1, -1) if abs(samples[at]) > QUIET), -1)
    return (last + 1) * 1000 // INPUT_HZ


async def _speak(session: Session, pcm: bytes, began_s: float) -> None:
    loop = asyncio.get_running_loop()
    for number, frame in enumerate(_frames(pcm)):
        # By the clock, not by adding up sleeps: those are always a little longer than they should be.
        await asyncio.sleep(max(0.0, began_s + number * FRAME_MS / 1000 - loop.time()))
        await session.send_audio(frame)


def _frames(pcm: bytes) -> Iterator[bytes]:
    for at in range(0, len(pcm), FRAME_BYTES):
        yield pcm[at : at + FRAME_BYTES].ljust(FRAME_BYTES, b"\0")
    while True:
        yield bytes(FRAME_BYTES)


async def _end_playback(session: Session, turn: int, in_s: float) -> None:
    await asyncio.sleep(max(0.0, in_s))
    await session.send(PlaybackDone(turn))


def _take(exchange: Exchange, incoming: Incoming, at_s: float) -> None:
    match incoming:
        case s.Transcript(text=text, is_final=False):
            exchange.interims.append(text)
        case s.Transcript(text=text):
            exchange.transcript, exchange.transcript_s = text, at_s
        case s.ResponseChunk():
            exchange.first_word_s = at_s if exchange.first_word_s is None else exchange.first_word_s
        case s.Response(text=text):
            exchange.response = text
        case s.Audio(data=data):
            exchange.pcm += base64.b64decode(data)[WAV_HEADER_BYTES:]
            exchange.first_audio_s = at_s if exchange.first_audio_s is None else exchange.first_audio_s
        case s.SpeechFrame(pcm=pcm):
            exchange.pcm += pcm
            exchange.first_audio_s = at_s if exchange.first_audio_s is None else exchange.first_audio_s
        case s.ToolCall():
            exchange.tools.append(incoming)
        case s.StateChanged(state=state):
            exchange.states.append(state)
        case s.Error(message=message):
            exchange.errors.append(message)
        case s.TurnMetrics():
            exchange.metrics = incoming


def _rests(exchange: Exchange) -> bool:
    return exchange.states[-1:] in ([s.State.LISTENING], [s.State.IDLE])
