"""Every row of the protocol's state table, and what the rows have in common."""

from dataclasses import replace

import pytest

from antiphon.protocol.server_messages import QueuedText
from antiphon.session import events as e
from antiphon.session.effects import (
    Ask,
    Effect,
    EndAudio,
    EndTurn,
    KeepAnswer,
    KeepUser,
    RunTools,
    Save,
    Say,
    Silence,
    StartVoice,
    TellAudio,
    TellChunk,
    TellError,
    TellInterim,
    TellQueue,
    Wake,
    Warn,
)
from antiphon.session.machine import step
from antiphon.session.state import MAX_QUEUED, WATCHDOG_MS, Phase, Session
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode

IDLE, LISTENING, PROCESSING, SPEAKING = Phase.IDLE, Phase.LISTENING, Phase.PROCESSING, Phase.SPEAKING
LISTENS = e.ModeChanged(Mode.VOICE, listening=True)
"""A model listens, so the session does."""


class Talk:
    """A session that things happen to, one after another."""

    def __init__(self, mode: Mode = Mode.VOICE) -> None:
        self.session = Session(mode=mode)
        self.now_ms = 1_000
        self.effects: list[Effect] = []

    def do(self, *events: e.Event, after_ms: int = 0) -> list[Effect]:
        """The effects of the last event."""
        self.now_ms += after_ms
        for event in events:
            self.session, effects = step(self.session, event, self.now_ms)
            self.effects = list(effects)
        return self.effects

    @property
    def phase(self) -> Phase:
        return self.session.phase


@pytest.fixture
def listening() -> Talk:
    talk = Talk()
    talk.do(LISTENS)
    return talk


@pytest.fixture
def processing(listening: Talk) -> Talk:
    listening.do(e.Heard("what time is it", is_final=True))
    return listening


@pytest.fixture
def speaking(processing: Talk) -> Talk:
    processing.do(e.Said("It is noon. "), e.Said("Time to eat."))
    processing.do(e.Voiced(b"\0\0", 1_000, "It is noon."), e.Voiced(b"\0\0", 1_000, "Time to eat."))
    return processing


@pytest.mark.parametrize("mode", Mode)
def test_idle_start_listening_is_a_wish_for_a_model_that_listens(mode: Mode) -> None:
    talk = Talk(mode)
    assert talk.do(e.StartListening()) == [StartVoice()]
    assert talk.phase is IDLE


@pytest.mark.parametrize("mode", Mode)
def test_a_session_listens_when_a_model_does(mode: Mode) -> None:
    talk = Talk(mode)
    assert talk.do(LISTENS) == [Say(LISTENING), Save()]
    assert (talk.session.mode, talk.phase) == (Mode.VOICE, LISTENING)


def test_during_an_answer_in_text_the_wish_for_voice_is_not_lost() -> None:
    talk = Talk(Mode.TEXT)
    talk.do(e.TextMessage("let's talk"))
    assert talk.do(e.StartListening()) == [StartVoice()]
    assert talk.phase is PROCESSING


@pytest.mark.parametrize("resting", [IDLE, LISTENING])
def test_a_typed_message_is_answered_and_then_it_is_where_it_was(resting: Phase) -> None:
    talk = Talk()
    if resting is LISTENING:
        talk.do(LISTENS)
    assert talk.do(e.TextMessage("hello")) == [Say(PROCESSING), KeepUser("hello", spoken=False), Ask("hello")]
    talk.do(e.Said("Hi."))
    effects = talk.do(e.TurnOver())
    assert effects == [KeepAnswer(1, "Hi.", is_whole=True), Say(resting), EndTurn(1)]
    assert talk.phase is resting


def test_interim_words_are_told(listening: Talk) -> None:
    assert listening.do(e.Heard("what ti", is_final=False)) == [TellInterim("what ti")]


def test_listening_end_of_turn_is_stored_and_told(listening: Talk) -> None:
    effects = listening.do(e.Heard("what time is it", is_final=True))
    assert effects == [Say(PROCESSING), KeepUser("what time is it", spoken=True)]
    assert listening.phase is PROCESSING


def test_listening_stop_with_speech_is_processed_and_ends_idle(listening: Talk) -> None:
    assert listening.do(e.StopListening(heard_speech=True)) == [EndAudio(), Say(PROCESSING)]
    assert listening.do(e.Heard("good night", is_final=True)) == [KeepUser("good night", spoken=True)]
    listening.do(e.TurnOver())
    assert listening.phase is IDLE


def test_listening_stop_without_speech(listening: Talk) -> None:
    assert listening.do(e.StopListening(heard_speech=False)) == [Say(IDLE), Save()]


