"""From audio to turns: required silences, use of guesses, and words that are neither lost nor repeated."""

import asyncio

import pytest
from structlog.testing import capture_logs

from antiphon.models.cascade.end_of_turn import COLLECTING_MS
from antiphon.models.cascade.endpointer import FRAME_MS, FRAME_SAMPLES, MAX_DROP_FRAMES, MIN_SPEECH_FRAMES, PAUSE_FRAMES
from antiphon.models.cascade.turn_recognizer import JOIN_WITHIN_S, NOT_UNDERSTOOD, STALLED_S
from antiphon.models.completeness import Completeness
from antiphon.models.expectation import Expectation
from antiphon.speech.base import SpeechBusy, SpeechError, Urgency
from tests.fakes.talk import TOLERANCE_S, Talk
from tests.fakes.voice import CERTAIN, HZ, wave

SHORT_S, MIDDLE_S, LONG_S, UNFINISHED_S = 0.3, 0.6, 0.9, 2.0


# How long a silence has to be.


async def test_a_turn_without_evidence_waits_for_the_long_silence(talk: Talk) -> None:
    said_s = await talk.say("what time is it")
    assert talk.listener.turns == ["what time is it"]
    assert talk.listener.when("turn") - said_s == pytest.approx(LONG_S, abs=TOLERANCE_S)


async def test_a_complete_request_waits_for_the_short_silence(talk: Talk) -> None:
    talk.fakes.known["what time is it"] = Completeness.COMPLETE
    said_s = await talk.say("what time is it")
    assert talk.listener.when("turn") - said_s == pytest.approx(SHORT_S, abs=TOLERANCE_S)


async def test_a_request_that_could_go_on_waits_unless_it_sounds_complete(talk: Talk) -> None:
    talk.fakes.known["what time is it"] = Completeness.EXTENDABLE
    talk.fakes.detector.says = 0.9
    said_s = await talk.say("what time is it")
    assert talk.listener.when("turn") - said_s == pytest.approx(MIDDLE_S, abs=TOLERANCE_S)


async def test_a_request_that_could_go_on_and_sounds_complete_waits_for_the_short_silence(talk: Talk) -> None:
    talk.fakes.known["what time is it"] = Completeness.EXTENDABLE
    talk.fakes.detector.says = 0.98
    said_s = await talk.say("what time is it")
    assert talk.listener.when("turn") - said_s == pytest.approx(SHORT_S, abs=TOLERANCE_S)


async def test_an_unknown_request_that_sounds_complete_waits_for_the_middle_silence(talk: Talk) -> None:
    talk.fakes.detector.says = 0.9
    said_s = await talk.say("tell me about it")
    assert talk.listener.when("turn") - said_s == pytest.approx(MIDDLE_S, abs=TOLERANCE_S)


async def test_the_beginning_of_a_request_waits_however_it_sounds(talk: Talk) -> None:
    talk.fakes.known["how many days"] = Completeness.PARTIAL
    talk.fakes.detector.says = 1.0
    said_s = await talk.say("how many days")
    assert talk.listener.when("turn") - said_s == pytest.approx(LONG_S, abs=TOLERANCE_S)


async def test_a_word_that_needs_another_is_waited_for_and_nothing_is_prepared(talk: Talk) -> None:
    talk.fakes.known["what time is it in"] = Completeness.HANGING
    talk.fakes.detector.says = 1.0
    said_s = await talk.say("what time is it in", silence_ms=2_500)
    assert talk.listener.when("turn") - said_s == pytest.approx(UNFINISHED_S, abs=TOLERANCE_S)
    assert talk.listener.guesses == []


async def test_a_hanging_request_is_waited_for_even_if_its_words_are_known_late(talk: Talk) -> None:
    talk.fakes.known["what time is it in"] = Completeness.HANGING
    talk.fakes.recognizer.delay_s = 1.2
    said_s = await talk.say("what time is it in", silence_ms=2_500)
    assert talk.listener.when("turn") - said_s == pytest.approx(UNFINISHED_S, abs=TOLERANCE_S)


async def test_what_completes_a_hanging_request_after_a_long_pause_is_part_of_it(talk: Talk) -> None:
    talk.fakes.known["what time is it in"] = Completeness.HANGING
    talk.fakes.known["what time is it in Rome"] = Completeness.COMPLETE
    await talk.say("what time is it in", silence_ms=1_700)
    await talk.speak("Rome")
    await talk.be_silent(1_000)
    assert talk.listener.turns == ["what time is it in Rome"]


