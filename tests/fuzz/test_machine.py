"""Any event in any state, in any order: the table decides, and the client is never left in a lie or a dead end."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from antiphon.session import events as e
from antiphon.session.effects import Effect, KeepAnswer, Say, Silence, TellAudio, Wake
from antiphon.session.machine import step
from antiphon.session.state import MAX_QUEUED, WATCHDOG_MS, Phase, Session
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode

TEXTS = st.sampled_from(["", "hi", "what time is it", "a b c d e"])
MILLISECONDS = st.integers(0, 20_000)
TURNS = st.integers(0, 5)

EVENTS: st.SearchStrategy[e.Event] = st.one_of(
    st.builds(e.StartListening),
    st.builds(e.StopListening, st.booleans()),
    st.builds(e.Interrupt, st.none() | MILLISECONDS),
    st.builds(e.PlaybackDone, st.none() | TURNS),
    st.builds(e.Playback, TURNS, MILLISECONDS),
    st.builds(e.TextMessage, TEXTS),
    st.builds(e.Unqueue, st.sampled_from(["q1", "q2", "q7"])),
    st.builds(e.NextQueued),
    st.builds(e.TakenUp, TEXTS, heard=st.lists(st.sampled_from(["hi", "a", "b"])).map(tuple), last_seq=TURNS),
    st.builds(e.ClientBack, MILLISECONDS),
    st.builds(e.GivenUp, TEXTS, st.just("internal")),
    st.builds(e.ModeChanged, st.sampled_from(Mode), st.booleans()),
    st.builds(e.SpeakFirst),
    st.builds(e.Heard, TEXTS, st.booleans(), st.booleans(), st.booleans()),
    st.builds(e.Said, TEXTS),
    st.builds(e.Voiced, st.just(b"\0\0"), MILLISECONDS, TEXTS, st.booleans()),
    st.builds(e.ToolsWanted, st.just((ToolCall(None, "t", {}),))),
    st.builds(e.BargedIn),
    st.builds(e.Made),
    st.builds(e.TurnOver),
    st.builds(e.Failed, TEXTS),
    st.builds(e.Lost, TEXTS),
    st.builds(e.Tick),
)


class AnythingGoes(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.session = Session()
        self.now_ms = 0
        self.told = Phase.IDLE
        self.silenced: set[int] = set()
        self.answered: set[int] = set()
        self.wake_at_ms: int | None = None

    @rule(event=EVENTS, passed_ms=MILLISECONDS)
    def happen(self, event: e.Event, passed_ms: int) -> None:
        self.now_ms += passed_ms
        turn = self.session.turn
        self.session, effects = step(self.session, event, self.now_ms)
        assert self.session.turn in (turn, turn + 1)
        for effect in effects:
            self.check(effect)
        kept = [effect.text for effect in effects if isinstance(effect, KeepAnswer)]
        heard = [effect.heard for effect in effects if isinstance(effect, Silence) and effect.heard is not None]
        if kept and heard:
            assert kept == heard, "the model remembers other words than the store"

    def check(self, effect: Effect) -> None:
        match effect:
            case Say(phase=phase):
                self.told = phase
            case Silence(turn=turn):
                self.silenced.add(turn)
            case TellAudio(turn=turn):
                assert turn == self.session.turn, "audio of an old answer"
                assert turn not in self.silenced, "audio after silence"
            case KeepAnswer(turn=turn, is_whole=is_whole):
                assert turn <= self.session.turn
                assert not (is_whole and turn in self.answered), "an answer told twice"
                self.answered |= {turn} if is_whole else set()
            case Wake(at_ms=at_ms):
                self.wake_at_ms = at_ms

    @invariant()
    def the_client_knows_the_state(self) -> None:
        assert self.told is self.session.phase

    @invariant()
    def nobody_is_stuck_in_speaking(self) -> None:
        answer = self.session.answer
        if self.session.phase is Phase.SPEAKING and answer is not None and answer.complete:
            assert self.wake_at_ms == answer.deadline_ms
            later, _ = step(self.session, e.Tick(), answer.speaking_since_ms + answer.audio_ms + WATCHDOG_MS)
            assert later.phase is self.session.resting

    @invariant()
    def the_queue_is_bounded(self) -> None:
        assert len(self.session.queue) <= MAX_QUEUED + 1

    @invariant()
    def rest_is_rest(self) -> None:
        assert self.session.resting in (Phase.IDLE, Phase.LISTENING)
        assert (self.session.answer is None) == (self.session.phase in (Phase.IDLE, Phase.LISTENING))


TestAnythingGoes = AnythingGoes.TestCase
TestAnythingGoes.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
