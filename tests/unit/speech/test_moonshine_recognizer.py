"""How long speech is cut, and put together again."""

import numpy as np
import pytest

from antiphon.audio.pcm import Signal
from antiphon.sound_format import MICROPHONE_HZ
from antiphon.speech.engines.moonshine.recognizer import LONGEST_S, SHARED_S, Piece, cut, join


def talk(seconds: float) -> Signal:
    """No speech, but as loud and without a pause."""
    return np.random.default_rng(2).normal(0, 0.1, int(seconds * MICROPHONE_HZ)).astype(np.float32)


def pause(seconds: float) -> Signal:
    return np.zeros(int(seconds * MICROPHONE_HZ), np.float32)


def length_s(piece: Piece) -> float:
    return len(piece.signal) / MICROPHONE_HZ


@pytest.mark.parametrize("seconds", [0.0, 0.1, 5.0, LONGEST_S])
def test_short_audio_is_one_piece(seconds: float) -> None:
    (piece,) = cut(talk(seconds))
    assert length_s(piece) == pytest.approx(seconds)


def test_the_cut_is_within_a_pause() -> None:
    first, second = cut(np.concatenate([talk(9.0), pause(0.6), talk(6.0)]))
    assert 9.0 < length_s(first) < 9.6
    assert second.shared_s == 0
    assert length_s(first) + length_s(second) == pytest.approx(15.6)


def test_without_a_pause_two_pieces_overlap() -> None:
    first, second = cut(talk(15.0))
    assert second.shared_s == SHARED_S
    assert length_s(first) + length_s(second) == pytest.approx(15.0 + SHARED_S)


def test_a_short_gap_between_words_is_not_a_pause() -> None:
    *_, last = cut(np.concatenate([talk(9.0), pause(0.1), talk(6.0)]))
    assert last.shared_s == SHARED_S


def test_no_piece_is_longer_than_the_model_accepts() -> None:
    assert max(length_s(piece) for piece in cut(talk(100.0))) <= LONGEST_S


def test_silence_is_cut_too() -> None:
    assert sum(length_s(piece) - piece.shared_s for piece in cut(pause(40.0))) == pytest.approx(40.0)


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        ("We walked to the lake with", "the lake with two dogs.", "We walked to the lake with two dogs."),
        # At the edges words are cut: "wi" and "ake".
        ("We walked to the lake we.", "Ache with two dogs.", "We walked to the lake we. Ache with two dogs."),
        ("We walked to the lake wit.", "Ache the lake with two dogs.", "We walked to the lake with two dogs."),
        ("We went home, The end", "home. the end of it.", "We went home, The end of it."),
        ("All in both", "all in both", "All in both"),
        ("Nothing.", "", "Nothing."),
        ("", "Nothing.", "Nothing."),
        ("", "", ""),
    ],
)
def test_words_in_the_overlap_appear_once(before: str, after: str, joined: str) -> None:
    assert join(before, after, SHARED_S) == joined


def test_a_small_word_far_from_the_seam_is_not_merged() -> None:
    before, after = "The dog ate my homework and all of my bread today", "Nobody believed it of him then, but the dog"
    assert join(before, after, SHARED_S) == f"{before} {after}"


def test_pieces_without_an_overlap_are_concatenated() -> None:
    assert join("Is it the dog?", "The dog it is.", 0.0) == "Is it the dog? The dog it is."
