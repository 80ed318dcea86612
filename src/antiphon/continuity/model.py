"""A model that does not end: behind it, connections are lost, run out of time, and give way to other models.

The session has one `ContinuousModel` for each mode. It has the commands of a `LiveModel`, at any time. What a lost
connection leaves unanswered, the next one answers: it is asked again, with the results of the tools that have run, and
what the user was sent of the answer is not sent again.
"""

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from antiphon.continuity.connecting import RENEWED, Connector, ContextSource, explain_exhausted, explain_switched_off
from antiphon.continuity.connection import ConnectionState, ModelConnection
from antiphon.continuity.counters import ContinuityCounters
from antiphon.continuity.energy import Pool
from antiphon.continuity.events import ConnectFailed, ContinuityEvent, Delayed, NoticeCode, Noticed, Opened
from antiphon.continuity.heard_audio import HeardAudio
from antiphon.continuity.open_turn import OpenTurn
from antiphon.continuity.timers import Timer, Timers
from antiphon.continuity.turn_ids import TurnIds
from antiphon.continuity.upstream import UpstreamHandle
from antiphon.models import live
from antiphon.models.base import FailureKind, ModelError
from antiphon.models.live import LiveEvent, LiveProfile, ToolAnswer
from antiphon.telemetry.log import get_logger
from antiphon.tools.spec import Mode

GUARD_S: Final = 0.25
"""How long before the announced end of a connection its successor takes over at the latest."""
LOOK_AGAIN_S: Final = 0.2
"""How often it is checked whether the user has stopped speaking, so that a connection can be replaced."""
STALL_S: Final = 8.0
"""How long an answer may stop in the middle before the connection counts as lost."""
DELAY_S: Final = 1.5
"""How long the user may wait for another model until something is said."""
MAX_WAIT_S: Final = 12.0
"""How long a turn waits for another model before the user is told that there is none."""
MAX_LOSSES: Final = 5
"""How many connections may be lost during one turn."""
NOT_HEARD: Final = "The connection to the model was lost before it had understood you. Please say that again."
STILL_LOST: Final = "The model cannot be reached at the moment. I keep trying; please ask again in a moment."

log = get_logger(__name__)


class FromModel(Struct, frozen=True):
    """An event on its way through the session's mailbox."""

    connection: "ContinuousModel"
    event: LiveEvent | ContinuityEvent


