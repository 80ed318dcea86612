"""An answer that was cut off is joined to the one that another connection makes in its place."""

from typing import Final

from antiphon.continuity.continuation import Continuation
from antiphon.models.live import OutputAudio
from antiphon.protocol.limits import SPEECH_HZ

SAID: Final = "Coffee was first grown in Ethiopia. Traders carried it"
VOICED: Final = "Coffee was first grown in Ethiopia."
VOICED_MS: Final = 2_000


def audio(ms: int, text: str = "") -> OutputAudio:
    return OutputAudio("t1", bytes(2 * SPEECH_HZ * ms // 1000), text)


def cut_off() -> Continuation:
    """The words of the second sentence have come, and their audio has not."""
    return Continuation(SAID, VOICED, VOICED_MS, same_voice=True)


def test_a_model_that_goes_on_after_the_spoken_words_repeats_no_written_ones_and_all_of_its_audio_is_new() -> None:
    continuation = cut_off()
    piece = audio(1_000, "Traders carried it to Yemen.")
    new = continuation.take_text("Traders carried it ") + continuation.take_text("to Yemen.", is_last=True)
    assert new == " to Yemen."
    assert continuation.take_audio(piece) == (piece,)


def test_of_a_model_that_begins_again_the_sent_words_and_audio_are_left_out() -> None:
    continuation = cut_off()
    assert continuation.take_text(f"{SAID} to Yemen.", is_last=True) == " to Yemen."
    assert continuation.take_audio(audio(VOICED_MS, VOICED)) == ()
    piece = audio(1_000, "Traders carried it to Yemen.")
    assert continuation.take_audio(piece) == (piece,)


def test_a_model_that_says_something_else_is_heard_from_its_first_word() -> None:
    continuation = cut_off()
    assert continuation.take_text("Where was I? ", is_last=True) == " Where was I? "
