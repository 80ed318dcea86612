"""How an answer will probably begin is made before it is wanted, and heard at once if it is."""

import asyncio

import pytest

from antiphon.speech.base import SpeechBusy, Urgency
from tests.fakes.said import Said


async def test_what_was_prepared_is_heard_at_once_and_made_once(said: Said) -> None:
    said.tones.delay_s = 0.5
    said.output.prepare("It is noon.")
    await asyncio.sleep(1)
    assert said.events == []
    begun_s = asyncio.get_running_loop().time()
    await said.say("It is noon. Good night.")
    assert said.at_s[0] - begun_s < 0.01
    assert [text for text, _, _ in said.tones.asked] == ["It is noon.", "Good night."]
    assert said.words == ["It", "is", "noon.", "Good", "night."]


async def test_what_is_being_prepared_goes_on_where_it_is(said: Said) -> None:
    said.tones.delay_s = 0.5
    said.output.prepare("It is noon.")
    await asyncio.sleep(0.3)
    begun_s = asyncio.get_running_loop().time()
    await said.say("It is noon.")
    assert said.at_s[0] - begun_s == pytest.approx(0.2, abs=0.01)
    assert len(said.tones.asked) == 1


async def test_only_the_first_sound_is_prepared(said: Said) -> None:
    said.tones.piece_ms = 100
    said.output.prepare("It is noon in Tokyo and in a few other places.")
    await asyncio.sleep(60)
    assert said.tones.made == 1


async def test_another_beginning_than_the_one_prepared_is_made_anew(said: Said) -> None:
    said.output.prepare("It is noon.")
    await asyncio.sleep(1)
    await said.say("It is one.")
    assert said.words == ["It", "is", "one."]
    assert said.tones.open == 0


@pytest.mark.parametrize(("voice", "speed"), [("ann", 1.0), ("joe", 1.5)])
async def test_a_voice_that_was_changed_is_not_the_one_prepared(said: Said, voice: str, speed: float) -> None:
    said.output.prepare("It is noon.")
    await asyncio.sleep(1)
    said.output.set_voice(voice, speed)
    await said.say("It is noon.")
    assert said.tones.asked == [("It is noon.", "joe", 1.0), ("It is noon.", voice, speed)]


async def test_what_could_not_be_prepared_is_made_when_it_is_wanted(said: Said) -> None:
    said.tones.error, said.tones.fails_at = SpeechBusy("busy"), "noon"
    said.output.prepare("It is noon.")
    await asyncio.sleep(1)
    said.tones.error = None
    await said.say("It is noon.")
    assert said.words == ["It", "is", "noon."]


async def test_what_was_prepared_is_forgotten_when_it_is_not_wanted(said: Said) -> None:
    said.output.prepare("It is noon.")
    await asyncio.sleep(1)
    said.output.drop()
    await asyncio.sleep(1)
    assert said.tones.open == 0


async def test_a_new_answer_does_not_forget_what_was_prepared_for_it(said: Said) -> None:
    said.output.prepare("It is noon.")
    await asyncio.sleep(1)
    said.cancel()
    await said.say("It is noon.")
    assert len(said.tones.asked) == 1


async def test_it_is_prepared_only_where_there_is_nothing_else_to_do(said: Said) -> None:
    said.output.prepare("It is noon.")
    await said.say("It is one.")
    assert said.tones.urgencies == [Urgency.IDLE, Urgency.NOW]