@pytest.mark.parametrize(
    "completeness", [Completeness.COMPLETE, Completeness.PARTIAL, Completeness.LISTING, Completeness.HANGING]
)
async def test_the_turn_detector_is_not_asked_when_the_words_are_conclusive(
    talk: Talk, completeness: Completeness
) -> None:
    talk.fakes.known["what time is it"] = completeness
    await talk.say("what time is it", silence_ms=2_500)
    assert talk.listener.turns == ["what time is it"]
    assert talk.fakes.detector.asked == []


async def test_a_turn_that_does_not_sound_complete_waits(talk: Talk) -> None:
    talk.fakes.detector.says = 0.01
    said_s = await talk.say("tell me about it")
    assert talk.listener.when("turn") - said_s == pytest.approx(LONG_S, abs=TOLERANCE_S)


# What the answer before asked for.


async def test_the_answer_to_a_question_for_digits_may_have_long_pauses(talk: Talk) -> None:
    talk.recognizer.expect(Expectation.DIGITS)
    talk.fakes.detector.says = 1.0
    said_s = await talk.say("five five five", silence_ms=2_000)
    collecting_s = COLLECTING_MS[Expectation.DIGITS] / 1_000
    assert talk.listener.when("turn") - said_s == pytest.approx(collecting_s, abs=TOLERANCE_S)


async def test_a_request_instead_of_digits_is_answered_as_soon_as_any(talk: Talk) -> None:
    talk.recognizer.expect(Expectation.DIGITS)
    talk.fakes.known["never mind"] = Completeness.COMPLETE
    said_s = await talk.say("never mind")
    assert talk.listener.when("turn") - said_s == pytest.approx(SHORT_S, abs=TOLERANCE_S)


async def test_an_expectation_ends_with_the_turn_that_it_was_for(talk: Talk) -> None:
    talk.recognizer.expect(Expectation.DIGITS)
    await talk.say("five five five", silence_ms=2_000)
    assert talk.recognizer.settle()
    said_s = await talk.say("tell me about it", silence_ms=2_000)
    assert talk.listener.at_s[-1] - said_s == pytest.approx(LONG_S, abs=TOLERANCE_S)


async def test_an_expectation_outlasts_a_noise(talk: Talk) -> None:
    talk.recognizer.expect(Expectation.DIGITS)
    await talk.sound(wave(MIN_SPEECH_FRAMES * FRAME_MS - FRAME_MS, CERTAIN))
    await talk.be_silent(1_500)
    said_s = await talk.say("five five five", silence_ms=2_000)
    collecting_s = COLLECTING_MS[Expectation.DIGITS] / 1_000
    assert talk.listener.when("turn") - said_s == pytest.approx(collecting_s, abs=TOLERANCE_S)


# Words that come after the answer has begun.


async def begin_an_answer(talk: Talk) -> None:
    talk.fakes.known["what time is it"] = Completeness.EXTENDABLE
    talk.fakes.known["what time is it in Rome"] = Completeness.COMPLETE
    await talk.say("what time is it")
    assert talk.recognizer.settle()


async def test_a_late_piece_that_does_not_stand_alone_is_joined_to_the_request_before_it(talk: Talk) -> None:
    await begin_an_answer(talk)
    await talk.speak("in Rome")
    await talk.be_silent(1_500)
    assert talk.listener.turns == ["what time is it", "what time is it in Rome"]
    assert talk.listener.guesses[-1] == "what time is it in Rome"
    assert talk.listener.continues == [None, None]


async def test_a_late_request_is_its_own(talk: Talk) -> None:
    await begin_an_answer(talk)
    talk.fakes.known["in Rome"] = Completeness.COMPLETE
    await talk.say("in Rome")
    assert talk.listener.turns[-1] == "in Rome"


async def test_what_comes_too_late_is_not_joined(talk: Talk) -> None:
    await begin_an_answer(talk)
    await talk.be_silent(round(JOIN_WITHIN_S * 1_000))
    await talk.say("in Rome")
    assert talk.listener.turns[-1] == "in Rome"


async def test_the_answer_to_a_question_is_not_joined_to_the_request_before_it(talk: Talk) -> None:
    await begin_an_answer(talk)
    talk.recognizer.expect(Expectation.NAME)
    await talk.say("in Rome")
    assert talk.listener.turns[-1] == "in Rome"


# When evidence comes late.