def test_processing_first_audio(processing: Talk) -> None:
    assert processing.do(e.Said("Noon.")) == [TellChunk("Noon.", is_first=True)]
    assert processing.do(e.Voiced(b"\1\0", 500, "Noon.")) == [Say(SPEAKING), TellAudio(1, 0, b"\1\0", "Noon.")]
    assert processing.do(e.Voiced(b"\2\0", 500, "Yes.")) == [TellAudio(1, 1, b"\2\0", "Yes.")]


def test_the_last_audio_is_told_as_such(speaking: Talk) -> None:
    assert speaking.do(e.Voiced(b"\3\0", 500, "Bye.", last=True)) == [TellAudio(1, 2, b"\3\0", "Bye.", last=True)]


def test_processing_an_empty_answer(processing: Talk) -> None:
    assert processing.do(e.TurnOver()) == [Say(LISTENING), EndTurn(1)]


def test_processing_an_error_is_told(processing: Talk) -> None:
    effects = processing.do(e.Failed("The model is away.", retryable=True))
    assert effects == [TellError("model_failed", "The model is away.", True), Say(LISTENING), EndTurn(1)]


def test_processing_the_user_goes_on(processing: Talk) -> None:
    assert processing.do(e.BargedIn()) == [Silence(1, ""), Say(LISTENING), EndTurn(1)]


def test_both_pieces_of_a_turn_that_goes_on_are_kept_as_one(processing: Talk) -> None:
    processing.do(e.BargedIn())
    effects = processing.do(e.Heard("what time is it in Tokyo", is_final=True, goes_on=True))
    assert effects == [Say(PROCESSING), KeepUser("what time is it in Tokyo", spoken=True, goes_on=True)]


def test_a_model_that_waits_is_asked_what_it_has_heard(listening: Talk) -> None:
    effects = listening.do(e.Heard("yes", is_final=True, waits=True))
    assert effects == [Say(PROCESSING), KeepUser("yes", spoken=True), Ask("yes")]


def test_words_that_a_model_heard_while_it_spoke_are_a_turn(speaking: Talk) -> None:
    effects = speaking.do(e.Heard("stop", is_final=True, waits=True), after_ms=1_000)
    assert effects[:2] == [KeepAnswer(1, "It is noon."), Silence(1, heard="It is noon.")]
    assert effects[-3:] == [Say(PROCESSING), KeepUser("stop", spoken=True), Ask("stop")]
    assert (speaking.phase, speaking.session.turn) == (PROCESSING, 2)


@pytest.mark.parametrize("phase", ["processing", "speaking"])
def test_without_a_model_there_is_no_answer_to_wait_for(phase: str, request: pytest.FixtureRequest) -> None:
    talk: Talk = request.getfixturevalue(phase)
    assert talk.do(e.Lost("gone"))[0] == TellError("model_failed", "gone", True)
    assert talk.phase is LISTENING


def test_a_model_that_waits_is_asked_what_stop_listening_has_ended(listening: Talk) -> None:
    listening.do(e.StopListening(heard_speech=True))
    assert listening.do(e.Heard("yes", is_final=True, waits=True)) == [KeepUser("yes", spoken=True), Ask("yes")]


def test_processing_interrupt(processing: Talk) -> None:
    assert processing.do(e.Interrupt()) == [Silence(1, ""), Say(LISTENING), EndTurn(1)]


def test_of_a_spoken_answer_that_nobody_heard_nothing_is_kept(processing: Talk) -> None:
    processing.do(e.Said("It is noon."))
    effects = processing.do(e.Interrupt())
    assert effects[:2] == [Silence(1, heard=""), KeepAnswer(1, "")]


def test_in_text_what_came_of_an_answer_was_read() -> None:
    talk = Talk(Mode.TEXT)
    talk.do(e.TextMessage("what time is it"), e.Said("It is noon."))
    assert talk.do(e.Interrupt())[:2] == [Silence(1, heard=None), KeepAnswer(1, "It is noon.")]


def test_a_failure_while_it_listens_is_told_and_it_listens_on(listening: Talk) -> None:
    assert listening.do(e.Failed("I could not understand.")) == [
        TellError("model_failed", "I could not understand.", True)
    ]
    assert listening.phase is LISTENING


def test_processing_a_second_typed_message_waits_for_the_end_of_the_answer(processing: Talk) -> None:
    first, second = QueuedText("q1", "and?"), QueuedText("q2", "then?")
    assert processing.do(e.TextMessage("and?")) == [TellQueue((first,))]
    assert processing.do(e.TextMessage("then?")) == [TellQueue((first, second))]
    processing.do(e.TurnOver())
    effects = processing.do(e.NextQueued())
    assert effects == [Say(PROCESSING), TellQueue((second,)), KeepUser("and?", spoken=False), Ask("and?")]


