"""The user continues a turn that seemed to be over."""

import asyncio

from antiphon.models.live import Interrupted, OutputAudio, TurnComplete, TurnStarted
from antiphon.transcript import AssistantMessage, UserMessage
from tests.fakes.spoken_call import talk


async def test_speech_before_the_first_audio_of_the_answer_continues_the_turn() -> None:
    async with talk("It is noon.", "It is nine in Tokyo.") as call:
        call.tones.delay_s = 1.0
        await call.caller.speak("what time is it")
        await call.wait_for(lambda: call.caller.finals)
        await call.caller.be_silent(100)
        await call.caller.speak("in Tokyo")
        await call.wait_for_event(TurnComplete, 2)
        assert call.caller.heard == ["what time is it", "what time is it in Tokyo"]
        first, whole = call.caller.finals
        assert call.caller.started == [TurnStarted(first.turn), TurnStarted(whole.turn, continues=first.turn)]
        assert call.prompt == [UserMessage("what time is it in Tokyo")]
        spoken = "".join(event.text for event in call.caller.events if isinstance(event, OutputAudio))
        assert spoken.split() == ["It", "is", "nine", "in", "Tokyo."]
        assert call.caller.kinds.count(Interrupted) == 1
        interrupted = call.caller.events.index(Interrupted(first.turn))
        assert call.caller.events[interrupted + 1] == TurnComplete(first.turn)


async def test_the_answer_to_the_continued_turn_is_prepared_too() -> None:
    async with talk("It is noon.", "It is nine in Tokyo.") as call:
        call.tones.delay_s = 1.0
        await call.caller.speak("what time is it")
        await call.wait_for(lambda: call.caller.finals)
        await call.caller.speak("in Tokyo")
        await call.wait_for_event(TurnComplete, 2)
        assert call.asked == [UserMessage("what time is it"), UserMessage("what time is it in Tokyo")]


async def test_a_late_request_for_the_first_answer_changes_nothing() -> None:
    async with talk("It is noon.", "It is nine in Tokyo.", "The end.", answers=False) as call:
        await call.caller.speak("what time is it")
        await call.wait_for(lambda: call.caller.finals)
        first = call.caller.finals[0]
        await call.caller.speak("in Tokyo")
        assert call.caller.events[-2:] == [Interrupted(first.turn), TurnComplete(first.turn)]
        call.caller.answer(first)
        call.caller.interrupt("", first.turn)
        await call.wait_for(lambda: len(call.caller.finals) == 2)
        call.caller.answer(call.caller.finals[1])
        await call.caller.settle()
        assert call.prompt == [UserMessage("what time is it in Tokyo")]
        ends = [event.turn for event in call.caller.events if isinstance(event, TurnComplete)]
        assert ends == [final.turn for final in call.caller.finals]


async def test_requests_for_both_answers_at_the_end_change_nothing() -> None:
    async with talk("It is noon.", "It is nine.", "The end.", answers=False) as call:
        await call.caller.speak("what time is it")
        await call.wait_for(lambda: call.caller.finals)
        await call.caller.speak("in Tokyo")
        await call.wait_for(lambda: len(call.caller.finals) == 2)
        for final in call.caller.finals:
            call.caller.answer(final)
        await call.caller.settle()
        assert call.prompt == [UserMessage("what time is it in Tokyo")]
        ends = [event.turn for event in call.caller.events if isinstance(event, TurnComplete)]
        assert ends == [final.turn for final in call.caller.finals]


async def test_a_turn_continued_twice_is_one_turn() -> None:
    async with talk(*["It is noon."] * 3) as call:
        call.tones.delay_s = 2.0
        for place, text in enumerate(("what time is it", "in Tokyo", "and in Berlin")):
            await call.caller.speak(text)
            await call.wait_for_event(TurnStarted, place + 1)
        await call.wait_for_event(TurnComplete, 3)
        assert [each.continues for each in call.caller.started] == [
            None,
            *(final.turn for final in call.caller.finals[:2]),
        ]
        assert call.prompt == [UserMessage("what time is it in Tokyo and in Berlin")]


async def test_unprompted_speech_is_interrupted_by_the_continued_turn() -> None:
    async with talk("It is noon.", answers=False) as call:
        call.tones.delay_s = 1.0
        await call.caller.speak("what time is it")
        await call.wait_for(lambda: call.caller.finals)
        heard, said = call.caller.finals[0].turn, call.caller.make_turn()
        call.cascade.say(said, "Your tea is ready.")
        await call.caller.speak("in Tokyo")
        at = call.caller.events.index(Interrupted(said))
        assert call.caller.events[at : at + 4] == [
            Interrupted(said),
            TurnComplete(said),
            Interrupted(heard),
            TurnComplete(heard),
        ]


async def test_earlier_turns_are_unchanged() -> None:
    async with talk("Yes?", "It is noon.", "It is nine in Tokyo.") as call:
        await call.caller.speak("hello")
        await call.wait_for_event(TurnComplete)
        await asyncio.sleep(5)
        call.fakes.recognizer.delay_s = 2.0
        await call.caller.speak("what time is it")
        await call.caller.be_silent(1_500)
        assert len(call.caller.finals) == 1
        call.fakes.recognizer.delay_s = 0.1
        await call.caller.speak("in Tokyo")
        await call.wait_for_event(TurnComplete, 2)
        assert [started.continues for started in call.caller.started] == [None, None]
        assert call.prompt == [
            UserMessage("hello"),
            AssistantMessage("Yes?"),
            UserMessage("what time is it in Tokyo"),
        ]


async def test_text_typed_in_between_is_not_part_of_the_spoken_turn() -> None:
    async with talk("It is noon.", "It is raining.", "In Tokyo, too.", answers=False) as call:
        await call.caller.speak("what time is it")
        await call.wait_for(lambda: call.caller.finals)
        call.caller.answer(call.caller.finals[0])
        call.caller.respond("and what is the weather")
        await call.caller.be_silent(100)
        await call.caller.speak("in Tokyo")
        await call.wait_for(lambda: len(call.caller.finals) == 2)
        assert call.caller.heard[-1] == "in Tokyo"
        assert call.caller.started[-1].continues is None


async def test_the_same_words_typed_after_being_spoken_are_another_turn() -> None:
    async with talk("One.", "Two.", "Three.") as call:
        await call.caller.speak("next")
        await call.wait_for_event(TurnComplete)
        await call.caller.ask("next")
        assert call.prompt == [UserMessage("next"), AssistantMessage("One."), UserMessage("next")]
