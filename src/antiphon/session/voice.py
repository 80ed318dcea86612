"""The change between voice and text. A call is the time in voice, from the first model that listens."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from antiphon.continuity.connection import ConnectionState
from antiphon.continuity.model import ContinuousModel
from antiphon.models.base import ModelError
from antiphon.protocol import client_messages as c
from antiphon.protocol.server_messages import EndVoiceSession, Notice, NoticeKind
from antiphon.session import events as e
from antiphon.session.calls import CallLog
from antiphon.session.microphone import Microphone
from antiphon.session.models import SessionModels
from antiphon.session.outbox import Outbox
from antiphon.session.state import BUSY, Phase, SessionState
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Mode

UNAVAILABLE: Final = "voice_unavailable"
REOPEN_S: Final = 1.0
"""A call whose model was closed gets another one, this long after the last one at the earliest. If the store is down,
the session closes its model again and again."""


@dataclass(frozen=True, slots=True)
class VoiceStart:
    """What to begin a call with."""

    pending_request: str = ""
    greeting: str = ""
    """Said if there is no pending request."""
    answers_last: bool = False
    """Whether the last message of the conversation is answered if it is the user's, and there is neither."""


class Voice:
    def __init__(
        self,
        *,
        models: SessionModels,
        calls: CallLog,
        tools: ToolSession,
        outbox: Outbox,
        microphone: Microphone,
        state: Callable[[], SessionState],
        step: Callable[[e.Event], Awaitable[None]],
        post: Callable[[e.Work], None],
        answer_last: Callable[[], Awaitable[None]],
    ) -> None:
        """`answer_last` has the model answer the last message of the conversation, if it is the user's."""
        self._models = models
        self._calls = calls
        self._tools = tools
        self._outbox = outbox
        self._microphone = microphone
        self._state = state
        self._step = step
        self._post = post
        self._answer_last = answer_last
        self._wanted: VoiceStart | None = None
        """A start that waits for its model, or for the end of an answer in text."""
        self._reopened_s = -REOPEN_S
        self._reopening: asyncio.TimerHandle | None = None
        self._set_mode(tools.mode)

    @property
    def is_starting(self) -> bool:
        return self._wanted is not None or self._reopening is not None

    @property
    def answers_last(self) -> bool:
        """Whether the call that is about to start begins with the last message of the conversation."""
        wanted = self._wanted
        return wanted is not None and wanted.answers_last and not (wanted.pending_request or wanted.greeting)

    async def start(self, wanted: VoiceStart) -> None:
        """The session listens as soon as a model does. While it is being connected, everything else goes on."""
        state = self._state()
        if state.phase in BUSY and state.mode is Mode.VOICE:
            await self._step(c.StartListening())
            self._microphone.open()
            return
        self._microphone.wait()
        self._wanted = wanted
        if self._models.connection is None or state.mode is Mode.TEXT:
            self._models.begin_anew(Mode.VOICE)
        await self.start_if_ready()

    async def start_if_ready(self) -> None:
        """Begins the call that is wanted, if its model is open and no turn is under way."""
        wanted, state = self._wanted, self._state()
        if wanted is None:
            return
        try:
            connection = self._connect()
        except ModelError as error:
            await self.fail(error)
            return
        if state.phase in BUSY or connection is None or not connection.was_opened:
            return
        self._wanted = None
        if state.mode is Mode.TEXT:
            self._models.promote(Mode.VOICE)
        self._set_mode(Mode.VOICE)
        self.note_model(connection.profile.name)
        await self._step(e.ModeChanged(Mode.VOICE, listening=True))
        if wanted.pending_request:
            await self._step(c.TextMessage(wanted.pending_request))
        elif wanted.greeting:
            await self.say(wanted.greeting)
        elif wanted.answers_last:
            await self._answer_last()
        # Through the mailbox: if an effect has led here, the session listens only after the other effects.
        self._post(self._open_microphone)

    def _connect(self) -> ContinuousModel | None:
        """Returns the model of the call that is wanted, which may still be connecting; None if it has to wait."""
        state, profile = self._state(), self._models.profile_of(Mode.VOICE)
        if state.mode is Mode.VOICE:
            return self._models.connect(Mode.VOICE)
        if state.phase in BUSY and profile is not None and profile.keeps_context:
            # It is given the conversation when it is connected, and the answer in text is not there yet.
            return None
        self._models.prepare(Mode.VOICE)
        return self._models.successor

    async def say(self, text: str) -> None:
        """The session says something by itself."""
        turn = await self.begin_turn()
        self._models.connect(self._state().mode).say(turn, text)

    async def begin_turn(self) -> str:
        """Begins a turn of the session's own."""
        await self._step(e.SessionSpeaks())
        turn = self._state().turn
        assert turn is not None
        return turn.id

    def note_model(self, name: str) -> None:
        """A model of the call is connected."""
        self._calls.begin(self._tools.user, name)

    async def fail(self, error: ModelError) -> None:
        """No model listens. The client is told why, and the conversation goes on in text."""
        if not error.rate_limited:
            # Otherwise it was told that no energy is left.
            self.refuse(str(error))
        await self.end(UNAVAILABLE)

    def cancel_start(self) -> None:
        """The user no longer wants the call that is about to start. What was said into the microphone is dropped."""
        self._wanted = None
        self._models.drop_successor()
        if self._reopening is not None:
            self._reopening.cancel()
            self._reopening = None
        self._microphone.open()

    def reopen(self) -> None:
        """The session has closed the model of the call: it gets another one, and what is said meanwhile is kept."""
        state = self._state()
        if state.mode is Mode.VOICE and state.resting is Phase.LISTENING and self._reopening is None:
            self._microphone.wait()
            loop = asyncio.get_running_loop()
            delay_s = max(0.0, self._reopened_s + REOPEN_S - loop.time())
            self._reopening = loop.call_later(delay_s, self._post, self._reopen)

    async def end(self, reason: str, final_message: str | None = None) -> None:
        """The conversation goes on in text."""
        self.cancel_start()
        if self._state().mode is not Mode.VOICE:
            return
        if self._state().phase in BUSY:
            await self._step(c.Interrupt())
        self._models.close()
        await self._calls.end()
        self._set_mode(Mode.TEXT)
        self._outbox.send(EndVoiceSession(reason, final_message))
        await self._step(e.ModeChanged(Mode.TEXT))

    def refuse(self, why: str) -> None:
        self._outbox.send(Notice(NoticeKind.WARNING, why, UNAVAILABLE))

    async def _open_microphone(self) -> None:
        if not self.is_starting:
            self._microphone.open()

    async def _reopen(self) -> None:
        self._reopening = None
        self._reopened_s = asyncio.get_running_loop().time()
        if self._state().mode is not Mode.VOICE:
            return
        try:
            connection = self._models.connect(Mode.VOICE)
        except ModelError as error:
            await self.fail(error)
            return
        if connection.state is ConnectionState.OPEN:
            self._microphone.open()

    def _set_mode(self, mode: Mode) -> None:
        self._tools.mode = mode
        self._tools.state.voice_active = mode is Mode.VOICE
        self._tools.state.ending = None
        self._tools.state.suppress_audio = False
