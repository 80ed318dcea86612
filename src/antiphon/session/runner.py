"""The runner of a session: its one mailbox, and the place where the machine's wishes come true."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import asdict

from antiphon.clock import Clock
from antiphon.models.live import ToolAnswer
from antiphon.prompts.composer import Composer
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.session import effects as fx
from antiphon.session import events as e
from antiphon.session.asking import Asking, describe
from antiphon.session.brain import NO_MODEL, Brain, FromModel, ModelMaker, Work
from antiphon.session.calls import CallLog
from antiphon.session.history import history_of
from antiphon.session.keeper import Keeper
from antiphon.session.machine import BUSY, RESTING, step
from antiphon.session.messaging import ClientMessages
from antiphon.session.microphone import Microphone
from antiphon.session.outbox import Outbox
from antiphon.session.preferences import Preferences
from antiphon.session.sampler import MakeSample, Sampler
from antiphon.session.standing import Standing
from antiphon.session.state import Phase, Session
from antiphon.session.stopwatch import Stopwatch
from antiphon.session.toolwork import Toll, ToolWork
from antiphon.session.voice import Voice
from antiphon.storage.sessions import SessionRecord
from antiphon.telemetry.log import get_logger
from antiphon.tools.executor import Executor
from antiphon.tools.result import After, Citation
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Mode

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
        self._stopwatch = Stopwatch()
        self._mailbox: asyncio.Queue[Letter] = asyncio.Queue()
        self._timer: asyncio.TimerHandle | None = None
        self._resting = asyncio.Event()
        self._resting.set()

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

    async def rest(self) -> None:
        """Returns when no answer is under way."""
        await self._resting.wait()

    def restore(self, record: SessionRecord) -> None:
        """Takes a session up where another process has left it. To be called before it runs."""
        self.preferences = msgspec.json.decode(record.state, type=Preferences)
        self._set_voice()
        standing = msgspec.json.decode(record.state, type=Standing)
        in_voice = self.tools.mode is Mode.VOICE
        resting = Phase.LISTENING if in_voice and standing.listening else Phase.IDLE
        self.session = Session(self.tools.mode, resting, resting, turn=standing.answers + 1)
        self._calls.restore(standing.call if in_voice else None)

    async def run(self) -> None:
        """Takes one letter after another, until it is cancelled. Raises `Fenced` if another process has the session."""
        try:
            while True:
                letter = await self._mailbox.get()
                match letter:
                    case FromModel(event=event):
                        if self._brain.admits(letter):
                            await self._take_from_model(event)
                    case c.ClientMessage():
                        await self._take(letter)
                    case e.Tick():
                        await self._step(letter)
                    case _:
                        await letter()
        finally:
            await self._stop()

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
                self._forget_speech()
            case c.PlaybackDone(turn=turn):
                await self._step(e.PlaybackDone(turn))
                self._forget_speech()
            case c.Playback(turn=turn, played_ms=played_ms):
                await self._step(e.Playback(turn, int(played_ms)))
            case c.TextMessage(text=text):
                await self._step(e.TextMessage(text))
            case c.Settings():
                self.outbox.send(self.preferences.change(message))
                self._set_voice()
                await self.save()
            case c.ClearConversation():
                await self.keeper.clear()
                await self._reconnect()
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

    def _forget_speech(self) -> None:
        """Unless the client has more to play: it says that it is done after every clip, if it knows no better."""
        if self.session.phase is not Phase.SPEAKING:
            self.outbox.forget_speech()

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
        self.outbox.send(s.History(self.keeper.conversation_id, history_of(self.keeper.messages)))

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
            case fx.Ask(text=text):
                await self._asking.ask(text)
            case fx.EndAudio():
                self._microphone.begin_turn()
                await self._brain.end_audio()
            case fx.TellChunk(text=text, is_first=is_first):
                self._stopwatch.say(self._clock.now_ms())
                self.outbox.send(s.ResponseChunk(text, is_first))
            case fx.TellAudio(turn=turn, seq=seq, pcm=pcm, last=last):
                self._stopwatch.voice(self._clock.now_ms())
                # A farewell is still heard: silence begins after it.
                if self._client.farewell is not None or not self.tools.state.suppress_audio:
                    self.outbox.send_audio(turn, seq, pcm, last=last)
            case fx.TellAnswer(turn=turn, text=text):
                self.outbox.send(s.Response(text))
                self.outbox.send(s.GenerationComplete(turn))
            case fx.KeepAnswer(turn=turn, text=text):
                await self.keeper.keep_answer(turn, text, spoken=self.session.mode is Mode.VOICE)
            case fx.RunTools(turn=turn, calls=calls):
                self._work.start(calls, partial(self._tools_done, turn))
            case fx.Silence(heard=heard):
                self._work.cancel()
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
            self._work.begin_turn()
        self._stopwatch.ask(self._clock.now_ms(), turn.timings)
        self._asking.is_behind |= await self.keeper.keep_user(turn.text, spoken=turn.spoken, goes_on=turn.goes_on)
        self.outbox.send(s.Transcript(turn.text, is_final=True))

    # The model and its tools.

    async def _reconnect(self) -> None:
        """The model forgets, or learns of another conversation: it is connected anew when it is next needed."""
        self._work.cancel()
        await self._brain.close()

    def _set_voice(self) -> None:
        self._brain.set_voice(self.preferences.voice, self.preferences.voice_speed / 100)

    async def _tools_done(self, turn: int, answers: list[ToolAnswer]) -> None:
        keeping = self.keeper.keep_runs(answers)
        if self.tools.state.ending is After.IMMEDIATE and self.session.mode is Mode.VOICE:
            await keeping
            await self._voice.end(*self._work.goodbye)
        elif turn == self.session.turn:
            # The model goes on while they are stored. What it says waits in the mailbox until they are.
            await asyncio.gather(keeping, self._brain.tell(answers))
        else:
            await keeping

    # The end of a turn, and of everything.

    async def _end_turn(self, turn: int) -> None:
        metrics = self._stopwatch.read(turn)
        if metrics is not None:
            self.outbox.send(metrics)
        self._client.tell_farewell()
        await self.save()
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

    async def hang_up(self) -> None:
        """The call is over without a word: nobody is there any more."""
        await self._calls.end()

    async def save(self) -> None:
        """What another process needs to go on. While a turn is under way, that is only what was told."""
        if self.session.phase in RESTING:
            await self._calls.save()
            self._describe_standing()
            await self.keeper.save()
        await self.keeper.save_messages(self.outbox)

    def _describe_standing(self) -> None:
        standing = Standing(
            **asdict(self.preferences),
            listening=self.session.resting is Phase.LISTENING,
            answers=self.session.turn,
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
        await self._work.stop()
        if self._sampler is not None:
            await self._sampler.stop()
        await self._brain.close()
