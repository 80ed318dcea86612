"""An answer that was cut off and is made again: nothing of it is doubled, and nothing is missing."""

from array import array
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.continuity.continuation import MAX_HELD_MS, Continuation
from antiphon.models.live import OutputAudio
from antiphon.protocol.limits import SPEECH_HZ

WORDS = st.text("abcdeé'", min_size=1, max_size=6)
ANSWERS = st.lists(st.tuples(WORDS, st.sampled_from(["", "", "", ",", ".", "?", " –"])), min_size=1, max_size=14).map(
    lambda words: " ".join(word + mark for word, mark in words)
)
ANSWER = "It is noon in Oslo. In Tokyo, it is already evening, and the shops have closed."


def pieces_of(text: str, sizes: Sequence[int]) -> Iterator[str]:
    """The text in pieces of these sizes, and what is left of it."""
    at = 0
    for size in sizes:
        yield text[at : at + size]
        at += size
    yield text[at:]


def join(continuation: Continuation, pieces: Sequence[str]) -> str:
    new = "".join(continuation.take_text(piece) for piece in pieces)
    return new + continuation.take_text("", is_last=True)


@settings(deadline=None)
@given(answer=ANSWERS, data=st.data())
def test_of_an_answer_that_is_repeated_the_rest_is_passed_on(answer: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(answer)))
    sizes = data.draw(st.lists(st.integers(1, 8), max_size=20))
    continuation = Continuation(answer[:cut], "", 0, same_voice=True)
    assert join(continuation, list(pieces_of(answer, sizes))) == answer[cut:]


@settings(deadline=None)
@given(answer=ANSWERS, data=st.data())
def test_two_cuts_in_one_answer_leave_it_whole(answer: str, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(answer)))
    second = data.draw(st.integers(first, len(answer)))
    said = answer[:first]
    said += Continuation(said, "", 0, same_voice=True).take_text(answer[:second])
    # What was not decided by the second cut comes with the third connection.
    assert answer.startswith(said)
    assert said + join(Continuation(said, "", 0, same_voice=True), [answer]) == answer


@settings(deadline=None)
@given(data=st.data())
def test_an_answer_that_goes_on_is_passed_on_whole(data: st.DataObject) -> None:
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    cut = data.draw(st.integers(1, len(words) - 1))
    said, rest = " ".join(words[:cut]), " ".join(words[cut:])
    said += data.draw(st.sampled_from(["", " "]))
    sizes = data.draw(st.lists(st.integers(1, 8), max_size=10))
    assert said + join(Continuation(said, "", 0, same_voice=True), list(pieces_of(rest, sizes))) == " ".join(words)


@pytest.mark.parametrize(
    ("said", "answer", "new"),
    [
        ("Hello the", "Hello there, my friend.", "re, my friend."),
        ("Hello there", "Hello there, my friend.", ", my friend."),
        ("Hello there, ", "Hello there, my friend.", "my friend."),
        ("Hello there, ", " my friend.", "my friend."),
        ("hello there", "Hello there! My friend.", "! My friend."),
        ("It is noon. In Tokyo it is", "In Tokyo it is evening.", " evening."),
        ("Let me see. It", "It is noon.", " is noon."),
        ("Hello there, my friend.", "Hello there, my friend.", ""),
        ("Hello there, my friend.", "Hello there,", ""),
        ("It costs 5", "euros.", " euros."),
        ("It costs 5", ", no more.", ", no more."),
        ("The answer is", "The answer may be seven.", " The answer may be seven."),
        ("", "Hello.", "Hello."),
    ],
)
def test_what_is_new_follows_what_was_said(said: str, answer: str, new: str) -> None:
    assert join(Continuation(said, "", 0, same_voice=True), [answer]) == new


def test_a_model_that_goes_on_after_the_spoken_words_does_not_show_the_others_twice() -> None:
    continuation = Continuation(ANSWER[:40], ANSWER[:20], 1_000, same_voice=True)
    assert join(continuation, [ANSWER[20:]]) == ANSWER[40:]
    audio = speak(ANSWER[20:], ms=3_000)
    assert "".join(piece.text for piece in take(continuation, audio)) == ANSWER[20:]


# Audio.