def test_a_message_that_waits_is_taken_back(processing: Talk) -> None:
    processing.do(e.TextMessage("and?"))
    assert processing.do(e.Unqueue("q1")) == [TellQueue(())]
    processing.do(e.TurnOver())
    assert processing.do(e.NextQueued()) == []
    assert processing.phase is LISTENING


def test_no_more_messages_wait_than_a_few(processing: Talk) -> None:
    for _ in range(MAX_QUEUED):
        processing.do(e.TextMessage("and?"))
    (effect,) = processing.do(e.TextMessage("too much"))
    assert isinstance(effect, TellError)
    assert effect.code == "busy"
    assert len(processing.session.queue) == MAX_QUEUED


@pytest.mark.parametrize("phase", ["processing", "speaking"])
def test_an_interruption_empties_the_queue(phase: str, request: pytest.FixtureRequest) -> None:
    talk: Talk = request.getfixturevalue("processing")
    talk.do(e.TextMessage("and?"))
    if phase == "speaking":
        talk.do(e.Said("Noon."), e.Voiced(b"\0\0", 1_000, "Noon."))
    assert talk.do(e.Interrupt())[0] == TellQueue(())
    assert talk.do(e.NextQueued()) == []


def test_what_has_waited_longer_comes_before_what_is_typed_into_the_answer(processing: Talk) -> None:
    processing.do(e.TextMessage("first"), e.Said("Noon."), e.Voiced(b"\0\0", 1_000, "Noon."))
    effects = processing.do(e.TextMessage("second"))
    assert effects[-4:] == [
        Say(PROCESSING),
        TellQueue((QueuedText("q2", "second"),)),
        KeepUser("first", spoken=False),
        Ask("first"),
    ]


def test_a_turn_that_another_process_left_is_answered_without_being_stored_again(listening: Talk) -> None:
    assert listening.do(e.TakenUp("what time is it")) == [Say(PROCESSING), Ask("what time is it")]


def test_of_an_answer_that_is_made_anew_the_client_hears_the_rest(listening: Talk) -> None:
    listening.do(e.TakenUp("what time is it", heard=("It", "is"), last_seq=4), e.Said("It is noon."))
    assert listening.do(e.Voiced(b"\0\0", 400, "It is ")) == [Say(SPEAKING)]
    assert listening.do(e.Voiced(b"\1\0", 400, "noon. ")) == [TellAudio(1, 5, b"\1\0", "noon. ")]


def test_another_answer_than_the_one_that_was_begun_is_heard_whole(listening: Talk) -> None:
    listening.do(e.TakenUp("what time is it", heard=("It", "is"), last_seq=4), e.Said("Noon."))
    assert listening.do(e.Voiced(b"\0\0", 400, "Noon. ")) == [Say(SPEAKING), TellAudio(1, 0, b"\0\0", "Noon. ")]
    assert listening.do(e.Voiced(b"\1\0", 400, "It is. ")) == [TellAudio(1, 1, b"\1\0", "It is. ")]


def test_the_time_of_an_answer_goes_on_when_its_listener_has_come_back(speaking: Talk) -> None:
    speaking.do(e.Made())
    (wake,) = speaking.do(e.ClientBack(missing_ms=500), after_ms=60_000)
    assert wake == Wake(speaking.now_ms + 500 + WATCHDOG_MS)
    assert speaking.do(e.PlaybackDone(), after_ms=500) == [Say(LISTENING), EndTurn(1)]


@pytest.mark.parametrize("phase", ["listening", "processing", "speaking"])
def test_a_fault_is_told_and_the_session_rests(phase: str, request: pytest.FixtureRequest) -> None:
    talk: Talk = request.getfixturevalue(phase)
    assert TellError("unavailable", "The store is away.", True) in talk.do(
        e.GivenUp("The store is away.", "unavailable")
    )
    assert talk.phase is LISTENING


@pytest.mark.parametrize("phase", ["processing", "speaking"])
def test_stop_listening_during_an_answer_ends_idle_afterwards(phase: str, request: pytest.FixtureRequest) -> None:
    talk: Talk = request.getfixturevalue(phase)
    assert talk.do(e.StopListening(heard_speech=False)) == []
    talk.do(e.Made())
    talk.do(e.TurnOver() if phase == "processing" else e.PlaybackDone(), after_ms=2_000)
    assert talk.phase is IDLE


def test_an_answer_is_told_whole_when_it_is_made(speaking: Talk) -> None:
    text = "It is noon. Time to eat."
    assert speaking.do(e.Made()) == [KeepAnswer(1, text, is_whole=True), Wake(1_000 + 2_000 + WATCHDOG_MS)]


def test_the_end_of_the_turn_tells_it_if_the_model_never_said_that_it_was_made(speaking: Talk) -> None:
    assert KeepAnswer(1, "It is noon. Time to eat.", is_whole=True) in speaking.do(e.TurnOver())


