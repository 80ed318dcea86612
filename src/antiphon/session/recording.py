"""The recording of a session's calls: whether it is wanted, what goes into it, and what the client is told of it."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Final, Protocol
from uuid import uuid4

from msgspec.structs import replace

from antiphon.clock import Clock
from antiphon.models.live import SpeechStarted
from antiphon.protocol import server_messages as s
from antiphon.protocol.errors import ErrorCode
from antiphon.session import effects as fx
from antiphon.session.outbox import Outbox
from antiphon.storage.base import StorageError
from antiphon.storage.conversations import ConversationGone, VoiceCall
from antiphon.storage.recordings import Mark, Recording, RecordingStore
from antiphon.telemetry.log import get_logger
from antiphon.transcript import AssistantMessage, Entry, UserMessage

EARLY_S: Final = 5.0
"""How much of what was said before the call had a model is recorded."""
SPEECH_ONSET_MS: Final = 500
"""How long before it is noticed somebody has begun to speak, at most."""

STARTED: Final = "This call is recorded."
STOPPED: Final = "This call is no longer recorded."
FAILED: Final = "The recording has stopped: {reason}. The call goes on."
NOT_OFFERED: Final = "This server does not record calls."
ALWAYS: Final = "This server records every call. End the call if you do not want that."

log = get_logger(__name__)


class OpenRecording(Protocol):
    """A recording that is being made. Times are those of the monotonic clock. Only `finish` and `discard` wait."""

    file: str
    node: str
    format: str
    channels: int

    def hear(self, pcm: bytes, at_s: float) -> None: ...

    def play(self, turn: int, pcm: bytes, at_s: float) -> None: ...

    def hold(self, at_s: float) -> None: ...

    def resume(self, at_s: float) -> None: ...

    def interrupt(self, played_ms: float | None, at_s: float) -> None: ...

    async def finish(self) -> tuple[int, int] | None:
        """Completes it, and returns its duration in milliseconds and its size; None if nothing is left of it."""
        ...

    async def discard(self) -> None: ...


class Recordings(Protocol):
    """What makes recordings."""

    @property
    def calls(self) -> str:
        """Which calls are recorded: "off", "ask" or "always"."""
        ...

    @property
    def store(self) -> RecordingStore: ...

    def begin(self, since_s: float, on_failure: Callable[[str], None]) -> OpenRecording:
        """Begins a recording. If it fails, `on_failure` is called with the reason, and `finish` keeps what there is."""
        ...

    def share(self, recording: Recording) -> None:
        """Lets other servers have the sound of a recording that is complete. Does not wait for it."""
        ...

    async def delete(self, user: str, conversation_id: str) -> None:
        """Deletes the recordings of a conversation."""
        ...

    async def delete_file(self, file: str) -> None:
        """Deletes a file that belongs to no recording any more."""
        ...


class _Take:
    """A recording under way, and what is known about it."""

    def __init__(self, sound: OpenRecording, call: VoiceCall, *, since_s: float, started_ms: int) -> None:
        self.sound = sound
        self.since_s = since_s
        self.row = Recording(
            id=uuid4().hex,
            conversation_id=call.conversation_id,
            user=call.user,
            call_id=call.id,
            started_ms=started_ms,
            duration_ms=None,
            channels=sound.channels,
            size_bytes=None,
            format=sound.format,
            file=sound.file,
            node=sound.node,
        )
        self.is_stored = False
        """Whether the store has a row for it."""
        self.asked_ms: dict[str, int] = {}
        """When the user began to speak, from the beginning of the recording, by the id of the turn."""
        self.answered_ms: dict[int, int] = {}
        """When the answer began, by the number of the turn."""
        self.numbers: dict[str, int] = {}

    def marks(self, entries: Iterable[Entry]) -> tuple[Mark, ...]:
        """Finds where the stored messages of the call are."""
        found = []
        for entry in entries:
            match entry.message:
                case UserMessage():
                    at_ms = self.asked_ms.get(entry.turn)
                case AssistantMessage():
                    at_ms = self.answered_ms.get(self.numbers.get(entry.turn, 0))
                case _:
                    at_ms = None
            if at_ms is not None and entry.seq:
                found.append(Mark(entry.seq, at_ms))
        return tuple(sorted(found, key=lambda mark: mark.seq))


class CallRecording:
    """Follows one session. A recording is kept once its call is, which is when something was said in it."""

    def __init__(self, outbox: Outbox, clock: Clock, recordings: Recordings | None = None) -> None:
        """Without `recordings`, nothing is recorded and nothing is told."""
        self._outbox = outbox
        self._clock = clock
        self._recordings = None if recordings is None or recordings.calls == "off" else recordings
        self.is_wanted = self._is_always
        self.transcript: Callable[[], Iterable[Entry]] = tuple
        """Returns the messages of the conversation, to find where they are in the recording."""
        self._call: VoiceCall | None = None
        """The call under way, recorded or not."""
        self._is_call_stored = False
        self._take: _Take | None = None
        self._early: deque[tuple[float, bytes]] = deque()
        """What the microphone has sent while no model listened yet."""
        self._closing: set[asyncio.Task[None]] = set()
        if self._recordings is not None:
            outbox.on_speech = self._play

    @property
    def _is_always(self) -> bool:
        return self._recordings is not None and self._recordings.calls == "always"

    # What the client is told, and what it asks for.

    def tell(self) -> None:
        """Tells the client whether its calls are recorded."""
        if self._recordings is not None:
            choice = s.RecordingChoice.ON if self.is_wanted else s.RecordingChoice.OFF
            if self._is_always:
                choice = s.RecordingChoice.ALWAYS
            self._outbox.send(s.Recording(choice, self._take is not None), once=True)

    def _tell_change(self, text: str, code: str) -> None:
        self.tell()
        if not self._outbox.shows_recording:
            self._outbox.send(s.Notice(s.NoticeKind.INFO, text, code))

    async def switch(self, on: bool) -> None:
        """The user wants the calls of this conversation recorded, or not any more. What was recorded is kept."""
        if self._recordings is None:
            self._outbox.send(s.Error(NOT_OFFERED, ErrorCode.NOT_RECORDED))
            return
        if self._is_always and not on:
            self._outbox.send(s.Error(ALWAYS, ErrorCode.ALWAYS_RECORDED))
        self.is_wanted = on or self._is_always
        if self.is_wanted and self._call is not None and self._take is None:
            self._start(self._clock.monotonic())
        elif not self.is_wanted and self._take is not None:
            await self._finish()
            self._tell_change(STOPPED, "recording_stopped")
        else:
            self.tell()

    def restore_choice(self, is_wanted: bool) -> None:
        """What the user had chosen when another process had the session. The settings may have changed since."""
        self.is_wanted = self._is_always or (is_wanted and self._recordings is not None)

    def forget_choice(self) -> None:
        """The session is about another conversation, for which the user has chosen nothing yet."""
        if self.is_wanted and not self._is_always:
            self.is_wanted = False
            self.tell()

    # What is recorded.

    def hear(self, pcm: bytes, *, is_waiting: bool) -> None:
        """The microphone has sent this. `is_waiting`: the model that is to hear it is not there yet."""
        if self._take is not None:
            self._take.sound.hear(pcm, self._clock.monotonic())
        elif self.is_wanted and is_waiting:
            now_s = self._clock.monotonic()
            self._early.append((now_s, pcm))
            while now_s - self._early[0][0] > EARLY_S:
                self._early.popleft()

    def _play(self, number: int, pcm: bytes) -> None:
        take = self._take
        # A sample of a voice belongs to no turn, nor to the call.
        if take is not None and number:
            take.sound.play(number, pcm, self._clock.monotonic())
            take.answered_ms.setdefault(number, self._at_ms(take))

    def follow(self, seen: object) -> None:
        """Takes in an effect that is about to be carried out, or an event of the model that changes nothing."""
        take, now_s = self._take, self._clock.monotonic()
        if take is None:
            return
        match seen:
            case SpeechStarted(turn=turn):
                take.asked_ms[turn] = max(0, self._at_ms(take) - SPEECH_ONSET_MS)
            case fx.BeginTurn(turn=turn, continues=continues):
                began_ms = take.asked_ms.pop(continues or "", self._at_ms(take))
                take.asked_ms[turn] = min(began_ms, take.asked_ms.get(turn, began_ms))
            case fx.StoreAnswer(turn=turn, number=number):
                take.numbers[turn] = number
            case fx.InterruptModel(played_ms=played_ms):
                take.sound.interrupt(played_ms, now_s)
            case fx.Send(message=s.Hold()):
                take.sound.hold(now_s)
            case fx.Send(message=s.Resume()):
                take.sound.resume(now_s)

    def _at_ms(self, take: _Take) -> int:
        return round((self._clock.monotonic() - take.since_s) * 1000)

    # The calls.

    def begin(self, call: VoiceCall) -> None:
        """A call has begun, or goes on in this process."""
        self._call, self._is_call_stored = call, False
        early, self._early = self._early, deque()
        if self.is_wanted and self._take is None:
            now_s = self._clock.monotonic()
            recent = [each for each in early if now_s - each[0] <= EARLY_S]
            self._start(recent[0][0] if recent else now_s, recent)

    def _start(self, since_s: float, early: Iterable[tuple[float, bytes]] = ()) -> None:
        assert self._recordings is not None
        assert self._call is not None
        started_ms = self._clock.now_ms() - round((self._clock.monotonic() - since_s) * 1000)
        sound = self._recordings.begin(since_s, self._fail)
        self._take = _Take(sound, self._call, since_s=since_s, started_ms=started_ms)
        for at_s, pcm in early:
            sound.hear(pcm, at_s)
        self._tell_change(STARTED, "recording_started")

    async def save(self) -> None:
        """Stores what is known about the recording. To be called when the call is stored, and after its turns."""
        self._is_call_stored = self._call is not None
        take = self._take
        if take is None:
            return
        try:
            if not await self._store(take):
                # The user has deleted it, or the conversation, in another session.
                await self._drop()
        except StorageError as error:
            # It is tried again after the next turn.
            log.warning("recording_not_stored", recording=take.row.id, error=str(error))

    async def end(self) -> None:
        """The call is over."""
        await self._finish()
        self._call = None

    async def clear(self, user: str, conversation_id: str) -> None:
        """What was said in this conversation is deleted. A call under way is recorded anew."""
        if self._recordings is None:
            return
        was_recorded = self._take is not None
        await self._drop()
        await self._recordings.delete(user, conversation_id)
        if was_recorded and self._call is not None:
            self._start(self._clock.monotonic())

    def abandon(self) -> None:
        """There is no call any more, since its conversation was deleted elsewhere."""
        self._call = None
        if self._take is not None:
            self._close(self._drop())

    async def stop(self) -> None:
        """The session stops in this process. Its call may go on in another one."""
        await self._finish()
        if self._closing:
            await asyncio.wait(self._closing)

    def _fail(self, reason: str) -> None:
        """The recording has failed, and the call goes on."""
        self._outbox.send(s.Notice(s.NoticeKind.WARNING, FAILED.format(reason=reason.rstrip(".")), "recording_failed"))
        self._close(self._finish())

    def _close(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _drop(self) -> None:
        take, self._take = self._take, None
        if take is not None:
            await take.sound.discard()
            self.tell()

    async def _finish(self) -> None:
        """Completes the recording, if there is one. It is kept if something was said in the call."""
        if not self._is_call_stored:
            await self._drop()
        take, self._take = self._take, None
        if take is None:
            return
        self.tell()
        finished = await take.sound.finish()
        assert self._recordings is not None
        try:
            if finished is None:
                await self._recordings.store.delete(take.row.user, id=take.row.id)
                return
            take.row = replace(take.row, duration_ms=finished[0], size_bytes=finished[1])
            if await self._store(take):
                self._recordings.share(take.row)
            else:
                await self._recordings.delete_file(take.row.file)
        except StorageError as error:
            # A file without a row, or a row without a duration, is put right by the next sweep.
            log.warning("recording_not_stored", recording=take.row.id, error=str(error))

    async def _store(self, take: _Take) -> bool:
        """Stores the row, or what is new in it. Returns False if the recording was deleted meanwhile."""
        assert self._recordings is not None
        take.row = replace(take.row, marks=take.marks(self.transcript()))
        if take.is_stored:
            return await self._recordings.store.save(take.row)
        try:
            await self._recordings.store.add(take.row)
        except ConversationGone:
            return False
        take.is_stored = True
        return True
