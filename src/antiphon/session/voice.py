"""The change between voice and text. The time in voice, from the first model that listens, is a call."""

from collections.abc import Awaitable, Callable

from antiphon.models.base import ModelError
from antiphon.protocol.server_messages import EndVoiceSession, Notice, NoticeKind
from antiphon.session import events as e
from antiphon.session.brain import Brain
from antiphon.session.calls import CallLog
from antiphon.session.machine import BUSY
from antiphon.session.outbox import Outbox
from antiphon.session.state import Session
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Mode

UNAVAILABLE = "voice_unavailable"


class Voice:
    def __init__(
        self,
        brain: Brain,
        calls: CallLog,
        tools: ToolSession,
        outbox: Outbox,
        session: Callable[[], Session],
        step: Callable[[e.Event], Awaitable[None]],
    ) -> None:
        self._brain = brain
        self._calls = calls
        self._tools = tools
        self._outbox = outbox
        self._session = session
        self._step = step
        self._wanted: tuple[str | None, str | None] | None = None
        """A start that came during an answer in text, and waits for its end."""
        self._set_mode(tools.mode)

    async def wake(self) -> None:
        """Sees to it that a model of the session's mode is connected. Raises `ModelError`."""
        await self._brain.wake(self._session().mode)
        if self._session().mode is Mode.VOICE:
            self._calls.begin(self._tools.user, self._brain.name or "")

    async def start(self, pending_request: str | None = None, greeting: str | None = None) -> None:
        """Listens, and answers the request; the greeting is for a call that has nothing else to begin with."""
        session = self._session()
        if session.phase in BUSY and session.mode is Mode.TEXT:
            self._wanted = (pending_request, greeting)
            return
        if session.phase in BUSY:
            await self._step(e.StartListening())
            return
        if not await self._open():
            return
        await self._step(e.ModeChanged(Mode.VOICE, listening=True))
        if pending_request:
            await self._step(e.TextMessage(pending_request))
        elif greeting:
            await self._step(e.SpeakFirst())
            try:
                await self._brain.say(greeting)
            except ModelError as error:
                await self._step(e.Failed(str(error), error.retryable))

    async def start_if_wanted(self) -> None:
        wanted, self._wanted = self._wanted, None
        if wanted is not None:
            await self.start(*wanted)

    async def reopen(self) -> None:
        """Sees to it that a call has a model."""
        if self._session().mode is Mode.VOICE:
            await self._open()

    async def end(self, reason: str, final_message: str | None = None) -> None:
        """The conversation goes on in text."""
        if self._session().mode is not Mode.VOICE:
            return
        if self._session().phase in BUSY:
            await self._step(e.Interrupt())
        await self._brain.close()
        await self._calls.end()
        self._set_mode(Mode.TEXT)
        self._outbox.send(EndVoiceSession(reason, final_message))
        await self._step(e.ModeChanged(Mode.TEXT))

    def refuse(self, why: str) -> None:
        self._outbox.send(Notice(NoticeKind.WARNING, why, UNAVAILABLE))

    async def _open(self) -> bool:
        """Whether a model listens now. If none can, the client is told why, and text goes on."""
        if self._session().mode is Mode.TEXT:
            await self._brain.close()
        try:
            await self._brain.wake(Mode.VOICE)
        except ModelError as error:
            self.refuse(str(error))
            await self.end(UNAVAILABLE)
            return False
        self._set_mode(Mode.VOICE)
        self._calls.begin(self._tools.user, self._brain.name or "")
        return True

    def _set_mode(self, mode: Mode) -> None:
        self._tools.mode = mode
        self._tools.state.voice_active = mode is Mode.VOICE
        self._tools.state.ending = None
        self._tools.state.suppress_audio = False
