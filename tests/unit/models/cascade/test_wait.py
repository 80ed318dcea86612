"""What a caller hears while a slow model has not begun to answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from antiphon.models.base import Event, MessageComplete, Prompt, StopReason, TextDelta, TextProfile
from antiphon.models.cascade.cascade import Cascade
from antiphon.models.cascade.speech_output import WAIT_S, WAIT_WORDS
from antiphon.models.live import GenerationComplete, OutputAudio, TurnComplete
from antiphon.speech.base import SpeechBusy
from antiphon.transcript import AssistantMessage
from tests.fakes.spoken_call import CALL, talk
from tests.fakes.voice import TONE_HZ, Caller, FakeEngines, Tones, calling, length_ms


@dataclass
class SlowModel:
    """A model that needs some time for its first word."""

    wait_s: float
    profile: TextProfile = field(default_factory=lambda: TextProfile("slow", needs_network=False))

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        await asyncio.sleep(self.wait_s)
        yield TextDelta("It is noon.")
        yield MessageComplete(StopReason.DONE)


@asynccontextmanager
async def waiting_for(wait_s: float, tones: Tones | None = None) -> AsyncIterator[tuple[Caller, Tones, Cascade]]:
    fakes, tones = FakeEngines(), tones or Tones()
    fakes.recognizer.tells_interim = False
    cascade = fakes.cascade(SlowModel(wait_s), tones, prepares_answers=False)
    async with calling(cascade, fakes.words.say) as caller:
        await caller.be_silent(500)
        yield caller, tones, cascade
    await fakes.batched_vad.aclose()


def filled_ms(caller: Caller) -> int:
    return round(sum(len(piece.pcm) for piece in caller.fillers) * 1_000 / (2 * TONE_HZ))


def spoken(tones: Tones) -> list[str]:
    return [text for text, _, _ in tones.asked]


async def test_a_slow_answer_is_preceded_by_a_few_words_that_are_no_part_of_it() -> None:
    async with waiting_for(10) as (caller, tones, _):
        await caller.speak("what time is it")
        await caller.be_silent(15_000)
        assert spoken(tones) == [WAIT_WORDS, "It is noon."]
        assert filled_ms(caller) == pytest.approx(length_ms(WAIT_WORDS), abs=1)
        assert {(piece.text, piece.turn) for piece in caller.fillers} == {("", caller.turn)}
        assert caller.text == "It is noon."
        assert caller.transcript.messages[-1] == AssistantMessage("It is noon.")


async def test_an_answer_that_begins_in_time_is_not_preceded_by_anything() -> None:
    async with waiting_for(WAIT_S - 0.1) as (caller, tones, _):
        await caller.speak("what time is it")
        await caller.be_silent(8_000)
        assert spoken(tones) == ["It is noon."]
        assert caller.fillers == []


async def test_the_words_are_said_once_in_a_turn() -> None:
    async with waiting_for(60) as (caller, tones, _):
        await caller.speak("what time is it")
        await caller.be_silent(50_000)
        assert spoken(tones) == [WAIT_WORDS]


async def test_words_that_are_not_out_yet_are_dropped_when_the_answer_begins() -> None:
    async with waiting_for(WAIT_S + 0.5, Tones(delay_s=1.0)) as (caller, tones, _):
        await caller.speak("what time is it")
        await caller.be_silent(10_000)
        assert spoken(tones) == [WAIT_WORDS, "It is noon."]
        assert caller.fillers == []
        assert caller.text == "It is noon."


async def test_the_rest_of_the_words_is_dropped_when_the_answer_is_heard() -> None:
    slow = Tones(piece_ms=100, delay_s=0.2)
    async with waiting_for(WAIT_S + 0.5, slow) as (caller, _, _):
        await caller.speak("what time is it")
        await caller.be_silent(10_000)
        assert 0 < filled_ms(caller) < length_ms(WAIT_WORDS)


async def test_an_interruption_ends_the_wait() -> None:
    async with waiting_for(60) as (caller, tones, cascade):
        await caller.speak("what time is it")
        await caller.be_silent(1_500)
        cascade.interrupt(caller.turn)
        await caller.be_silent(5_000)
        assert spoken(tones) == []
        assert caller.kinds[-1] is TurnComplete


async def test_what_the_user_adds_while_waiting_continues_the_turn() -> None:
    async with waiting_for(60) as (caller, tones, _):
        await caller.speak("what time is it")
        await caller.be_silent(5_000)
        assert spoken(tones) == [WAIT_WORDS]
        await caller.speak("in Tokyo")
        await caller.be_silent(2_000)
        assert caller.started[-1].continues == caller.started[0].turn
        assert caller.heard[-1] == "what time is it in Tokyo"


async def test_an_answer_is_spoken_even_if_the_words_could_not_be() -> None:
    tones = Tones()
    tones.error, tones.fails_at = SpeechBusy("There is no thread to spare."), WAIT_WORDS
    async with waiting_for(10, tones) as (caller, _, _):
        await caller.speak("what time is it")
        await caller.be_silent(15_000)
        assert caller.kinds[-3:] == [OutputAudio, GenerationComplete, TurnComplete]


async def test_the_words_also_fill_the_time_of_a_slow_tool() -> None:
    async with talk([CALL], "It is noon.") as call:
        await call.caller.speak("what time is it")
        await call.caller.be_silent(6_000)
        assert len(call.caller.fillers) > 0
        call.give_results()
        await call.wait_for_event(TurnComplete)
        assert call.caller.text == "It is noon."


async def test_a_greeting_has_no_wait() -> None:
    async with waiting_for(60) as (caller, tones, _):
        await caller.say("Hello!")
        await caller.be_silent(5_000)
        assert spoken(tones) == ["Hello!"]