async def test_evidence_that_comes_late_ends_the_turn_when_it_comes(talk: Talk) -> None:
    talk.fakes.known["what time is it"] = Completeness.COMPLETE
    talk.fakes.recognizer.delay_s = 0.4
    said_s = await talk.say("what time is it")
    assert talk.listener.when("turn") - said_s == pytest.approx(0.064 + 0.4, abs=TOLERANCE_S)


async def test_evidence_that_comes_after_the_long_silence_changes_nothing(talk: Talk) -> None:
    talk.fakes.detector.says = 1.0
    talk.fakes.threads.delay_s = 2.0
    said_s = await talk.say("what time is it", silence_ms=4_000)
    assert talk.listener.when("turn") - said_s == pytest.approx(LONG_S, abs=TOLERANCE_S)
    assert talk.listener.events.count("turn") == 1


async def test_late_evidence_for_one_turn_does_not_apply_to_the_next(talk: Talk) -> None:
    talk.fakes.known["yes"] = Completeness.COMPLETE
    talk.fakes.detector.says, talk.fakes.threads.delay_s = 1.0, 2.2
    await talk.say("yes", silence_ms=400)
    assert talk.listener.turns == ["yes"]
    assert talk.recognizer.settle()
    talk.fakes.detector.says = 0.0
    said_s = await talk.say("I would like to", silence_ms=2_000)
    assert talk.listener.at_s[-1] - said_s == pytest.approx(LONG_S, abs=TOLERANCE_S)


async def test_a_turn_detector_that_fails_costs_only_time(talk: Talk) -> None:
    talk.fakes.detector.completeness = lambda pcm: 1 / 0  # type: ignore[method-assign]
    with capture_logs() as logs:
        said_s = await talk.say("tell me about it")
    assert [log["event"] for log in logs] == ["background_task_failed"]
    assert talk.listener.when("turn") - said_s == pytest.approx(LONG_S, abs=TOLERANCE_S)


# What is recognised, and when.


async def test_the_guess_made_at_the_pause_is_the_text_of_the_turn(talk: Talk) -> None:
    await talk.say("what time is it")
    assert talk.fakes.recognizer.heard == [("what time is it", Urgency.SOON)]
    assert talk.listener.guesses == ["what time is it"]
    assert talk.listener.timings[0].wait_ms == pytest.approx(0, abs=10)
    assert talk.listener.timings[0].stt_ms == pytest.approx(80, abs=10)


async def test_a_slow_guess_is_waited_for(talk: Talk) -> None:
    talk.fakes.recognizer.delay_s = 2.0
    said_s = await talk.say("what time is it", silence_ms=3_000)
    assert talk.listener.turns == ["what time is it"]
    assert talk.listener.when("turn") - said_s == pytest.approx(0.064 + 2.0, abs=TOLERANCE_S)
    assert talk.listener.timings[0].wait_ms == pytest.approx(2_000 + 64 - 900, abs=50)
    assert len(talk.fakes.recognizer.heard) == 1


async def test_the_silence_is_reported(talk: Talk) -> None:
    await talk.say("what time is it")
    assert talk.listener.timings[0].silence_ms == pytest.approx(900, abs=FRAME_MS)


async def test_speech_that_resumes_after_a_pause_cancels_the_guess(talk: Talk) -> None:
    talk.fakes.recognizer.delay_s = 0.5
    await talk.be_silent(500)
    await talk.speak("what time")
    await talk.be_silent(400)
    await talk.speak("is it")
    await talk.be_silent(2_000)
    assert talk.listener.turns == ["what time is it"]
    assert talk.fakes.recognizer.given_up == 1
    assert talk.listener.events == ["resumed", "guess", "turn"]


async def test_an_incomplete_guess_is_withdrawn(talk: Talk) -> None:
    await talk.be_silent(500)
    await talk.speak("what time")
    await talk.be_silent(500)
    await talk.speak("is it")
    await talk.be_silent(2_000)
    assert talk.listener.events == ["guess", "resumed", "guess", "turn"]
    assert talk.listener.guesses == ["what time", "what time is it"]


async def test_the_caption_grows_during_speech(talk: Talk) -> None:
    talk.fakes.recognizer.tells_interim = True
    await talk.be_silent(500)
    await talk.speak("one two three four five six seven eight")
    shown = list(talk.listener.captions)
    await talk.be_silent(1_500)
    assert len(shown) >= 3
    assert all("one two three four five six seven eight".startswith(text) for text in shown)
    assert talk.listener.captions == [*shown, "one two three four five six seven eight"]
    assert talk.listener.turns == ["one two three four five six seven eight"]


