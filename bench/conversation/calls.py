"""Speaks an utterance to a server in real time over its socket, and records the answer."""

import asyncio
from dataclasses import dataclass
from itertools import pairwise

from antiphon.client import Incoming, Mode, NoAnswer, Session, connect
from antiphon.client.speaking import say
from antiphon.protocol import server_messages as s
from antiphon.protocol.client_messages import AudioForm, Hello, StartListening
from bench.conversation.sounds import Utterance


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn. Times are in milliseconds after the last sound of the utterance; None if the event did not occur."""

    heard: str = ""
    answer: str = ""
    silence_ms: float | None = None
    """How long the server waited, by its own measurement."""
    decided_ms: float | None = None
    """When the final text of the utterance arrived."""
    first_word_ms: float | None = None
    first_audio_ms: float | None = None
    cut_off_ms: float | None = None
    """When the first audio of an answer arrived before the speaker had finished."""
    taken_back: int = 0
    """How many final texts came too early without harm, because the speaker continued before the answer was heard."""
    problem: str = ""

    @property
    def stages_ms(self) -> tuple[float | None, ...]:
        """Returns the time to the first audio in four parts: silence, text and decision, first word, first audio."""
        moments = (0.0, self.silence_ms, self.decided_ms, self.first_word_ms, self.first_audio_ms)
        return tuple(None if since is None or until is None else until - since for since, until in pairwise(moments))


class _Early:
    """Records what arrives before the speaker has finished."""

    def __init__(self, utterance: Utterance) -> None:
        self._done_s = asyncio.get_running_loop().time() + utterance.ends_at_ms / 1_000
        self.cut_off_ms: float | None = None
        self.finals = 0

    def note(self, incoming: Incoming) -> None:
        late_ms = (asyncio.get_running_loop().time() - self._done_s) * 1_000
        if late_ms >= 0:
            return
        if isinstance(incoming, s.SpeechFrame) and self.cut_off_ms is None:
            self.cut_off_ms = late_ms
        self.finals += isinstance(incoming, s.Transcript) and incoming.is_final


async def hold(url: str, utterance: Utterance) -> Turn:
    """Speaks the utterance in a new session, so that nothing said before affects it."""
    async with connect(url, mode=Mode.VOICE, hello=Hello(audio=AudioForm.BINARY, client="bench")) as session:
        await _wait_until_listening(session)
        return await speak_to(session, utterance)


async def speak_to(session: Session, utterance: Utterance) -> Turn:
    early = _Early(utterance)
    try:
        exchange = await say(session, utterance.pcm, early.note, patient=False)
    except NoAnswer as error:
        return Turn(cut_off_ms=early.cut_off_ms, problem=str(error))
    return Turn(
        heard=exchange.transcript,
        answer=exchange.response,
        silence_ms=exchange.metrics.end_of_turn_ms if exchange.metrics else None,
        decided_ms=_ms(exchange.transcript_s),
        first_word_ms=_ms(exchange.first_word_s),
        first_audio_ms=_ms(exchange.first_audio_s),
        cut_off_ms=early.cut_off_ms,
        taken_back=0 if early.cut_off_ms is not None else early.finals,
        problem=" ".join(exchange.errors),
    )


async def _wait_until_listening(session: Session) -> None:
    await session.send(StartListening())
    async for incoming in session.messages():
        match incoming:
            case s.StateChanged(state=s.State.LISTENING):
                return
            case s.Notice(text=text) | s.Error(message=text):
                raise NoAnswer(text)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1_000
