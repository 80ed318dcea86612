"""The runner of a session: its one mailbox, and the place where the machine's effects are carried out."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from antiphon.clock import Clock
from antiphon.continuity.model import FromModel
from antiphon.models import live
from antiphon.models.base import ModelError
from antiphon.models.live import ToolAnswer
from antiphon.prompts.composer import Composer
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.errors import ErrorCode
from antiphon.session import client_application, model_events
from antiphon.session import effects as fx
from antiphon.session import events as e
from antiphon.session.announcements import PASSED_ON, Announcements
from antiphon.session.call_summaries import CallSummaries
from antiphon.session.calls import CallLog
from antiphon.session.client_application import ClientApplication
from antiphon.session.commands import carry_out, note_voice, take_settings
from antiphon.session.history import history_of
from antiphon.session.hooks import SessionHooks
from antiphon.session.machine import step
from antiphon.session.messaging import ClientMessages
from antiphon.session.microphone import Microphone
from antiphon.session.model_context import SessionContext
from antiphon.session.model_events import tell_energy
from antiphon.session.models import SessionModels, SharedModels
from antiphon.session.outbox import Outbox
from antiphon.session.outcomes import CallOutcomes
from antiphon.session.recorder import Recorder
from antiphon.session.recording import CallRecording
from antiphon.session.resume_state import Preferences
from antiphon.session.speaking import Filler, Repeater, Sampler, Synthesize
from antiphon.session.state import BUSY, MAX_UNHEARD_MS, RESTING, SessionState
from antiphon.session.stopwatch import Stopwatch
from antiphon.session.stored_session import StoredSession
from antiphon.session.tool_runner import QuotaCharge, ToolRunner
from antiphon.session.transcript_writer import TranscriptWriter
from antiphon.session.voice import Voice, VoiceStart
from antiphon.storage.base import STORE_UNAVAILABLE, StorageError
from antiphon.storage.sessions import Fenced
from antiphon.telemetry.log import get_logger
from antiphon.tools.executor import Executor
from antiphon.tools.result import After, Citation
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Mode

FAULT: Final = "Something went wrong on the server, and this could not be done. Please try again."
CONVERSATION_GONE: Final = "This conversation was deleted. I have started a new one."

STARTING: Final = (c.StartListening, c.StartVoice)
ASKING: Final = (*STARTING, c.TextMessage, c.Confirm)
"""What a blocked user may not do."""

log = get_logger(__name__)

Observed = fx.Effect | live.Usage | live.SpeechStarted
"""What an observer sees: effects, and events of the model that change nothing."""

MailboxItem = e.Tick | FromModel | c.ClientMessage | e.Work


class Runner:
    def __init__(
        self,
        *,
        stored: StoredSession,
        outbox: Outbox,
        tools: ToolSession,
        executor: Executor,
        models: SharedModels,
        clock: Clock,
        composer: Composer,
        hooks: SessionHooks,
        recording: CallRecording,
        synthesize: Synthesize | None = None,
        summaries: CallSummaries | None = None,
    ) -> None:
        self.outbox = outbox
        self.tools = tools
        self.stored = stored
        self.writer = TranscriptWriter(stored, clock)
        self.preferences = Preferences()
        self.state = SessionState(mode=tools.mode)
        self.introduce: Callable[[], None] = lambda: None
        """Sends the client a new `session` message."""
        self.is_restoring = False
        """Whether a turn that another process has left is about to be answered."""
        self.is_behind = False
        """Whether the conversation has got turns, of other sessions, that the model has not been told."""
        self.application = ClientApplication()
        self.is_answer_wanted = False
        """Whether the client has asked for an answer to the conversation as it is, and a turn is under way."""
        self.has_new_context = False
        """Whether the model was connected with another prompt or with other tools."""
        self.observe: Callable[[Observed], None] = lambda seen: None
        """Called with each effect before it is carried out, for a client of another protocol."""
        self.hooks = hooks
        self._clock = clock
        self.composer = composer
        self.client = ClientMessages(outbox, stored.stores, tools.user)
        tools.messaging = self.client
        self.calls = CallLog(stored, self.writer, clock, recording, summaries)
        self._recorder = Recorder(
            stored=stored,
            writer=self.writer,
            outbox=outbox,
            calls=self.calls,
            tools=tools,
            state=lambda: self.state,
            preferences=lambda: self.preferences,
            upstream=lambda: self.models.upstream_state(),
        )
        self.save = self._recorder.save
        self.save_messages = self._recorder.save_messages
        self.deliver = self._recorder.deliver
        self.tool_runner = ToolRunner(executor, tools, outbox, self.client, self.post)
        context = SessionContext(
            planner=models.planner,
            composer=composer,
            writer=self.writer,
            calls=self.calls,
            tools=tools,
            tool_runner=self.tool_runner,
            client=self.client,
            application=lambda: self.application,
            state=lambda: self.state,
            answers_last=lambda: self.voice.answers_last,
            names=None if models.names_of is None else partial(models.names_of, tools.user),
        )
        self.models = SessionModels(models, context, self.post, partial(tell_energy, outbox, tools.id))
        self.microphone = Microphone(self.models, lambda: self.state, recording)
        self.voice = Voice(
            models=self.models,
            calls=self.calls,
            tools=tools,
            outbox=outbox,
            microphone=self.microphone,
            state=lambda: self.state,
            step=self.step,
            post=self.post,
            answer_last=partial(client_application.answer_last, self),
        )
        self.outcomes = CallOutcomes(
            tools=self.tool_runner,
            writer=self.writer,
            outbox=outbox,
            voice=self.voice,
            state=lambda: self.state,
            respond=self._respond,
            connection=lambda: self.models.connection,
        )
        self.sampler = None if synthesize is None else Sampler(synthesize, outbox, self.voice.refuse)
        self._repeater = Repeater(
            synthesize=synthesize,
            outbox=outbox,
            preferences=lambda: self.preferences,
            models=self.models,
            state=lambda: self.state,
            step=self.step,
            on_sent=lambda: self.post(self.save_messages),
        )
        self.filler = Filler(synthesize, lambda: self.preferences, self.post_event)
        self.announcements = Announcements(
            voice=self.voice,
            writer=self.writer,
            state=lambda: self.state,
            say=self._announce,
            follow_up=lambda: self.post(self.follow_up),
            clock=clock,
        )
        self.stopwatch = Stopwatch(
            clock=clock,
            models=self.models,
            tools=tools,
            conversation_id=lambda: self.conversation_id,
            stats=models.turns,
        )
        self.tool_runner.context = self.stopwatch.context
        self._mailbox: asyncio.Queue[MailboxItem] = asyncio.Queue()
        self._events: deque[e.Event] = deque()
        """Events that wait for the effects of the one before them."""
        self._is_stepping = False
        self._shown = ""
        """What the client was shown of the answer's text."""
        self._timer: asyncio.TimerHandle | None = None
        self._at_rest = asyncio.Event()
        self._at_rest.set()
        self._is_over = False

    # What others call.

    def post(self, item: MailboxItem) -> None:
        if isinstance(item, STARTING):
            self.microphone.wait()
        self._mailbox.put_nowait(item)

    def post_event(self, event: e.Event) -> None:
        """Gives the machine an event once the items before it are dealt with."""
        self.post(partial(self.step, event))

    def hear(self, pcm: bytes, *, playing: bool = False) -> None:
        self.microphone.hear(pcm, playing)

    def charge(self, charge: QuotaCharge) -> None:
        """From now on tool calls are charged to this account."""
        self.tool_runner.charge = charge

    @property
    def conversation_id(self) -> str:
        return self.writer.conversation_id

    @property
    def citations(self) -> Sequence[Citation]:
        """The sources of the tool results of the turn under way, or of the last one."""
        return self.tool_runner.citations()

    @property
    def approved(self) -> Mapping[str, Any]:
        """The arguments of the calls that the person has approved, by the ids under which they are shown."""
        return self.tool_runner.approved

    async def rest(self) -> None:
        """Returns when no turn is under way."""
        await self._at_rest.wait()

    def begin_from(self, state: SessionState, preferences: Preferences) -> None:
        """Goes on where another process has left. To be called before the session runs."""
        self.state, self.preferences = state, preferences
        note_voice(self)
        if state.phase in BUSY:
            self._at_rest.clear()

    async def answer_restored(self, restored: e.TurnRestored) -> None:
        """Answers a turn that another process has left without an answer."""
        self.is_restoring = False
        self.tool_runner.begin_turn(restored.turn)
        await self.step(restored)

    def drop_old_speech(self) -> None:
        """A client comes back. An answer that has waited too long for it is only shown."""
        unconfirmed = self.state.unconfirmed
        if unconfirmed is not None and self._clock.now_ms() - unconfirmed.speaking_since_ms > MAX_UNHEARD_MS:
            self.outbox.drop_speech()

    def come_back(self, seen_n: int) -> None:
        """The client is there again, and was sent what it had missed. Speech goes on from where the client has left."""
        missing = [*self.outbox.unspoken, *(each for each in self.outbox.unheard if each.piece.n > seen_n)]
        missing_ms = sum(each.piece.ms for each in missing)

        async def go_on() -> None:
            # Speech that is sent again makes the numbers of the old one invalid, for a process that takes over later.
            await self.save_messages()
            await self.step(e.ClientBack(missing_ms))
            await self._repeater.start()
            if self.models.connection is None:
                self.voice.reopen()

        self.post(go_on)

    def end(self) -> None:
        """To be called by an item of the mailbox: none of those behind it is taken."""
        self._is_over = True

    async def run(self) -> None:
        """Takes one item after another, until it is cancelled. Raises `Fenced` if another process has the session."""
        try:
            while not self._is_over:
                item = await self._mailbox.get()
                try:
                    await self._take(item)
                except Fenced:
                    raise
                except Exception as error:
                    await self._recover(error)
                await self._recorder.save_rest()
        finally:
            await self._stop()

    # The mailbox.

    async def _take(self, item: MailboxItem) -> None:
        match item:
            case FromModel():
                await model_events.take(self, item)
            case c.ClientMessage():
                await self._take_from_client(item)
            case e.Tick():
                # While nobody is there, nobody listens.
                if self.outbox.link is not None:
                    await self.step(item)
            case _:
                await item()

    async def _recover(self, error: Exception) -> None:
        """An item could not be dealt with: the client is told, the turn is given up, and the session goes on."""
        if isinstance(error, StorageError):
            log.warning("not_stored", session=self.tools.id, error=str(error))
            message, code = STORE_UNAVAILABLE, ErrorCode.UNAVAILABLE
        else:
            log.error("mailbox_item_failed", session=self.tools.id, exc_info=error)
            message, code = FAULT, ErrorCode.INTERNAL
        self._repeater.stop()
        self.reconnect()
        await self.step(e.TurnAbandoned(message, code))

    async def _take_from_client(self, message: c.ClientMessage) -> None:
        if not (isinstance(message, ASKING) and await self.is_blocked()):
            await carry_out(self, message)
        elif isinstance(message, STARTING):
            self.microphone.open()

    async def is_blocked(self) -> bool:
        """Whether the user may not talk to the assistant now. The client is told."""
        blocked, has_news = await self.client.check_user(self._clock.now_ms())
        if has_news and self.models.connection is not None:
            self.reconnect()
        return blocked

    def open_microphone(self) -> None:
        """Lets audio through, unless a model that listens is still to come."""
        if not self.voice.is_starting:
            self.microphone.open()

    def tell_history(self) -> None:
        """What was said in this conversation, and what waits to be answered."""
        turns = history_of(self.writer.transcript, self.tools.snapshot.tools)
        self.outbox.send_history(s.History(self.conversation_id, turns))
        if self.state.queued or self.state.queue:
            self.outbox.send(s.Queued(self.state.queue), once=True)

    # What the machine wants.

    async def step(self, event: e.Event) -> None:
        """Gives the machine an event and carries out the effects. An event that comes of an effect is queued."""
        self._events.append(event)
        if self._is_stepping:
            return
        self._is_stepping = True
        try:
            while self._events:
                self.state, effects = step(self.state, self._events.popleft(), self._clock.now_ms())
                if self.state.phase in BUSY:
                    self._at_rest.clear()
                for effect in effects:
                    await self._perform(effect)
        except BaseException:
            self._events.clear()
            raise
        finally:
            self._is_stepping = False
        if self.state.phase in RESTING:
            self._at_rest.set()

    async def _perform(self, effect: fx.Effect) -> None:
        self.observe(effect)
        self.hooks.see(effect)
        self.calls.recording.follow(effect)
        self.stopwatch.see(effect)
        match effect:
            case fx.Send(message=s.ResponseChunk() as chunk):
                if not self.tools.state.suppress_transcript:
                    self._shown += chunk.text
                    self.outbox.send(chunk)
            case fx.Send(message=message, stored_first=True):
                await self._recorder.send(message)
            case fx.Send(message=message):
                self.outbox.send(message)
            case fx.SendAudio(number=number, seq=seq, pcm=pcm, text=text, last=last):
                # A farewell is still heard: silence begins after it.
                if self.client.farewell is not None or not self.tools.state.suppress_audio:
                    if effect.is_filler:
                        self.outbox.send_filler(number, seq, pcm)
                    else:
                        self.outbox.send_audio(number, seq, pcm, text=text, last=last)
                    self.post(self._recorder.save_messages)
            case fx.BeginTurn():
                await self._begin_turn(effect)
            case fx.StoreUser():
                await self._store_user(effect)
            case fx.AnswerSpeech(turn=turn, text=text):
                await self._answer_speech(turn, text)
            case fx.Respond(turn=turn) if self.announcements.has_passed_on(turn):
                self._say(turn, PASSED_ON)
            case fx.Respond(turn=turn, text=text, ran=ran):
                await self.outcomes.respond(turn, text, ran)
            case fx.SayAgain(turn=turn, text=text):
                self._say(turn, text)
            case fx.EndAudio(turn=turn):
                self.microphone.begin_turn()
                if self.models.connection is not None:
                    self.models.connection.end_audio(turn)
            case fx.StoreAnswer(text=text):
                is_shown = not self.tools.state.suppress_transcript
                await self._recorder.store_answer(effect, text if is_shown else self._shown, self.citations)
                self.announcements.note_answer(effect.turn, text)
                self._note_move()
                await self._repeater.ask_model()
            case fx.RunTools(turn=turn, calls=calls):
                self.tool_runner.start(calls, partial(self._tools_done, turn))
                # A process that takes this turn over must know which calls the client was told of.
                await self._recorder.save_messages()
            case fx.CancelCalls(ids=ids):
                self.tool_runner.cancel_calls(ids)
            case fx.InterruptModel(turn=turn, heard=heard):
                self.tool_runner.cancel()
                self._repeater.stop()
                self.outbox.drop_speech()
                if self.models.connection is not None:
                    self.models.connection.interrupt(turn, heard)
            case fx.SetTimer(at_ms=at_ms):
                self._set_timer(at_ms)
            case fx.EndTurn(number=number):
                await self._end_turn(number)
            case fx.Save():
                if self.state.is_settled:
                    self.outbox.drop_speech()
                await self._recorder.save()
            case fx.StartVoice():
                await self.voice.start(VoiceStart())
            case fx.LogIgnored(what=what):
                log.warning("ignored", session=self.tools.id, what=what)

    async def _begin_turn(self, begin: fx.BeginTurn) -> None:
        self.microphone.begin_turn()
        self.outbox.drop_speech()
        self._recorder.begin_turn()
        if begin.continues is None:
            await self.outcomes.note_late()
            self._begin_tool_turn(begin.turn)
        else:
            self.tool_runner.note_turn(begin.turn)
        if (completed := begin.continues or begin.completes) is not None:
            await self.tool_runner.complete(completed)
        self.writer.begin_turn(begin.turn, spoken=begin.spoken, continues=begin.continues)
        self._shown = ""

    def _begin_tool_turn(self, turn: str) -> None:
        if self.tool_runner.begin_turn(turn):
            self.has_new_context = True
            self.introduce()

    async def _store_user(self, user: fx.StoreUser) -> None:
        self.is_behind |= await self._recorder.store_user(user)
        self._note_move()
        self.announcements.hear(user.turn, user.text)

    async def _answer_speech(self, turn: str, text: str) -> None:
        connection = self.models.connection
        if connection is not None and connection.profile.waits_to_answer and self.state.is_current(turn):
            if self.application.holds_answers:
                # The turn is over for now. What the user says next is another one.
                connection.interrupt(turn, "")
                await self.step(live.TurnComplete(turn))
            elif self.announcements.has_passed_on(turn):
                self._say(turn, PASSED_ON)
            else:
                await self.outcomes.respond(turn, text, ())
        else:
            await self.outcomes.check_consent(turn, text)

    def _note_move(self) -> None:
        """If the conversation was deleted elsewhere, a model that knows it is not asked any more."""
        if self.writer.take_moved():
            self.is_behind = True
            self.calls.restore(None)
            self.outbox.send(s.Error(CONVERSATION_GONE, ErrorCode.CONVERSATION_GONE))
            self.introduce()

    # The model and its tools.

    def _respond(self, turn: str, text: str, ran: Sequence[ToolAnswer]) -> None:
        self._catch_up()
        self.stopwatch.ask_model(turn)
        try:
            self.models.connect(self.state.mode).respond(turn, text, ran)
        except ModelError as error:
            self.post_event(live.TurnFailed.because_of(error, turn))

    def _announce(self, turn: str, text: str) -> None:
        # It is a turn for the tools, too: a yes after it does not approve what was asked before it.
        self._begin_tool_turn(turn)
        self._say(turn, text)

    def _say(self, turn: str, text: str) -> None:
        try:
            self.models.connect(self.state.mode).say(turn, text)
        except ModelError as error:
            self.post_event(live.TurnFailed.because_of(error, turn))

    def _catch_up(self) -> None:
        """A model with a context of its own that lacks turns of other sessions is replaced, and any model that was
        connected with another prompt or with other tools."""
        connection = self.models.connection
        is_behind = self.is_behind and connection is not None and connection.profile.keeps_context
        if connection is not None and (is_behind or self.has_new_context):
            self.models.close()
            if is_behind:
                # An upstream session that is resumed would lack the turns, too.
                self.models.forget_handles()
            self.voice.reopen()
        self.is_behind = self.has_new_context = False

    def begin_conversation(self) -> None:
        """The session is about another conversation from now on, which the upstream sessions do not know."""
        self.models.begin_anew(Mode.TEXT)
        self.reconnect()
        self.models.forget_handles()

    def reconnect(self) -> None:
        """Replaces the model, which may resume its upstream session."""
        self.tool_runner.cancel()
        self.models.close()
        self.voice.reopen()

    async def _tools_done(self, turn: str, answers: list[ToolAnswer]) -> None:
        self.stopwatch.note_results(turn)
        await take_settings(self)
        storing = self.writer.store_runs(turn, answers, self.outbox)
        connection = self.models.connection
        if self.tools.state.ending is After.IMMEDIATE and self.state.mode is Mode.VOICE:
            await storing
            await self.voice.end(*self.tool_runner.goodbye)
        else:
            if connection is not None and self.state.is_current(turn):
                # The model goes on while the runs are stored. What it says waits in the mailbox until they are.
                connection.send_tool_results(turn, answers)
            await storing
        self._note_move()

    # The end of a turn, and of everything.

    async def _end_turn(self, number: int) -> None:
        metrics = self.stopwatch.end(number, was_heard=self.state.unconfirmed is None)
        if metrics is not None:
            self.outbox.send(metrics)
        self.hooks.end_turn(number, self.conversation_id, self.state.mode, metrics)
        self.client.tell_farewell()
        self.announcements.note_end()
        self._repeater.stop()
        if self.state.is_settled:
            self.outbox.drop_speech()
        try:
            await self._recorder.save()
        except Fenced:
            raise
        except StorageError as error:
            # The turn is over all the same. What was not stored is tried again at the end of the next.
            log.warning("not_saved", session=self.tools.id, error=str(error))
        # Through the mailbox, since the effects of the event that has ended the turn may not all be done.
        self.post(self.follow_up)

    async def follow_up(self) -> None:
        """Does what has waited for the end of a turn. If another one has begun, it waits for the end of that."""
        if self.state.phase in BUSY:
            return
        self._catch_up()
        if self.tools.state.ending is not None:
            await self.voice.end(*self.tool_runner.goodbye)
        await self.voice.start_if_ready()
        self.outcomes.watch_left()
        await self.outcomes.tell()
        if self.state.phase in RESTING:
            await self.announcements.say_next()
        if self.state.phase in RESTING:
            await self.step(e.QueueReady())
        if self.is_answer_wanted:
            await client_application.respond(self)

    async def hang_up(self) -> None:
        """The call is over without a word: nobody is there any more."""
        await self.calls.end()

    def _set_timer(self, at_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        delay_s = max(0, at_ms - self._clock.now_ms()) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self.post, e.Tick())

    async def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.voice.cancel_start()
        self.announcements.stop()
        self._repeater.stop()
        self.models.close()
        await self.filler.stop()
        await self.calls.recording.stop()
        await self.tool_runner.stop()
        if self.sampler is not None:
            await self.sampler.stop()
        await self.models.wait_closed()
