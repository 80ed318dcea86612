import pytest

from antiphon.tools.result import After, Intent, IntentType
from antiphon.tools.session import StateController


def test_a_voice_session_is_marked_to_end() -> None:
    state = StateController(voice_active=True)
    assert state.apply(Intent(IntentType.END_VOICE_SESSION, after=After.FAREWELL_SPOKEN))
    assert state.ending is After.FAREWELL_SPOKEN


def test_suppressing_ends_with_the_turn() -> None:
    state = StateController()
    assert state.apply(Intent(IntentType.SUPPRESS_AUDIO, value=True))
    assert state.apply(Intent(IntentType.SUPPRESS_TRANSCRIPT, value=True))
    state.end_turn()
    assert (state.suppress_audio, state.suppress_transcript) == (False, False)


def test_a_pending_message_is_kept_over_turns() -> None:
    state = StateController()
    state.apply(Intent(IntentType.SET_PENDING_MESSAGE, message="tell me a joke"))
    state.end_turn()
    assert state.pending_message == "tell me a joke"


def test_a_changed_voice_is_kept_and_told_once() -> None:
    state = StateController()
    assert state.apply(Intent(IntentType.CHANGE_VOICE, voice_speed=80, volume=50))
    assert (state.voice_speed, state.volume, state.has_new_settings) == (80, 50, True)
    state.has_new_settings = False
    state.apply(Intent(IntentType.CHANGE_VOICE, voice_speed=80, volume=50))
    assert not state.has_new_settings


@pytest.mark.parametrize(
    "intent",
    [
        Intent("MAKE_ME_ADMIN"),
        Intent(IntentType.END_VOICE_SESSION, after="whenever"),
        Intent(IntentType.SUPPRESS_AUDIO),
        Intent(IntentType.SUPPRESS_TRANSCRIPT, message="yes"),
        Intent(IntentType.SET_PENDING_MESSAGE, message=""),
        Intent(IntentType.CHANGE_VOICE, voice_speed=49, volume=50),
        Intent(IntentType.CHANGE_VOICE, voice_speed=100, volume=101),
        Intent(IntentType.CHANGE_VOICE, voice_speed=100),
        Intent(IntentType.SET_PENDING_MESSAGE, message="x" * 201),
        {"type": "SUPPRESS_AUDIO", "value": True},
        None,
    ],
)
def test_an_invalid_intent_is_refused_and_changes_nothing(intent: object) -> None:
    state = StateController(voice_active=True)
    assert not state.apply(intent)
    assert state == StateController(voice_active=True)


def test_without_a_voice_session_there_is_none_to_end() -> None:
    assert not StateController().apply(Intent(IntentType.END_VOICE_SESSION, after=After.IMMEDIATE))
