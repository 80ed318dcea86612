"""Any event in any state, in any order: the table decides, and the client is never left in a lie or a dead end."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from antiphon.models import live
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.session import events as e
from antiphon.session.effects import Effect, InterruptModel, Send, SendAudio, SetTimer, StoreAnswer, StoreUser
from antiphon.session.machine import step
from antiphon.session.state import BUSY, MAX_QUEUED, RESTING, WATCHDOG_MS, Phase, SessionState
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode

TEXTS = st.sampled_from(["", "hi", "what time is it", "a b c d e"])
MILLISECONDS = st.integers(0, 20_000)
NUMBERS = st.integers(0, 5)
TURNS = st.sampled_from(["s1", "s2", "s3", "m1", "m2", "m3"])
"""Ids of turns that the session begins, and of turns that the model begins."""

EVENTS: st.SearchStrategy[e.Event] = st.one_of(
    st.builds(c.StartListening),
    st.builds(c.Interrupt, st.none() | MILLISECONDS),
    st.builds(c.PlaybackDone, st.none() | NUMBERS),
    st.builds(c.Playback, NUMBERS, MILLISECONDS),
    st.builds(c.TextMessage, TEXTS),
    st.builds(c.ClearConversation),
    st.builds(c.Unqueue, st.sampled_from(["q1", "q2", "q7"])),
    st.builds(e.ListeningStopped, st.booleans()),
    st.builds(e.QueueReady),
    st.builds(
        e.TurnRestored, TURNS, TEXTS, heard=st.lists(st.sampled_from(["hi", "a", "b"])).map(tuple), last_seq=NUMBERS
    ),
    st.builds(e.ClientBack, MILLISECONDS),
    st.builds(e.SpeechLost, TEXTS, MILLISECONDS),
    st.builds(e.TurnAbandoned, TEXTS, st.just("internal")),
    st.builds(e.ModeChanged, st.sampled_from(Mode), st.booleans()),
    st.builds(e.SessionSpeaks),
    st.builds(live.TurnStarted, TURNS, st.none() | TURNS),
    st.builds(live.InputTranscript, TURNS, TEXTS, st.booleans()),
    st.builds(live.OutputText, TURNS, TEXTS),
    st.builds(live.OutputAudio, TURNS, st.integers(1, 40_000).map(lambda n: b"\0\0" * n), TEXTS, st.booleans()),
    st.builds(live.ToolCalls, TURNS, st.just((ToolCall(None, "t", {}),))),
    st.builds(live.ToolCancelled, TURNS, st.just(("call_0123456789",))),
    st.builds(live.Interrupted, TURNS),
    st.builds(live.GenerationComplete, TURNS),
    st.builds(live.TurnComplete, TURNS),
    st.builds(live.TurnFailed, st.none() | TURNS, TEXTS),
    st.builds(live.Closed, TEXTS),
    st.builds(e.Tick),
)


class AnythingGoes(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.state = SessionState()
        self.now_ms = 0
        self.client_phase = Phase.IDLE
        self.interrupted: set[int] = set()
        self.answered: set[int] = set()
        self.timer_at_ms: int | None = None

    @rule(event=EVENTS, passed_ms=MILLISECONDS)
    def happen(self, event: e.Event, passed_ms: int) -> None:
        self.now_ms += passed_ms
        before = self.state
        self.state, effects = step(before, event, self.now_ms)
        assert self.state.turns in (before.turns, before.turns + 1)
        for effect in effects:
            self.check(effect, before)
        stored = [effect.text for effect in effects if isinstance(effect, StoreAnswer)]
        heard = [effect.heard for effect in effects if isinstance(effect, InterruptModel) and effect.heard is not None]
        if stored and heard:
            assert stored == heard, "the model remembers other words than the store"

    def check(self, effect: Effect, before: SessionState) -> None:
        match effect:
            case Send(message=s.StateChanged(state=state)):
                self.client_phase = Phase(state)
            case InterruptModel(turn=turn) if before.turn is not None and before.turn.id == turn:
                self.interrupted.add(before.turn.number)
            case SendAudio(number=number):
                assert number == self.state.turns, "audio of an old answer"
                assert number not in self.interrupted, "audio after an interruption"
            case StoreAnswer(number=number, is_whole=is_whole):
                assert number <= self.state.turns
                assert not (is_whole and number in self.answered), "an answer sent twice"
                self.answered |= {number} if is_whole else set()
            case StoreUser(turn=turn, number=number):
                assert (turn, number) in self.state.recent, "words of an unknown turn"
            case SetTimer(at_ms=at_ms):
                self.timer_at_ms = at_ms

    @invariant()
    def the_client_knows_the_state(self) -> None:
        assert self.client_phase is self.state.phase

    @invariant()
    def the_session_is_not_stuck_in_speaking(self) -> None:
        turn = self.state.turn
        if self.state.phase is Phase.SPEAKING and turn is not None and turn.complete:
            assert self.timer_at_ms == turn.deadline_ms
            later, _ = step(self.state, e.Tick(), turn.speaking_since_ms + turn.audio_ms + WATCHDOG_MS)
            assert later.phase is self.state.resting

    @invariant()
    def the_queue_is_bounded(self) -> None:
        assert len(self.state.queue) <= MAX_QUEUED + 1

    @invariant()
    def a_turn_is_active_or_the_session_is_idle(self) -> None:
        assert self.state.resting in RESTING
        assert (self.state.turn is None) == (self.state.phase in RESTING)
        assert (self.state.turn is not None) == (self.state.phase in BUSY)
        assert self.state.unconfirmed is None or self.state.phase in RESTING


TestAnythingGoes = AnythingGoes.TestCase
TestAnythingGoes.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
