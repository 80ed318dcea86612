"""The scripted live model keeps the times and the order of its script."""

import asyncio
from collections.abc import Sequence
from math import inf
from typing import Literal

import pytest

from antiphon.models.base import ModelError
from antiphon.models.live import (
    Closed,
    CloseKind,
    GenerationComplete,
    GoAway,
    InputTranscript,
    Interrupted,
    LiveContext,
    LiveEvent,
    OutputAudio,
    OutputText,
    ResumptionUpdate,
    Timings,
    ToolAnswer,
    ToolCalls,
    ToolCancelled,
    TurnComplete,
    TurnFailed,
    TurnStarted,
    Usage,
)
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, ToolMessage, Transcript, UserMessage
from tests.fakes.paced import Listener, listening
from tests.fakes.scripted_live import (
    WAITING,
    Barge,
    Call,
    Cancel,
    Fail,
    GoAwayIn,
    GoOn,
    HangUp,
    Hear,
    Mishear,
    Resumable,
    Say,
    ScriptedLive,
    Stall,
    Step,
    Use,
)
from tests.fakes.spoken_answer import OUTPUT_HZ

FRAME = bytes(640)
NOON = Say("It's noon, sir. And sunny.", first_text_ms=100, first_audio_ms=200, audio_ms=1_500)
CALL_A, CALL_B = Call("a", id="call_a"), Call("b", id="call_b")


def context() -> LiveContext:
    return LiveContext("Be kind.", Transcript(), (), (), Mode.VOICE)


def audio_of(events: Sequence[LiveEvent]) -> bytes:
    return b"".join(event.pcm for event in events if isinstance(event, OutputAudio))


def turns_of(talk: Listener) -> list[str]:
    """The ids of the turns that the model has begun."""
    return [event.turn for event in talk.events if isinstance(event, TurnStarted)]


