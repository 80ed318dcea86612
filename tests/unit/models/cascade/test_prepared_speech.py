"""How an answer will probably begin is made before it is wanted, and heard at once if it is."""

import asyncio

import pytest

from antiphon.speech.base import SpeechBusy, Urgency
from tests.fakes.said import Said


async def test_prepared_speech_is_played_at_once_and_synthesized_once(said: Said) -> None:
    said.tones.delay_s = 0.5
    said.output.prepare("It is noon.")
    await asyncio.sleep(1)
    assert said.events == []
    begun_s = asyncio.get_running_loop().time()
    await said.say("It is noon. Good night.")
    assert said.at_s[0] - begun_s < 0.01
    assert [text for text, _, _ in said.tones.asked] == ["It is noon.", "Good night."]
    assert said.words == ["It", "is", "noon.", "Good", "night."]


async def test_speech_still_being_prepared_continues_where_it_is(said: Said) -> None:
    said.tones.delay_s = 0.5
    said.output.prepare("It is noon.")
    await asyncio.sleep(0.3)
    begun_s = asyncio.get_running_loop().time()
    await said.say("It is noon.")
    assert said.at_s[0] - begun_s == pytest.approx(0.2, abs=0.01)
    assert len(said.tones.asked) == 1


async def test_only_the_first_clause_is_prepared(said: Said) -> None:
    said.tones.piece_ms = 100
    said.output.prepare("It is noon in Tokyo and in a few other places.")
    await asyncio.sleep(60)
    assert said.tones.made == 1


async def test_a_different_beginning_is_synthesized_again(said: Said) -> None:
    said.output.prepare("It is noon.")
    await asyncio.sleep(1)
    await said.say("It is one.")
    assert said.words == ["It", "is", "one."]
    assert said.tones.open == 0


@pytest.mark.parametrize(("voice", "speed"), [("ann", 1.0), ("joe", 1.5)])
async def test_prepared_speech_is_not_used_after_a_voice_change(said: Said, voice: str, speed: float) -> None:
    said.output.prepare("It is noon.")
    await asyncio.sleep(1)
    said.output.set_voice(voice, speed)
    await said.say("It is noon.")
    assert said.tones.asked == [("It is noon.", "joe", 1.0), ("It is noon.", voice, speed)]


async def test_speech_that_failed_to_prepare_is_synthesized_when_needed(said: Said) -> None:
    said.tones.error, said.tones.fails_at = SpeechBusy("busy"), "noon"
    said.output.prepare("It is noon.")
    await asyncio.sleep(1)
    said.tones.error = None
    await said.say("It is noon.")
    assert said.words == ["It", "is", "noon."]


async def test_unused_prepared_speech_is_discarded(said: Said) -> None:
    said.output.prepare("It is noon.")
    await asyncio.sleep(1)
    said.output.drop()
    await asyncio.sleep(1)
    assert said.tones.open == 0


async def test_a_new_answer_keeps_the_speech_prepared_for_it(said: Said) -> None:
    said.output.prepare("It is noon.")
    await asyncio.sleep(1)
    said.cancel()
    await said.say("It is noon.")
    assert len(said.tones.asked) == 1


async def test_speech_is_prepared_only_when_the_engine_is_idle(said: Said) -> None:
    said.output.prepare("It is noon.")
    await said.say("It is one.")
    assert said.tones.urgencies == [Urgency.IDLE, Urgency.NOW]