async def test_an_idle_recognizer_starts_at_the_first_silent_frame(talk: Talk) -> None:
    talk.fakes.recognizer.tells_interim = True
    said_s = await talk.say("stop it")
    guessed_s = [at_s for what, at_s in zip(talk.listener.events, talk.listener.at_s, strict=True) if what == "guess"]
    assert guessed_s[-1] - said_s == pytest.approx(0.032 + 0.08, abs=TOLERANCE_S / 2)
    assert talk.fakes.recognizer.heard[-1] == ("stop it", Urgency.IDLE)
    assert talk.fakes.recognizer.asked(Urgency.SOON) == []
    assert talk.listener.turns == ["stop it"]
    assert talk.listener.timings[0].stt_ms == pytest.approx(80, abs=10)


async def test_recognition_starts_when_the_sound_stops_even_if_the_vad_still_reports_speech(talk: Talk) -> None:
    talk.fakes.recognizer.tells_interim = True
    talk.fakes.vad.lag_frames = 3
    said_s = await talk.say("stop it")
    assert talk.listener.when("guess") - said_s == pytest.approx((3 + PAUSE_FRAMES) * 0.032, abs=TOLERANCE_S / 2)
    assert talk.fakes.recognizer.heard[-1] == ("stop it", Urgency.IDLE)
    assert talk.listener.turns == ["stop it"]


async def test_soft_speech_after_a_loud_word_is_not_left_out(talk: Talk) -> None:
    talk.fakes.recognizer.tells_interim = True
    talk.fakes.vad.lag_frames = MAX_DROP_FRAMES + 3
    said_s = await talk.say("stop it")
    assert talk.fakes.recognizer.heard[-1] == ("stop it", Urgency.IDLE)
    recognised_at_s = talk.listener.when("guess") - talk.listener.timings[0].stt_ms / 1_000
    assert recognised_at_s - said_s > MAX_DROP_FRAMES * 0.032, "what was said in the meantime is recognised too"


async def test_text_recognized_at_a_pause_becomes_a_caption_if_speech_resumes(talk: Talk) -> None:
    talk.fakes.recognizer.tells_interim = True
    await talk.be_silent(512)
    await talk.sound(talk.fakes.words.say("stop")[: 2 * FRAME_SAMPLES * 5])
    await talk.sound(bytes(2 * FRAME_SAMPLES))
    await talk.speak("it now")
    await talk.be_silent(1_500)
    assert talk.listener.captions == ["stop", "stop it now"]
    assert talk.listener.turns == talk.listener.guesses == ["stop it now"]
    assert talk.listener.timings[0].stt_ms == pytest.approx(80, abs=10), "captions do not count"


async def test_the_same_words_are_not_reported_twice(talk: Talk) -> None:
    talk.fakes.recognizer.tells_interim = True
    await talk.be_silent(500)
    await talk.speak("what time")
    await talk.be_silent(200)
    await talk.sound(wave(320, CERTAIN))
    await talk.be_silent(1_500)
    assert talk.listener.captions == ["what time"]
    assert talk.listener.guesses == ["what time", "what time"]


async def test_a_noise_that_was_recognized_leaves_nothing_behind(talk: Talk) -> None:
    talk.fakes.recognizer.tells_interim = True
    talk.fakes.recognizer.delay_s = 2.0
    await talk.be_silent(512)
    await talk.sound(wave(FRAME_MS * (MIN_SPEECH_FRAMES - 1), CERTAIN))
    await talk.be_silent(1_200)
    assert talk.fakes.recognizer.given_up == 1
    assert talk.listener.events == []


@pytest.mark.parametrize("delay_s", [0.01, 0.3])
async def test_the_end_of_the_audio_after_one_silent_frame_is_reported_once(talk: Talk, delay_s: float) -> None:
    talk.fakes.recognizer.tells_interim = True
    talk.fakes.recognizer.delay_s = delay_s
    await talk.be_silent(512)
    await talk.speak("stop it")
    await talk.be_silent(40)
    talk.recognizer.end("ended")
    await asyncio.sleep(5)
    assert talk.listener.turns == ["stop it"]


# Turns that are long.


NUMBERS = " ".join(f"n{number}" for number in range(1, 101))


