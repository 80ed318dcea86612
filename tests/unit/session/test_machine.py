"""Every row of the protocol's state table, and what the rows have in common."""

from dataclasses import replace

import pytest

from antiphon.models.live import (
    Closed,
    GenerationComplete,
    Held,
    InputTranscript,
    Interrupted,
    OutputAudio,
    OutputText,
    Resumed,
    Timings,
    ToolCalls,
    ToolCancelled,
    TurnComplete,
    TurnFailed,
    TurnStarted,
)
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.server_messages import QueuedText
from antiphon.session import events as e
from antiphon.session.effects import (
    BeginTurn,
    CancelCalls,
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
from tests.unit.session.machine_steps import (
    IDLE,
    LISTENING,
    LISTENS,
    PROCESSING,
    SPEAKING,
    Talk,
    barged_in,
    failed,
    failure,
    heard,
    made,
    over,
    queue,
    said,
    speech,
    spoken,
    tell,
    typed,
)


@pytest.mark.parametrize("mode", Mode)
def test_start_listening_while_idle_requests_a_listening_model(mode: Mode) -> None:
    talk = Talk(mode)
    assert talk.do(c.StartListening()) == [StartVoice()]
    assert talk.phase is IDLE


@pytest.mark.parametrize("mode", Mode)
def test_a_session_listens_once_its_model_does(mode: Mode) -> None:
    talk = Talk(mode)
    assert talk.do(LISTENS) == [tell(LISTENING), Save()]
    assert (talk.state.mode, talk.phase) == (Mode.VOICE, LISTENING)


def test_a_request_for_voice_during_a_text_answer_is_not_lost() -> None:
    talk = Talk(Mode.TEXT)
    talk.do(c.TextMessage("let's talk"))
    assert talk.do(c.StartListening()) == [StartVoice()]
    assert talk.phase is PROCESSING


@pytest.mark.parametrize("resting", [IDLE, LISTENING])
def test_a_typed_message_is_answered_and_the_previous_state_returns(resting: Phase) -> None:
    talk = Talk()
    if resting is LISTENING:
        talk.do(LISTENS)
    assert talk.do(c.TextMessage("hello")) == [tell(PROCESSING), *typed("hello")]
    talk.do(said("Hi."))
    effects = talk.do(over())
    assert effects == [StoreAnswer("s1", 1, "Hi.", is_whole=True), tell(resting), EndTurn(1)]
    assert talk.phase is resting


def test_interim_transcripts_are_sent(listening: Talk) -> None:
    interim = InputTranscript("m1", "what ti", is_final=False)
    assert listening.do(interim) == [Send(s.Transcript("what ti", is_final=False))]


def test_end_of_turn_while_listening_is_stored_and_sent(listening: Talk) -> None:
    effects = listening.hear("what time is it")
    assert effects == [tell(PROCESSING), BeginTurn("m1", spoken=True), *heard("what time is it")]
    assert listening.phase is PROCESSING


def test_stop_listening_with_speech_processes_it_and_ends_idle(listening: Talk) -> None:
    assert listening.do(e.ListeningStopped(has_speech=True)) == [EndAudio("s1"), tell(PROCESSING)]
    assert listening.hear("good night", "s1") == [BeginTurn("s1", spoken=True), *heard("good night", "s1")]
    listening.do(over())
    assert listening.phase is IDLE


def test_stop_listening_without_speech_ends_idle(listening: Talk) -> None:
    assert listening.do(e.ListeningStopped(has_speech=False)) == [tell(IDLE), Save()]


def test_the_first_audio_while_processing_starts_speaking(processing: Talk) -> None:
    assert processing.do(said("Noon.")) == [Send(s.ResponseChunk("Noon.", is_first=True, turn=1))]
    assert processing.do(spoken(b"\1\0", 500, "Noon.")) == [
        tell(SPEAKING),
        SendAudio(1, 0, speech(b"\1\0", 500), "Noon."),
    ]
    assert processing.do(spoken(b"\2\0", 500, "Yes.")) == [SendAudio(1, 1, speech(b"\2\0", 500), "Yes.")]


def test_the_last_audio_is_marked_as_last(speaking: Talk) -> None:
    assert speaking.do(spoken(b"\3\0", 500, "Bye.", last=True)) == [
        SendAudio(1, 2, speech(b"\3\0", 500), "Bye.", last=True)
    ]


def test_an_empty_answer_while_processing_ends_the_turn(processing: Talk) -> None:
    assert processing.do(over()) == [tell(LISTENING), EndTurn(1)]


def test_an_error_while_processing_is_reported(processing: Talk) -> None:
    effects = processing.do(failed("The model is away."))
    assert effects == [failure("The model is away."), tell(LISTENING), EndTurn(1)]


def test_the_user_may_continue_the_turn_while_processing(processing: Talk) -> None:
    assert processing.do(barged_in()) == [InterruptModel("m1", ""), tell(LISTENING), EndTurn(1)]


def test_both_parts_of_a_continued_turn_are_stored_as_one(processing: Talk) -> None:
    processing.do(barged_in())
    effects = processing.hear("what time is it in Tokyo", "m2", continues="m1")
    begin = BeginTurn("m2", spoken=True, continues="m1")
    assert effects == [tell(PROCESSING), begin, *heard("what time is it in Tokyo", "m2", 2)]


def test_a_late_transcript_of_a_replaced_turn_is_ignored(processing: Talk) -> None:
    processing.do(barged_in())
    processing.hear("what time is it in Tokyo", "m2", continues="m1")
    effects = processing.do(InputTranscript("m1", "what time", is_final=True))
    assert [type(effect) for effect in effects] == [LogIgnored]


def test_words_heard_while_the_model_speaks_are_a_turn(speaking: Talk) -> None:
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


def test_an_interrupt_while_processing_ends_the_turn(processing: Talk) -> None:
    assert processing.do(c.Interrupt()) == [InterruptModel("m1", ""), tell(LISTENING), EndTurn(1)]


def test_nothing_is_kept_of_a_spoken_answer_that_was_not_heard(processing: Talk) -> None:
    processing.do(said("It is noon."))
    effects = processing.do(c.Interrupt())
    assert effects[:2] == [InterruptModel("m1", ""), StoreAnswer("m1", 1, "")]


def test_in_text_mode_the_delivered_part_of_an_answer_counts_as_read() -> None:
    talk = Talk(Mode.TEXT)
    talk.do(c.TextMessage("what time is it"), said("It is noon."))
    assert talk.do(c.Interrupt())[:2] == [InterruptModel("s1", None), StoreAnswer("s1", 1, "It is noon.")]


def test_a_failure_while_listening_is_reported_and_listening_continues(listening: Talk) -> None:
    misheard = TurnFailed(None, "I could not understand.")
    assert listening.do(misheard) == [failure("I could not understand.")]
    assert listening.phase is LISTENING


def test_a_second_typed_message_waits_for_the_end_of_the_answer(processing: Talk) -> None:
    first, second = QueuedText("q1", "and?"), QueuedText("q2", "then?")
    assert processing.do(c.TextMessage("and?")) == [queue(first)]
    assert processing.do(c.TextMessage("then?")) == [queue(first, second)]
    processing.do(over())
    effects = processing.do(e.QueueReady())
    assert effects == [tell(PROCESSING), queue(second), *typed("and?", 2)]


def test_a_queued_message_can_be_withdrawn(processing: Talk) -> None:
    processing.do(c.TextMessage("and?"))
    assert processing.do(c.Unqueue("q1")) == [queue()]
    processing.do(over())
    assert processing.do(e.QueueReady()) == []
    assert processing.phase is LISTENING


def test_the_message_queue_is_bounded(processing: Talk) -> None:
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


def test_queued_messages_come_before_one_typed_during_the_answer(processing: Talk) -> None:
    processing.do(c.TextMessage("first"), said("Noon."), spoken(b"\0\0", 1_000, "Noon."))
    effects = processing.do(c.TextMessage("second"))
    assert effects[-5:] == [tell(PROCESSING), queue(QueuedText("q2", "second")), *typed("first", 2)]


def test_a_turn_left_by_another_process_is_answered_without_being_stored_again(listening: Talk) -> None:
    restored = e.TurnRestored("r7", "what time is it")
    assert listening.do(restored) == [tell(PROCESSING), Respond("r7", "what time is it")]


def test_the_client_hears_only_the_rest_of_a_regenerated_answer(listening: Talk) -> None:
    listening.do(e.TurnRestored("r7", "what time is it", heard=("It", "is"), last_seq=4), said("It is noon."))
    assert listening.do(spoken(b"\0\0", 400, "It is ")) == [tell(SPEAKING)]
    assert listening.do(spoken(b"\1\0", 400, "noon. ")) == [SendAudio(1, 5, speech(b"\1\0", 400), "noon. ")]


def test_pieces_of_a_regenerated_answer_may_have_other_lengths_or_no_words(listening: Talk) -> None:
    listening.do(
        e.TurnRestored("r7", "what time is it", heard=("It", "is", "now"), last_seq=4), said("It is now noon.")
    )
    assert listening.do(spoken(b"\0\0", 400, "It ")) == [tell(SPEAKING)]
    assert listening.do(spoken(b"\2\0", 100, "")) == []
    rest = SendAudio(1, 5, speech(b"\1\0", 200), "noon. Well.")
    assert listening.do(spoken(b"\1\0", 400, "is now noon. Well.")) == [rest]


@pytest.mark.parametrize("text", ["It is noon.", "It ", "I"])
def test_the_first_piece_of_a_regenerated_answer_may_end_before_its_first_word(listening: Talk, text: str) -> None:
    listening.do(e.TurnRestored("r7", "what time is it", heard=("It", "is"), last_seq=4), said(text))
    assert listening.do(spoken(b"\2\0", 100, "")) == [tell(SPEAKING)]
    assert listening.do(spoken(b"\0\0", 400, "It is ")) == []
    assert listening.do(spoken(b"\1\0", 400, "noon. ")) == [SendAudio(1, 5, speech(b"\1\0", 400), "noon. ")]


@pytest.mark.parametrize("text", ["", "Noon.", "Item one."])
def test_a_first_piece_without_words_is_heard_unless_the_text_repeats_what_was_heard(
    listening: Talk, text: str
) -> None:
    listening.do(e.TurnRestored("r7", "what time is it", heard=("It", "is"), last_seq=4), said(text))
    first = SendAudio(1, 0, speech(b"\2\0", 100), "")
    assert listening.do(spoken(b"\2\0", 100, "")) == [tell(SPEAKING), first]


def test_a_regenerated_answer_that_differs_is_heard_from_the_start(listening: Talk) -> None:
    listening.do(e.TurnRestored("r7", "what time is it", heard=("It", "is"), last_seq=4), said("Noon."))
    assert listening.do(spoken(b"\0\0", 400, "Noon. ")) == [
        tell(SPEAKING),
        SendAudio(1, 0, speech(b"\0\0", 400), "Noon. "),
    ]
    assert listening.do(spoken(b"\1\0", 400, "It is. ")) == [SendAudio(1, 1, speech(b"\1\0", 400), "It is. ")]


def test_the_playback_watchdog_restarts_when_the_client_comes_back(speaking: Talk) -> None:
    speaking.do(made())
    (wake,) = speaking.do(e.ClientBack(missing_ms=500), after_ms=60_000)
    assert wake == SetTimer(speaking.now_ms + 500 + WATCHDOG_MS)
    assert speaking.do(c.PlaybackDone(), after_ms=500) == [tell(LISTENING), EndTurn(1)]


@pytest.mark.parametrize("phase", ["listening", "processing", "speaking"])
def test_an_abandoned_turn_is_reported_and_the_session_listens(phase: str, request: pytest.FixtureRequest) -> None:
    talk: Talk = request.getfixturevalue(phase)
    assert Send(s.Error("The store is away.", "unavailable", retryable=True)) in talk.do(
        e.TurnAbandoned("The store is away.", "unavailable")
    )
    assert talk.phase is LISTENING


@pytest.mark.parametrize("phase", ["processing", "speaking"])
def test_stop_listening_during_an_answer_leads_to_idle_after_it(phase: str, request: pytest.FixtureRequest) -> None:
    talk: Talk = request.getfixturevalue(phase)
    assert talk.do(e.ListeningStopped(has_speech=False)) == []
    talk.do(made())
    talk.do(over() if phase == "processing" else c.PlaybackDone(), after_ms=2_000)
    assert talk.phase is IDLE


def test_the_full_answer_is_sent_once_it_is_generated(speaking: Talk) -> None:
    text = "It is noon. Time to eat."
    assert speaking.do(made()) == [StoreAnswer("m1", 1, text, is_whole=True), SetTimer(1_000 + 2_000 + WATCHDOG_MS)]


def test_the_end_of_the_turn_sends_the_full_answer_if_the_model_never_reported_it_generated(speaking: Talk) -> None:
    assert StoreAnswer("m1", 1, "It is noon. Time to eat.", is_whole=True) in speaking.do(over())


def test_a_finished_answer_waits_for_the_client_to_play_it(speaking: Talk) -> None:
    speaking.do(made())
    assert speaking.do(over()) == []
    assert speaking.phase is SPEAKING


def test_playback_done_while_speaking_ends_the_turn(speaking: Talk) -> None:
    speaking.do(made())
    assert speaking.do(c.PlaybackDone(), after_ms=2_000) == [tell(LISTENING), EndTurn(1)]


@pytest.mark.parametrize(("is_made", "after_ms", "turn"), [(False, 9_000, None), (True, 400, None), (True, 2_000, 7)])
def test_playback_done_too_early_or_for_another_turn_is_ignored(
    speaking: Talk, is_made: bool, after_ms: int, turn: int | None
) -> None:
    if is_made:
        speaking.do(made())
    assert speaking.do(c.PlaybackDone(turn), after_ms=after_ms) == []
    assert speaking.phase is SPEAKING


def test_a_barge_in_while_speaking_interrupts_the_answer(speaking: Talk) -> None:
    effects = speaking.do(barged_in(), after_ms=1_000)
    assert effects == [
        StoreAnswer("m1", 1, "It is noon."),
        InterruptModel("m1", "It is noon."),
        tell(Phase.INTERRUPTED),
        EndTurn(1),
        tell(LISTENING),
    ]
    assert speaking.phase is LISTENING


def test_an_interrupt_while_speaking_keeps_what_the_client_has_played(speaking: Talk) -> None:
    effects = speaking.do(c.Interrupt(played_ms=1_700), after_ms=100)
    assert effects[0] == StoreAnswer("m1", 1, "It is noon. Time to")


def test_reported_playback_takes_precedence_over_the_clock(speaking: Talk) -> None:
    speaking.do(c.Playback(1, 1_500))
    effects = speaking.do(barged_in(), after_ms=200)
    assert effects[0] == StoreAnswer("m1", 1, "It is noon. Time to")


def test_a_typed_message_while_speaking_interrupts_and_is_answered(speaking: Talk) -> None:
    effects = speaking.do(c.TextMessage("stop, what day is it"))
    assert tell(Phase.INTERRUPTED) in effects
    assert effects[-1] == Respond("s2", "stop, what day is it")
    assert (speaking.phase, speaking.state.turns) == (PROCESSING, 2)


def test_a_session_whose_client_never_sends_playback_done_is_not_stuck(speaking: Talk) -> None:
    speaking.do(made())
    deadline_ms = 1_000 + 2_000 + WATCHDOG_MS
    assert speaking.do(e.Tick(), after_ms=deadline_ms - speaking.now_ms - 1) == [SetTimer(deadline_ms)]
    assert speaking.do(e.Tick(), after_ms=1) == [tell(LISTENING), EndTurn(1)]


def test_the_server_may_speak_unprompted() -> None:
    talk = Talk()
    assert talk.do(e.SessionSpeaks()) == [tell(PROCESSING)]
    talk.do(said("Hello!"))
    talk.do(over())
    assert talk.phase is IDLE


def test_tools_run_for_the_turn_that_requested_them(processing: Talk) -> None:
    calls = (ToolCall("call_0123456789", "get_time", {}),)
    assert processing.do(ToolCalls("m1", calls)) == [RunTools("m1", calls)]


@pytest.mark.parametrize(
    "event",
    [
        TurnComplete("m1"),
        GenerationComplete("m1"),
        Interrupted("m1"),
        Held("m1"),
        Held(None),
        Resumed("m1"),
        c.PlaybackDone(),
        OutputText("m1", "late words"),
        OutputAudio("m1", b"\0\0"),
    ],
    ids=lambda event: type(event).__name__,
)
@pytest.mark.parametrize("phase", [IDLE, LISTENING])
def test_late_events_about_an_answer_change_nothing(phase: Phase, event: e.Event) -> None:
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
def test_an_unexpected_event_changes_nothing_and_warns_once(phase: Phase, event: e.Event) -> None:
    state = replace(SessionState(mode=Mode.VOICE), phase=phase)
    after, effects = step(state, event, 0)
    assert after == state
    assert [type(effect) for effect in effects] == [LogIgnored]


# Models that answer on their own: an answer and its transcript may come in any order.


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


def test_a_transcript_many_turns_late_is_ignored(listening: Talk) -> None:
    for number in range(MAX_RECENT + 1):
        listening.do(TurnStarted(f"m{number}"), over())
    (effect,) = listening.do(InputTranscript("m0", "too late", is_final=True))
    assert isinstance(effect, LogIgnored)


def test_a_turn_needs_no_transcript(listening: Talk) -> None:
    listening.do(TurnStarted("m1"), said("Noon."))
    effects = listening.do(over())
    assert effects == [StoreAnswer("m1", 1, "Noon.", is_whole=True), tell(LISTENING), EndTurn(1)]


def test_interim_transcripts_of_the_current_turn_are_sent(processing: Talk) -> None:
    interim = [InputTranscript(turn, "what", is_final=False) for turn in ("m1", "m0")]
    assert processing.do(interim[0]) == [Send(s.Transcript("what", is_final=False))]
    assert processing.do(interim[1]) == []


def test_of_two_responses_in_flight_only_the_newer_one_matters(speaking: Talk) -> None:
    speaking.do(TurnStarted("m2"))
    late: list[e.Event] = [OutputText("m1", "old"), OutputAudio("m1", b"\0\0"), Interrupted("m1")]
    for event in (*late, TurnFailed("m1", "old"), GenerationComplete("m1"), TurnComplete("m1")):
        assert speaking.do(event) == []
    assert speaking.do(OutputText("m2", "new")) == [Send(s.ResponseChunk("new", is_first=True, turn=2))]


def test_a_turn_that_begins_while_an_answer_is_generated_replaces_it(processing: Talk) -> None:
    processing.do(said("It is"))
    effects = processing.do(TurnStarted("m2"))
    given_up = [InterruptModel("m1", ""), StoreAnswer("m1", 1, ""), EndTurn(1)]
    assert effects == [*given_up, tell(PROCESSING), BeginTurn("m2", spoken=True)]


def test_cancelled_calls_are_stopped(processing: Talk) -> None:
    assert processing.do(ToolCancelled("m1", ("call_0123456789",))) == [CancelCalls(("call_0123456789",))]


def test_the_model_is_told_not_to_answer_when_the_session_is_not_listening() -> None:
    talk = Talk()
    assert talk.do(TurnStarted("m1")) == [InterruptModel("m1", "")]
    assert talk.phase is IDLE


def test_the_timings_of_a_turn_come_with_its_transcript(listening: Talk) -> None:
    timings = Timings(300, 100)
    listening.do(TurnStarted("m1"))
    (stored, _) = listening.do(InputTranscript("m1", "hi", is_final=True, timings=timings))
    assert stored == StoreUser("m1", 1, "hi", spoken=True, timings=timings)


@pytest.mark.parametrize("message", [c.ClearConversation(), c.LoadConversation("c1")], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("phase", ["listening", "processing", "speaking"])
def test_leaving_a_conversation_ends_the_turn_and_its_late_transcripts(
    message: c.ClientMessage, phase: str, request: pytest.FixtureRequest
) -> None:
    talk: Talk = request.getfixturevalue(phase)
    talk.do(message)
    assert (talk.phase, talk.state.recent) == (LISTENING, ())
    (effect,) = talk.do(InputTranscript("m1", "what time is it", is_final=True))
    assert isinstance(effect, LogIgnored)
