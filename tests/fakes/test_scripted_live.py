"""The scripted live model keeps the times and the order of its script."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from antiphon.models.base import ModelError, OutputText
from antiphon.models.live import (
    Closed,
    GenerationComplete,
    GoAway,
    InputTranscript,
    Interrupted,
    LiveContext,
    LiveEvent,
    OutputAudio,
    Timings,
    ToolCalls,
    TurnComplete,
    TurnFailed,
)
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, UserMessage
from tests.fakes.paced import Listener, listening
from tests.fakes.scripted_live import (
    OUTPUT_HZ,
    PROFILE,
    Barge,
    Call,
    Fail,
    GoAwayIn,
    GoOn,
    HangUp,
    Hear,
    Say,
    ScriptedLive,
    Stall,
    Step,
)

FRAME = bytes(640)
NOON = Say("It's noon, sir. And sunny.", first_text_ms=100, first_audio_ms=200, audio_ms=1_500)


def audio_of(events: Sequence[LiveEvent]) -> bytes:
    return b"".join(event.pcm for event in events if isinstance(event, OutputAudio))


async def speak(talk: Listener, ms: int) -> None:
    for _ in range(ms // 20):
        talk.model.send_audio(FRAME)
        await asyncio.sleep(0.02)


async def test_it_hears_after_as_much_audio_as_the_script_says() -> None:
    model = ScriptedLive([Hear("what time is it", after_ms=800), Stall()])
    async with listening(model) as talk:
        await speak(talk, 780)
        assert talk.events == [InputTranscript("what time", is_final=False)]
        await speak(talk, 20)
        assert talk.events[1:] == [InputTranscript("what time is it", is_final=True)]
    assert model.audio_ms == 800


async def test_audio_during_an_answer_is_no_turn() -> None:
    async with listening(ScriptedLive([Hear("hi", after_ms=100), Stall(), Hear("ho", after_ms=100)])) as talk:
        await speak(talk, 1_000)
        assert talk.events[-1] == InputTranscript("hi", is_final=True)


async def test_text_and_audio_come_at_their_times() -> None:
    async with listening(ScriptedLive([NOON])) as talk:
        await talk.model.send_text("what time is it")
        await asyncio.sleep(0.09)
        assert talk.events == []
        await asyncio.sleep(0.02)
        assert talk.events == [OutputText("It's noon, ")]
        await asyncio.sleep(0.08)
        assert talk.kinds == [OutputText]
        await asyncio.sleep(0.02)
        assert talk.kinds == [OutputText, OutputAudio]


async def test_the_pieces_make_the_whole_answer() -> None:
    async with listening(ScriptedLive([NOON])) as talk:
        await talk.ask("what time is it")
        assert talk.text == NOON.text
        assert [event.text for event in talk.events if isinstance(event, OutputAudio)] == [
            "It's noon, ",
            "sir. ",
            "And sunny.",
        ]
        assert len(audio_of(talk.events)) == 2 * OUTPUT_HZ * NOON.audio_ms // 1000


async def test_calls_side_by_side_are_of_one_message() -> None:
    script: list[Step] = [Call("a"), Call("b"), Say("One moment.", goes_on=True), Call("c"), NOON]
    async with listening(ScriptedLive(script)) as talk:
        await talk.ask("hi")
        assert talk.events == [ToolCalls((ToolCall(None, "a", {}), ToolCall(None, "b", {})))]
        await talk.give_results()
        assert talk.events[-1] == ToolCalls((ToolCall(None, "c", {}),))
        await talk.give_results()
        assert talk.events[-2:] == [GenerationComplete(), TurnComplete()]


async def test_it_stalls_until_it_is_interrupted() -> None:
    model = ScriptedLive([Stall(), NOON])
    async with listening(model) as talk:
        await talk.ask("hi")
        assert talk.events == []
        await model.interrupt()
        await talk.ask("hello?")
        assert talk.text == NOON.text
    assert (model.interrupts, model.texts) == (1, ["hi", "hello?"])


async def test_it_fails() -> None:
    async with listening(ScriptedLive([Say("I", goes_on=True), Fail("boom"), NOON])) as talk:
        await talk.ask("hi")
        assert talk.kinds == [OutputText, OutputAudio, TurnFailed, TurnComplete]


async def test_a_barge_voids_the_rest_of_the_answer() -> None:
    async with listening(ScriptedLive([NOON, Barge(after_ms=100)])) as talk:
        await talk.ask("hi")
        assert talk.kinds == [OutputText, OutputAudio, Interrupted, TurnComplete]
        assert len(audio_of(talk.events)) < 2 * OUTPUT_HZ * NOON.audio_ms // 1000


async def test_a_barge_may_come_while_the_answer_is_still_played() -> None:
    async with listening(ScriptedLive([NOON, Barge(after_ms=1_000)])) as talk:
        await talk.ask("hi")
        assert talk.events[-3:] == [GenerationComplete(), TurnComplete(), Interrupted()]


async def test_after_a_barge_it_remembers_what_was_heard() -> None:
    model = ScriptedLive([NOON, Barge(after_ms=100)])
    async with listening(model) as talk:
        await talk.ask("hi")
        await model.interrupt("It's")
    assert model.messages == [UserMessage("hi"), AssistantMessage("It's")]


async def test_only_the_last_audio_of_an_answer_is_the_last() -> None:
    async with listening(ScriptedLive([Say("One moment.", goes_on=True), NOON])) as talk:
        await talk.ask("hi")
        assert [event.last for event in talk.events if isinstance(event, OutputAudio)] == [False, False, False, True]


async def test_the_timings_come_right_before_the_final_text() -> None:
    timings = Timings(300, 140)
    async with listening(ScriptedLive([Hear("hi", after_ms=100, timings=timings), Stall()])) as talk:
        await speak(talk, 100)
        assert talk.events[-2:] == [timings, InputTranscript("hi", is_final=True)]


async def test_a_user_who_goes_on_voids_the_answer_before_it_begins() -> None:
    script: list[Step] = [Hear("what", after_ms=100), GoOn(50), Hear("what now", after_ms=100, goes_on=True), NOON]
    async with listening(ScriptedLive(script)) as talk:
        await speak(talk, 200)
        finals = [event for event in talk.events if not isinstance(event, InputTranscript) or event.is_final]
        assert finals[:3] == [InputTranscript("what", is_final=True), Interrupted(), TurnComplete()]
        await speak(talk, 100)
        assert InputTranscript("what now", is_final=True, goes_on=True) in talk.events


async def test_if_it_waits_it_answers_when_it_is_asked() -> None:
    model = ScriptedLive([Hear("hi", after_ms=100), NOON], profile=replace(PROFILE, waits_to_answer=True))
    async with listening(model) as talk:
        await speak(talk, 100)
        await talk.settle()
        assert talk.events[-1] == InputTranscript("hi", is_final=True)
        await talk.ask("hi")
        assert talk.text == NOON.text
    assert model.messages[0] == UserMessage("hi")


async def test_a_barge_that_was_forestalled_does_not_come() -> None:
    async with listening(ScriptedLive([NOON, Barge(after_ms=1_000)])) as talk:
        await talk.model.send_text("hi")
        await asyncio.sleep(0.5)
        await talk.model.interrupt()
        await talk.settle()
        assert Interrupted() not in talk.events


async def test_it_goes_away_when_it_said() -> None:
    async with listening(ScriptedLive([GoAwayIn(5_000), Stall()])) as talk:
        await talk.model.send_text("hi")
        await asyncio.sleep(4.9)
        assert talk.events == [GoAway(5_000)]
        await asyncio.sleep(0.2)
        assert talk.events[1:] == [Closed("the time was over")]
        assert talk.reading.done()


async def test_it_hangs_up_after_an_answer() -> None:
    async with listening(ScriptedLive([Say("Bye."), HangUp("quota", retryable=False)])) as talk:
        await talk.ask("bye")
        assert talk.events[-2:] == [TurnComplete(), Closed("quota", retryable=False)]


async def test_it_hangs_up_in_the_middle_of_an_answer() -> None:
    async with listening(ScriptedLive([Say("I was about", goes_on=True), HangUp()])) as talk:
        await talk.ask("hi")
        assert talk.kinds == [OutputText, OutputAudio, Closed]


async def test_it_refuses_to_be_connected() -> None:
    model = ScriptedLive(refuses=ModelError("Too many.", rate_limited=True))
    with pytest.raises(ModelError, match="Too many"):
        await model.connect(LiveContext("", (), (), Mode.VOICE))


async def test_it_keeps_what_it_was_connected_with() -> None:
    model = ScriptedLive()
    context = LiveContext("Be kind.", (), (), Mode.VOICE)
    await model.connect(context, resume="handle")
    assert (model.context, model.resumed_with) == (context, "handle")


async def test_when_the_script_is_over_answers_are_empty() -> None:
    async with listening(ScriptedLive()) as talk:
        await talk.ask("hi")
        assert talk.events == [GenerationComplete(), TurnComplete()]