class ContinuousModel:
    def __init__(
        self,
        *,
        pool: Pool,
        source: ContextSource,
        post: Callable[[FromModel], None],
        counters: ContinuityCounters,
        handle: UpstreamHandle | None = None,
        random: Random,
        voice: tuple[str | None, float] = (None, 1.0),
    ) -> None:
        """Begins to connect. `post` reaches the session's mailbox; `handle` is that of an earlier upstream session."""
        self.state = ConnectionState.CONNECTING
        self.was_opened = False
        self._pool = pool
        self._post = post
        self._counters = counters
        self._connector = Connector(
            pool=pool,
            source=source,
            take=self._take,
            tell=self._tell,
            counters=counters,
            random=random,
        )
        self._connector.handle, self._connector.voice = handle, voice
        self._upstream: ModelConnection | None = None
        """The connection in use; None while there is none."""
        self._turn: OpenTurn | None = None
        self.turns = 0
        """How many turns there were."""
        self.heard = HeardAudio()
        self._late_results: list[tuple[str, Sequence[ToolAnswer]]] = []
        """Results of earlier turns that came while no model was connected."""
        self._ids = TurnIds()
        self._has_heard = False
        """Whether the connection in use was given anything audible."""
        self._goes_away = False
        self._timers = Timers()
        self._connecting: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._is_renewed = False
        self._reconnect()

    # What the session asks.

    @property
    def profile(self) -> LiveProfile:
        """The profile of the model in use, or of the one that is being connected."""
        if self._upstream is not None:
            return self._upstream.profile
        rung = self._connector.rung or self._pool.rung or self._pool.ladder.rungs[1]
        return rung.factory.profile

    @property
    def level(self) -> int:
        """The level of the model in use."""
        return 0 if self._connector.rung is None else self._pool.level_of(self._connector.rung)

    @property
    def handle(self) -> UpstreamHandle | None:
        return self._connector.handle

    @property
    def is_closed(self) -> bool:
        return self._ending is not None and self._ending.done()

    # Commands.

    def set_voice(self, voice: str | None, speed: float) -> None:
        self._connector.voice = (voice, speed)
        if self._upstream is not None:
            self._upstream.set_voice(voice, speed)

    def send_audio(self, pcm: bytes, *, playing: bool) -> bool:
        """Whether a model listens, or will be given what is said now."""
        upstream = self._upstream
        if not self.was_opened or not self.profile.hears:
            return False
        if upstream is None or upstream.profile.keeps_context:
            self.heard.add(pcm, playing)
        if upstream is not None:
            self._has_heard |= self.heard.has_sound
            upstream.send_audio(pcm, playing=playing)
        return True

    def end_audio(self, turn: str) -> None:
        self._begin(OpenTurn(turn, audio_ended=True))
        if self._upstream is not None:
            self._upstream.end_audio(turn)

    def respond(self, turn: str, text: str, ran: Sequence[ToolAnswer] = ()) -> None:
        asked = self._turn if self._turn is not None and self._turn.id == turn else OpenTurn(turn)
        if not asked.ask(text, ran):
            return
        self._begin(asked)
        if self._upstream is not None:
            self._upstream.respond(self._ids.theirs(turn), text, ran)

    def say(self, turn: str, text: str) -> None:
        self._begin(OpenTurn(turn, words=text))
        if self._upstream is not None:
            self._upstream.say(turn, text)

    def send_tool_results(self, turn: str, answers: Sequence[ToolAnswer]) -> None:
        open_turn = self._turn
        if open_turn is not None and open_turn.id == turn:
            open_turn.take_results(answers)
            if open_turn.is_lost:
                self._ask_again(open_turn)
                return
        if self._upstream is not None:
            self._upstream.send_tool_results(self._ids.theirs(turn), answers)
        elif open_turn is None or open_turn.id != turn:
            self._late_results.append((turn, answers))

    def interrupt(self, turn: str, heard: str | None) -> None:
        if self._turn is not None and self._turn.id == turn:
            self._drop_turn()
        if self._upstream is not None:
            self._upstream.interrupt(self._ids.theirs(turn), heard)
        self._roll_over_if_quiet()

    def renew(self) -> None:
        """Replaces the upstream session by a new one that is given the same conversation."""
        self._connector.handle = None
        self._is_renewed = True
        self._stop_connecting()
        self._replace()

    def set_level(self, level: int) -> None:
        """An operator has chosen a level. The model is replaced once the turn is over."""
        self._connector.apply(self._pool.set(level))
        if level == 0:
            self._give_up(ModelError(explain_switched_off(self._pool)))
        elif self._pool.rung is not self._connector.rung:
            if self._upstream is None:
                self._stop_connecting()
                self._reconnect()
            self._goes_away = True
            self._roll_over_if_quiet()

    def close(self) -> None:
        """Gives the model up. No event is posted from now on; `wait_closed` returns when everything is gone."""
        if self._ending is None:
            self.state = ConnectionState.CLOSING
            self._stop()
            self._ending = asyncio.create_task(self._end())

    async def wait_closed(self) -> None:
        if self._ending is not None:
            await asyncio.wait([self._ending])

    # Connecting.

    def _reconnect(self) -> None:
        """Connects the next model, unless one is being connected already."""
        if self._connecting is None and self.state is not ConnectionState.CLOSING:
            self._connecting = asyncio.create_task(self._connect())

    def _stop_connecting(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting = None

    async def _connect(self) -> None:
        turns, is_early = self.turns, self._upstream is not None
        try:
            connection = await self._connector.connect(is_first=not self.was_opened, said=self._cut_words)
        except ModelError as error:
            self._connecting = None
            # A connection that is about to end still serves until its time is over.
            if self._upstream is None or error.rate_limited:
                self._give_up(error)
            return
        self._connecting = None
        if is_early and self.turns != turns:
            # A turn has begun on the old connection. The new one does not know of it; the next one will.
            self._connector.retire(connection)
            if self._upstream is None:
                self._reconnect()
            else:
                self._roll_over_if_quiet()
        else:
            self._adopt(connection)

    def _cut_words(self) -> str:
        # Words whose audio has not come were not heard: a model that goes on after them would leave them out.
        turn = self._turn
        return turn.heard(speaks=self.profile.speaks) if turn is not None and turn.is_lost else ""

    def _adopt(self, connection: ModelConnection) -> None:
        """From now on the session talks to this model. It gets what has waited for it, in order."""
        if self._upstream is not None:
            self._connector.retire(self._upstream)
        self._upstream = connection
        self.state, self.was_opened = ConnectionState.OPEN, True
        self._forget_end()
        self._watch_wait()
        self._ids.clear()
        self._has_heard = False
        self.heard.end_gap()
        self._tell(Opened(connection.profile.name))
        if self._is_renewed:
            self._is_renewed = False
            self._tell(Noticed(NoticeCode.NEW_UPSTREAM, RENEWED))
        results, self._late_results = self._late_results, []
        if self._connector.was_resumed:
            # A new session finds them in the conversation.
            for of, answers in results:
                connection.send_tool_results(of, answers)
        self._complete_generated()
        turn = self._turn
        if turn is not None:
            self._ask_again(turn)
        # What was said meanwhile comes after the turn that waits.
        is_due = turn is None or (self.heard.has_sound_in_gap and not turn.is_replayed)
        if connection.profile.hears and is_due:
            self._replay()

    def _ask_again(self, turn: OpenTurn) -> None:
        """Has the model in use answer a turn that it was not asked before."""
        upstream = self._upstream
        if upstream is None or turn.open_calls:
            # It is asked once it is connected, and the results are there.
            return
        turn.ask_again(upstream.profile.name)
        if turn.words is not None:
            upstream.say(turn.id, turn.words)
        elif turn.question is not None:
            upstream.respond(turn.id, turn.question, tuple(turn.ran))
        elif upstream.profile.hears and self.heard.has_sound:
            turn.is_replayed = True
            self._replay()
            if turn.audio_ended:
                upstream.end_audio(turn.id)
            self._watch()
        else:
            self._fail_turn(NOT_HEARD)

    def _replay(self) -> None:
        """Gives the model what the user has said and no model has answered."""
        upstream = self._upstream
        assert upstream is not None
        self._has_heard |= self.heard.has_sound
        for pcm, playing in self.heard.replay():
            upstream.send_audio(pcm, playing=playing)
        if not upstream.profile.keeps_context:
            self.heard.forget()

    def _replace(self) -> None:
        """Gives the connection up and makes another one, which goes on with the turn under way."""
        if self._upstream is not None:
            self._connector.retire(self._upstream)
            self._lose()
        self._reconnect()

    def _lose(self) -> None:
        """The connection is gone."""
        self._upstream = None
        self._forget_end()
        self.heard.begin_gap()
        self._complete_generated()
        turn = self._turn
        if turn is not None:
            turn.lose(self.profile.name)
            if turn.losses > MAX_LOSSES:
                self._fail_turn(STILL_LOST, kind=FailureKind.CUT_OFF)
            self._watch_wait()

    def _give_up(self, error: ModelError) -> None:
        """There is no model any more."""
        if self.state is ConnectionState.CLOSING:
            return
        self._stop()
        self.state = ConnectionState.LOST
        if error.rate_limited:
            self._tell(Noticed(NoticeCode.ENERGY_EXHAUSTED, str(error)))
        if self.was_opened:
            kind = live.CloseKind.QUOTA if error.rate_limited else live.CloseKind.CONFIGURATION
            self._tell(live.Closed(str(error), kind, error.retry_after_s))
        else:
            self._tell(ConnectFailed(error))

    def _watch_wait(self) -> None:
        """A turn that waits for a model is not left waiting in silence, nor for ever."""
        self._timers.stop(Timer.DELAY, Timer.GIVE_UP)
        if self._turn is not None and self._upstream is None:
            self._timers.start(Timer.DELAY, DELAY_S, self._note_delay)
            self._timers.start(Timer.GIVE_UP, MAX_WAIT_S, self._fail_waiting)

    def _note_delay(self) -> None:
        turn = self._turn
        if turn is not None and not turn.open_calls and self._upstream is None:
            self._tell(Delayed(turn.id))

    def _fail_waiting(self) -> None:
        """A turn has waited long enough. The model is still being connected."""
        if self._turn is not None and self._upstream is None and self.was_opened:
            self._fail_turn(STILL_LOST, kind=FailureKind.UNREACHABLE)

    # The announced end of a connection.

    def _take_go_away(self, event: live.GoAway) -> None:
        self._counters.note_go_away()
        self._goes_away = True
        left_s = max(0.0, event.time_left_ms / 1000 - GUARD_S)
        # A timer of our own: some providers announce the end, and nothing comes after that.
        self._timers.start(Timer.DEADLINE, left_s, self._replace)
        self._roll_over_if_quiet()

    def _roll_over_if_quiet(self) -> None:
        """Replaces a connection that is about to end, if nobody is speaking. Otherwise it is tried again soon."""
        self._timers.stop(Timer.LOOK_AGAIN)
        if not self._goes_away or self._upstream is None or self.state is not ConnectionState.OPEN:
            return
        if self._turn is not None and not self._turn.is_generated:
            # The end of the turn leads here again.
            return
        if self.heard.is_speaking:
            self._timers.start(Timer.LOOK_AGAIN, LOOK_AGAIN_S, self._roll_over_if_quiet)
        elif self._upstream.profile.resumes and self._connector.handle is not None:
            # The provider lets a session have one connection only.
            self._replace()
        else:
            self._reconnect()

    def _forget_end(self) -> None:
        self._goes_away = False
        self._timers.stop(Timer.DEADLINE, Timer.LOOK_AGAIN, Timer.STALL)

    # Events.

    def _take(self, connection: ModelConnection, event: LiveEvent) -> None:
        if connection is not self._upstream or self.state is ConnectionState.CLOSING:
            return
        match event:
            case live.ResumptionUpdate(handle=handle):
                if handle is not None:
                    self._connector.handle = UpstreamHandle(handle, self.level, self.profile.name)
            case live.GoAway():
                self._take_go_away(event)
            case live.Closed():
                self._take_close(event)
            case live.TurnStarted():
                self._take_turn(event)
            case live.SpeechStarted() | live.Usage() | live.ToolCancelled():
                self._take_part(event)
            case _ if self._ids.is_ignored(event.turn):
                pass
            case live.TurnFailed():
                self._take_failure(event)
            case live.ToolCalls():
                self._take_calls(event)
            case _:
                self._take_part(event)

    def _take_turn(self, event: live.TurnStarted) -> None:
        """The model has heard a turn, or has begun to answer one."""
        lost = self._turn
        upstream, has_cause = self._upstream, self._has_heard or not self._connector.has_history
        if lost is not None and lost.id == event.turn:
            # The session has ended the audio of this turn.
            lost.is_replayed = False
            self.heard.begin_turn()
            if not lost.is_started:
                lost.is_started = True
                self._tell(event)
        elif upstream is not None and upstream.profile.keeps_context and not has_cause:
            # It greets, or answers again what it has answered before: the user has said nothing to it yet.
            log.info("model_turn_unasked", model=self.profile.name)
            self._ids.ignore(event.turn)
            upstream.interrupt(event.turn, "")
        elif lost is not None and lost.is_replayed:
            # The audio of a turn that the session knows was given to this connection once more.
            lost.is_replayed = False
            self._ids.join(event.turn, lost.id)
            self.heard.begin_turn()
        else:
            self._begin(OpenTurn(event.turn, is_started=True))
            self.heard.begin_turn()
            self._tell(self._ids.rename(event))
        self._watch()

    def _take_calls(self, event: live.ToolCalls) -> None:
        turn = self._turn
        results = turn.repeats(event.calls) if turn is not None and turn.id == self._ids.ours(event.turn) else None
        if results and self._upstream is not None:
            # The calls were made on a connection that was lost. Any other repetition is the gate's matter.
            self._upstream.send_tool_results(event.turn, results)
        else:
            self._take_part(event)

    def _take_part(self, event: LiveEvent) -> None:
        """Passes on what belongs to a turn, and notes it."""
        turn = self._turn
        if turn is not None and turn.is_replayed:
            if isinstance(event, live.SpeechStarted | live.InputTranscript):
                self._ids.join(event.turn, turn.id)
            if isinstance(event, live.SpeechStarted | live.Interrupted | live.Held | live.Resumed):
                # The user spoke before the answer, and does not speak over it.
                return
        ours = self._ids.ours(getattr(event, "turn", None))
        if ours is not None and ours != getattr(event, "turn", None):
            event = replace(event, turn=ours)
        if turn is None or ours != turn.id:
            self._tell(event)
            return
        for each in turn.filter(event):
            self._tell(each)
        if isinstance(event, live.InputTranscript) and event.is_final:
            self.heard.forget_turn()
        if isinstance(event, live.TurnComplete):
            self._end_turn()
            self._roll_over_if_quiet()
        elif isinstance(event, live.GenerationComplete):
            self._roll_over_if_quiet()
        self._watch()

    def _take_failure(self, event: live.TurnFailed) -> None:
        turn, rung = self._turn, self._connector.rung
        is_ours = turn is not None and turn.id == self._ids.ours(event.turn)
        if event.rate_limited and rung is not None:
            self._connector.lower(rung, event.retry_after_s)
            if self._pool.rung is None:
                self._give_up(ModelError(explain_exhausted(self._pool), rate_limited=True))
                return
            if is_ours:
                self._replace()
                return
        self._take_part(event)
        if self._upstream is not None and self._upstream.profile.keeps_context and event.kind is FailureKind.TIMEOUT:
            # It may never answer again.
            if turn is not None and is_ours:
                self._end_turn()
                self._tell(live.TurnComplete(turn.id))
            self._replace()

    def _take_close(self, event: live.Closed) -> None:
        rung, upstream = self._connector.rung, self._upstream
        assert rung is not None
        assert upstream is not None
        self._connector.retire(upstream)
        match event.kind:
            case live.CloseKind.QUOTA:
                self._connector.lower(rung, event.retry_after_s)
            case live.CloseKind.DEAD_HANDLE:
                self._connector.drop_dead_handle(rung.name)
            case live.CloseKind.CONFIGURATION:
                error = ModelError(event.reason, retryable=False)
                if not self._connector.pass_over(error):
                    self._upstream = None
                    self._give_up(error)
                    return
            case _:
                self._connector.note_loss()
        self._lose()
        if self._turn is not None or self._pool.ladder.mode is Mode.VOICE:
            self._reconnect()
        else:
            # Nobody waits. The session asks for another model when it needs one.
            self._tell(event)

    # The turn under way.

    def _begin(self, turn: OpenTurn) -> None:
        if self._turn is not turn:
            self._drop_turn()
            self._turn = turn
            self.turns += 1
            self._watch_wait()
        self._watch()

    def _end_turn(self) -> None:
        self._turn = None
        self._watch_wait()
        self.heard.end_turn()
        self._watch()

    def _drop_turn(self) -> None:
        """The answer to the turn is not wanted any more."""
        turn = self._turn
        if turn is not None:
            self._end_turn()
            if self._upstream is None:
                self._connector.note_end_without_model()
            if self._upstream is None or turn.is_lost:
                self._tell(live.TurnComplete(turn.id))

    def _complete_generated(self) -> None:
        """A turn of which nothing more comes need not be asked again."""
        turn = self._turn
        if turn is not None and turn.is_generated:
            self._end_turn()
            self._tell(live.TurnComplete(turn.id))

    def _fail_turn(self, why: str, *, kind: FailureKind | None = None) -> None:
        turn = self._turn
        assert turn is not None
        self._end_turn()
        if self._upstream is None:
            self._connector.note_end_without_model()
        self._tell(live.TurnFailed(turn.id, why, kind=kind))
        self._tell(live.TurnComplete(turn.id))

    def _watch(self) -> None:
        """An answer that stops in the middle is made by another connection."""
        self._timers.stop(Timer.STALL)
        turn, upstream = self._turn, self._upstream
        if turn is None or upstream is None or not upstream.profile.keeps_context:
            return
        is_answering = turn.has_output and not turn.is_generated and not turn.open_calls
        if is_answering or turn.is_replayed:
            self._timers.start(Timer.STALL, STALL_S, self._take_stall)

    def _take_stall(self) -> None:
        log.warning("model_stalled", model=self.profile.name)
        if self._turn is not None and self._turn.is_replayed:
            self._fail_turn(NOT_HEARD)
        else:
            self._replace()

    def _tell(self, event: LiveEvent | ContinuityEvent) -> None:
        if self.state is not ConnectionState.CLOSING:
            self._post(FromModel(self, event))

    # The end.

    def _stop(self) -> None:
        """Everything is given up at once; what takes time goes on in the background."""
        self._turn = None
        self._forget_end()
        self._watch_wait()
        if self._connecting is not None:
            self._connecting.cancel()
        if self._upstream is not None:
            self._connector.retire(self._upstream)
            self._upstream = None

    async def _end(self) -> None:
        if self._connecting is not None:
            await asyncio.wait([self._connecting])
        await self._connector.wait_closed()
