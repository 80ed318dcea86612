"""Every row of the protocol's state table, and what the rows have in common."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from antiphon.models.live import (
    Closed,
    GenerationComplete,
    InputTranscript,
    Interrupted,
    OutputAudio,
    OutputText,
    Timings,
    ToolCalls,
    ToolCancelled,
    TurnComplete,
    TurnFailed,
    TurnStarted,
)
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.limits import SPEECH_HZ
from antiphon.protocol.server_messages import QueuedText
from antiphon.session import events as e
from antiphon.session.effects import (
    AnswerSpeech,
    BeginTurn,
    CancelCalls,
    Effect,
    EndAudio,
    EndTurn,
    InterruptModel,
    LogIgnored,
    Respond,
    RunTools,
    Save,
    Send,
    SendAudio,
    SetTimer,
    StartVoice,
    StoreAnswer,
    StoreUser,
)
from antiphon.session.machine import step
from antiphon.session.state import MAX_QUEUED, MAX_RECENT, WATCHDOG_MS, Phase, SessionState
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode

IDLE, LISTENING, PROCESSING, SPEAKING = Phase.IDLE, Phase.LISTENING, Phase.PROCESSING, Phase.SPEAKING
LISTENS = e.ModeChanged(Mode.VOICE, listening=True)
"""A model listens, so the session does."""

OfTurn = Callable[[str], e.Event]
"""An event of the turn under way."""


def said(text: str) -> OfTurn:
    return lambda turn: OutputText(turn, text)


def speech(mark: bytes, ms: int) -> bytes:
    return mark * (SPEECH_HZ * ms // 1000 + 1)


def spoken(mark: bytes, ms: int, text: str, *, last: bool = False) -> OfTurn:
    return lambda turn: OutputAudio(turn, speech(mark, ms), text, last)


def made() -> OfTurn:
    return GenerationComplete


def over() -> OfTurn:
    return TurnComplete


def barged_in() -> OfTurn:
    return Interrupted


def failed(message: str) -> OfTurn:
    return lambda turn: TurnFailed(turn, message)


def tell(phase: Phase) -> Effect:
    return Send(s.StateChanged(s.State(phase)))


def queue(*messages: QueuedText) -> Effect:
    return Send(s.Queued(messages), stored_first=True)


def failure(message: str) -> Effect:
    return Send(s.Error(message, "model_failed", retryable=True))


class Talk:
    """A session that things happen to, one after another."""

    def __init__(self, mode: Mode = Mode.VOICE) -> None:
        self.state = SessionState(mode=mode)
        self.now_ms = 1_000
        self.effects: list[Effect] = []

    def do(self, *events: e.Event | OfTurn, after_ms: int = 0) -> list[Effect]:
        """The effects of the last event."""
        self.now_ms += after_ms
        for event in events:
            happened = event("none" if self.state.turn is None else self.state.turn.id) if callable(event) else event
            self.state, effects = step(self.state, happened, self.now_ms)
            self.effects = list(effects)
        return self.effects

    def hear(self, text: str, turn: str = "m1", continues: str | None = None) -> list[Effect]:
        """A turn of the user, with its transcript: all of its effects."""
        return [*self.do(TurnStarted(turn, continues)), *self.do(InputTranscript(turn, text, is_final=True))]

    @property
    def phase(self) -> Phase:
        return self.state.phase


def heard(text: str, turn: str = "m1", number: int = 1) -> list[Effect]:
    """The effects of a final transcript."""
    return [StoreUser(turn, number, text, spoken=True), AnswerSpeech(turn, text)]


def typed(text: str, number: int = 1) -> list[Effect]:
    """The effects of a typed message, after the state."""
    turn = f"s{number}"
    return [BeginTurn(turn), StoreUser(turn, number, text, spoken=False), Respond(turn, text)]


@pytest.fixture
def listening() -> Talk:
    talk = Talk()
    talk.do(LISTENS)
    return talk


@pytest.fixture
def processing(listening: Talk) -> Talk:
    listening.hear("what time is it")
    return listening


@pytest.fixture
def speaking(processing: Talk) -> Talk:
    processing.do(said("It is noon. "), said("Time to eat."))
    processing.do(spoken(b"\0\0", 1_000, "It is noon."), spoken(b"\0\0", 1_000, "Time to eat."))
    return processing


@pytest.mark.parametrize("mode", Mode)
def test_idle_start_listening_is_a_wish_for_a_model_that_listens(mode: Mode) -> None:
    talk = Talk(mode)
    assert talk.do(c.StartListening()) == [StartVoice()]
    assert talk.phase is IDLE


@pytest.mark.parametrize("mode", Mode)
def test_a_session_listens_when_a_model_does(mode: Mode) -> None:
    talk = Talk(mode)
    assert talk.do(LISTENS) == [tell(LISTENING), Save()]
    assert (talk.state.mode, talk.phase) == (Mode.VOICE, LISTENING)


def test_during_an_answer_in_text_the_wish_for_voice_is_not_lost() -> None:
    talk = Talk(Mode.TEXT)
    talk.do(c.TextMessage("let's talk"))
    assert talk.do(c.StartListening()) == [StartVoice()]
    assert talk.phase is PROCESSING


@pytest.mark.parametrize("resting", [IDLE, LISTENING])
def test_a_typed_message_is_answered_and_then_it_is_where_it_was(resting: Phase) -> None:
    talk = Talk()
    if resting is LISTENING:
        talk.do(LISTENS)
    assert talk.do(c.TextMessage("hello")) == [tell(PROCESSING), *typed("hello")]
    talk.do(said("Hi."))
    effects = talk.do(over())
    assert effects == [StoreAnswer("s1", 1, "Hi.", is_whole=True), tell(resting), EndTurn(1)]
    assert talk.phase is resting


def test_interim_words_are_told(listening: Talk) -> None:
    interim = InputTranscript("m1", "what ti", is_final=False)
    assert listening.do(interim) == [Send(s.Transcript("what ti", is_final=False))]


def test_listening_end_of_turn_is_stored_and_told(listening: Talk) -> None:
    effects = listening.hear("what time is it")
    assert effects == [tell(PROCESSING), BeginTurn("m1", spoken=True), *heard("what time is it")]
    assert listening.phase is PROCESSING


def test_listening_stop_with_speech_is_processed_and_ends_idle(listening: Talk) -> None:
    assert listening.do(e.ListeningStopped(has_speech=True)) == [EndAudio("s1"), tell(PROCESSING)]
    assert listening.hear("good night", "s1") == [BeginTurn("s1", spoken=True), *heard("good night", "s1")]
    listening.do(over())
    assert listening.phase is IDLE


def test_listening_stop_without_speech(listening: Talk) -> None:
    assert listening.do(e.ListeningStopped(has_speech=False)) == [tell(IDLE), Save()]


def test_processing_first_audio(processing: Talk) -> None:
    assert processing.do(said("Noon.")) == [Send(s.ResponseChunk("Noon.", is_first=True, turn=1))]
    assert processing.do(spoken(b"\1\0", 500, "Noon.")) == [
        tell(SPEAKING),
        SendAudio(1, 0, speech(b"\1\0", 500), "Noon."),
    ]
    assert processing.do(spoken(b"\2\0", 500, "Yes.")) == [SendAudio(1, 1, speech(b"\2\0", 500), "Yes.")]


def test_the_last_audio_is_told_as_such(speaking: Talk) -> None:
    assert speaking.do(spoken(b"\3\0", 500, "Bye.", last=True)) == [
        SendAudio(1, 2, speech(b"\3\0", 500), "Bye.", last=True)
    ]


def test_processing_an_empty_answer(processing: Talk) -> None:
    assert processing.do(over()) == [tell(LISTENING), EndTurn(1)]


def test_processing_an_error_is_told(processing: Talk) -> None:
    effects = processing.do(failed("The model is away."))
    assert effects == [failure("The model is away."), tell(LISTENING), EndTurn(1)]


def test_processing_the_user_goes_on(processing: Talk) -> None:
    assert processing.do(barged_in()) == [InterruptModel("m1", ""), tell(LISTENING), EndTurn(1)]


def test_both_pieces_of_a_turn_that_goes_on_are_kept_as_one(processing: Talk) -> None:
    processing.do(barged_in())
    effects = processing.hear("what time is it in Tokyo", "m2", continues="m1")
    begin = BeginTurn("m2", spoken=True, continues="m1")
    assert effects == [tell(PROCESSING), begin, *heard("what time is it in Tokyo", "m2", 2)]


def test_the_late_words_of_a_turn_that_was_replaced_are_ignored(processing: Talk) -> None:
    processing.do(barged_in())
    processing.hear("what time is it in Tokyo", "m2", continues="m1")
    effects = processing.do(InputTranscript("m1", "what time", is_final=True))
    assert [type(effect) for effect in effects] == [LogIgnored]


def test_words_that_a_model_heard_while_it_spoke_are_a_turn(speaking: Talk) -> None:
    speaking.now_ms += 1_000
    effects = speaking.hear("stop", "m2")
    assert effects[:2] == [StoreAnswer("m1", 1, "It is noon."), InterruptModel("m1", "It is noon.")]
    assert effects[-4:] == [tell(PROCESSING), BeginTurn("m2", spoken=True), *heard("stop", "m2", 2)]
    assert (speaking.phase, speaking.state.turns) == (PROCESSING, 2)


@pytest.mark.parametrize("phase", ["processing", "speaking"])
def test_without_a_model_there_is_no_answer_to_wait_for(phase: str, request: pytest.FixtureRequest) -> None:
    talk: Talk = request.getfixturevalue(phase)
    assert talk.do(Closed("gone"))[0] == failure("gone")
    assert talk.phase is LISTENING


def test_processing_interrupt(processing: Talk) -> None:
    assert processing.do(c.Interrupt()) == [InterruptModel("m1", ""), tell(LISTENING), EndTurn(1)]


def test_of_a_spoken_answer_that_nobody_heard_nothing_is_kept(processing: Talk) -> None:
    processing.do(said("It is noon."))
    effects = processing.do(c.Interrupt())
    assert effects[:2] == [InterruptModel("m1", ""), StoreAnswer("m1", 1, "")]


def test_in_text_what_came_of_an_answer_was_read() -> None:
    talk = Talk(Mode.TEXT)
    talk.do(c.TextMessage("what time is it"), said("It is noon."))
    assert talk.do(c.Interrupt())[:2] == [InterruptModel("s1", None), StoreAnswer("s1", 1, "It is noon.")]


def test_a_failure_while_it_listens_is_told_and_it_listens_on(listening: Talk) -> None:
    misheard = TurnFailed(None, "I could not understand.")
    assert listening.do(misheard) == [failure("I could not understand.")]
    assert listening.phase is LISTENING


def test_processing_a_second_typed_message_waits_for_the_end_of_the_answer(processing: Talk) -> None:
    first, second = QueuedText("q1", "and?"), QueuedText("q2", "then?")
    assert processing.do(c.TextMessage("and?")) == [queue(first)]
    assert processing.do(c.TextMessage("then?")) == [queue(first, second)]
    processing.do(over())
    effects = processing.do(e.QueueReady())
    assert effects == [tell(PROCESSING), queue(second), *typed("and?", 2)]


def test_a_message_that_waits_is_taken_back(processing: Talk) -> None:
    processing.do(c.TextMessage("and?"))
    assert processing.do(c.Unqueue("q1")) == [queue()]
    processing.do(over())
    assert processing.do(e.QueueReady()) == []
    assert processing.phase is LISTENING


def test_no_more_messages_wait_than_a_few(processing: Talk) -> None:
    for _ in range(MAX_QUEUED):
        processing.do(c.TextMessage("and?"))
    (effect,) = processing.do(c.TextMessage("too much"))
    assert isinstance(effect, Send)
    assert isinstance(effect.message, s.Error)
    assert effect.message.code == "busy"
    assert len(processing.state.queue) == MAX_QUEUED


@pytest.mark.parametrize("phase", ["processing", "speaking"])
def test_an_interruption_empties_the_queue(phase: str, request: pytest.FixtureRequest) -> None:
    talk: Talk = request.getfixturevalue("processing")
    talk.do(c.TextMessage("and?"))
    if phase == "speaking":
        talk.do(said("Noon."), spoken(b"\0\0", 1_000, "Noon."))
    assert talk.do(c.Interrupt())[0] == queue()
    assert talk.do(e.QueueReady()) == []


def test_what_has_waited_longer_comes_before_what_is_typed_into_the_answer(processing: Talk) -> None:
    processing.do(c.TextMessage("first"), said("Noon."), spoken(b"\0\0", 1_000, "Noon."))
    effects = processing.do(c.TextMessage("second"))
    assert effects[-5:] == [tell(PROCESSING), queue(QueuedText("q2", "second")), *typed("first", 2)]


def test_a_turn_that_another_process_left_is_answered_without_being_stored_again(listening: Talk) -> None:
    restored = e.TurnRestored("r7", "what time is it")
    assert listening.do(restored) == [tell(PROCESSING), Respond("r7", "what time is it")]


def test_of_an_answer_that_is_made_anew_the_client_hears_the_rest(listening: Talk) -> None:
    listening.do(e.TurnRestored("r7", "what time is it", heard=("It", "is"), last_seq=4), said("It is noon."))
    assert listening.do(spoken(b"\0\0", 400, "It is ")) == [tell(SPEAKING)]
    assert listening.do(spoken(b"\1\0", 400, "noon. ")) == [SendAudio(1, 5, speech(b"\1\0", 400), "noon. ")]


def test_another_answer_than_the_one_that_was_begun_is_heard_whole(listening: Talk) -> None:
    listening.do(e.TurnRestored("r7", "what time is it", heard=("It", "is"), last_seq=4), said("Noon."))
    assert listening.do(spoken(b"\0\0", 400, "Noon. ")) == [
        tell(SPEAKING),
        SendAudio(1, 0, speech(b"\0\0", 400), "Noon. "),
    ]
    assert listening.do(spoken(b"\1\0", 400, "It is. ")) == [SendAudio(1, 1, speech(b"\1\0", 400), "It is. ")]


def test_the_time_of_an_answer_goes_on_when_its_listener_has_come_back(speaking: Talk) -> None:
    speaking.do(made())
    (wake,) = speaking.do(e.ClientBack(missing_ms=500), after_ms=60_000)
    assert wake == SetTimer(speaking.now_ms + 500 + WATCHDOG_MS)
    assert speaking.do(c.PlaybackDone(), after_ms=500) == [tell(LISTENING), EndTurn(1)]


@pytest.mark.parametrize("phase", ["listening", "processing", "speaking"])
def test_a_fault_is_told_and_the_session_rests(phase: str, request: pytest.FixtureRequest) -> None:
    talk: Talk = request.getfixturevalue(phase)
    assert Send(s.Error("The store is away.", "unavailable", retryable=True)) in talk.do(
        e.TurnAbandoned("The store is away.", "unavailable")
    )
    assert talk.phase is LISTENING


@pytest.mark.parametrize("phase", ["processing", "speaking"])
def test_stop_listening_during_an_answer_ends_idle_afterwards(phase: str, request: pytest.FixtureRequest) -> None:
    talk: Talk = request.getfixturevalue(phase)
    assert talk.do(e.ListeningStopped(has_speech=False)) == []
    talk.do(made())
    talk.do(over() if phase == "processing" else c.PlaybackDone(), after_ms=2_000)
    assert talk.phase is IDLE


def test_an_answer_is_told_whole_when_it_is_made(speaking: Talk) -> None:
    text = "It is noon. Time to eat."
    assert speaking.do(made()) == [StoreAnswer("m1", 1, text, is_whole=True), SetTimer(1_000 + 2_000 + WATCHDOG_MS)]


def test_the_end_of_the_turn_tells_it_if_the_model_never_said_that_it_was_made(speaking: Talk) -> None:
    assert StoreAnswer("m1", 1, "It is noon. Time to eat.", is_whole=True) in speaking.do(over())


def test_a_model_that_is_done_waits_for_the_client_to_have_played(speaking: Talk) -> None:
    speaking.do(made())
    assert speaking.do(over()) == []
    assert speaking.phase is SPEAKING


def test_speaking_playback_done(speaking: Talk) -> None:
    speaking.do(made())
    assert speaking.do(c.PlaybackDone(), after_ms=2_000) == [tell(LISTENING), EndTurn(1)]


@pytest.mark.parametrize(("is_made", "after_ms", "turn"), [(False, 9_000, None), (True, 400, None), (True, 2_000, 7)])
def test_playback_done_too_soon_or_of_another_turn_means_nothing(
    speaking: Talk, is_made: bool, after_ms: int, turn: int | None
) -> None:
    if is_made:
        speaking.do(made())
    assert speaking.do(c.PlaybackDone(turn), after_ms=after_ms) == []
    assert speaking.phase is SPEAKING


def test_speaking_barge_in(speaking: Talk) -> None:
    effects = speaking.do(barged_in(), after_ms=1_000)
    assert effects == [
        StoreAnswer("m1", 1, "It is noon."),
        InterruptModel("m1", "It is noon."),
        tell(Phase.INTERRUPTED),
        EndTurn(1),
        tell(LISTENING),
    ]
    assert speaking.phase is LISTENING


def test_speaking_interrupt_keeps_what_the_client_has_played(speaking: Talk) -> None:
    effects = speaking.do(c.Interrupt(played_ms=1_700), after_ms=100)
    assert effects[0] == StoreAnswer("m1", 1, "It is noon. Time to")


def test_reported_playback_is_believed_over_the_clock(speaking: Talk) -> None:
    speaking.do(c.Playback(1, 1_500))
    effects = speaking.do(barged_in(), after_ms=200)
    assert effects[0] == StoreAnswer("m1", 1, "It is noon. Time to")


def test_speaking_a_typed_message_interrupts_and_is_answered(speaking: Talk) -> None:
    effects = speaking.do(c.TextMessage("stop, what day is it"))
    assert tell(Phase.INTERRUPTED) in effects
    assert effects[-1] == Respond("s2", "stop, what day is it")
    assert (speaking.phase, speaking.state.turns) == (PROCESSING, 2)


def test_a_client_that_never_says_playback_done_is_not_stuck(speaking: Talk) -> None:
    speaking.do(made())
    deadline_ms = 1_000 + 2_000 + WATCHDOG_MS
    assert speaking.do(e.Tick(), after_ms=deadline_ms - speaking.now_ms - 1) == [SetTimer(deadline_ms)]
    assert speaking.do(e.Tick(), after_ms=1) == [tell(LISTENING), EndTurn(1)]


def test_the_server_may_speak_of_its_own_accord() -> None:
    talk = Talk()
    assert talk.do(e.SessionSpeaks()) == [tell(PROCESSING)]
    talk.do(said("Hello!"))
    talk.do(over())
    assert talk.phase is IDLE


def test_tools_run_for_the_turn_that_wants_them(processing: Talk) -> None:
    calls = (ToolCall("call_0123456789", "get_time", {}),)
    assert processing.do(ToolCalls("m1", calls)) == [RunTools("m1", calls)]


@pytest.mark.parametrize(
    "event",
    [
        TurnComplete("m1"),
        GenerationComplete("m1"),
        Interrupted("m1"),
        c.PlaybackDone(),
        OutputText("m1", "late words"),
        OutputAudio("m1", b"\0\0"),
    ],
    ids=lambda event: type(event).__name__,
)
@pytest.mark.parametrize("phase", [IDLE, LISTENING])
def test_what_is_said_late_about_an_answer_changes_nothing(phase: Phase, event: e.Event) -> None:
    state = replace(SessionState(mode=Mode.VOICE), phase=phase)
    assert step(state, event, 0) == (state, [])


@pytest.mark.parametrize(
    ("phase", "event"),
    [
        (IDLE, c.Interrupt()),
        (IDLE, Closed("late")),
        (IDLE, e.ListeningStopped(has_speech=False)),
        (IDLE, InputTranscript("m1", "of an unknown turn", is_final=True)),
        (LISTENING, c.StartListening()),
        (PROCESSING, c.StartListening()),
        (PROCESSING, c.PlaybackDone()),
        (PROCESSING, e.SessionSpeaks()),
        (SPEAKING, c.StartListening()),
        (SPEAKING, e.ModeChanged(Mode.TEXT)),
    ],
)
def test_anything_else_changes_nothing_and_warns_once(phase: Phase, event: e.Event) -> None:
    state = replace(SessionState(mode=Mode.VOICE), phase=phase)
    after, effects = step(state, event, 0)
    assert after == state
    assert [type(effect) for effect in effects] == [LogIgnored]


# Models that answer by themselves: nothing is certain about the order of an answer and its transcript.


def test_an_answer_may_come_before_its_transcript(listening: Talk) -> None:
    assert listening.do(TurnStarted("m1")) == [tell(PROCESSING), BeginTurn("m1", spoken=True)]
    assert listening.do(said("Noon.")) == [Send(s.ResponseChunk("Noon.", is_first=True, turn=1))]
    assert listening.do(InputTranscript("m1", "what time is it", is_final=True)) == heard("what time is it")
    assert listening.phase is PROCESSING


def test_a_transcript_after_the_end_of_its_turn_is_stored(speaking: Talk) -> None:
    speaking.do(made(), c.Interrupt())
    assert speaking.do(InputTranscript("m1", "what time is it", is_final=True)) == heard("what time is it")
    assert speaking.phase is LISTENING


def test_a_transcript_may_come_while_a_later_turn_is_answered(speaking: Talk) -> None:
    speaking.do(TurnStarted("m2"))
    assert speaking.do(InputTranscript("m1", "what time is it", is_final=True)) == heard("what time is it")
    assert speaking.state.turn is not None
    assert speaking.state.turn.id == "m2"


def test_a_transcript_that_comes_many_turns_later_is_not_taken(listening: Talk) -> None:
    for number in range(MAX_RECENT + 1):
        listening.do(TurnStarted(f"m{number}"), over())
    (effect,) = listening.do(InputTranscript("m0", "too late", is_final=True))
    assert isinstance(effect, LogIgnored)


def test_a_turn_needs_no_transcript(listening: Talk) -> None:
    listening.do(TurnStarted("m1"), said("Noon."))
    effects = listening.do(over())
    assert effects == [StoreAnswer("m1", 1, "Noon.", is_whole=True), tell(LISTENING), EndTurn(1)]


def test_interim_words_of_the_turn_under_way_are_told(processing: Talk) -> None:
    interim = [InputTranscript(turn, "what", is_final=False) for turn in ("m1", "m0")]
    assert processing.do(interim[0]) == [Send(s.Transcript("what", is_final=False))]
    assert processing.do(interim[1]) == []


def test_of_two_responses_in_flight_only_the_newer_one_matters(speaking: Talk) -> None:
    speaking.do(TurnStarted("m2"))
    late: list[e.Event] = [OutputText("m1", "old"), OutputAudio("m1", b"\0\0"), Interrupted("m1")]
    for event in (*late, TurnFailed("m1", "old"), GenerationComplete("m1"), TurnComplete("m1")):
        assert speaking.do(event) == []
    assert speaking.do(OutputText("m2", "new")) == [Send(s.ResponseChunk("new", is_first=True, turn=2))]


def test_a_turn_that_begins_during_an_answer_in_the_making_takes_its_place(processing: Talk) -> None:
    processing.do(said("It is"))
    effects = processing.do(TurnStarted("m2"))
    given_up = [InterruptModel("m1", ""), StoreAnswer("m1", 1, ""), EndTurn(1)]
    assert effects == [*given_up, tell(PROCESSING), BeginTurn("m2", spoken=True)]


def test_cancelled_calls_are_stopped(processing: Talk) -> None:
    assert processing.do(ToolCancelled("m1", ("call_0123456789",))) == [CancelCalls(("call_0123456789",))]


def test_when_nobody_listens_the_model_is_told_not_to_answer() -> None:
    talk = Talk()
    assert talk.do(TurnStarted("m1")) == [InterruptModel("m1", "")]
    assert talk.phase is IDLE


def test_the_times_of_a_turn_come_with_its_words(listening: Talk) -> None:
    timings = Timings(300, 100)
    listening.do(TurnStarted("m1"))
    (stored, _) = listening.do(InputTranscript("m1", "hi", is_final=True, timings=timings))
    assert stored == StoreUser("m1", 1, "hi", spoken=True, timings=timings)