async def speak(talk: Listener, ms: int) -> None:
    for _ in range(ms // 20):
        talk.model.send_audio(FRAME)
        await asyncio.sleep(0.02)


async def hear(talk: Listener) -> str:
    """Speaks until a turn begins, and gives its id."""
    before = len(turns_of(talk))
    while len(turns_of(talk)) == before:
        await speak(talk, 20)
    return turns_of(talk)[-1]


# What it hears.


async def test_a_turn_is_heard_after_as_much_audio_as_the_script_says() -> None:
    model = ScriptedLive([Hear("what time is it", after_ms=800), Stall()])
    async with listening(model) as talk:
        await speak(talk, 780)
        (interim,) = talk.events
        assert isinstance(interim, InputTranscript)
        turn = interim.turn
        assert interim == InputTranscript(turn, "what time", is_final=False)
        await speak(talk, 20)
        assert talk.events[1:] == [TurnStarted(turn), InputTranscript(turn, "what time is it", is_final=True)]
    assert model.audio_ms == 800


async def test_audio_during_an_answer_is_not_a_turn() -> None:
    async with listening(ScriptedLive([Hear("hi", after_ms=100), Stall(), Hear("ho", after_ms=100)])) as talk:
        await speak(talk, 1_000)
        (turn,) = turns_of(talk)
        assert talk.events[-1] == InputTranscript(turn, "hi", is_final=True)


async def test_every_spoken_turn_has_its_own_id() -> None:
    script: list[Step] = [Hear("hi", after_ms=100), NOON, Hear("ho", after_ms=100), NOON]
    async with listening(ScriptedLive(script)) as talk, listening(ScriptedLive(script)) as other:
        turns = []
        for each in (talk, other, talk):
            turns.append(await hear(each))
            await each.settle()
        assert len(set(turns)) == 3


async def test_the_timings_come_with_the_final_transcript() -> None:
    timings = Timings(300, 140)
    async with listening(ScriptedLive([Hear("hi", after_ms=100, timings=timings), Stall()])) as talk:
        turn = await hear(talk)
        assert talk.events[-1] == InputTranscript(turn, "hi", is_final=True, timings=timings)


async def test_a_user_who_continues_speaking_cancels_the_answer_before_it_begins() -> None:
    script: list[Step] = [Hear("what", after_ms=100), GoOn(50), Hear("what now", after_ms=100, continues=True), NOON]
    model = ScriptedLive(script)
    async with listening(model) as talk:
        first = await hear(talk)
        await asyncio.sleep(0.1)
        assert talk.of(first)[-2:] == [Interrupted(first), TurnComplete(first)]
        second = await hear(talk)
        await talk.settle()
        assert TurnStarted(second, continues=first) in talk.events
        assert (
            model.messages == list(talk.transcript.messages) == [UserMessage("what now"), AssistantMessage(NOON.text)]
        )


async def test_unintelligible_audio_is_not_a_turn() -> None:
    async with listening(ScriptedLive([Mishear("What?", after_ms=100), Hear("hi", after_ms=100), NOON])) as talk:
        await speak(talk, 100)
        assert talk.events == [TurnFailed(None, "What?")]
        assert await hear(talk)


async def test_a_waiting_model_answers_when_asked() -> None:
    model = ScriptedLive([Hear("hi", after_ms=100), NOON], profile=WAITING)
    async with listening(model, answers=False) as talk:
        turn = await hear(talk)
        await talk.settle()
        assert talk.events[-1] == InputTranscript(turn, "hi", is_final=True)
        model.respond(turn, "hi")
        await talk.settle()
        assert talk.text == NOON.text
    assert model.prompts == [[UserMessage("hi")]]


async def test_a_turn_heard_by_a_waiting_model_replaces_no_other() -> None:
    script: list[Step] = [Hear("hi", after_ms=100), Say("Hello."), Hear("what time is it", after_ms=100), NOON]
    async with listening(ScriptedLive(script, profile=WAITING)) as talk:
        await hear(talk)
        await talk.settle()
        assert talk.text == "Hello."
        await hear(talk)
        await talk.settle()
        assert talk.text == f"Hello.{NOON.text}"


# When the transcript comes, if the model answers by itself.


@pytest.mark.parametrize(
    ("when", "kinds"),
    [
        ("before", [TurnStarted, InputTranscript, OutputText, OutputAudio, GenerationComplete, TurnComplete]),
        ("late", [TurnStarted, OutputText, InputTranscript, OutputText, OutputAudio, GenerationComplete, TurnComplete]),
        ("after", [TurnStarted, OutputText, OutputAudio, GenerationComplete, TurnComplete, InputTranscript]),
        ("never", [TurnStarted, OutputText, OutputAudio, GenerationComplete, TurnComplete]),
    ],
)
async def test_the_transcript_comes_when_the_script_says(
    when: Literal["before", "late", "after", "never"], kinds: list[type[LiveEvent]]
) -> None:
    model = ScriptedLive([Hear("hi", after_ms=100, transcript=when), NOON])
    async with listening(model) as talk:
        turn = await hear(talk)
        await talk.settle()
        finals = [event for event in talk.events if not isinstance(event, InputTranscript) or event.is_final]
        kinds_seen = [type(event) for event in finals]
        assert [kind for place, kind in enumerate(kinds_seen) if kinds_seen[place - 1 : place] != [kind]] == kinds
        assert talk.of(turn) == talk.events
    assert model.messages[0] == UserMessage("hi")


async def test_calls_may_come_before_the_transcript() -> None:
    async with listening(ScriptedLive([Hear("hi", after_ms=40, transcript="late"), CALL_A, NOON])) as talk:
        turn = await hear(talk)
        await talk.settle()
        assert [type(event) for event in talk.of(turn)][-3:] == [TurnStarted, ToolCalls, InputTranscript]


async def test_a_transcript_may_come_long_after_its_turn() -> None:
    async with listening(ScriptedLive([Hear("hi", after_ms=100, transcript="after", late_ms=5_000), NOON])) as talk:
        turn = await hear(talk)
        await asyncio.sleep(4)
        assert talk.kinds[-1] is TurnComplete
        await asyncio.sleep(4)
        assert talk.events[-1] == InputTranscript(turn, "hi", is_final=True)


# What it says.


async def test_text_and_audio_come_at_the_scripted_times() -> None:
    async with listening(ScriptedLive([NOON])) as talk:
        turn = talk.respond("what time is it")
        await asyncio.sleep(0.09)
        assert talk.events == []
        await asyncio.sleep(0.02)
        assert talk.events == [OutputText(turn, "It's noon, ")]
        await asyncio.sleep(0.08)
        assert talk.kinds == [OutputText]
        await asyncio.sleep(0.02)
        assert talk.kinds == [OutputText, OutputAudio]


async def test_the_chunks_make_up_the_whole_answer() -> None:
    async with listening(ScriptedLive([NOON])) as talk:
        await talk.ask("what time is it")
        assert talk.text == NOON.text
        assert [event.text for event in talk.events if isinstance(event, OutputAudio)] == [
            "It's noon, ",
            "sir. ",
            "And sunny.",
        ]
        assert len(audio_of(talk.events)) == 2 * OUTPUT_HZ * NOON.audio_ms // 1000


async def test_only_the_last_audio_of_an_answer_is_marked_last() -> None:
    async with listening(ScriptedLive([Say("One moment.", goes_on=True), NOON])) as talk:
        await talk.ask("hi")
        assert [event.last for event in talk.events if isinstance(event, OutputAudio)] == [False, False, False, True]


async def test_a_stalled_answer_waits_until_it_is_interrupted() -> None:
    model = ScriptedLive([Stall(), NOON])
    async with listening(model) as talk:
        turn = await talk.ask("hi")
        assert talk.events == []
        talk.interrupt()
        await talk.ask("hello?")
        assert talk.text == NOON.text
    assert (model.interrupts, model.texts) == ([turn], ["hi", "hello?"])


async def test_a_scripted_failure_is_reported() -> None:
    script: list[Step] = [Say("I", goes_on=True), Fail("boom", rate_limited=True, retry_after_s=7), NOON]
    async with listening(ScriptedLive(script)) as talk:
        turn = await talk.ask("hi")
        assert talk.kinds == [OutputText, OutputAudio, TurnFailed, TurnComplete]
        assert TurnFailed(turn, "boom", rate_limited=True, retry_after_s=7) in talk.events


async def test_the_usage_of_an_answer_is_reported() -> None:
    async with listening(ScriptedLive([NOON, Use(12, 3)])) as talk:
        turn = await talk.ask("hi")
        assert talk.events[-3:] == [Usage(turn, 12, 3), GenerationComplete(turn), TurnComplete(turn)]


async def test_answers_are_empty_after_the_script_ends() -> None:
    async with listening(ScriptedLive()) as talk:
        turn = await talk.ask("hi")
        assert talk.events == [GenerationComplete(turn), TurnComplete(turn)]


# What it calls.


async def test_adjacent_calls_belong_to_one_message() -> None:
    script: list[Step] = [Call("a"), Call("b"), Say("One moment.", goes_on=True), Call("c"), NOON]
    async with listening(ScriptedLive(script)) as talk:
        turn = await talk.ask("hi")
        assert talk.events == [ToolCalls(turn, (ToolCall(None, "a", {}), ToolCall(None, "b", {})))]
        await talk.give_results()
        assert talk.events[-1] == ToolCalls(turn, (ToolCall(None, "c", {}),))
        await talk.give_results()
        assert talk.events[-2:] == [GenerationComplete(turn), TurnComplete(turn)]


async def test_cancelled_calls_do_not_hold_up_the_answer() -> None:
    async with listening(ScriptedLive([CALL_A, CALL_B, Cancel(after_ms=500), NOON])) as talk:
        turn = await talk.ask("hi")
        assert talk.kinds[:2] == [ToolCalls, ToolCancelled]
        assert talk.events[1] == ToolCancelled(turn, ("call_a", "call_b"))
        assert talk.text == NOON.text


async def test_calls_that_are_not_cancelled_are_waited_for() -> None:
    async with listening(ScriptedLive([CALL_A, CALL_B, Cancel(after_ms=500, ids=("call_a",)), NOON])) as talk:
        turn = await talk.ask("hi")
        assert talk.events[-1] == ToolCancelled(turn, ("call_a",))
        talk.model.send_tool_results(turn, [ToolAnswer(ToolCall("call_b", "b", {}), "noon")])
        await talk.settle()
        assert talk.text == NOON.text


async def test_calls_with_results_are_not_cancelled() -> None:
    async with listening(ScriptedLive([CALL_A, Cancel(after_ms=500), NOON])) as talk:
        turn = talk.respond("hi")
        await asyncio.sleep(0.1)
        talk.model.send_tool_results(turn, [ToolAnswer(ToolCall("call_a", "a", {}), "noon")])
        await talk.settle()
        assert ToolCancelled not in talk.kinds


async def test_an_answer_can_contain_the_results() -> None:
    async with listening(ScriptedLive([CALL_A, Say("So: {results}")])) as talk:
        await talk.ask("hi")
        await talk.give_results()
        assert talk.text == "So: It's noon."


async def test_late_results_are_known_in_the_next_turn() -> None:
    model = ScriptedLive([CALL_A, NOON, NOON])
    async with listening(model) as talk:
        await talk.ask("hi")
        talk.interrupt("")
        await talk.give_results()
        await talk.ask("and now?")
        assert [type(message) for message in model.prompts[-1]] == [
            UserMessage,
            AssistantMessage,
            ToolMessage,
            UserMessage,
        ]


# When the user interrupts.


async def test_a_barge_in_cancels_the_rest_of_the_answer() -> None:
    async with listening(ScriptedLive([NOON, Barge(after_ms=100)])) as talk:
        await talk.ask("hi")
        assert talk.kinds == [OutputText, OutputAudio, Interrupted, TurnComplete]
        assert len(audio_of(talk.events)) < 2 * OUTPUT_HZ * NOON.audio_ms // 1000


async def test_a_barge_in_may_come_while_the_answer_is_still_playing() -> None:
    async with listening(ScriptedLive([NOON, Barge(after_ms=1_000)])) as talk:
        turn = await talk.ask("hi")
        assert talk.events[-3:] == [GenerationComplete(turn), TurnComplete(turn), Interrupted(turn)]


async def test_only_what_was_heard_is_remembered_after_a_barge_in() -> None:
    model = ScriptedLive([NOON, Barge(after_ms=100)])
    async with listening(model, answers=False) as talk:
        await talk.ask("hi")
        talk.interrupt("It's")
    assert model.messages == [UserMessage("hi"), AssistantMessage("It's")]


async def test_a_barge_in_preempted_by_an_interrupt_does_not_happen() -> None:
    async with listening(ScriptedLive([NOON, Barge(after_ms=1_000)])) as talk:
        talk.respond("hi")
        await asyncio.sleep(0.5)
        talk.interrupt()
        await talk.settle()
        assert Interrupted not in talk.kinds


TWO_IN_FLIGHT: list[Step] = [Hear("hi", after_ms=100), NOON, Hear("ho", after_ms=100, over=True), NOON]


async def test_two_answers_may_be_in_flight() -> None:
    model = ScriptedLive(TWO_IN_FLIGHT)
    async with listening(model) as talk:
        first, second = await hear(talk), await hear(talk)
        await talk.settle()
        pieces = [event.turn for event in talk.events if isinstance(event, OutputText | OutputAudio)]
        assert pieces != sorted(pieces, key=[first, second].index), "they are not mixed"
        for turn in (first, second):
            assert talk.of(turn)[-2:] == [GenerationComplete(turn), TurnComplete(turn)]
    assert [message.text for message in model.messages if not isinstance(message, ToolMessage)] == [
        *("hi", NOON.text),
        *("ho", NOON.text),
    ]


async def test_a_barge_in_cancels_both_answers_in_flight() -> None:
    async with listening(ScriptedLive([*TWO_IN_FLIGHT, Barge(after_ms=20)])) as talk:
        first, second = await hear(talk), await hear(talk)
        await talk.settle()
        assert talk.events[-4:] == [Interrupted(first), TurnComplete(first), Interrupted(second), TurnComplete(second)]


async def test_one_of_two_answers_in_flight_may_be_interrupted() -> None:
    async with listening(ScriptedLive(TWO_IN_FLIGHT)) as talk:
        first, second = await hear(talk), await hear(talk)
        talk.interrupt("", first)
        await talk.settle()
        assert GenerationComplete(first) not in talk.events
        assert GenerationComplete(second) in talk.events


async def test_with_latency_events_of_a_turn_arrive_after_its_interruption() -> None:
    async with listening(ScriptedLive(TWO_IN_FLIGHT, latency_ms=200)) as talk:
        first, second = await hear(talk), await hear(talk)
        talk.interrupt("", first)
        mark = len(talk.events)
        await talk.settle()
        late = [event for event in talk.events[mark:] if event in talk.of(first)]
        assert [type(event) for event in late][-1] is TurnComplete
        assert len(late) > 1
        assert GenerationComplete(second) in talk.events


# The connection.


async def test_the_connection_ends_at_the_announced_time() -> None:
    async with listening(ScriptedLive([Resumable("handle"), GoAwayIn(5_000), Stall()])) as talk:
        talk.respond("hi")
        await asyncio.sleep(4.9)
        assert talk.events == [ResumptionUpdate("handle"), GoAway(5_000)]
        await asyncio.sleep(0.2)
        assert talk.events[2:] == [Closed("the time was over", CloseKind.GO_AWAY)]
        assert talk.reading.done()


async def test_a_resumption_handle_comes_between_answers() -> None:
    async with listening(ScriptedLive([NOON, Resumable("one"), NOON, Resumable(None)])) as talk:
        await talk.ask("hi")
        assert talk.events[-1] == ResumptionUpdate("one")
        await talk.ask("hi")
        assert talk.events[-1] == ResumptionUpdate(None)


@pytest.mark.parametrize("kind", CloseKind)
async def test_the_connection_can_end_after_an_answer(kind: CloseKind) -> None:
    async with listening(ScriptedLive([Say("Bye."), HangUp("over", kind, retry_after_s=3)])) as talk:
        turn = await talk.ask("bye")
        assert talk.events[-2:] == [TurnComplete(turn), Closed("over", kind, 3)]


async def test_the_connection_can_end_in_the_middle_of_an_answer() -> None:
    async with listening(ScriptedLive([Say("I was about", goes_on=True), HangUp()])) as talk:
        await talk.ask("hi")
        assert talk.kinds == [OutputText, OutputAudio, Closed]


async def test_connect_can_be_refused() -> None:
    model = ScriptedLive(refuses=ModelError("Too many.", rate_limited=True, retry_after_s=5), connect_s=2)
    before_s = asyncio.get_running_loop().time()
    with pytest.raises(ModelError, match="Too many"):
        await model.connect(context())
    assert asyncio.get_running_loop().time() - before_s >= 2


async def test_connect_can_hang_forever() -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(ScriptedLive(connect_s=inf).connect(context()), 3_600)


async def test_the_connect_arguments_are_recorded() -> None:
    model, given = ScriptedLive(), context()
    await model.connect(given, resume="handle")
    assert (model.context, model.resumed_with) == (given, "handle")
