"""One of our sessions, driven by a client of another protocol: typed messages and audio at any rate, both ways."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

from antiphon.audio.resample import Resampler
from antiphon.gateway.deps import GatewayDeps
from antiphon.protocol import client_messages as c
from antiphon.protocol import codec
from antiphon.protocol import server_messages as s
from antiphon.protocol.closing import INTERNAL, Close
from antiphon.protocol.limits import MICROPHONE_HZ, SPEECH_HZ
from antiphon.security.admission import Caller
from antiphon.security.quota import Account, Kind
from antiphon.session import client_application
from antiphon.session.client_application import ClientApplication
from antiphon.session.hub import ActiveSession
from antiphon.session.runner import Observed
from antiphon.session.state import Phase, SessionState
from antiphon.session.tool_runner import charge_to
from antiphon.sound_format import SAMPLE_BYTES
from antiphon.telemetry.log import get_logger
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool
from antiphon.transcript import Message

log = get_logger(__name__)

OUTPUT_HZ: Final = 24_000
"""The rate at which both OpenAI and Gemini send speech."""

PADDING_MS: Final = 400
"""The silence around a whole turn. Recognisers lose words at the very edges of the audio."""
FEED_MS: Final = 100
"""How much of a whole turn is given at once."""
MAX_WAIT_S: Final = 1.0
"""How long a session waits for a task of the gate."""


class Listener(Protocol):
    """What a session tells the endpoint. No method waits."""

    def on_message(self, message: s.ServerMessage) -> None: ...

    def on_audio(self, turn: int, pcm: bytes) -> None:
        """Speech: PCM16, mono, at the session's output rate."""
        ...

    def on_effect(self, effect: Observed) -> None:
        """Something is about to be done, or the model has told something that changes nothing. Messages do not tell of
        everything, such as who began a turn."""
        ...

    def on_close(self, close: Close) -> None:
        """The session is over for this client."""
        ...


class _Link:
    """Decodes what the session sends, and brings its speech to the rate of the other protocol.

    A fault of the endpoint closes its socket. It must not fail the session, which stores what was said.
    """

    def __init__(self, listener: Listener) -> None:
        self.output_hz = OUTPUT_HZ
        self._listener = listener
        self._turn = 0
        self._resampler: Resampler | None = None

    def send(self, frame: str | bytes, *, is_replay: bool = False) -> None:
        with self._guarded():
            self._send(frame)

    def observe(self, effect: Observed) -> None:
        with self._guarded():
            self._listener.on_effect(effect)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except Exception:
            log.exception("gateway_endpoint_failed")
            self._listener.on_close(INTERNAL)

    def _send(self, frame: str | bytes) -> None:
        if isinstance(frame, bytes):
            speech = codec.decode_audio(frame)
            if speech.turn != self._turn or self._resampler is None:
                self._turn, self._resampler = speech.turn, Resampler(SPEECH_HZ, self.output_hz)
            self._tell_audio(self._resampler.push(speech.pcm))
            return
        message = codec.decode_server(frame)
        match message:
            case s.GenerationComplete(turn=turn) if turn == self._turn and self._resampler is not None:
                rest, self._resampler = self._resampler.push(b"", last=True), None
                self._tell_audio(rest)
            case s.StateChanged(state=s.State.INTERRUPTED | s.State.IDLE | s.State.LISTENING):
                self._resampler = None
        self._listener.on_message(message)

    def close(self, close: Close) -> None:
        self._listener.on_close(close)

    def _tell_audio(self, pcm: bytes) -> None:
        if pcm:
            self._listener.on_audio(self._turn, pcm)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a client begins its session with."""

    mode: Mode = Mode.TEXT
    resume: str | None = None
    """The handle of the session to resume."""
    conversation_id: str | None = None
    history: Sequence[Message] = ()
    application: ClientApplication = field(default_factory=ClientApplication)
    tools: Sequence[Tool] = ()
    """Tools that the client runs itself."""
    client: str = ""
    """The client's protocol, for the log."""