def speak(text: str, *, ms: int, pieces: int = 8, is_last: bool = False) -> list[OutputAudio]:
    """A ramp, so that it can be seen which part is there, with words in every piece."""
    samples = array("h", (n % 30_000 for n in range(ms * SPEECH_HZ // 1000)))
    size, chars = -(-len(samples) // pieces), -(-len(text) // pieces)
    return [
        OutputAudio(
            "t",
            samples[n * size : (n + 1) * size].tobytes(),
            text[n * chars : (n + 1) * chars],
            last=is_last and n == pieces - 1,
        )
        for n in range(pieces)
    ]


def take(continuation: Continuation, audio: Sequence[OutputAudio]) -> list[OutputAudio]:
    taken = [new for piece in audio for new in continuation.take_audio(piece)]
    return [*taken, *continuation.take_audio(None, is_last=True)]


@settings(deadline=None, max_examples=40)
@given(cut=st.integers(1, 7), pieces=st.integers(2, 12), text_first=st.booleans())
def test_of_audio_that_is_repeated_the_rest_is_passed_on(cut: int, pieces: int, *, text_first: bool) -> None:
    whole = speak(ANSWER, ms=4_000)
    sent = whole[:cut]
    voiced = "".join(piece.text for piece in sent)
    sent_ms = sum(len(piece.pcm) / 2 / SPEECH_HZ * 1000 for piece in sent)
    continuation = Continuation(voiced, voiced, sent_ms, same_voice=True)
    again = speak(ANSWER, ms=4_000, pieces=pieces)
    new: list[OutputAudio] = []
    if text_first:
        continuation.take_text(ANSWER)
    for place, piece in enumerate(again):
        new += continuation.take_audio(piece)
        if place == 0:
            continuation.take_text(ANSWER)
            new += continuation.take_audio(None)
    new += continuation.take_audio(None, is_last=True)
    pcm = b"".join(piece.pcm for piece in (*sent, *new))
    expected = b"".join(piece.pcm for piece in whole)
    assert abs(len(pcm) - len(expected)) <= 2 * SPEECH_HZ // 100
    assert voiced + "".join(piece.text for piece in new) == ANSWER
    assert all(piece.pcm for piece in new)


def test_audio_that_goes_on_is_passed_on_once_the_words_show_it() -> None:
    continuation = Continuation("It is noon in Oslo.", "It is noon in Oslo.", 1_000, same_voice=True)
    audio = speak("In Tokyo it is evening.", ms=1_000)
    assert take_all(continuation, audio[:2]) == []
    continuation.take_text("Now in Tokyo ")
    first, second = continuation.take_audio(None)
    assert (first.pcm, first.text) == (audio[0].pcm, f" {audio[0].text}")
    assert second == audio[1]
    assert take_all(continuation, audio[2:]) == audio[2:]


def take_all(continuation: Continuation, audio: Sequence[OutputAudio]) -> list[OutputAudio]:
    return [new for piece in audio for new in continuation.take_audio(piece)]


def test_another_voice_is_joined_by_its_words() -> None:
    continuation = Continuation(ANSWER[:40], ANSWER[:40], 1_000, same_voice=False)
    continuation.take_text(ANSWER)
    slower = speak(ANSWER, ms=16_000, pieces=20)
    new = take(continuation, slower)
    assert "".join(piece.text for piece in new) == ANSWER[40:]
    new_ms = sum(len(piece.pcm) / 2 / SPEECH_HZ * 1000 for piece in new)
    assert new_ms == pytest.approx(16_000 * (1 - 40 / len(ANSWER)), rel=0.1)


def test_audio_whose_words_were_never_told_is_joined_by_its_length() -> None:
    continuation = Continuation("", "", 500, same_voice=True)
    new = take(continuation, speak("", ms=2_000))
    assert sum(len(piece.pcm) for piece in new) / 2 / SPEECH_HZ * 1000 == pytest.approx(1_500, abs=1)


def test_audio_does_not_wait_for_words_for_ever() -> None:
    continuation = Continuation("It is noon.", "It is noon.", 500, same_voice=True)
    audio = speak("", ms=MAX_HELD_MS + 1_000)
    taken = take_all(continuation, audio)
    assert b"".join(piece.pcm for piece in taken) == b"".join(piece.pcm for piece in audio)


def test_the_client_learns_that_no_more_audio_comes() -> None:
    continuation = Continuation(ANSWER, ANSWER, 4_000, same_voice=True)
    continuation.take_text(ANSWER)
    (last,) = take(continuation, speak(ANSWER, ms=3_900, is_last=True))
    assert last.last
    assert last.pcm == bytes(len(last.pcm))