@pytest.mark.parametrize("tells_interim", [False, True])
async def test_a_turn_without_a_pause_loses_no_word(talk: Talk, tells_interim: bool) -> None:
    talk.fakes.recognizer.tells_interim = tells_interim
    talk.fakes.recognizer.delay_s = 0.7
    await talk.say(NUMBERS, silence_ms=3_000)
    assert talk.listener.turns == [NUMBERS]
    longest = max(len(text.split()) for text in talk.fakes.recognizer.asked(Urgency.NOW))
    assert longest <= 70, "what is known is not recognised again"


@pytest.mark.parametrize("pause_ms", [170, 230, 400, 700])
@pytest.mark.parametrize("delay_s", [0.05, 0.3, 1.0])
async def test_a_turn_with_pauses_loses_no_word(talk: Talk, pause_ms: int, delay_s: float) -> None:
    talk.fakes.recognizer.delay_s = delay_s
    await talk.be_silent(500)
    words = NUMBERS.split()[:60]
    for at in range(0, 60, 6):
        await talk.speak(" ".join(words[at : at + 6]))
        await talk.be_silent(pause_ms)
    await talk.be_silent(2_500)
    assert talk.listener.turns == [" ".join(words)]


async def test_speech_before_a_pause_in_a_long_turn_is_not_recognized_again(talk: Talk) -> None:
    await talk.be_silent(500)
    words = NUMBERS.split()[:60]
    for at in range(0, 60, 6):
        await talk.speak(" ".join(words[at : at + 6]))
        await talk.be_silent(400)
    await talk.be_silent(1_500)
    assert talk.listener.turns == [" ".join(words)]
    assert len(talk.fakes.recognizer.heard[-1][0].split()) <= 24


async def test_a_temporary_recognizer_failure_loses_no_words(talk: Talk) -> None:
    talk.fakes.recognizer.error = SpeechBusy("Too many.")
    await talk.be_silent(500)
    await talk.speak(" ".join(NUMBERS.split()[:80]))
    talk.fakes.recognizer.error = None
    await talk.speak(" ".join(NUMBERS.split()[80:]))
    await talk.be_silent(2_000)
    assert talk.listener.turns == [NUMBERS]


async def test_audio_that_is_never_recognized_does_not_grow_forever(talk: Talk) -> None:
    talk.fakes.recognizer.error = SpeechError("It is gone.")
    await talk.be_silent(500)
    for _ in range(8):
        await talk.sound(wave(10_000, CERTAIN))
    assert talk.recognizer._endpointer.audio_ms <= 65_000


# Turns that seem to be over.


async def test_speech_before_the_answer_continues_the_turn(talk: Talk) -> None:
    await talk.say("what time is it", silence_ms=1_200)
    await talk.speak("in Tokyo")
    await talk.be_silent(1_500)
    assert talk.listener.turns == ["what time is it", "what time is it in Tokyo"]
    assert talk.listener.continues == [None, talk.listener.ids[0]]
    assert talk.listener.events == ["guess", "turn", "continued", "resumed", "guess", "turn"]


async def test_speech_during_recognition_continues_the_turn(talk: Talk) -> None:
    talk.fakes.recognizer.delay_s = 2.0
    await talk.say("what time is it", silence_ms=1_200)
    assert talk.listener.turns == []
    talk.fakes.recognizer.delay_s = 0.1
    await talk.speak("in Tokyo")
    await talk.be_silent(1_500)
    assert talk.listener.turns == ["what time is it in Tokyo"]
    assert talk.listener.continues == [None]
    assert talk.listener.events == ["resumed", "guess", "turn"]


@pytest.mark.parametrize("delay_s", [0.1, 3.0])
@pytest.mark.parametrize("words", [8, 25, 40])
async def test_a_long_continued_turn_has_each_word_once(talk: Talk, words: int, delay_s: float) -> None:
    """A microphone that falls silent ends it without a pause in which it could have been recognised."""
    talk.fakes.recognizer.delay_s = delay_s
    said = NUMBERS.split()[: 3 * words]
    await talk.be_silent(500)
    for at in range(0, 3 * words, words):
        await talk.speak(" ".join(said[at : at + words]))
        await talk.be_silent(200 if at else 0)
        await asyncio.sleep(STALLED_S + 0.5)
        await talk.be_silent(200)
    await asyncio.sleep(10)
    assert talk.listener.turns[-1] == " ".join(said)


async def test_a_long_wait_for_the_answer_adds_nothing_to_the_turn(talk: Talk) -> None:
    await talk.say("what time is it", silence_ms=10_000)
    await talk.speak("in Tokyo")
    await talk.be_silent(1_500)
    assert talk.listener.turns[-1] == "what time is it in Tokyo"
    assert talk.recognizer._endpointer.audio_ms < 6_000