class GatewaySession:
    """A session of ours and its client. Everything is counted against the quotas that `/ws` has."""

    def __init__(self, deps: GatewayDeps, active: ActiveSession, link: _Link, account: Account) -> None:
        self._deps = deps
        self._active = active
        self._link = link
        self._account = account
        self._resampler: Resampler | None = None
        self._input_hz = 0

    @classmethod
    async def open(
        cls,
        deps: GatewayDeps,
        caller: Caller,
        opening: Opening,
        listener: Listener,
        *,
        address: str | None = None,
    ) -> "GatewaySession":
        """Attaches a client. Raises `ClientToolError`, and `StoreUnavailable` if the database cannot be reached."""
        link = _Link(listener)
        hello = c.Hello(
            resume=opening.resume,
            conversation_id=opening.conversation_id,
            mode=c.Mode(opening.mode),
            audio=c.AudioForm.BINARY,
            client=opening.client or None,
        )
        active = await deps.hub.attach(caller.user, hello, link, authenticated=caller.authenticated)
        active.token_id = caller.token_id
        active.speaks_only = True
        account = Account(session=active.id, user=caller.user, address=address)
        runner = active.runner
        runner.charge(charge_to(deps.quota, account, deps.clock))
        runner.observe = link.observe
        session = cls(deps, active, link, account)
        if opening.resume is not None:
            # What was said just before the client left may have been answered meanwhile. Nobody waits for that.
            runner.post(partial(client_application.leave, runner))
        try:
            if opening.history:
                client_application.bring(runner, opening.history)
            session.configure(opening.application, opening.tools)
        except BaseException:
            session.close(for_good=True)
            raise
        return session

    @property
    def id(self) -> str:
        return self._active.id

    @property
    def conversation_id(self) -> str:
        return self._active.runner.conversation_id

    @property
    def handle(self) -> str:
        """The newest handle to resume the session with."""
        return self._active.handle

    @property
    def state(self) -> SessionState:
        return self._active.runner.state

    @property
    def application(self) -> ClientApplication:
        return self._active.runner.application

    @property
    def is_microphone_open(self) -> bool:
        """Whether audio reaches the model at once. Otherwise the session keeps a few seconds of it."""
        return not self._active.runner.microphone.is_waiting

    @property
    def can_hold_answers(self) -> bool:
        """Whether the server's voice waits to be asked for its answers."""
        profile = self._active.runner.models.profile_of(Mode.VOICE)
        return profile is not None and profile.waits_to_answer

    # Quotas.

    def wait_s(self, kind: Kind, amount: float = 1) -> float:
        """Counts something for the client. Returns the seconds to wait if it is too much; then nothing is counted."""
        return self._deps.quota.take(kind, self._account, amount, self._deps.clock.monotonic())

    def set_output_hz(self, hz: int) -> None:
        """Sets the rate of the next answer's speech; it is 24 kHz otherwise."""
        self._link.output_hz = hz

    # What the client does.

    def note_message(self) -> None:
        """The client has sent something, so it has received the newest handle."""
        self._active.settle_handle()

    def configure(self, application: ClientApplication, tools: Sequence[Tool] | None = None) -> None:
        """Changes instructions and the client's tools, if they are given. Raises `ClientToolError`."""
        client_application.configure(self._active.runner, application, tools)

    def bring(self, messages: Sequence[Message]) -> Sequence[str]:
        """Adds earlier messages to the conversation, each as a turn. Returns the ids of these turns."""
        return client_application.bring(self._active.runner, messages)

    def forget(self, turn: str, *, of_user: bool) -> None:
        """Removes the user's words in a turn, or the answer to it, from the conversation."""
        self._active.runner.post(partial(client_application.forget, self._active.runner, turn, of_user=of_user))

    def forget_run(self, name: str, args: Any) -> None:
        """Removes a call of a tool, and its result, from the conversation."""
        self._active.runner.post(partial(client_application.forget_run, self._active.runner, name, args))

    def say(self, text: str) -> None:
        """Sends what the user typed, at most `MAX_TEXT` characters. An answer that is complete is not cut by it."""
        self.assume_played()
        self._active.runner.post(c.TextMessage(text))

    def respond(self) -> None:
        """Asks for an answer to the conversation as it is."""
        self.assume_played()
        self._active.runner.post(partial(client_application.respond, self._active.runner))

    def assume_played(self) -> None:
        """Counts a complete answer as played."""
        self._active.runner.post(partial(client_application.assume_played, self._active.runner))

    def interrupt(self, played_ms: float | None = None) -> None:
        """Stops the answer under way."""
        self._active.runner.post(c.Interrupt(played_ms))

    def cut_answer(self, turn: int, heard: str) -> None:
        """Forgets what the user has not heard of an answer that is over."""
        self._active.runner.post(partial(client_application.cut_answer, self._active.runner, turn, heard))

    def run(self, action: Callable[[], None]) -> None:
        """Does something after everything that the client has asked for before."""

        async def work() -> None:
            action()

        self._active.runner.post(work)

    def wait_for(self, task: "asyncio.Task[Any]") -> None:
        """Does what the client asks for from now on only after this task, which should be done in a moment."""

        async def work() -> None:
            await asyncio.wait([task], timeout=MAX_WAIT_S)

        self._active.runner.post(work)

    def post(self, message: c.ClientMessage) -> None:
        """Sends one of our own messages."""
        self._active.runner.post(message)

    def listen(self) -> None:
        """Opens the microphone if the session is idle. While an answer is under way, it does nothing."""
        runner = self._active.runner
        if runner.state.phase is Phase.IDLE and not runner.microphone.is_waiting:
            runner.post(c.StartListening())

    def hear(self, pcm: bytes, hz: int, *, playing: bool = False) -> None:
        """Takes microphone audio: PCM16, mono, at any rate."""
        if hz != self._input_hz or self._resampler is None:
            self._input_hz, self._resampler = hz, Resampler(hz, MICROPHONE_HZ)
        resampled = self._resampler.push(pcm)
        if resampled:
            self._active.runner.hear(resampled, playing=playing)

    def listen_then(self, action: Callable[[], None], waiting: list[Callable[[], None]]) -> None:
        """Does something if the session listens. Otherwise it is told to, and the action joins those that wait."""
        if self.state.phase is Phase.LISTENING:
            self.run(action)
            return
        self.assume_played()
        waiting.append(action)
        self.run(self.listen)

    def run_all(self, waiting: list[Callable[[], None]]) -> None:
        """Does what has waited, and empties the list."""
        for action in waiting:
            self.run(action)
        waiting.clear()

    def hear_turn(self, pcm: bytes, hz: int) -> None:
        """Takes a whole turn of the user, which ends with the audio. The session must be listening."""

        async def work() -> None:
            for piece in _padded(pcm, hz):
                self.hear(piece, hz)
                # Minutes of audio must not block the loop.
                await asyncio.sleep(0)
            self._active.runner.post(c.StopListening())

        self._active.runner.post(work)

    def close(self, *, for_good: bool) -> None:
        """The client has left. Unless it left for good, its session waits for it to resume.

        The answer under way ends. The other protocols have no messages for the rest of an answer after a resumption:
        Gemini's sessions, too, are resumed as they were between two turns.
        """
        self._active.runner.observe = lambda effect: None
        self._active.runner.post(partial(client_application.leave, self._active.runner))
        self._deps.hub.detach(self._active, self._link, for_good=for_good)


def _padded(pcm: bytes, hz: int) -> Iterator[bytes]:
    """Yields a whole turn in short pieces, between silences."""
    silence = bytes(SAMPLE_BYTES * hz * PADDING_MS // 1000)
    whole = silence + pcm + silence
    step = SAMPLE_BYTES * hz * FEED_MS // 1000
    yield from (whole[at : at + step] for at in range(0, len(whole), step))


def audio_s(pcm: bytes | bytearray, hz: int) -> float:
    """How long a piece of PCM16 mono lasts."""
    return len(pcm) / (SAMPLE_BYTES * hz)
