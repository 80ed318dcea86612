"""What is kept of the microphone, in case it must be heard again."""

from antiphon.continuity.heard_audio import IGNORED_MS, LEAD_MS, MAX_KEPT_MS, HeardAudio
from tests.fakes.calls import SOUND

QUIET = bytes(640)
FRAME_MS = 20


def add(heard: HeardAudio, pcm: bytes, ms: int, *, playing: bool = False) -> None:
    for _ in range(ms // FRAME_MS):
        heard.add(pcm, playing)


def replayed_ms(heard: HeardAudio) -> int:
    return FRAME_MS * len(list(heard.replay()))


def test_silence_is_not_heard_again() -> None:
    heard = HeardAudio()
    add(heard, QUIET, 5_000)
    assert replayed_ms(heard) == 0


def test_speech_is_heard_again_with_a_moment_before_it() -> None:
    heard = HeardAudio()
    add(heard, QUIET, 5_000)
    add(heard, SOUND, 1_000)
    assert replayed_ms(heard) == LEAD_MS + 1_000


def test_only_the_newest_audio_is_kept() -> None:
    heard = HeardAudio()
    add(heard, SOUND, MAX_KEPT_MS + 5_000)
    assert replayed_ms(heard) == MAX_KEPT_MS


def test_the_user_is_speaking_until_there_is_a_pause() -> None:
    heard = HeardAudio()
    add(heard, SOUND, 100)
    add(heard, QUIET, 600)
    assert heard.is_speaking
    add(heard, QUIET, 100)
    assert not heard.is_speaking


def test_what_was_understood_is_forgotten_and_what_follows_is_kept() -> None:
    heard = HeardAudio()
    add(heard, SOUND, 1_000)
    heard.begin_turn()
    add(heard, SOUND, 200)
    heard.forget_turn()
    assert replayed_ms(heard) == 200
    assert heard.has_sound


def test_speech_over_an_answer_outlives_the_turn() -> None:
    heard = HeardAudio()
    add(heard, SOUND, 1_000)
    heard.begin_turn()
    add(heard, QUIET, 2_000)
    add(heard, SOUND, 300)
    heard.end_turn()
    assert heard.is_speaking
    assert replayed_ms(heard) == LEAD_MS + 300


def test_a_turn_that_is_over_leaves_nothing_if_nobody_speaks() -> None:
    heard = HeardAudio()
    add(heard, SOUND, 1_000)
    heard.begin_turn()
    add(heard, QUIET, 1_000)
    heard.end_turn()
    assert not heard.has_sound
    assert replayed_ms(heard) == 0


def test_a_sound_that_a_model_ignored_is_forgotten() -> None:
    heard = HeardAudio()
    add(heard, SOUND, 200)
    add(heard, QUIET, IGNORED_MS)
    assert not heard.has_sound


def test_in_a_gap_nothing_is_ignored() -> None:
    heard = HeardAudio()
    heard.begin_gap()
    add(heard, SOUND, 200)
    add(heard, QUIET, IGNORED_MS)
    heard.end_turn()
    assert heard.has_sound_in_gap
    assert replayed_ms(heard) == 200 + IGNORED_MS


def test_in_a_gap_the_answer_that_is_playing_is_not_taken_for_the_user() -> None:
    heard = HeardAudio()
    heard.begin_gap()
    add(heard, SOUND, 200, playing=True)
    assert not heard.has_sound_in_gap
