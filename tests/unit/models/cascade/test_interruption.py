"""Speech over an answer, and its effect on the answer."""

import asyncio

import pytest

from antiphon.models.cascade.cascade import MAX_HOLD_S
from antiphon.models.live import (
    GenerationComplete,
    Held,
    InputTranscript,
    Interrupted,
    OutputAudio,
    Resumed,
    ToolCalls,
    TurnComplete,
)
from antiphon.transcript import ToolMessage, UserMessage
from tests.fakes.spoken_call import CALL, LONG_ANSWER, talk
from tests.fakes.voice import CERTAIN, hum, wave


async def test_speech_after_the_first_audio_of_the_answer_is_a_new_turn() -> None:
    async with talk(LONG_ANSWER, "As you like.") as call:
        await call.caller.speak("what will the weather be")
        await call.wait_for_event(OutputAudio)
        await call.caller.be_silent(300)
        began_s = asyncio.get_running_loop().time()
        await call.caller.speak("stop the timer please")
        assert call.caller.when(Held) - began_s <= 0.2
        await call.wait_for_event(TurnComplete, 2)
        assert call.caller.heard[-1] == "stop the timer please"
        assert call.caller.started[-1].continues is None
        assert [type(message) for message in call.prompt] == [UserMessage, UserMessage]


@pytest.mark.parametrize("is_made", [False, True], ids=["while it is made", "while it is only said"])
async def test_an_interrupted_answer_emits_only_its_end(is_made: bool) -> None:
    async with talk(LONG_ANSWER, answers=False) as call:
        turn = call.caller.respond("what will the weather be")
        await call.wait_for_event(OutputAudio)
        if is_made:
            call.tones.delay_s = 1.0
            await call.wait_for(lambda: call.model.open == 0)
        await call.caller.speak("stop")
        await call.wait_for_event(Interrupted)
        assert call.tones.open == call.model.open == 0
        await call.caller.be_silent(300)
        at = call.caller.events.index(Interrupted(turn))
        assert [event for event in call.caller.events[at:] if not isinstance(event, InputTranscript)] == [
            Interrupted(turn),
            TurnComplete(turn),
        ]


@pytest.mark.parametrize("sound", [wave(32, CERTAIN), hum(400)], ids=["click", "hum"])
async def test_a_noise_does_not_trigger_a_second_answer(sound: bytes) -> None:
    async with talk("It is noon.") as call:
        call.tones.delay_s = 1.0
        await call.caller.speak("what time is it")
        await call.wait_for(lambda: call.caller.finals)
        await call.caller.sound(sound)
        await call.wait_for_event(TurnComplete)
        assert Interrupted not in call.caller.kinds
        assert len(call.caller.finals) == len(call.asked) == 1


async def test_a_complete_answer_that_is_still_playing_is_interrupted_too() -> None:
    async with talk(LONG_ANSWER, answers=False) as call:
        call.tones.delay_s = 0.0
        turn = call.caller.respond("what will the weather be")
        await call.wait_for_event(TurnComplete)
        await call.caller.speak("stop")
        await call.caller.be_silent(300)
        assert call.caller.events.count(Interrupted(turn)) == call.caller.events.count(TurnComplete(turn)) == 1


async def test_an_answer_the_client_is_still_playing_is_interrupted_too() -> None:
    async with talk("Noon.", answers=False) as call:
        turn = await call.caller.ask("what time is it")
        call.caller.playing = True
        await call.caller.speak("stop")
        await call.caller.be_silent(300)
        assert call.caller.events.count(Interrupted(turn)) == 1


async def test_an_answer_of_an_earlier_connection_still_playing_is_interrupted_too() -> None:
    async with talk(answers=False) as call:
        call.caller.playing = True
        await call.caller.speak("stop")
        await call.caller.be_silent(300)
        assert call.caller.events == [Held(None, is_certain=False), Held(None), Interrupted(None)]


@pytest.mark.parametrize("sound", [wave(32, CERTAIN), hum(400)], ids=["click", "hum"])
async def test_a_noise_does_not_end_an_answer_before_its_first_sound(sound: bytes) -> None:
    async with talk(LONG_ANSWER, answers=False) as call:
        call.caller.respond("what will the weather be")
        await call.caller.sound(sound)
        await call.caller.be_silent(500)
        assert Interrupted not in call.caller.kinds


async def test_the_answer_is_held_during_possible_speech() -> None:
    async with talk(LONG_ANSWER, answers=False) as call:
        call.tones.piece_ms = 100
        call.caller.respond("what will the weather be")
        await call.wait_for_event(OutputAudio)
        began_s = asyncio.get_running_loop().time()
        await call.caller.sound(hum(500))
        assert call.caller.when(OutputAudio, -1) <= began_s + 0.2
        await call.wait_for_event(TurnComplete)
        assert Interrupted not in call.caller.kinds
        spoken = [event.text for event in call.caller.events if isinstance(event, OutputAudio)]
        assert "".join(spoken).split() == LONG_ANSWER.split()


async def test_a_word_that_wants_no_answer_holds_the_answer_and_lets_it_go_on() -> None:
    async with talk(LONG_ANSWER, answers=False) as call:
        call.tones.piece_ms = 100
        turn = call.caller.respond("what will the weather be")
        await call.wait_for_event(OutputAudio)
        await call.caller.speak("okay")
        await call.wait_for_event(Resumed)
        held_s, resumed_s = call.caller.when(Held), call.caller.when(Resumed)
        await call.wait_for_event(TurnComplete)
        sent = [(event, at_s) for event, at_s in zip(call.caller.events, call.caller.at_s, strict=True)]
        assert not [event for event, at_s in sent if isinstance(event, OutputAudio) and held_s < at_s < resumed_s]
        spoken = [event.text for event, _ in sent if isinstance(event, OutputAudio)]
        assert "".join(spoken).split() == LONG_ANSWER.split()
        assert call.caller.of(turn)[-1] == TurnComplete(turn)
        assert Interrupted not in call.caller.kinds
        assert call.caller.finals == []


