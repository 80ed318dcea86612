"""Somebody goes on with a turn that was thought to be over."""

import asyncio

from antiphon.models.live import (
    InputTranscript,
    Interrupted,
    OutputAudio,
    TurnComplete,
)
from antiphon.transcript import AssistantMessage, UserMessage
from tests.fakes.spoken_call import talk


async def test_who_goes_on_before_the_first_sound_of_the_answer_is_in_the_same_turn() -> None:
    async with talk("It is noon.", "It is nine in Tokyo.") as call:
        call.tones.delay_s = 1.0
        await call.caller.speak("what time is it")
        await call.wait_for(lambda: call.caller.finals)
        await call.caller.be_silent(100)
        await call.caller.speak("in Tokyo")
        await call.wait_for_event(TurnComplete, 2)
        assert call.caller.finals == [
            InputTranscript("what time is it", is_final=True),
            InputTranscript("what time is it in Tokyo", is_final=True, goes_on=True),
        ]
        assert call.told == [UserMessage("what time is it in Tokyo")]
        spoken = "".join(event.text for event in call.caller.events if isinstance(event, OutputAudio))
        assert spoken.split() == ["It", "is", "nine", "in", "Tokyo."]
        assert call.caller.events.count(Interrupted()) == 1


async def test_the_answer_to_the_longer_turn_is_thought_ahead_too() -> None:
    async with talk("It is noon.", "It is nine in Tokyo.") as call:
        call.tones.delay_s = 1.0
        await call.caller.speak("what time is it")
        await call.wait_for(lambda: call.caller.finals)
        await call.caller.speak("in Tokyo")
        await call.wait_for_event(TurnComplete, 2)
        assert call.asked == [UserMessage("what time is it"), UserMessage("what time is it in Tokyo")]


async def test_a_session_that_is_slow_to_give_back_the_first_part_changes_nothing() -> None:
    async with talk("It is noon.", "It is nine in Tokyo.", "The end.", answers=False) as call:
        await call.caller.speak("what time is it")
        await call.wait_for(lambda: call.caller.finals)
        await call.caller.speak("in Tokyo")
        await call.cascade.send_text("what time is it")
        await call.cascade.interrupt("")
        await call.wait_for(lambda: len(call.caller.finals) == 2)
        await call.cascade.send_text("what time is it in Tokyo")
        await call.caller.settle()
        assert call.told == [UserMessage("what time is it in Tokyo")]
        assert call.caller.events.count(TurnComplete()) == 2


async def test_not_even_if_it_gives_back_both_at_the_end() -> None:
    async with talk("It is noon.", "It is nine.", "The end.", answers=False) as call:
        await call.caller.speak("what time is it")
        await call.wait_for(lambda: call.caller.finals)
        await call.caller.speak("in Tokyo")
        await call.wait_for(lambda: len(call.caller.finals) == 2)
        for final in call.caller.finals:
            await call.cascade.send_text(final.text)
        await call.caller.settle()
        assert call.told == [UserMessage("what time is it in Tokyo")]


async def test_earlier_turns_stay_as_they_are() -> None:
    async with talk("Yes?", "It is noon.", "It is nine in Tokyo.") as call:
        await call.caller.speak("hello")
        await call.wait_for_event(TurnComplete)
        await asyncio.sleep(5)
        call.body.recognizer.delay_s = 2.0
        await call.caller.speak("what time is it")
        await call.caller.be_silent(1_500)
        assert len(call.caller.finals) == 1
        call.body.recognizer.delay_s = 0.1
        await call.caller.speak("in Tokyo")
        await call.wait_for_event(TurnComplete, 2)
        assert [final.goes_on for final in call.caller.finals] == [False, False]
        assert call.told == [
            UserMessage("hello"),
            AssistantMessage("Yes? "),
            UserMessage("what time is it in Tokyo"),
        ]


async def test_what_is_typed_in_the_meantime_is_not_a_part_of_what_was_spoken() -> None:
    async with talk("It is noon.", "It is raining.", "In Tokyo, too.", answers=False) as call:
        await call.caller.speak("what time is it")
        await call.wait_for(lambda: call.caller.finals)
        await call.cascade.send_text("what time is it")
        await call.cascade.send_text("and what is the weather")
        await call.caller.be_silent(100)
        await call.caller.speak("in Tokyo")
        await call.wait_for(lambda: len(call.caller.finals) == 2)
        assert call.caller.finals[-1] == InputTranscript("in Tokyo", is_final=True)


async def test_the_same_words_typed_after_they_were_spoken_are_another_turn() -> None:
    async with talk("One.", "Two.", "Three.") as call:
        await call.caller.speak("next")
        await call.wait_for_event(TurnComplete)
        await call.caller.ask("next")
        assert call.told == [UserMessage("next"), AssistantMessage("One. "), UserMessage("next")]