async def test_a_continued_turn_keeps_its_words_if_the_rest_is_not_recognized(talk: Talk) -> None:
    await talk.say("hello", silence_ms=1_200)
    talk.fakes.words.read = lambda pcm: ""  # type: ignore[method-assign]
    await talk.speak("mumble")
    await talk.be_silent(1_500)
    assert talk.listener.turns == ["hello", "hello"]
    assert talk.listener.continues == [None, talk.listener.ids[0]]


async def test_speech_after_the_answer_began_is_another_turn(talk: Talk) -> None:
    await talk.say("what time is it", silence_ms=1_200)
    assert talk.recognizer.settle()
    await talk.speak("and in Tokyo")
    await talk.be_silent(1_500)
    assert talk.listener.turns == ["what time is it", "and in Tokyo"]
    assert talk.listener.continues == [None, None]


async def test_a_turn_being_spoken_cannot_be_settled(talk: Talk) -> None:
    await talk.be_silent(500)
    await talk.speak("what")
    assert not talk.recognizer.settle()
    await talk.speak("time is it")
    await talk.be_silent(1_500)
    assert talk.listener.turns == ["what time is it"]


async def test_a_turn_being_recognized_cannot_be_settled(talk: Talk) -> None:
    talk.fakes.recognizer.delay_s = 2.0
    await talk.say("what time is it", silence_ms=1_200)
    assert not talk.recognizer.settle()
    await talk.be_silent(2_000)
    assert talk.listener.turns == ["what time is it"]


# What cannot be understood.


async def test_a_recognizer_failure_is_reported_and_listening_continues(talk: Talk) -> None:
    talk.fakes.recognizer.error = SpeechBusy("Too many people are talking.")
    await talk.say("what time is it")
    assert talk.listener.failures == ["Too many people are talking."]
    assert talk.listener.events == ["failure"]
    talk.fakes.recognizer.error = None
    await talk.say("what time is it now")
    assert talk.listener.turns == ["what time is it now"]
    assert talk.listener.continues == [None]


async def test_a_failure_after_the_end_of_the_audio_belongs_to_its_turn(talk: Talk) -> None:
    talk.fakes.recognizer.error = SpeechError("It is gone.")
    await talk.be_silent(500)
    await talk.speak("what time is it")
    talk.recognizer.end("ended")
    await asyncio.sleep(5)
    assert talk.listener.events == ["failure"]
    assert talk.listener.failed == ["ended"]


async def test_a_failed_guess_is_retried_at_the_end(talk: Talk) -> None:
    talk.fakes.recognizer.error = SpeechBusy("Too many.")
    await talk.be_silent(500)
    await talk.speak("what time is it")
    await talk.be_silent(500)
    talk.fakes.recognizer.error = None
    await talk.be_silent(1_000)
    assert talk.listener.turns == ["what time is it"]
    assert talk.listener.failures == []


async def test_an_unexpected_recognizer_error_is_reported_in_plain_words(talk: Talk) -> None:
    talk.fakes.recognizer.error = RuntimeError("index out of range")
    with capture_logs() as logs:
        await talk.say("what time is it")
    assert talk.listener.failures == [NOT_UNDERSTOOD]
    assert {log["event"] for log in logs} == {"background_task_failed"}


# The end.


@pytest.mark.parametrize("silence_ms", [0, 200, 1_000, 1_500])
async def test_nothing_is_reported_after_close(talk: Talk, silence_ms: int) -> None:
    talk.fakes.recognizer.delay_s = 0.4
    talk.fakes.recognizer.tells_interim = True
    await talk.be_silent(500)
    await talk.speak("what time is it")
    await talk.be_silent(silence_ms)
    await talk.recognizer.close()
    before = list(talk.listener.events)
    talk.recognizer.push(talk.fakes.words.say("hello"), playing=False)
    await asyncio.sleep(5)
    assert talk.listener.events == before


async def test_close_during_the_end_of_the_audio_reports_nothing(talk: Talk) -> None:
    talk.fakes.batched_vad._thread.delay_s = 1.0  # type: ignore[attr-defined]
    talk.recognizer.push(bytes(HZ) + talk.fakes.words.say("hello"), playing=False)
    talk.recognizer.end("ended")
    await asyncio.sleep(0.5)
    await talk.recognizer.close()
    await asyncio.sleep(5)
    assert talk.listener.events == []
