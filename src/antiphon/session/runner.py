"""The runner of a session: its one mailbox, and the place where the machine's wishes come true."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import asdict

from antiphon.clock import Clock
from antiphon.models.live import ToolAnswer
from antiphon.prompts.composer import Composer
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.errors import ErrorCode
from antiphon.session import effects as fx
from antiphon.session import events as e
from antiphon.session.asking import Asking, describe
from antiphon.session.brain import NO_MODEL, Brain, FromModel, ModelMaker, Work
from antiphon.session.calls import CallLog
from antiphon.session.history import history_of
from antiphon.session.keeper import Keeper, Unfinished
from antiphon.session.machine import BUSY, RESTING, step
from antiphon.session.messaging import ClientMessages
from antiphon.session.microphone import Microphone
from antiphon.session.outbox import HeardSpeech, Outbox, SpokenPiece, Unheard, heard_of, last_queue, rest_of
from antiphon.session.preferences import Preferences
from antiphon.session.repeating import Repeater
from antiphon.session.sampler import MakeSample, Sampler
from antiphon.session.standing import Standing
from antiphon.session.state import Answer, Phase, Piece, Session
from antiphon.session.stopwatch import Stopwatch
from antiphon.session.toolwork import Toll, ToolWork
from antiphon.session.voice import Voice
from antiphon.storage.base import STORE_UNAVAILABLE, StorageError
from antiphon.storage.conversations import StoredTurn
from antiphon.storage.sessions import Fenced, SessionRecord, Told
from antiphon.telemetry.log import get_logger
from antiphon.tools.executor import Executor
from antiphon.tools.result import After, Citation
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Mode

CHARACTER_MS: Final = 50
"""What speech takes at least, where its length is not known yet."""
FAULT: Final = "Something went wrong on the server, and this could not be done. Please try again."
CONVERSATION_GONE: Final = "This conversation was deleted. I have started a new one."

log = get_logger(__name__)

STARTING: Final = (c.StartListening, c.StartVoice)
ASKING: Final = (*STARTING, c.TextMessage, c.Confirm)
"""What a user who is blocked may not do."""

Letter = e.Tick | FromModel | c.ClientMessage | Work
"""What comes into the mailbox. `Work` must not run beside the rest."""


class Runner:
    def __init__(
        self,
        keeper: Keeper,
        outbox: Outbox,
        tools: ToolSession,
        executor: Executor,
        make_model: ModelMaker,
        clock: Clock,
        composer: Composer,
        make_sample: MakeSample | None = None,
    ) -> None:
        self.outbox = outbox
        self.tools = tools
        self.keeper = keeper
        self.preferences = Preferences()
        self.session = Session(mode=tools.mode)
        self._clock = clock
        self._greeting = composer.assistant.greeting
        self._brain = Brain(
            make_model,
            lambda model, mode: describe(model, mode, tools, keeper, self.session, self._work.foresee, composer),
            self.post,
        )
        self._client = ClientMessages(outbox, keeper.stores, tools.user)
        tools.messaging = self._client
        self._work = ToolWork(executor, tools, outbox, self._client, self.post)
        self._calls = CallLog(keeper.stores.voice_calls, keeper, clock)
        self._voice = Voice(self._brain, self._calls, tools, outbox, lambda: self.session, self._step)
        self._asking = Asking(self._brain, self._voice, self._work, keeper, outbox, lambda: self.session, self._step)
        self._microphone = Microphone(self._brain, self._voice, lambda: self.session, self.post)
        self._sampler = None if make_sample is None else Sampler(make_sample, outbox, self._voice.refuse)
        self._repeater = Repeater(make_sample, outbox, lambda: self.preferences)
        self.introduce: Callable[[], None] = lambda: None
        """Tells the client of its session anew."""
        self._stopwatch = Stopwatch()
        self._mailbox: asyncio.Queue[Letter] = asyncio.Queue()
        self._timer: asyncio.TimerHandle | None = None
        self._resting = asyncio.Event()
        self._resting.set()
        self._is_over = False
        self.takes_up = False
        """Whether the turn that another process has left is about to be answered."""

    # What others call.

    def post(self, letter: Letter) -> None:
        if isinstance(letter, STARTING):
            self._microphone.wait()
        self._mailbox.put_nowait(letter)

    def hear(self, pcm: bytes, *, playing: bool = False) -> None:
        self._microphone.hear(pcm, playing)

    def charge(self, toll: Toll) -> None:
        """From now on tool calls are on this account."""
        self._work.toll = toll

    @property
    def citations(self) -> Sequence[Citation]:
        """What the tools of the last turn found their answers in."""
        return self._work.citations

    @property
    def approved(self) -> Mapping[str, Any]:
        """The arguments of the calls that the person has approved, by the ids under which they are shown."""
        return self._work.approved

    async def rest(self) -> None:
        """Returns when no answer is under way."""
        await self._resting.wait()

    async def restore(self, record: SessionRecord, told: Told, seen_n: int) -> None:
        """Takes a session up where another process has left it. To be called before it runs.

        `told` is what the client was told and `seen_n` the last of it that it has. An answer that was made is spoken as
        far as the client does not have it; a turn without an answer is answered now.
        """
        self.preferences = msgspec.json.decode(record.state, type=Preferences)
        self._set_voice()
        standing = msgspec.json.decode(record.state, type=Standing)
        in_voice = self.tools.mode is Mode.VOICE
        resting = Phase.LISTENING if in_voice and standing.listening else Phase.IDLE
        self.outbox.restore(told, seen_n)
        self.session = Session(self.tools.mode, resting, resting, turn=standing.answers, queue=last_queue(told))
        self._calls.restore(standing.call if in_voice else None)
        unfinished = await self.keeper.restore()
        if unfinished is not None:
            heard = heard_of(standing.answers + 1, told, seen_n)
            if heard is not None:
                self.outbox.note_heard(heard)
            if unfinished.answer is not None:
                self._restore_answer(unfinished.answer, heard)
            else:
                self._work.restore(told)
                self._take_up(unfinished, heard)
        await self._save_messages()
        if self.session.phase in RESTING:
            self.post(self._follow_up)

    def _restore_answer(self, stored: StoredTurn, heard: HeardSpeech | None) -> None:
        """It was made, but perhaps not heard. What the client does not have of it is spoken."""
        self._work.begin_turn()
        turn = self.session.turn + 1
        self.session = replace(self.session, turn=turn)
        self.keeper.begin_answer(turn, stored.seq)
        if heard is None or self.session.mode is not Mode.VOICE:
            return
        text = " ".join(rest_of(stored.text, heard))
        rest = SpokenPiece(0, turn, heard.last_seq + 1, text, heard.missing_ms or len(text) * CHARACTER_MS, last=True)
        if text:
            self.outbox.unspoken.append(Unheard(rest, None))
        pieces = (Piece(heard.text, heard.ms), Piece(rest.text, rest.ms))
        answer = Answer(turn, stored.text, pieces, speaking_since_ms=stored.at_ms, complete=True)
        self.session = self.session.at(Phase.SPEAKING).with_answer(answer)
        self._resting.clear()

    def _take_up(self, left: Unfinished, heard: HeardSpeech | None) -> None:
        """Its answer is made anew. What the client has of it as sound is not sent again."""
        words, last_seq = ((), -1) if heard is None else (tuple(heard.text.split()), heard.last_seq)

        async def take_up() -> None:
            self.takes_up = False
            self._work.begin_turn()
            await self._step(e.TakenUp(left.question, left.ran, words, last_seq))

        self.takes_up = True
        self.post(take_up)

    def come_back(self, seen_n: int) -> None:
        """The client is there again, and was told what it had missed. Speech goes on from where it has left."""
        missing = [*self.outbox.unspoken, *(each for each in self.outbox.unheard if each.piece.n > seen_n)]
        missing_ms = sum(each.piece.ms for each in missing)

        async def go_on() -> None:
            await self._step(e.ClientBack(missing_ms))

        self.post(go_on)
        self._repeater.start()

    def end(self) -> None:
        """To be called by a letter: none of those behind it is opened."""
        self._is_over = True

    async def run(self) -> None:
        """Takes one letter after another, until it is cancelled. Raises `Fenced` if another process has the session."""
        try:
            while not self._is_over:
                letter = await self._mailbox.get()
                try:
                    await self._open(letter)
                except Fenced:
                    raise
                except Exception as error:
                    await self._recover(error)
        finally:
            await self._stop()

    async def _open(self, letter: Letter) -> None:
        match letter:
            case FromModel(event=event):
                if self._brain.admits(letter):
                    await self._take_from_model(event)
            case c.ClientMessage():
                await self._take(letter)
            case e.Tick():
                # Nobody has listened as long as nobody is there.
                if self.outbox.link is not None:
                    await self._step(letter)
            case _:
                await letter()

    async def _recover(self, error: Exception) -> None:
        """What has come could not be dealt with: the client is told, the turn is given up, the session goes on."""
        if isinstance(error, StorageError):
            log.warning("not_stored", session=self.tools.id, error=str(error))
            told, code = STORE_UNAVAILABLE, ErrorCode.UNAVAILABLE
        else:
            log.error("letter_failed", session=self.tools.id, exc_info=error)
            told, code = FAULT, ErrorCode.INTERNAL
        self._repeater.stop()
        await self._reconnect()
        await self._step(e.GivenUp(told, code))

    async def _take_from_model(self, event: e.Event) -> None:
        if isinstance(event, e.Heard) and event.is_final and await self._is_blocked():
            # By another session of the same user: its call does not outlast that.
            await self._voice.end("blocked")
            return
        await self._step(event)

    # What the client wants.

    async def _take(self, message: c.ClientMessage) -> None:
        if not (isinstance(message, ASKING) and await self._is_blocked()):
            await self._do(message)
        if isinstance(message, STARTING):
            self._microphone.open()

    async def _do(self, message: c.ClientMessage) -> None:
        match message:
            case c.StartListening():
                await self._step(e.StartListening())
            case c.StopListening():
                await self._step(e.StopListening(self._microphone.has_heard_speech))
            case c.Interrupt(played_ms=played_ms):
                await self._step(e.Interrupt(None if played_ms is None else int(played_ms)))
            case c.PlaybackDone(turn=turn):
                # What must be made again has not been sent, so it cannot have been played.
                if not self.outbox.unspoken:
                    await self._step(e.PlaybackDone(turn))
            case c.Playback(turn=turn, played_ms=played_ms):
                await self._step(e.Playback(turn, int(played_ms)))
            case c.TextMessage(text=text):
                await self._step(e.TextMessage(text))
            case c.Unqueue(id=id):
                await self._step(e.Unqueue(id))
            case c.Settings():
                self.outbox.send(self.preferences.change(message))
                self._set_voice()
                await self.save()
            case c.ClearConversation():
                await self._clear()
            case c.StartVoice(pending_request=pending):
                greets = self.preferences.greeting and not self.keeper.messages
                await self._voice.start((pending or "").strip(), self._greeting if greets else None)
            case c.EndVoice():
                await self._voice.end("user_request")
            case c.LoadConversation(conversation_id=id):
                await self._load(id)
            case c.Confirm(confirmation_token=token, approved=approved):
                await self._asking.confirm(token, approved)
            case c.TestAudio(voice=voice):
                self._sample(voice)
            case c.Ping(t=t):
                self.outbox.send(s.Pong(t), once=True)
            case c.Hello():
                self.outbox.send(s.Error("hello must be the first message.", "hello_late"))

    async def _clear(self) -> None:
        """An answer under way is of the conversation that is to be forgotten."""
        if self.session.phase in BUSY:
            await self._step(e.Interrupt())
        self.outbox.forget_all()
        await self.keeper.clear()
        await self._reconnect()

    def _sample(self, voice: str | None) -> None:
        if self._sampler is None:
            self._voice.refuse(NO_MODEL[Mode.VOICE])
        else:
            self._sampler.start(voice or self.preferences.voice, self.preferences.voice_speed / 100)

    async def _load(self, conversation_id: str) -> None:
        if not await self.keeper.has(conversation_id):
            self.outbox.send(s.Error("You have no such conversation.", "unknown_conversation"))
            return
        if self.session.phase not in RESTING:
            await self._step(e.Interrupt())
        await self._calls.end()
        await self.keeper.load(conversation_id)
        await self._reconnect()
        self.tell_history()

    def tell_history(self) -> None:
        """What was said in this conversation, and what waits to be answered."""
        self.outbox.send_history(s.History(self.keeper.conversation_id, history_of(self.keeper.messages)))
        if self.session.queued or self.session.queue:
            self.outbox.send(s.Queued(self.session.queue), once=True)

    # What the machine wants.

    async def _step(self, event: e.Event) -> None:
        self.session, effects = step(self.session, event, self._clock.now_ms())
        if self.session.phase in BUSY:
            self._resting.clear()
        for effect in effects:
            await self._perform(effect)
        if self.session.phase in RESTING:
            self._resting.set()

    async def _perform(self, effect: fx.Effect) -> None:
        match effect:
            case fx.Say(phase=phase):
                self.outbox.send(s.StateChanged(s.State(phase)))
            case fx.TellInterim(text=text):
                if self.preferences.captions:
                    self.outbox.send(s.Transcript(text, is_final=False))
            case fx.KeepUser():
                await self._keep_user(effect)
            case fx.Ask(text=text, ran=ran):
                await self._asking.ask(text, ran)
            case fx.EndAudio():
                self._microphone.begin_turn()
                await self._brain.end_audio()
            case fx.TellChunk(text=text, is_first=is_first):
                self._stopwatch.say(self._clock.now_ms())
                self.outbox.send(s.ResponseChunk(text, is_first))
            case fx.TellAudio(turn=turn, seq=seq, pcm=pcm, text=text, last=last):
                self._stopwatch.voice(self._clock.now_ms())
                # A farewell is still heard: silence begins after it.
                if self._client.farewell is not None or not self.tools.state.suppress_audio:
                    self.outbox.send_audio(turn, seq, pcm, text=text, last=last)
                    self.post(self._save_messages)
            case fx.TellQueue(queue=queue):
                # What a client has seen as waiting is never lost.
                async with self._telling(s.Queued(queue)) as told:
                    await self.keeper.tell(told)
            case fx.KeepAnswer():
                await self._keep_answer(effect)
            case fx.RunTools(turn=turn, calls=calls):
                self._work.start(calls, partial(self._tools_done, turn))
                # A process that takes this turn up must know which calls the client was told of.
                await self._save_messages()
            case fx.Silence(heard=heard):
                self._work.cancel()
                self._repeater.stop()
                self.outbox.forget_speech()
                await self._brain.interrupt(heard)
            case fx.Wake(at_ms=at_ms):
                self._wake_at(at_ms)
            case fx.EndTurn(turn=turn):
                await self._end_turn(turn)
            case fx.Save():
                await self.save()
            case fx.TellError(code=code, message=message, retryable=retryable):
                self.outbox.send(s.Error(message, code, retryable))
            case fx.StartVoice():
                await self._voice.start()
            case fx.Warn(text=text):
                log.warning("ignored", session=self.tools.id, what=text)

    async def _keep_user(self, turn: fx.KeepUser) -> None:
        self._microphone.begin_turn()
        # Before the turn is counted: whoever makes its answer anew counts it by itself.
        self._describe_standing()
        if not turn.goes_on:
            await self._asking.tell_late()
            self._work.begin_turn()
        self._stopwatch.ask(self._clock.now_ms(), turn.timings)
        async with self._telling(s.Transcript(turn.text, is_final=True)) as told:
            self._asking.is_behind |= await self.keeper.keep_user(
                turn.text, spoken=turn.spoken, goes_on=turn.goes_on, told=told
            )
        self._note_move()

    async def _keep_answer(self, answer: fx.KeepAnswer) -> None:
        whole = (s.Response(answer.text), s.GenerationComplete(answer.turn)) if answer.is_whole else ()
        spoken = self.session.mode is Mode.VOICE
        async with self._telling(*whole) as told:
            await self.keeper.keep_answer(answer.turn, answer.text, spoken=spoken, told=told)
        self._note_move()

    @asynccontextmanager
    async def _telling(self, *messages: s.ServerMessage) -> AsyncIterator[Told]:
        """Messages that are told once this block has stored them, with what was said before them."""
        told = self.outbox.stage(*messages)
        try:
            yield told
        except BaseException:
            self.outbox.withdraw(told)
            raise
        if not self.keeper.is_stored:
            # Nothing of a session is stored before its first turn; then all of it is.
            self.outbox.put_back(told)
        self.outbox.release()

    def _note_move(self) -> None:
        """The conversation was deleted elsewhere, if it was: a model that knows it is not asked any more."""
        if self.keeper.take_moved():
            self._asking.is_behind = True
            self._calls.restore(None)
            self.outbox.send(s.Error(CONVERSATION_GONE, ErrorCode.CONVERSATION_GONE))
            self.introduce()

    # The model and its tools.

    async def _reconnect(self) -> None:
        """The model forgets, or learns of another conversation: it is connected anew when it is next needed."""
        self._work.cancel()
        await self._brain.close()

    def _set_voice(self) -> None:
        self._brain.set_voice(self.preferences.voice, self.preferences.voice_speed / 100)

    async def _tools_done(self, turn: int, answers: list[ToolAnswer]) -> None:
        keeping = self.keeper.keep_runs(answers, self.outbox)
        if self.tools.state.ending is After.IMMEDIATE and self.session.mode is Mode.VOICE:
            await keeping
            await self._voice.end(*self._work.goodbye)
        elif turn == self.session.turn:
            # The model goes on while they are stored. What it says waits in the mailbox until they are.
            await asyncio.gather(keeping, self._brain.tell(answers))
        else:
            await keeping
        self._note_move()

    # The end of a turn, and of everything.

    async def _end_turn(self, turn: int) -> None:
        metrics = self._stopwatch.read(turn)
        if metrics is not None:
            self.outbox.send(metrics)
        self._client.tell_farewell()
        self._repeater.stop()
        if self.session.phase is not Phase.SPEAKING:
            self.outbox.forget_speech()
        try:
            await self.save()
        except Fenced:
            raise
        except StorageError as error:
            # The turn is over all the same. What was not stored is tried again at the end of the next.
            log.warning("not_saved", session=self.tools.id, error=str(error))
        # A letter, since the effects of the event that has ended the turn may not all be done.
        self.post(self._follow_up)

    async def _follow_up(self) -> None:
        """What has waited for the end of a turn. If another has begun, it waits for the end of that."""
        if self.session.phase in BUSY:
            return
        await self._asking.catch_up()
        if self.tools.state.ending is not None:
            await self._voice.end(*self._work.goodbye)
        await self._voice.start_if_wanted()
        self._asking.watch_left()
        await self._asking.tell_outcomes()
        if self.session.phase in RESTING:
            await self._step(e.NextQueued())

    async def hang_up(self) -> None:
        """The call is over without a word: nobody is there any more."""
        await self._calls.end()

    async def save(self) -> None:
        """What another process needs to go on. While a turn is under way, that is only what was told."""
        if self.session.phase in RESTING:
            await self._calls.save()
            self._describe_standing()
            await self.keeper.save()
        await self._save_messages()

    async def _save_messages(self) -> None:
        await self.keeper.save_messages(self.outbox)

    def _describe_standing(self) -> None:
        standing = Standing(
            **asdict(self.preferences),
            listening=self.session.resting is Phase.LISTENING,
            answers=self.session.turn - (self.session.phase in BUSY),
            call=self._calls.stored,
        )
        self.keeper.describe(self.session.mode, self.tools.turn, self.tools.pinned_version, standing)

    async def _is_blocked(self) -> bool:
        return await self._client.tell_block(self._clock.now_ms())

    def _wake_at(self, at_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        delay_s = max(0, at_ms - self._clock.now_ms()) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self.post, e.Tick())

    async def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._microphone.close()
        self._repeater.stop()
        await self._work.stop()
        if self._sampler is not None:
            await self._sampler.stop()
        await self._brain.close()