def test_a_model_that_is_done_waits_for_the_client_to_have_played(speaking: Talk) -> None:
    speaking.do(e.Made())
    assert speaking.do(e.TurnOver()) == []
    assert speaking.phase is SPEAKING


def test_speaking_playback_done(speaking: Talk) -> None:
    speaking.do(e.Made())
    assert speaking.do(e.PlaybackDone(), after_ms=2_000) == [Say(LISTENING), EndTurn(1)]


@pytest.mark.parametrize(("made", "after_ms", "turn"), [(False, 9_000, None), (True, 400, None), (True, 2_000, 7)])
def test_playback_done_too_soon_or_of_another_turn_means_nothing(
    speaking: Talk, made: bool, after_ms: int, turn: int | None
) -> None:
    if made:
        speaking.do(e.Made())
    assert speaking.do(e.PlaybackDone(turn), after_ms=after_ms) == []
    assert speaking.phase is SPEAKING


def test_speaking_barge_in(speaking: Talk) -> None:
    effects = speaking.do(e.BargedIn(), after_ms=1_000)
    assert effects == [
        KeepAnswer(1, "It is noon."),
        Silence(1, heard="It is noon."),
        Say(Phase.INTERRUPTED),
        EndTurn(1),
        Say(LISTENING),
    ]
    assert speaking.phase is LISTENING


def test_speaking_interrupt_keeps_what_the_client_has_played(speaking: Talk) -> None:
    effects = speaking.do(e.Interrupt(played_ms=1_700), after_ms=100)
    assert effects[0] == KeepAnswer(1, "It is noon. Time to")


def test_reported_playback_is_believed_over_the_clock(speaking: Talk) -> None:
    speaking.do(e.Playback(1, 1_500))
    effects = speaking.do(e.BargedIn(), after_ms=200)
    assert effects[0] == KeepAnswer(1, "It is noon. Time to")


def test_speaking_a_typed_message_interrupts_and_is_answered(speaking: Talk) -> None:
    effects = speaking.do(e.TextMessage("stop, what day is it"))
    assert Say(Phase.INTERRUPTED) in effects
    assert effects[-1] == Ask("stop, what day is it")
    assert (speaking.phase, speaking.session.turn) == (PROCESSING, 2)


def test_a_client_that_never_says_playback_done_is_not_stuck(speaking: Talk) -> None:
    speaking.do(e.Made())
    deadline_ms = 1_000 + 2_000 + WATCHDOG_MS
    assert speaking.do(e.Tick(), after_ms=deadline_ms - speaking.now_ms - 1) == [Wake(deadline_ms)]
    assert speaking.do(e.Tick(), after_ms=1) == [Say(LISTENING), EndTurn(1)]


def test_the_server_may_speak_of_its_own_accord() -> None:
    talk = Talk()
    assert talk.do(e.SpeakFirst()) == [Say(PROCESSING)]
    talk.do(e.Said("Hello!"))
    talk.do(e.TurnOver())
    assert talk.phase is IDLE


def test_tools_run_for_the_turn_that_wants_them(processing: Talk) -> None:
    calls = (ToolCall("call_0123456789", "get_time", {}),)
    assert processing.do(e.ToolsWanted(calls)) == [RunTools(1, calls)]


@pytest.mark.parametrize(
    "event", [e.TurnOver(), e.Made(), e.BargedIn(), e.PlaybackDone()], ids=lambda event: type(event).__name__
)
@pytest.mark.parametrize("phase", [IDLE, LISTENING])
def test_what_is_said_late_about_an_answer_changes_nothing(phase: Phase, event: e.Event) -> None:
    session = replace(Session(mode=Mode.VOICE), phase=phase)
    assert step(session, event, 0) == (session, [])


@pytest.mark.parametrize(
    ("phase", "event"),
    [
        (IDLE, e.Interrupt()),
        (IDLE, e.Failed("late")),
        (IDLE, e.StopListening(heard_speech=False)),
        (IDLE, e.Heard("hm", is_final=True)),
        (IDLE, e.Said("late words")),
        (LISTENING, e.StartListening()),
        (LISTENING, e.Voiced(b"", 1, "")),
        (PROCESSING, e.StartListening()),
        (PROCESSING, e.PlaybackDone()),
        (PROCESSING, e.SpeakFirst()),
        (SPEAKING, e.StartListening()),
        (SPEAKING, e.ModeChanged(Mode.TEXT)),
    ],
)
def test_anything_else_changes_nothing_and_warns_once(phase: Phase, event: e.Event) -> None:
    session = replace(Session(mode=Mode.VOICE), phase=phase)
    after, effects = step(session, event, 0)
    assert after == session
    assert [type(effect) for effect in effects] == [Warn]
