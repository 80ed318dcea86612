import asyncio

import pytest

from antiphon.models.background import BackgroundTasks
from antiphon.models.cascade.turn import Recognized, Turn, find_cut
from antiphon.speech.base import SpeechError, Urgency
from tests.fakes.voice import GAP_MS, HZ, PerfectRecognizer, Vocabulary, wave

QUIET = bytes(2 * HZ * 300 // 1_000)


def said(text: str) -> Recognized:
    return Recognized(text, took_ms=50, at_s=0)


def make_turn(recognizer: PerfectRecognizer) -> Turn:
    return Turn("t1", recognizer, BackgroundTasks())


@pytest.fixture
def words() -> Vocabulary:
    return Vocabulary()


@pytest.fixture
def recognizer(words: Vocabulary) -> PerfectRecognizer:
    return PerfectRecognizer(words, delay_s=0.25)


async def test_settled_text_comes_before_newly_recognized_text(
    words: Vocabulary, recognizer: PerfectRecognizer
) -> None:
    turn = make_turn(recognizer)
    turn.keep(said("one two"))
    assert turn.join((await turn.recognize(words.say("three"), Urgency.NOW)).text) == "one two three"


async def test_truncated_audio_does_not_lose_its_first_word(words: Vocabulary, recognizer: PerfectRecognizer) -> None:
    turn = make_turn(recognizer)
    recognized = await turn.recognize(words.say("one two"), Urgency.NOW)
    assert recognized.text == "two", "the fake loses a first word, as real ones do"
    turn.keep(said("zero"))
    recognized = await turn.recognize(words.say("one two"), Urgency.NOW)
    assert recognized.text == "one two"


async def test_empty_text_is_not_joined(recognizer: PerfectRecognizer) -> None:
    turn = make_turn(recognizer)
    assert turn.join("") == ""
    turn.keep(said(""))
    assert turn.join("yes") == "yes"
    turn.keep(said("one"))
    assert turn.join("") == "one"


async def test_the_recognition_time_is_reported(words: Vocabulary, recognizer: PerfectRecognizer) -> None:
    recognized = await make_turn(recognizer).recognize(QUIET + words.say("one"), Urgency.SOON)
    assert recognized.took_ms == pytest.approx(250, abs=10)


async def test_the_recognition_time_of_settled_text_is_added(recognizer: PerfectRecognizer) -> None:
    turn = make_turn(recognizer)
    for text in ("one", "two"):
        turn.keep(said(text))
    assert turn.known_ms == 100


async def test_an_error_of_the_recognizer_is_raised(recognizer: PerfectRecognizer) -> None:
    recognizer.error = SpeechError("It is gone.")
    with pytest.raises(SpeechError, match="gone"):
        await make_turn(recognizer).recognize(QUIET, Urgency.NOW)


def test_speech_is_split_between_two_words(words: Vocabulary) -> None:
    speech = words.say(" ".join(["word"] * 20))
    cut = find_cut(speech)
    assert len(speech) - 4 * HZ <= cut < len(speech)
    assert len(words.read(QUIET + speech[:cut]).split()) + len(words.read(QUIET + speech[cut:]).split()) == 20


def test_speech_is_split_at_the_quietest_point_of_the_last_two_seconds() -> None:
    gap = wave(GAP_MS, 1)
    loud = wave(1_000, 9_000)
    speech = gap + loud * 3 + gap + loud
    assert abs(find_cut(speech) - len(gap + loud * 3)) <= len(gap)


async def recognized(text: str) -> Recognized:
    return said(text)


async def test_a_piece_that_the_recognizer_dropped_is_recognized_alone(
    words: Vocabulary, recognizer: PerfectRecognizer
) -> None:
    before, piece = words.say("what time is it in"), words.say("Rome")
    whole = asyncio.create_task(recognized("What time is it in?"))
    turn = make_turn(recognizer)
    heard = await turn.recognize_last_piece(whole, before + QUIET + piece, ("what time is it in", len(before)))
    assert heard.text == "what time is it in Rome"
    assert heard.took_ms == pytest.approx(50 + 250, abs=1)


async def test_a_piece_that_was_recognized_is_not_recognized_twice(
    words: Vocabulary, recognizer: PerfectRecognizer
) -> None:
    whole = asyncio.create_task(recognized("what time is it in Rome"))
    heard = await make_turn(recognizer).recognize_last_piece(whole, QUIET, ("what time is it in", 0))
    assert heard == said("what time is it in Rome")
    assert recognizer.heard == []
