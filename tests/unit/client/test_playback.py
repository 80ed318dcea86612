"""The audio that a loudspeaker gets, and the part that counts as played."""

import pytest

from antiphon.client.call import BYTES_PER_S, MAX_HELD_BYTES, TAIL_BYTES, Playback

SOUND = b"\x01\x02" * 1_000
TENTH = BYTES_PER_S // 10


@pytest.fixture
def playback() -> Playback:
    return Playback()


def test_without_speech_there_is_silence(playback: Playback) -> None:
    assert playback.take(100) == bytes(100)
    assert not playback.is_playing


def test_chunks_are_played_as_one_stream(playback: Playback) -> None:
    playback.add(1, SOUND[:300])
    playback.add(1, SOUND[300:])
    played = b"".join(playback.take(640) for _ in range(4))
    assert played == SOUND.ljust(2_560, b"\0")


def test_played_audio_is_counted_without_the_silence_after_it(playback: Playback) -> None:
    playback.add(1, bytes(BYTES_PER_S))
    playback.take(TENTH)
    assert playback.played_ms == pytest.approx(100)
    playback.take(3 * BYTES_PER_S)
    assert playback.played_ms == pytest.approx(1_000)


def test_another_answer_is_counted_from_its_beginning(playback: Playback) -> None:
    playback.add(1, bytes(BYTES_PER_S))
    playback.take(BYTES_PER_S)
    playback.add(2, bytes(BYTES_PER_S))
    playback.take(TENTH)
    assert playback.turn == 2
    assert playback.played_ms == pytest.approx(100)


def test_the_last_audio_is_audible_a_little_after_it_is_taken(playback: Playback) -> None:
    playback.add(1, bytes(TENTH))
    playback.take(TENTH)
    assert playback.is_playing
    playback.take(TAIL_BYTES)
    assert not playback.is_playing


def test_cleared_audio_is_not_played(playback: Playback) -> None:
    playback.add(1, SOUND)
    playback.take(200)
    playback.clear()
    assert not playback.is_playing
    assert playback.take(100) == bytes(100)
    assert playback.played_ms == pytest.approx(200 * 1000 / BYTES_PER_S)


def test_held_audio_waits_and_goes_on_where_it_was(playback: Playback) -> None:
    playback.add(1, SOUND)
    first = playback.take(200)
    playback.hold()
    assert playback.take(TAIL_BYTES) == bytes(TAIL_BYTES)
    assert not playback.is_playing
    assert not playback.is_over
    playback.resume()
    assert first + playback.take(1_800) == SOUND
    assert playback.played_ms == pytest.approx(2_000 * 1000 / BYTES_PER_S)


def test_held_audio_goes_on_by_itself_after_a_while(playback: Playback) -> None:
    playback.add(1, SOUND)
    playback.hold()
    playback.take(MAX_HELD_BYTES)
    assert playback.take(2_000) == SOUND


def test_what_was_held_can_be_dropped(playback: Playback) -> None:
    playback.add(1, SOUND)
    playback.hold()
    playback.clear()
    playback.add(2, SOUND)
    assert playback.take(2_000) == SOUND
