"""The runner of a session: its one mailbox, every task it has, and the place where the machine's wishes come true."""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from antiphon.clock import Clock
from antiphon.models.base import ModelError
from antiphon.models.live import LiveContext, LiveModel, ToolAnswer
from antiphon.prompts.composer import compose
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.closing import BLOCKED
from antiphon.session import effects as fx
from antiphon.session import events as e
from antiphon.session.brain import Brain, FromModel, ModelMaker, Work
from antiphon.session.calls import CallLog
from antiphon.session.history import history_of
from antiphon.session.keeper import Keeper
from antiphon.session.machine import BUSY, RESTING, step
from antiphon.session.outbox import Outbox
from antiphon.session.preferences import Preferences
from antiphon.session.state import Phase, Session
from antiphon.session.stopwatch import Stopwatch
from antiphon.session.toolwork import ClientMessages, ToolWork
from antiphon.telemetry.log import get_logger
from antiphon.tools.call import ToolCall
from antiphon.tools.executor import Executor
from antiphon.tools.result import Citation
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Mode

BYTES_PER_MS: Final = 2 * 16
"""Of microphone audio."""
MIN_SPEECH_MS: Final = 300

GREETING: Final = "Hello! What can I do for you?"
VOICE_UNAVAILABLE: Final = "Voice is not available on this server. You can go on in text."

log = get_logger(__name__)

