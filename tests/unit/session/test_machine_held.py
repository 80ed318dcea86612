"""An answer that is held while somebody may speak over it, as the state machine sees it."""

import pytest

from antiphon.models.live import Held, Resumed
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.session import events as e
from antiphon.session.effects import EndTurn, InterruptModel, Send, SetTimer, StoreAnswer
from antiphon.session.state import WATCHDOG_MS, Phase
from tests.unit.session.machine_steps import (
    LISTENING,
    LISTENS,
    PROCESSING,
    SPEAKING,
    Talk,
    barged_in,
    held,
    made,
    over,
    resumed,
    said,
    spoken,
    tell,
)

HOLD, RESUME = Send(s.Hold(1)), Send(s.Resume(1))


@pytest.fixture
def speaking() -> Talk:
    """Two seconds of audio were sent, and half a second of it was played."""
    talk = Talk()
    talk.do(LISTENS)
    talk.hear("what will the weather be")
    talk.do(said("Sunny today, and warm."), spoken(b"\1\0", 1_000, "Sunny today,"), spoken(b"\2\0", 1_000, "and warm."))
    talk.now_ms += 500
    return talk


def test_the_client_is_told_to_hold_and_to_go_on(speaking: Talk) -> None:
    assert speaking.do(held()) == [HOLD]
    assert speaking.do(resumed(), after_ms=700) == [RESUME]
    assert speaking.phase is SPEAKING


def test_a_second_hold_is_not_told_again(speaking: Talk) -> None:
    speaking.do(held())
    assert speaking.do(held()) == []


def test_without_a_hold_there_is_nothing_to_resume(speaking: Talk) -> None:
    assert speaking.do(resumed()) == []


def test_a_hold_without_the_id_of_the_turn_is_of_what_plays(speaking: Talk) -> None:
    assert speaking.do(Held(None)) == [HOLD]
    assert speaking.do(Resumed(None)) == [RESUME]


def test_before_its_first_sound_an_answer_needs_no_hold() -> None:
    talk = Talk()
    talk.do(LISTENS)
    talk.hear("what will the weather be")
    assert talk.do(held()) == talk.do(resumed()) == []
    assert talk.phase is PROCESSING


def test_the_time_while_it_was_held_does_not_count_as_playing(speaking: Talk) -> None:
    speaking.do(held())
    speaking.do(resumed(), after_ms=5_000)
    effects = speaking.do(barged_in(), after_ms=500)
    assert effects[0] == StoreAnswer("m1", 1, "Sunny today,")


def test_an_interruption_cuts_the_history_where_the_answer_was_held(speaking: Talk) -> None:
    speaking.do(held())
    effects = speaking.do(barged_in(), after_ms=1_500)
    assert effects == [
        StoreAnswer("m1", 1, "Sunny"),
        InterruptModel("m1", "Sunny"),
        tell(Phase.INTERRUPTED),
        EndTurn(1),
        tell(LISTENING),
    ]


def test_a_resumed_answer_that_is_heard_to_its_end_is_whole(speaking: Talk) -> None:
    speaking.do(held())
    speaking.do(resumed(), after_ms=800)
    assert speaking.do(made()) == [
        StoreAnswer("m1", 1, "Sunny today, and warm.", is_whole=True),
        SetTimer(speaking.now_ms + 1_500 + WATCHDOG_MS),
    ]
    speaking.do(over())
    assert speaking.do(c.PlaybackDone(1), after_ms=800) == [], "it cannot have been played yet"
    assert speaking.do(c.PlaybackDone(1), after_ms=700) == [tell(LISTENING), EndTurn(1)]


def test_the_watchdog_waits_for_as_much_longer_as_a_complete_answer_was_held(speaking: Talk) -> None:
    speaking.do(made(), over(), held())
    assert speaking.do(resumed(), after_ms=900) == [RESUME, SetTimer(speaking.now_ms + 1_500 + WATCHDOG_MS)]


def test_audio_that_comes_during_a_hold_is_played_after_what_is_held(speaking: Talk) -> None:
    speaking.do(held())
    speaking.do(spoken(b"\3\0", 1_000, "Take a hat."), after_ms=3_000)
    speaking.do(resumed())
    effects = speaking.do(barged_in(), after_ms=1_500)
    assert effects[0] == StoreAnswer("m1", 1, "Sunny today, and warm.")


def test_a_client_that_comes_back_goes_on(speaking: Talk) -> None:
    speaking.do(held())
    assert speaking.do(e.ClientBack(missing_ms=0), after_ms=400) == [RESUME]
    assert speaking.do(resumed()) == []


def test_a_stop_button_ends_a_held_answer(speaking: Talk) -> None:
    speaking.do(held())
    speaking.do(c.Interrupt(played_ms=500), after_ms=300)
    assert speaking.phase is LISTENING
    assert speaking.do(Resumed("m1")) == []