async def test_an_answer_is_not_held_for_long_and_words_interrupt_it_later_all_the_same() -> None:
    async with talk(LONG_ANSWER, answers=False) as call:
        call.fakes.recognizer.delay_s = 3.0
        call.caller.respond("what will the weather be")
        await call.wait_for_event(OutputAudio)
        await call.caller.speak("what time is it")
        await call.wait_for_event(Interrupted)
        assert call.caller.when(Resumed) - call.caller.when(Held) == pytest.approx(MAX_HOLD_S, abs=0.05)


async def test_a_held_answer_is_audible_for_as_much_longer_as_it_was_held() -> None:
    async with talk("It is noon.", answers=False) as call:
        call.tones.delay_s = 0.0
        call.caller.respond("what time is it")
        await call.wait_for_event(TurnComplete)
        # The client has more than half a second of it to play.
        await call.caller.sound(wave(400, CERTAIN))
        await call.wait_for_event(Resumed)
        held_s = call.caller.when(Resumed) - call.caller.when(Held)
        assert call.cascade.is_answering()
        await call.caller.be_silent(int(1_000 * (0.66 - held_s)) if held_s < 0.6 else 20)
        assert call.cascade.is_answering()
        await call.caller.be_silent(1_000)
        assert not call.cascade.is_answering()


async def test_a_yes_is_the_reply_to_an_answer_that_asks() -> None:
    async with talk("Shall I delete it? I can do it right now.", "Done.") as call:
        await call.caller.speak("delete the alarm")
        await call.wait_for_event(OutputAudio)
        await call.caller.speak("yes")
        await call.wait_for(lambda: len(call.caller.finals) == 2)
        assert call.caller.heard[-1] == "yes"


async def test_a_session_that_cannot_hold_interrupts_and_what_was_said_is_a_turn() -> None:
    async with talk(LONG_ANSWER, "In London.", answers=False) as call:
        turn = call.caller.respond("what will the weather be")
        await call.wait_for_event(OutputAudio)
        speaking = asyncio.ensure_future(call.caller.speak("and in London"))
        await asyncio.sleep(0.3)
        assert Held in call.caller.kinds
        call.cascade.interrupt(turn, "It is")
        await speaking
        await call.wait_for(lambda: call.caller.finals)
        assert call.caller.heard == ["and in London"]
        assert Resumed not in call.caller.kinds
        assert Interrupted not in call.caller.kinds


async def test_speech_over_a_running_tool_does_not_lose_its_result() -> None:
    async with talk([CALL], "As you like.", "As you like.") as call:
        turn = call.caller.respond("look it up")
        await call.wait_for_event(ToolCalls)
        await call.caller.speak("never mind")
        await call.wait_for_event(Interrupted)
        at = call.caller.events.index(Interrupted(turn))
        assert call.caller.events[at + 1] == TurnComplete(turn)
        call.give_results()
        await call.wait_for_event(TurnComplete, 2)
        assert call.caller.text == "As you like."
        assert any(isinstance(message, ToolMessage) and message.content == "noon" for message in call.prompt)


async def test_an_answer_that_begins_during_speech_is_interrupted_at_the_end_of_the_turn() -> None:
    async with talk(LONG_ANSWER, "Yes.", "The end.", answers=False) as call:
        await call.caller.speak("I would like")
        turn = call.caller.respond("typed")
        await call.caller.speak("to say something as well")
        await call.wait_for(lambda: call.caller.finals)
        assert call.caller.finals[0].text == "I would like to say something as well"
        before = call.caller.events[: call.caller.events.index(call.caller.finals[0])]
        assert Interrupted(turn) in before


async def test_an_interrupt_silences_the_answer_and_later_speech_is_a_new_turn() -> None:
    async with talk("It is noon.", "In Tokyo it is nine.", answers=False) as call:
        await call.caller.speak("what time is it")
        await call.wait_for(lambda: call.caller.finals)
        final = call.caller.finals[0]
        call.caller.answer(final)
        call.caller.interrupt("")
        await call.caller.speak("in Tokyo")
        await call.wait_for(lambda: len(call.caller.finals) == 2)
        assert call.caller.heard[-1] == "in Tokyo"
        assert call.caller.started[-1].continues is None
        assert call.caller.events.count(TurnComplete(final.turn)) == 1
        assert OutputAudio not in call.caller.kinds


async def test_a_turn_the_session_leaves_unanswered_is_complete() -> None:
    async with talk(answers=False) as call:
        await call.caller.speak("what time is it")
        await call.wait_for(lambda: call.caller.finals)
        turn = call.caller.finals[0].turn
        call.caller.interrupt("", turn)
        call.caller.answer(call.caller.finals[0])
        await call.caller.speak("in Tokyo")
        await call.wait_for(lambda: len(call.caller.finals) == 2)
        assert call.caller.events.count(TurnComplete(turn)) == 1
        assert call.caller.started[-1].continues is None


async def test_an_interruption_of_an_earlier_turn_does_not_affect_the_answer() -> None:
    async with talk("Yes?", "It is noon.") as call:
        earlier = await call.caller.ask("hello")
        turn = call.caller.respond("what time is it")
        call.cascade.interrupt(earlier, "")
        await call.caller.settle()
        assert call.caller.of(turn)[-2:] == [GenerationComplete(turn), TurnComplete(turn)]
