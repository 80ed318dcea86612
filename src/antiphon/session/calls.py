"""The calls of a conversation: each is a stretch of voice, and leaves a summary behind."""

from collections.abc import Sequence
from uuid import uuid4

import msgspec

from antiphon.clock import Clock
from antiphon.continuity.summarizer import UNAVAILABLE
from antiphon.continuity.summary import extract
from antiphon.session.call_summaries import CallSummaries
from antiphon.session.recording import CallRecording
from antiphon.session.stored_session import StoredSession
from antiphon.session.transcript_writer import TranscriptWriter
from antiphon.storage.base import StorageError
from antiphon.storage.conversations import VoiceCall
from antiphon.storage.sessions import Fenced
from antiphon.telemetry.log import get_logger
from antiphon.transcript import Message

log = get_logger(__name__)


class CallLog:
    """The call of one session, while there is one. A call is stored once something was said in it."""

    def __init__(
        self,
        session: StoredSession,
        writer: TranscriptWriter,
        clock: Clock,
        recording: CallRecording,
        summaries: CallSummaries | None = None,
    ) -> None:
        """Without `summaries`, calls have extractive ones."""
        self._store = session.stores.voice_calls
        self._summaries = summaries
        self.recording = recording
        recording.transcript = lambda: writer.transcript
        self._session = session
        self._writer = writer
        self._clock = clock
        self._call: VoiceCall | None = None
        self._is_stored = False
        self._levels: tuple[int, ...] = ()
        """The energy levels of the call under way, or of the one that is about to begin."""

    @property
    def current(self) -> VoiceCall | None:
        """The call under way, with which another process can go on."""
        return self._call

    @property
    def stored(self) -> VoiceCall | None:
        """The call, if something was said in it."""
        return self._call if self._is_stored else None

    async def latest_summary(self) -> str:
        """Returns the summary of the latest call of this conversation that has ended; empty if there is none."""
        call = await self._store.latest_ended(self._writer.conversation_id, self._session.record.user)
        return "" if call is None or call.summary == UNAVAILABLE else call.summary

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
            energy_path=self._levels,
        )
        self.recording.begin(self._call)

    def note_level(self, level: int) -> None:
        """Notes the energy level that the call is answered at from now on, or that the next call begins at."""
        if self._call is None:
            self._levels = (level,)
        elif self._levels[-1:] != (level,):
            self._levels += (level,)
            self._call = msgspec.structs.replace(self._call, energy_path=self._levels)

    def restore(self, call: VoiceCall | None) -> None:
        """The call that another process has left."""
        self._call, self._is_stored = call, call is not None
        self._levels = () if call is None else call.energy_path
        if call is None:
            self.recording.abandon()
        else:
            self.recording.begin(call)

    async def take_over(self, call: VoiceCall) -> None:
        """Goes on with the call of another process, which may not be stored yet, unless it has ended since."""
        found = await self._store.get(call.id, call.user)
        if found is None or found.ended_ms is None:
            self.restore(call)
            self._is_stored = found is not None
            if self._is_stored:
                await self.recording.save()

    async def save(self) -> None:
        """To be called when a turn is over."""
        if self._call is None or self._writer.last_seq < self._call.first_seq:
            return
        if not self._is_stored:
            await self._store.begin(self._call, self._session.fence)
            self._is_stored = True
        await self.recording.save()

    async def end(self) -> None:
        """Ends the call with an extractive summary. A model may write a better one afterwards."""
        await self.save()
        call = self.stored
        await self.recording.end()
        self.restore(None)
        if call is None:
            return
        messages, summary = await self._summarize(call)
        ended = msgspec.structs.replace(
            call, ended_ms=self._clock.now_ms(), summary=summary, last_seq=self._writer.last_seq
        )
        if await self._store.end(ended, self._session.fence) and self._summaries is not None and messages:
            self._summaries.start(call.id, messages)

    async def _summarize(self, call: VoiceCall) -> tuple[Sequence[Message], str]:
        """Returns what was said in the call, if there is anything to summarise, and an extractive summary of it."""
        try:
            messages = await self._writer.read(call.conversation_id, call.first_seq)
        except Fenced:
            raise
        except StorageError as error:
            log.warning("call_not_summarized", call=call.id, error=type(error).__name__)
            return (), UNAVAILABLE
        summary = extract(messages)
        return messages if summary else (), summary
