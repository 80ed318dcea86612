"""Asks a question and returns the whole answer: in a session, or in one line of a script."""

import asyncio
import inspect
import wave
from collections.abc import AsyncIterator, Awaitable, Callable
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final

from antiphon.client.answers import Answer, AnswerCollector
from antiphon.client.events import ClientError, ConfirmationNeeded, Incoming, NoAnswer
from antiphon.client.speaking import say
from antiphon.protocol import server_messages as s
from antiphon.protocol.client_messages import Confirm, Interrupt, StartListening
from antiphon.protocol.limits import MAX_TEXT, MICROPHONE_HZ

if TYPE_CHECKING:
    from antiphon.client.session import Session

ANSWER_S: Final = 120.0
"""How long an answer may take. A server gives its model 110 seconds."""
METRICS_S: Final = 1.0
"""How long to wait for the metrics, which follow the answer at once."""
OPENING_S: Final = 30.0
"""How long a server may take to open its voice."""

Decide = Callable[[s.ConfirmationRequest], bool | Awaitable[bool]]
"""Decides about a call that waits for approval: True runs it exactly as the request shows it."""
Tell = Callable[[Incoming], None]


class VoiceUnavailable(ClientError):
    """The server does not listen."""

    code = "voice_unavailable"


class RecordingError(ClientError):
    """A recording cannot be spoken."""

    code = "recording"


def ask(
    url: str,
    text: str,
    *,
    token: str | None = None,
    confirm: Decide | None = None,
    timeout_s: float = ANSWER_S,
    conversation_id: str | None = None,
) -> Answer:
    """Asks one question and returns the answer, for scripts without an event loop.

    `url` is the address of the server, such as "http://127.0.0.1:8000". For the rest see `Session.ask`.
    """
    from antiphon.client.connection import connect

    async def run() -> Answer:
        async with connect(url, token=token, conversation_id=conversation_id) as session:
            return await session.ask(text, confirm=confirm, timeout_s=timeout_s)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run())
    raise ClientError("An event loop is running here. Use `async with connect(url) as conversation` and its `ask`.")


async def ask_in(session: "Session", text: str, confirm: Decide | None, timeout_s: float, tell: Tell) -> Answer:
    """Does what `Session.ask` describes."""
    if not text.strip():
        raise ClientError("The question is empty.")
    if len(text) > MAX_TEXT:
        raise ClientError(f"The question has {len(text):,} characters. At most {MAX_TEXT:,} are accepted.")
    for earlier in session.take_waiting():
        tell(earlier)
    collector = AnswerCollector()
    try:
        async with asyncio.timeout(timeout_s):
            await _collect(session, session.type(text), collector, tell)
            await _settle(session, collector, confirm, tell)
    except TimeoutError:
        await session.send(Interrupt())
        raise NoAnswer(f"There was no answer to {text!r} within {timeout_s:g} seconds.") from None
    return collector.answer(session.conversation_id)


async def resolve_in(
    session: "Session", request: s.ConfirmationRequest, approved: bool, timeout_s: float, tell: Tell
) -> Answer:
    """Does what `Session.resolve` describes."""
    collector = AnswerCollector()
    try:
        async with asyncio.timeout(timeout_s):
            await _resolve(session, request, approved, collector, tell)
    except TimeoutError:
        raise NoAnswer(f"The server did not say what came of it within {timeout_s:g} seconds.") from None
    return collector.answer(session.conversation_id)


async def speak_in(
    session: "Session", recording: "bytes | str | PathLike[str]", confirm: Decide | None, tell: Tell
) -> Answer:
    """Does what `Session.speak` describes."""
    pcm = read_recording(recording)
    await start_listening(session, tell)
    collector = AnswerCollector()

    def take(incoming: Incoming) -> None:
        tell(incoming)
        collector.take(incoming)

    await say(session, pcm, take, patient=False)
    await _settle(session, collector, confirm, tell)
    return collector.answer(session.conversation_id)


