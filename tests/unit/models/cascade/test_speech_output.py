"""How an answer is spoken: the order of events, pacing, cancellation and failures."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pytest
from structlog.testing import capture_logs

from antiphon.models.cascade.speech_output import FAILED, MAX_AHEAD_S, MIN_PIECE_MS
from antiphon.models.live import GenerationComplete, OutputAudio, TurnComplete, TurnFailed
from antiphon.speech.base import Sound, SpeechBusy, SpeechError, Urgency, Voice
from tests.fakes.said import SECONDS, TURN, Said
from tests.fakes.voice import Tones, length_ms

LONG = "The weather in Berlin is going to be sunny today, with a high of about twenty degrees. "


def without_length(said: Said, piece_ms: int = 50) -> Said:
    said.tones.tells_length, said.tones.piece_ms = False, piece_ms
    return said


async def test_an_answer_is_audio_then_generation_complete_then_turn_complete(said: Said) -> None:
    await said.say("It is noon.")
    assert [type(event) for event in said.events] == [OutputAudio, OutputAudio, GenerationComplete, TurnComplete]


async def test_an_answer_without_words_is_generated_and_completed(said: Said) -> None:
    await said.say()
    assert said.events == [GenerationComplete(TURN), TurnComplete(TURN)]


async def test_the_chunks_together_contain_all_the_audio(said: Said) -> None:
    await said.say("It is noon.")
    assert said.audio_ms == pytest.approx(length_ms("It is noon."), abs=2)


@pytest.mark.parametrize("text", ["It is noon.", LONG, "Yes, I think so. No? Well, I am not sure about that."])
@pytest.mark.parametrize("tells_length", [True, False])
@pytest.mark.parametrize("piece_ms", [30, 150, 600, 20_000])
async def test_the_words_are_distributed_over_the_chunks(
    said: Said, text: str, tells_length: bool, piece_ms: int
) -> None:
    said.tones.tells_length, said.tones.piece_ms = tells_length, piece_ms
    await said.say(*(f"{word} " for word in text.split()))
    assert said.words == text.split()


@pytest.mark.parametrize("tells_length", [True, False])
async def test_each_chunk_has_words_in_proportion_to_its_duration(said: Said, tells_length: bool) -> None:
    said.tones.tells_length, said.tones.piece_ms = tells_length, 500
    await said.say("one two three four five six seven eight nine ten")
    counts = [len(piece.text.split()) for piece in said.audio]
    assert len(counts) >= 4
    assert max(counts) <= 4


async def test_the_words_of_the_chunks_are_separated_by_spaces(said: Said) -> None:
    await said.say("It is noon, and the sun is out.")
    assert "".join(piece.text for piece in said.audio).strip() == "It is noon, and the sun is out."


@pytest.mark.parametrize("tells_length", [True, False])
async def test_only_the_last_chunk_is_marked_last(said: Said, tells_length: bool) -> None:
    said.tones.tells_length = tells_length
    await said.say("It is noon. The sun is out. ", "I like it.")
    assert [piece.last for piece in said.audio] == [False] * (len(said.audio) - 1) + [True]


async def test_a_chunk_is_not_marked_last_while_more_may_come(said: Said) -> None:
    said.answer.say("Let me look.")
    said.answer.pause()
    await asyncio.sleep(10)
    assert [piece.last for piece in said.audio] == [False] * len(said.audio)
    assert said.words == ["Let", "me", "look."]


async def test_text_before_a_tool_call_is_spoken_without_waiting_for_more(said: Said) -> None:
    said.answer.say("Let me look")
    await asyncio.sleep(10)
    assert said.audio == []
    said.answer.pause()
    await asyncio.sleep(10)
    assert said.words == ["Let", "me", "look"]


async def test_the_first_clause_is_spoken_before_the_rest_is_generated(said: Said) -> None:
    said.answer.say("It is going to be sunny today, ")
    said.answer.say("with")
    await asyncio.sleep(1)
    assert said.words == ["It", "is", "going", "to", "be", "sunny", "today,"]


async def test_silent_text_is_attached_to_the_words_after_it(said: Said) -> None:
    await said.say("🙂 🙂\n\nDo you like it?")
    assert said.words == ["🙂", "🙂", "Do", "you", "like", "it?"]


async def test_silent_text_is_not_synthesized(said: Said) -> None:
    await said.say("🙂")
    assert said.tones.asked == []
    assert said.events == [GenerationComplete(TURN), TurnComplete(TURN)]


async def test_silent_text_is_not_carried_into_the_next_answer(said: Said) -> None:
    await said.say("Here it is.\n\n🙂")
    first = len(said.audio)
    await said.say("Anything else?")
    assert "".join(piece.text for piece in said.audio[first:]).split() == ["Anything", "else?"]


async def test_short_chunks_are_merged_but_the_first_is_sent_at_once(said: Said) -> None:
    without_length(said)
    begun_s = asyncio.get_running_loop().time()
    await said.say("What a nice day this is.")
    lengths = [len(piece.pcm) * 1_000 / SECONDS for piece in said.audio]
    assert lengths[0] == pytest.approx(50, abs=1)
    assert all(ms >= MIN_PIECE_MS - 1 for ms in lengths[1:-1])
    assert said.at_s[0] - begun_s <= 2 * said.tones.delay_s + 0.02


async def test_short_chunks_of_unknown_duration_lose_no_audio(said: Said) -> None:
    without_length(said, piece_ms=70)
    await said.say(LONG)
    assert said.audio_ms == pytest.approx(sum(length_ms(text) for text, _, _ in said.tones.asked), abs=20)


class Guessing(Tones):
    """An engine whose estimates of the remaining duration vary, and that ends with empty audio."""

    def __init__(self, lefts: Sequence[int]) -> None:
        super().__init__()
        self._lefts = lefts

    async def speak(
        self,
        text: str,
        *,
        voice: str | None = None,
        speed: float = 1.0,
        urgency: Urgency = Urgency.NOW,
        goes_on: bool = False,
    ) -> AsyncIterator[Sound]:
        for left_ms in self._lefts:
            yield Sound(b"" if left_ms == 0 else bytes(SECONDS // 10), left_ms)


@pytest.mark.parametrize("lefts", [(100, 900, 300, 100), (1, 1, 0), (2_000, 0)])
async def test_duration_estimates_neither_repeat_words_nor_lose_them_before_the_end(lefts: Sequence[int]) -> None:
    said = Said(Guessing(lefts))
    await said.say("one two three four five six")
    assert said.words == ["one", "two", "three", "four", "five", "six"][: len(said.words)]
    assert said.audio


async def test_synthesis_stays_only_a_bounded_time_ahead_of_playback(said: Said) -> None:
    said.answer.say(LONG * 8)
    said.finish()
    for _ in range(40):
        await asyncio.sleep(0.5)
        elapsed_s = asyncio.get_running_loop().time() - said.at_s[0]
        assert said.audio_ms / 1_000 - elapsed_s <= MAX_AHEAD_S + said.tones.piece_ms / 1_000
    assert said.answer.is_audible


async def test_bounded_synthesis_does_not_interrupt_the_audio(said: Said) -> None:
    await said.say(LONG * 5)
    made_s = 0.0
    for piece, at_s in zip(said.audio, said.at_s, strict=False):
        assert at_s - said.at_s[0] <= made_s + 0.2
        made_s += len(piece.pcm) / SECONDS


async def test_the_answer_is_audible_as_long_as_its_audio_lasts(said: Said) -> None:
    assert not said.answer.is_audible
    said.answer.say("It is noon.")
    said.finish()
    await asyncio.sleep(0.2)
    assert said.events[-1] == TurnComplete(TURN)
    assert said.answer.is_audible
    await asyncio.sleep(length_ms("It is noon.") / 1_000)
    assert not said.answer.is_audible


async def test_a_cancelled_answer_is_silent_at_once(said: Said) -> None:
    said.answer.say(LONG)
    await asyncio.sleep(0.2)
    before = list(said.events)
    said.cancel()
    assert not said.answer.is_audible
    await asyncio.sleep(60)
    assert said.events == before
    assert said.tones.open == 0


async def test_not_even_the_end_of_a_cancelled_answer_is_emitted(said: Said) -> None:
    said.answer.say(LONG)
    said.finish()
    await asyncio.sleep(0.2)
    said.answer.cancel()
    said.answer.cancel()
    await asyncio.sleep(60)
    assert {type(event) for event in said.events} == {OutputAudio}


async def test_the_answer_after_a_cancelled_one_is_spoken_from_its_beginning(said: Said) -> None:
    said.answer.say("This was the first one, and it was not")
    await asyncio.sleep(0.2)
    said.cancel()
    before = len(said.audio)
    await said.say("This is the second one.")
    assert "".join(piece.text for piece in said.audio[before:]).split() == ["This", "is", "the", "second", "one."]
    assert said.events[-2:] == [GenerationComplete(TURN), TurnComplete(TURN)]


async def test_an_answer_paced_to_playback_can_be_cancelled(said: Said) -> None:
    said.answer.say(LONG * 8)
    await asyncio.sleep(5)
    before = len(said.audio)
    said.cancel()
    await asyncio.sleep(60)
    assert len(said.audio) == before


@pytest.mark.parametrize(
    ("error", "message"),
    [(SpeechError("It is gone."), "It is gone."), (SpeechBusy("Too many."), "Too many."), (RuntimeError("?"), FAILED)],
)
async def test_a_synthesis_failure_is_reported_at_the_end_of_the_answer(
    said: Said, error: Exception, message: str
) -> None:
    said.tones.error, said.tones.fails_at = error, "two"
    with capture_logs():
        await said.say("This is sentence one. This is sentence two. This is sentence three.")
    assert [event for event in said.events if not isinstance(event, OutputAudio)] == [
        TurnFailed(TURN, message),
        TurnComplete(TURN),
    ]
    assert said.words[:4] == ["This", "is", "sentence", "one."]
    assert "three." not in said.words
    assert said.tones.open == 0


class Crowded(Tones):
    """An engine that takes nothing new, from some time on."""

    is_full = False

    async def speak(
        self,
        text: str,
        *,
        voice: str | None = None,
        speed: float = 1.0,
        urgency: Urgency = Urgency.NOW,
        goes_on: bool = False,
    ) -> AsyncIterator[Sound]:
        if self.is_full and not goes_on:
            raise SpeechBusy("Too many.")
        async for sound in super().speak(text, voice=voice, speed=speed, goes_on=goes_on):
            yield sound


async def test_an_answer_that_has_begun_is_finished_under_any_load() -> None:
    crowded = Crowded()
    said = Said(crowded)
    said.answer.say("This is sentence one. And")
    await asyncio.sleep(0.2)
    assert said.audio
    crowded.is_full = True
    await said.say(" this is sentence two. And this is sentence three.")
    assert said.words[-4:] == ["this", "is", "sentence", "three."]
    assert said.events[-2:] == [GenerationComplete(TURN), TurnComplete(TURN)]


@pytest.mark.parametrize("ends", [Said.finish, lambda said: said.cancel()], ids=["finished", "cancelled"])
async def test_only_the_first_clause_of_each_answer_can_be_refused(said: Said, ends: Callable[[Said], None]) -> None:
    for _ in range(2):
        said.answer.say("This is sentence one. This is sentence two.")
        said.answer.pause()
        await asyncio.sleep(10)
        ends(said)
        await asyncio.sleep(10)
        said.start()
    assert said.tones.went_on == [False, True] * 2


async def test_a_silent_clause_does_not_begin_an_answer(said: Said) -> None:
    await said.say("🙂\n\nDo you like it?")
    assert said.tones.went_on == [False]


async def test_an_answer_that_cannot_be_spoken_is_logged_once(said: Said) -> None:
    said.tones.error, said.tones.fails_at = SpeechError("It is gone."), "one"
    with capture_logs() as logs:
        await said.say("This is sentence one. This is sentence two. This is sentence three.")
    assert [(log["event"], log["engine"], log["reason"]) for log in logs] == [
        ("answer_not_spoken", "tones", "It is gone.")
    ]


async def test_an_unexpected_engine_error_is_logged(said: Said) -> None:
    said.tones.error, said.tones.fails_at = RuntimeError("?"), "noon"
    with capture_logs() as logs:
        await said.say("It is noon.")
    assert [(log["event"], log["engine"]) for log in logs] == [("speech_output_failed", "tones")]


async def test_text_after_a_failure_is_not_synthesized(said: Said) -> None:
    said.tones.error, said.tones.fails_at = SpeechError("It is gone."), "one"
    said.answer.say("This is sentence one. And")
    await asyncio.sleep(10)
    assert [type(event) for event in said.events] == [OutputAudio]
    said.answer.say(" this is sentence two. And this is three. ")
    said.finish()
    await asyncio.sleep(10)
    assert [text for text, _, _ in said.tones.asked] == ["This is sentence one."]
    assert said.events[-2:] == [TurnFailed(TURN, "It is gone."), TurnComplete(TURN)]


async def test_a_failure_reported_by_the_model_is_passed_on(said: Said) -> None:
    said.tones.error, said.tones.fails_at = SpeechError("It is gone."), "one"
    said.answer.say("This is sentence one. ")
    said.answer.then(TurnFailed(TURN, "The model is gone."))
    said.answer.then(TurnComplete(TURN))
    await asyncio.sleep(10)
    assert said.events[-2:] == [TurnFailed(TURN, "The model is gone."), TurnComplete(TURN)]


@pytest.mark.parametrize("cancelled", [False, True])
async def test_the_next_answer_is_synthesized_again_after_a_failure(said: Said, cancelled: bool) -> None:
    said.tones.error, said.tones.fails_at = SpeechError("It is gone."), "noon"
    said.answer.say("It is noon. ")
    await asyncio.sleep(1)
    if cancelled:
        said.cancel()
    else:
        said.finish()
    said.tones.error = None
    await asyncio.sleep(1)
    said.events.clear()
    said.start()
    await said.say("It is noon.")
    assert said.words == ["It", "is", "noon."]
    assert said.events[-2:] == [GenerationComplete(TURN), TurnComplete(TURN)]


async def test_a_new_voice_applies_from_the_next_clause(said: Said) -> None:
    said.answer.say("This is sentence one. And")
    await asyncio.sleep(5)
    said.output.set_voice("anna", 2.0)
    said.answer.say(" this is sentence two. And")
    await asyncio.sleep(5)
    said.output.set_voice(None, 1.0)
    said.answer.say(" this is sentence three.")
    said.finish()
    await asyncio.sleep(60)
    assert [(voice, speed) for _, voice, speed in said.tones.asked] == [("joe", 1.0), ("anna", 2.0), ("joe", 1.0)]


async def test_a_held_output_sends_nothing_and_loses_nothing(said: Said) -> None:
    said.answer.say(LONG)
    await asyncio.sleep(0.2)
    before = len(said.audio)
    assert before
    said.answer.hold()
    await asyncio.sleep(0.6)
    assert len(said.audio) == before
    said.answer.resume()
    said.finish()
    await asyncio.sleep(60)
    assert said.words == LONG.split()


async def test_a_held_answer_does_not_begin(said: Said) -> None:
    said.answer.hold()
    said.answer.say("It is noon.")
    said.finish()
    await asyncio.sleep(0.6)
    assert said.events == []
    said.answer.resume()
    await asyncio.sleep(60)
    assert said.words == ["It", "is", "noon."]


async def test_a_held_answer_can_be_cancelled(said: Said) -> None:
    said.answer.hold()
    said.answer.say(LONG)
    await asyncio.sleep(0.2)
    said.cancel()
    began_s = asyncio.get_running_loop().time()
    await said.say("It is noon.")
    assert said.at_s[0] - began_s < 0.2
    assert said.words == ["It", "is", "noon."]


async def test_closing_during_an_answer_releases_the_engine(said: Said) -> None:
    said.answer.say(LONG)
    await asyncio.sleep(0.2)
    assert said.tones.open == 1
    await said.output.close()
    assert said.tones.open == 0


class Silent(Tones):
    """An engine that gives nothing, or nothing but nothing."""

    voices: Sequence[Voice] = ()

    async def speak(
        self,
        text: str,
        *,
        voice: str | None = None,
        speed: float = 1.0,
        urgency: Urgency = Urgency.NOW,
        goes_on: bool = False,
    ) -> AsyncIterator[Sound]:
        for left_ms in (None, 10, 0):
            yield Sound(b"", left_ms)


async def test_empty_audio_is_not_sent() -> None:
    said = Said(Silent())
    await said.say("It is noon.")
    assert said.events == [GenerationComplete(TURN), TurnComplete(TURN)]
