"""Stores what happens in a session together with what the client is told of it, and only then tells it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from msgspec.structs import asdict

from antiphon.continuity.upstream import UpstreamState
from antiphon.protocol import server_messages as s
from antiphon.session import effects as fx
from antiphon.session.calls import CallLog
from antiphon.session.outbox import Outbox
from antiphon.session.resume_state import Preferences, ResumeState
from antiphon.session.state import BUSY, RESTING, Phase, SessionState
from antiphon.session.stored_session import StoredSession
from antiphon.session.transcript_writer import TranscriptWriter
from antiphon.storage.base import StoreUnavailable
from antiphon.storage.sessions import Fence, SentMessages
from antiphon.tools.result import Citation
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Mode

StoreDelivery = Callable[[Fence, SentMessages], Awaitable[bool]]
"""Stores messages of a session and what belongs to them in one transaction; False if nothing was stored."""


class _NotStored(Exception):
    """The messages are not wanted."""


class Recorder:
    """What a client has seen as final is stored, so another process can go on from there."""

    def __init__(
        self,
        *,
        stored: StoredSession,
        writer: TranscriptWriter,
        outbox: Outbox,
        calls: CallLog,
        tools: ToolSession,
        state: Callable[[], SessionState],
        preferences: Callable[[], Preferences],
        upstream: Callable[[], UpstreamState],
    ) -> None:
        self._stored = stored
        self._writer = writer
        self._outbox = outbox
        self._calls = calls
        self._tools = tools
        self._state = state
        self._preferences = preferences
        self._upstream = upstream
        self._tool_turn = tools.turn
        """The idempotency turn before the turn that is under way, or whose answer may not have been heard."""

    async def store_user(self, user: fx.StoreUser) -> bool:
        """Whether the transcript has got turns of other sessions by this, which the model may not know."""
        message = s.Transcript(user.text, is_final=True, turn=user.number)
        async with self._telling(message) as sent:
            return await self._writer.store_user(user.turn, user.text, spoken=user.spoken, sent=sent)

    async def store_answer(self, answer: fx.StoreAnswer, shown: str, citations: Sequence[Citation] = ()) -> None:
        """`shown` is what the client is to see of the answer's text; without any, it gets no `response`."""
        whole: list[s.ServerMessage] = []
        cited = tuple(s.Citation(each.id, each.title, each.url) for each in citations)
        if answer.is_whole:
            whole = [s.Response(shown, answer.number, cited)] if shown else []
            whole.append(s.GenerationComplete(answer.number))
        spoken = self._state().mode is Mode.VOICE
        async with self._telling(*whole) as sent:
            await self._writer.store_answer(answer.turn, answer.text, spoken=spoken, sent=sent)

    async def send(self, message: s.ServerMessage) -> None:
        """Sends a message once it is stored."""
        async with self._telling(message) as sent:
            await self._stored.tell(sent)

    async def deliver(self, messages: Sequence[s.ServerMessage], store: StoreDelivery) -> bool:
        """Sends messages once `store` has stored them, with whatever belongs to them. False if it did not."""
        if not self._stored.is_stored:
            self.describe()
            await self._writer.begin_session()
        try:
            async with self._telling(*messages) as sent:
                if not await store(self._stored.fence, sent):
                    raise _NotStored
        except _NotStored:
            return False
        return True

    async def save(self) -> None:
        """Stores what another process needs to go on: with the turn that is under way, if there is one, or with the
        rest of an answer that may not have been heard."""
        state = self._state()
        if state.phase in RESTING:
            await self._calls.save()
        self.describe()
        # A turn of which nothing is stored yet has ended those before it, also the one that it has interrupted.
        has_begun = state.turn is not None and not self._writer.has_stored(state.turn.id)
        await self._writer.save(is_settled=state.is_settled or has_begun)
        await self.save_messages()

    async def save_messages(self) -> None:
        await self._stored.save_messages(self._outbox)

    async def save_rest(self) -> None:
        """Stores what was sent while no turn is under way with which it would be stored. While the database is away,
        the messages are kept, and the next call tries again: nothing has to be given up for them."""
        if self._state().phase in RESTING and self._outbox.has_unsaved:
            with suppress(StoreUnavailable):
                await self.save_messages()

    def begin_turn(self) -> None:
        """To be called before a turn of the user is counted: a process that makes its answer anew counts it itself."""
        self._tool_turn = self._tools.turn
        self.describe()

    def describe(self) -> None:
        """Puts the state of the session into its record, which is stored with the next turn or by `save`."""
        state, tools = self._state(), self._tools
        if state.is_settled:
            self._tool_turn = tools.turn
        resume = ResumeState(
            **asdict(self._preferences()),
            listening=state.resting is Phase.LISTENING,
            turns=state.turns - (not state.is_settled),
            call=self._calls.current,
            is_recording_wanted=self._calls.recording.is_wanted,
            is_busy=state.phase in BUSY,
            upstream=self._upstream(),
        )
        self._stored.describe(mode=state.mode, turn=self._tool_turn, tools_version=tools.pinned_version, state=resume)

    @asynccontextmanager
    async def _telling(self, *messages: s.ServerMessage) -> AsyncIterator[SentMessages]:
        """Messages that are sent once this block has stored them, with what was sent before them."""
        sent = self._outbox.stage(*messages)
        try:
            yield sent
        except BaseException:
            self._outbox.withdraw(sent)
            raise
        if not self._stored.is_stored:
            # Nothing of a session is stored before its first turn; then all of it is.
            self._outbox.put_back(sent)
        self._outbox.release()