async def start_listening(session: "Session", tell: Tell = lambda incoming: None) -> None:
    """Has the server listen. Raises `VoiceUnavailable`, with the server's reason if it has told one."""
    await session.send(StartListening())
    try:
        async with asyncio.timeout(OPENING_S):
            async for incoming in session.messages():
                tell(incoming)
                match incoming:
                    case s.StateChanged(state=s.State.LISTENING):
                        return
                    case s.Notice(text=why) | s.Error(message=why) | s.Timeout(message=why):
                        raise VoiceUnavailable(why)
    except TimeoutError:
        raise VoiceUnavailable(f"the server was not ready to listen within {OPENING_S:.0f} seconds.") from None
    raise VoiceUnavailable("the server ended the session.")


def read_recording(recording: "bytes | str | PathLike[str]") -> bytes:
    """Returns the samples of a WAV file, given as its content or its path: 16,000 Hz, mono, 16 bits."""
    name = "The recording" if isinstance(recording, bytes) else str(recording)
    try:
        content = recording if isinstance(recording, bytes) else Path(recording).read_bytes()
        with wave.open(BytesIO(content)) as sound:
            found = (sound.getframerate(), sound.getnchannels(), 8 * sound.getsampwidth())
            pcm: bytes = sound.readframes(sound.getnframes())
    except OSError as error:
        raise RecordingError(f"{name} cannot be read: {error.strerror}.") from None
    except (wave.Error, EOFError) as error:
        raise RecordingError(f"{name} is not a WAV file: {error}.") from None
    if found != (MICROPHONE_HZ, 1, 16):
        raise RecordingError(
            f"{name} has {found[0]:,} Hz, {found[1]} channels and {found[2]} bits. It must have {MICROPHONE_HZ:,} Hz, "
            f"1 channel and 16 bits. Convert it: ffmpeg -i in.wav -ar {MICROPHONE_HZ} -ac 1 -sample_fmt s16 out.wav"
        )
    return pcm


async def _collect(
    session: "Session", arriving: AsyncIterator[Incoming], collector: AnswerCollector, tell: Tell
) -> None:
    async for incoming in arriving:
        tell(incoming)
        collector.take(incoming)
        if isinstance(incoming, s.GenerationComplete) and collector.pcm:
            # Nobody plays it, so it counts as heard, and the turn ends now.
            await session.send(Interrupt(played_ms=collector.spoken_ms))


async def _settle(session: "Session", collector: AnswerCollector, confirm: Decide | None, tell: Tell) -> None:
    """Waits for the metrics, and has what waits for approval decided."""
    if collector.text and collector.metrics is None and collector.failure is None:
        try:
            async with asyncio.timeout(METRICS_S):
                async for incoming in session.messages():
                    tell(incoming)
                    collector.take(incoming)
                    if collector.metrics is not None:
                        break
        except TimeoutError:
            pass
    for request in list(collector.requests.values()):
        if confirm is None:
            raise ConfirmationNeeded(request)
        decided = confirm(request)
        approved = bool(await decided if inspect.isawaitable(decided) else decided)
        await _resolve(session, request, approved, collector, tell)


async def _resolve(
    session: "Session", request: s.ConfirmationRequest, approved: bool, collector: AnswerCollector, tell: Tell
) -> None:
    async def follow() -> AsyncIterator[Incoming]:
        """Yields what arrives until the outcome is told, which is a turn without a question."""
        has_begun = False
        async for incoming in session.messages():
            yield incoming
            match incoming:
                case s.ConfirmationResolved(confirmation_token=request.confirmation_token, outcome=s.Outcome.EXPIRED):
                    return
                case s.StateChanged(state=s.State.IDLE | s.State.LISTENING) if has_begun:
                    return
                case s.StateChanged(state=s.State.PROCESSING | s.State.SPEAKING):
                    has_begun = True
                case s.Error() if not has_begun:
                    return

    await session.send(Confirm(request.confirmation_token, approved))
    await _collect(session, follow(), collector, tell)