ASKING: Final = (c.TextMessage, c.StartListening, c.StartVoice, c.Confirm)
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
    ) -> None:
        self.outbox = outbox
        self.tools = tools
        self.keeper = keeper
        self.preferences = Preferences()
        self.session = Session(mode=tools.mode)
        self._executor = executor
        self._brain = Brain(make_model, self._describe, self.post)
        self._clock = clock
        self._client = ClientMessages(outbox, keeper.stores, tools.user)
        tools.messaging = self._client
        self._work = ToolWork(executor, tools, outbox)
        self._calls = CallLog(keeper.stores.voice_calls, keeper, clock)
        self._stopwatch = Stopwatch()
        self._mailbox: asyncio.Queue[Letter] = asyncio.Queue()
        self._tool_tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._resting = asyncio.Event()
        self._resting.set()
        self._heard_bytes = 0

    # What others call.

    def post(self, letter: Letter) -> None:
        self._mailbox.put_nowait(letter)

    async def hear(self, pcm: bytes) -> None:
        """Microphone audio, past the mailbox: it changes no state, and twenty frames a second must not wait in line."""
        if self.session.phase is not Phase.IDLE and await self._brain.hear(pcm):
            self._heard_bytes += len(pcm)

    @property
    def citations(self) -> Sequence[Citation]:
        """What the tools of the last turn found their answers in."""
        return self._work.citations

    async def rest(self) -> None:
        """Returns when no answer is under way."""
        await self._resting.wait()

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
            await self._end_voice("blocked", None)
            return
        await self._step(event)

    # What the client wants.

    async def _take(self, message: c.ClientMessage) -> None:
        if isinstance(message, ASKING) and await self._is_blocked():
            return
        match message:
            case c.StartListening():
                await self._step(e.StartListening())
            case c.StopListening():
                await self._step(e.StopListening(self._heard_bytes >= MIN_SPEECH_MS * BYTES_PER_MS))
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
            case c.ClearConversation():
                await self.keeper.clear()
                await self._reconnect()
            case c.StartVoice(pending_request=pending):
                await self._start_voice(pending)
            case c.EndVoice():
                await self._end_voice("user_request", None)
            case c.LoadConversation(conversation_id=id):
                await self._load(id)
            case c.Confirm(confirmation_token=token, approved=approved):
                await self._confirm(token, approved)
            case c.TestAudio():
                self._notify("voice_unavailable", VOICE_UNAVAILABLE)
            case c.Ping(t=t):
                self.outbox.send(s.Pong(t), once=True)
            case c.Hello():
                self.outbox.send(s.Error("hello must be the first message.", "hello_late"))

    def _forget_speech(self) -> None:
        """Unless the client has more to play: it says that it is done after every clip, if it knows no better."""
        if self.session.phase is not Phase.SPEAKING:
            self.outbox.forget_speech()

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
            case fx.KeepUser(text=text, spoken=spoken):
                self._heard_bytes = 0
                self._executor.begin_turn(self.tools)
                self._stopwatch.ask(self._clock.now_ms())
                await self.keeper.keep_user(text, spoken=spoken)
                self.outbox.send(s.Transcript(text, is_final=True))
            case fx.Ask(text=text):
                await self._ask(text)
            case fx.EndAudio():
                await self._brain.end_audio()
            case fx.TellChunk(text=text, is_first=is_first):
                self._stopwatch.say(self._clock.now_ms())
                self.outbox.send(s.ResponseChunk(text, is_first))
            case fx.TellAudio(turn=turn, seq=seq, pcm=pcm):
                self._stopwatch.voice(self._clock.now_ms())
                # A farewell is still heard: silence begins after it.
                if self._client.farewell is not None or not self.tools.state.suppress_audio:
                    self.outbox.send_audio(turn, seq, pcm)
            case fx.TellAnswer(turn=turn, text=text):
                self.outbox.send(s.Response(text))
                self.outbox.send(s.GenerationComplete(turn))
            case fx.KeepAnswer(turn=turn, text=text):
                await self.keeper.keep_answer(turn, text, spoken=self.session.mode is Mode.VOICE)
            case fx.RunTools(turn=turn, calls=calls):
                self._start_tools(turn, calls)
            case fx.Silence():
                await self._silence()
            case fx.Wake(at_ms=at_ms):
                self._wake_at(at_ms)
            case fx.EndTurn():
                await self._end_turn()
            case fx.TellError(code=code, message=message, retryable=retryable):
                self.outbox.send(s.Error(message, code, retryable))
            case fx.StartVoice():
                await self._start_voice(None, greets=False)
            case fx.Warn(text=text):
                log.warning("ignored", session=self.tools.id, what=text)

    # The model.

    async def _ask(self, text: str) -> None:
        """Gives the model a turn. A yes or no to a question of ours is heard by code first."""
        try:
            await self._brain.wake(self.session.mode)
            await self._tell_unheard()
            heard = await self._executor.hear(text, self.tools)
            ran: list[ToolAnswer] = []
            if heard is not None:
                ran = [self._work.tell(*heard)]
                self._client.resolve(heard[0].name, approved=heard[1].meta is not None)
                await self.keeper.keep_runs(ran)
            await self._brain.ask(text, ran)
        except ModelError as error:
            await self._step(e.Failed(str(error), error.retryable))

    async def _tell_unheard(self) -> None:
        """Results of actions that went on when their turn was interrupted."""
        unheard, self.tools.unheard = self.tools.unheard, []
        if unheard:
            answers = [self._work.tell(call, result) for call, result in unheard]
            await self.keeper.keep_runs(answers)
            await self._brain.tell(answers)

    def _describe(self, model: LiveModel, mode: Mode) -> LiveContext:
        snapshot = self.tools.snapshot
        # The last turn is the one being asked; the model gets it by itself.
        history = self.keeper.messages
        if history and self.session.phase is Phase.PROCESSING:
            history = history[:-1]
        return LiveContext(
            system=compose(mode, tools_version=snapshot.version, summaries=snapshot.summaries(mode)),
            messages=tuple(history),
            tools=snapshot.provider_schemas(model.profile.tool_schemas, mode),
            mode=mode,
        )

    async def _reconnect(self) -> None:
        """The model forgets, or learns of another conversation: it is connected anew when it is next asked."""
        await self._silence()
        await self._brain.close()

    # Tools.

    def _start_tools(self, turn: int, calls: tuple[ToolCall, ...]) -> None:
        task = asyncio.create_task(self._run_tools(turn, calls))
        self._tool_tasks.add(task)
        task.add_done_callback(self._tool_tasks.discard)

    async def _run_tools(self, turn: int, calls: tuple[ToolCall, ...]) -> None:
        answers = await self._work.run(calls)
        self.post(lambda: self._tools_done(turn, answers))

    async def _tools_done(self, turn: int, answers: list[ToolAnswer]) -> None:
        await self.keeper.keep_runs(answers)
        if turn == self.session.turn:
            await self._brain.tell(answers)

    async def _confirm(self, token: str, approved: bool) -> None:
        """The person's answer by a button. What came of it is told as a turn of ours."""
        result = await self._executor.resolve(token, approved, self.tools)
        expired = result.error is not None and result.meta is None and approved
        outcome = s.Outcome.EXPIRED if expired else s.Outcome.APPROVED if approved else s.Outcome.DENIED
        self.outbox.send(s.ConfirmationResolved(token, outcome))
        if result.meta is None:
            return
        call = ToolCall(None, result.meta.tool, {})
        answer = self._work.tell(call, result)
        awake = False
        if self.session.phase in RESTING:
            try:
                # Before the run is kept: the history that a model begins with must not have it yet.
                await self._brain.wake(self.session.mode)
                awake = True
            except ModelError as error:
                self.outbox.send(s.Error(str(error), "model_failed", error.retryable))
        await self.keeper.keep_runs([answer])
        if awake:
            await self._step(e.SpeakFirst())
            await self._brain.ask("", [answer])

    async def _silence(self) -> None:
        for task in list(self._tool_tasks):
            task.cancel()
        await self._brain.interrupt()

    # Voice and text.

    async def _start_voice(self, pending_request: str | None, *, greets: bool = True) -> None:
        """A greeting comes only if nothing else is there to begin with."""
        if self.session.mode is Mode.VOICE:
            await self._step(e.StartListening())
            return
        model = self._brain.make_model(Mode.VOICE)
        if model is None:
            self._notify("voice_unavailable", VOICE_UNAVAILABLE)
            return
        await self._reconnect()
        self._set_mode(Mode.VOICE)
        try:
            await self._brain.connect(model, Mode.VOICE)
        except ModelError as error:
            self._set_mode(Mode.TEXT)
            self._notify("voice_unavailable", str(error))
            return
        self._calls.begin(self.tools.user, model.profile.name)
        await self._step(e.ModeChanged(Mode.VOICE, listening=True))
        if pending_request and pending_request.strip():
            await self._step(e.TextMessage(pending_request.strip()))
        elif greets and self.preferences.greeting and not self.keeper.messages:
            await self._speak(GREETING)

    async def _end_voice(self, reason: str, final_message: str | None) -> None:
        if self.session.mode is not Mode.VOICE:
            return
        if self.session.phase in BUSY:
            await self._step(e.Interrupt())
        await self._reconnect()
        await self._calls.end()
        self._set_mode(Mode.TEXT)
        self.outbox.send(s.EndVoiceSession(reason, final_message))
        await self._step(e.ModeChanged(Mode.TEXT))

    async def _speak(self, text: str) -> None:
        """Words of the server's own."""
        await self._step(e.SpeakFirst())
        await self._brain.wake(self.session.mode)
        await self._brain.say(text)

    def _set_mode(self, mode: Mode) -> None:
        self.tools.mode = mode
        self.tools.state.voice_active = mode is Mode.VOICE
        self.tools.state.ending = None
        self.tools.state.suppress_audio = False

    async def _load(self, conversation_id: str) -> None:
        if self.session.phase not in RESTING:
            await self._step(e.Interrupt())
        if not await self.keeper.load(conversation_id):
            self.outbox.send(s.Error("You have no such conversation.", "unknown_conversation"))
            return
        await self._reconnect()
        self.tell_history()

    def tell_history(self) -> None:
        self.outbox.send(s.History(self.keeper.conversation_id, history_of(self.keeper.messages)))

    # The end of a turn, and of everything.

    async def _end_turn(self) -> None:
        metrics = self._stopwatch.read(self.session.turn)
        if metrics is not None:
            self.outbox.send(metrics)
        if self._client.farewell is not None:
            self.outbox.send(self._client.farewell)
            self._client.farewell = None
        if self.tools.state.ending is not None:
            await self._end_voice("user_request", None)
        await self.save()

    async def save(self) -> None:
        await self.keeper.save(
            mode=self.session.mode,
            turn=self.tools.turn,
            tools_version=self.tools.pinned_version,
            state=msgspec.json.encode(self.preferences),
        )
        await self.keeper.save_messages(self.outbox)

    async def _is_blocked(self) -> bool:
        until_ms = await self.keeper.stores.blocks.blocked_until(self.tools.user, self._clock.now_ms())
        if until_ms is None:
            return False
        left_s = (until_ms - self._clock.now_ms()) / 1000
        self.outbox.send(s.Timeout(until_ms, left_s, "You are blocked for now."))
        self.outbox.send(s.Error(BLOCKED.reason, "blocked"))
        return True

    def _notify(self, code: str, text: str) -> None:
        self.outbox.send(s.Notice(s.NoticeKind.WARNING, text, code))

    def _wake_at(self, at_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        delay_s = max(0, at_ms - self._clock.now_ms()) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self.post, e.Tick())

    async def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        tasks = list(self._tool_tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._brain.close()
