"""Answers that a client may not have heard, as the state machine deals with them."""

import pytest

from antiphon.models.live import (
    Closed,
)
from antiphon.protocol import client_messages as c
from antiphon.session import events as e
from antiphon.session.effects import (
    EndTurn,
    SayAgain,
    SendAudio,
    SetTimer,
    StoreAnswer,
)
from antiphon.session.state import WATCHDOG_MS
from antiphon.tools.spec import Mode
from tests.unit.session.machine_steps import (
    LISTENING,
    PROCESSING,
    SPEAKING,
    Talk,
    failed,
    failure,
    made,
    said,
    spoken,
    tell,
)


def await_watchdog(speaking: Talk) -> None:
    speaking.do(made())
    speaking.do(e.Tick(), after_ms=2_000 + WATCHDOG_MS)
    assert speaking.phase is LISTENING


def test_an_answer_that_was_not_reported_as_played_is_spoken_to_a_client_that_missed_it(speaking: Talk) -> None:
    await_watchdog(speaking)
    deadline_ms = speaking.now_ms + 1_500 + WATCHDOG_MS
    assert speaking.do(e.ClientBack(1_500)) == [tell(SPEAKING), SetTimer(deadline_ms)]
    assert speaking.do(c.PlaybackDone(1), after_ms=1_500) == [tell(LISTENING), EndTurn(1)]
    assert speaking.state.is_settled


@pytest.mark.parametrize("event", [c.PlaybackDone(1), c.Interrupt(), c.ClearConversation(), e.ModeChanged(Mode.TEXT)])
def test_an_answer_that_was_played_or_is_not_wanted_is_not_spoken_again(speaking: Talk, event: e.Event) -> None:
    await_watchdog(speaking)
    assert not speaking.state.is_settled
    speaking.do(event)
    assert speaking.do(e.ClientBack(1_500)) == []
    assert speaking.state.is_settled


def test_a_client_that_has_missed_nothing_hears_nothing_again(speaking: Talk) -> None:
    await_watchdog(speaking)
    assert speaking.do(e.ClientBack(0)) == []
    assert speaking.phase is LISTENING


def test_a_new_turn_makes_the_answer_before_it_old(speaking: Talk) -> None:
    await_watchdog(speaking)
    speaking.hear("and now", "m2")
    speaking.do(e.ClientBack(1_500))
    assert speaking.phase is PROCESSING
    assert speaking.state.unconfirmed is None


def test_playback_that_was_reported_up_to_the_end_needs_no_confirmation(speaking: Talk) -> None:
    speaking.do(c.Playback(1, 2_000))
    await_watchdog(speaking)
    assert speaking.state.is_settled


def test_an_answer_that_failed_while_it_was_spoken_can_still_be_heard(speaking: Talk) -> None:
    speaking.do(failed("broken"))
    assert speaking.phase is LISTENING
    speaking.do(e.ClientBack(500))
    assert speaking.phase is SPEAKING


def test_a_complete_answer_is_played_although_its_model_is_lost(speaking: Talk) -> None:
    speaking.do(made())
    assert speaking.do(Closed("gone")) == [failure("gone")]
    assert speaking.phase is SPEAKING


def test_lost_audio_is_said_again_without_its_text(speaking: Talk) -> None:
    speaking.do(made())
    assert speaking.do(e.SpeechLost("Time to eat.", 1_000)) == [SayAgain("m1", "Time to eat.")]
    assert speaking.do(c.PlaybackDone(1), after_ms=5_000) == [], "not all of it has been sent"
    assert speaking.do(said("Time to eat.")) == []
    [audio] = speaking.do(spoken(b"cc", 800, "Time to eat."))
    assert isinstance(audio, SendAudio)
    [timer] = speaking.do(made())
    assert isinstance(timer, SetTimer)
    effects = speaking.do(c.Interrupt(played_ms=1_000), after_ms=100)
    assert effects[0] == StoreAnswer("m1", 1, "It is noon.")
