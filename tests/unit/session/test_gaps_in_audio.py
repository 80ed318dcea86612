"""Audio that does not come in one piece: words that fill the wait for an answer, and pauses within one."""

import pytest

from antiphon.models.live import GenerationComplete, InputTranscript, OutputAudio, OutputText, TurnStarted
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.limits import SPEECH_HZ
from antiphon.session import events as e
from antiphon.session.effects import Effect, LogIgnored, Send, SendAudio, SetTimer, StoreAnswer
from antiphon.session.machine import step
from antiphon.session.state import WATCHDOG_MS, Phase, SessionState
from antiphon.tools.spec import Mode

TURN = "m1"


class Session:
    """A session in which the user has just asked something."""

    def __init__(self) -> None:
        self.now_ms = 1_000
        self.state = SessionState(mode=Mode.VOICE, phase=Phase.LISTENING, resting=Phase.LISTENING)
        self.do(TurnStarted(TURN), InputTranscript(TURN, "what time is it", is_final=True))

    def do(self, *events: e.Event, after_ms: int = 0) -> list[Effect]:
        """The effects of the last event."""
        self.now_ms += after_ms
        effects: list[Effect] = []
        for event in events:
            self.state, made = step(self.state, event, self.now_ms)
            effects = list(made)
        return effects


@pytest.fixture
def session() -> Session:
    return Session()


def pcm(ms: int) -> bytes:
    return b"\1\0" * (SPEECH_HZ * ms // 1000 + 1)


FILLER = OutputAudio(TURN, pcm(500), is_filler=True)
WORDS = OutputText(TURN, "It is noon.")
SPEECH = OutputAudio(TURN, pcm(1_000), "It is noon.")


def test_audio_that_fills_the_wait_is_sent_but_the_answer_has_not_begun(session: Session) -> None:
    assert session.do(FILLER) == [SendAudio(1, 0, pcm(500), "", is_filler=True)]
    assert session.state.phase is Phase.PROCESSING
    session.do(WORDS)
    assert session.do(SPEECH, after_ms=9_000) == [
        Send(s.StateChanged(s.State.SPEAKING)),
        SendAudio(1, 1, pcm(1_000), "It is noon."),
    ]


def test_nothing_of_the_answer_was_heard_while_the_wait_was_filled(session: Session) -> None:
    session.do(FILLER)
    session.do(WORDS, SPEECH, after_ms=9_000)
    assert StoreAnswer(TURN, 1, "") in session.do(c.Interrupt(played_ms=500))


def test_audio_that_fills_the_wait_is_not_sent_after_the_answer_has_begun(session: Session) -> None:
    session.do(WORDS, SPEECH)
    assert [type(effect) for effect in session.do(FILLER)] == [LogIgnored]


def test_audio_after_a_gap_is_given_the_time_to_be_played(session: Session) -> None:
    session.do(OutputText(TURN, "Let me look. "), OutputAudio(TURN, pcm(500), "Let me look. "))
    session.do(WORDS, SPEECH, after_ms=20_000)
    effects = session.do(GenerationComplete(TURN))
    assert effects[-1] == SetTimer(session.now_ms + 1_000 + WATCHDOG_MS)
