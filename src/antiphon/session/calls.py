"""The calls of a conversation: each is a stretch of voice, and leaves a summary behind."""

from uuid import uuid4

import msgspec

from antiphon.clock import Clock
from antiphon.continuity.summary import extract
from antiphon.session.stored_session import StoredSession
from antiphon.session.transcript_writer import TranscriptWriter
from antiphon.storage.conversations import VoiceCall


class CallLog:
    """The call of one session, while there is one. A call is stored once something was said in it."""

    def __init__(self, session: StoredSession, writer: TranscriptWriter, clock: Clock) -> None:
        self._store = session.stores.voice_calls
        self._session = session
        self._writer = writer
        self._clock = clock
        self._call: VoiceCall | None = None
        self._is_stored = False

    @property
    def current(self) -> VoiceCall | None:
        """The call under way, with which another process can go on."""
        return self._call

    @property
    def stored(self) -> VoiceCall | None:
        """The call, if something was said in it."""
        return self._call if self._is_stored else None

    def begin(self, user: str, model: str) -> None:
        """Begins a call, or notes that the call under way has another model."""
        if self._call is not None:
            models = dict.fromkeys((*self._call.models, model))
            self._call = msgspec.structs.replace(self._call, models=tuple(models))
            return
        self._call = VoiceCall(
            id=uuid4().hex,
            conversation_id=self._writer.conversation_id,
            user=user,
            started_ms=self._clock.now_ms(),
            ended_ms=None,
            summary="",
            models=(model,),
            first_seq=self._writer.last_seq + 1,
            last_seq=None,
        )

    def restore(self, call: VoiceCall | None) -> None:
        """The call that another process has left."""
        self._call, self._is_stored = call, call is not None

    async def take_over(self, call: VoiceCall) -> None:
        """Goes on with the call of another process, which may not be stored yet, unless it has ended since."""
        found = await self._store.get(call.id, call.user)
        if found is None or found.ended_ms is None:
            self.restore(call)
            self._is_stored = found is not None

    async def save(self) -> None:
        """To be called when a turn is over."""
        if self._call is None or self._is_stored or self._writer.last_seq < self._call.first_seq:
            return
        await self._store.begin(self._call, self._session.fence)
        self._is_stored = True

    async def end(self) -> None:
        await self.save()
        call = self.stored
        self.restore(None)
        if call is not None:
            await self._store.end(
                call.id,
                ended_ms=self._clock.now_ms(),
                summary=extract(await self._writer.read(call.conversation_id, call.first_seq)),
                models=call.models,
                last_seq=self._writer.last_seq,
                fence=self._session.fence,
            )
