"""Which of the microphone's audio is kept for another model."""

from antiphon.continuity.heard_audio import LEAD_MS, MAX_KEPT_MS, HeardAudio

QUIET = bytes(640)
LOUD = 8 * (20 * b"\x00\x40" + 20 * b"\x00\xc0")


def hear(audio: HeardAudio, *frames: bytes) -> None:
    for frame in frames:
        audio.add(frame, playing=False)


def kept(audio: HeardAudio) -> list[bytes]:
    return [pcm for pcm, _ in audio.replay()]


def test_speech_is_kept_with_a_moment_before_it() -> None:
    audio = HeardAudio()
    hear(audio, *50 * [QUIET], LOUD, QUIET)
    assert kept(audio) == [*LEAD_MS // 20 * [QUIET], LOUD, QUIET]


def test_silence_is_not_kept() -> None:
    audio = HeardAudio()
    hear(audio, *50 * [QUIET])
    assert kept(audio) == []


def test_what_was_said_after_a_turn_outlives_it() -> None:
    audio = HeardAudio()
    hear(audio, LOUD, QUIET)
    audio.begin_turn()
    hear(audio, QUIET, LOUD, LOUD)
    audio.forget_turn()
    audio.forget_turn()
    assert kept(audio) == [QUIET, LOUD, LOUD]


def test_an_old_sound_is_not_taken_for_speech() -> None:
    audio = HeardAudio()
    hear(audio, LOUD, *(MAX_KEPT_MS // 20 + 1) * [QUIET])
    assert not audio.has_sound
    assert kept(audio) == []


def test_the_user_speaks_until_a_pause() -> None:
    audio = HeardAudio()
    hear(audio, LOUD, QUIET)
    assert audio.is_speaking
    hear(audio, *50 * [QUIET])
    assert not audio.is_speaking
