"""Which answer belongs to which turn of Gemini Live: interruptions, dropped answers, and what crosses on the way."""

import asyncio
from typing import Any

import pytest

from antiphon.models.live import (
    GenerationComplete,
    Interrupted,
    OutputAudio,
    OutputText,
    TurnComplete,
    TurnStarted,
)
from antiphon.models.providers.gemini_content import note_heard
from tests.fakes.gemini_talk import (
    COMPLETE,
    GEMINI_25,
    GEMINI_31,
    GEMINI_38,
    GEMINI_THINKING,
    GENERATED,
    INTERRUPTED,
    PCM,
    calls,
    content,
    hears,
    speaks,
    talking,
    turn_of,
)

NOTE_TAKING = [GEMINI_38, GEMINI_THINKING]


async def test_the_servers_interruption_ends_the_answer() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        await talk.says(speaks("Once upon"), INTERRUPTED)
        assert talk.take()[-2:] == [Interrupted("t"), TurnComplete("t")]
        await talk.says(COMPLETE, hears("Stop"), speaks("All right."))
        begun = next(event for event in talk.events if isinstance(event, TurnStarted))
        assert talk.events[-2] == OutputText(begun.turn, "All right.")


async def test_what_follows_an_interruption_is_another_answer_even_if_the_turn_was_not_completed() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        await talk.says(speaks("Once upon"), INTERRUPTED, speaks("Yes?"))
        begun = next(event for event in talk.events if isinstance(event, TurnStarted))
        assert talk.events[-2] == OutputText(begun.turn, "Yes?")


async def test_the_rest_of_a_dropped_answer_is_not_passed_on() -> None:
    async with talking(GEMINI_31) as talk:
        talk.model.respond("t", "hello")
        await talk.says(speaks("Once "))
        talk.model.interrupt("t", "Once")
        talk.model.respond("u", "what time is it?")
        await talk.says(speaks("upon "), speaks("a time"), INTERRUPTED, COMPLETE)
        assert talk.take()[2:] == [TurnComplete("t")]
        await talk.says(speaks("Noon."), GENERATED, COMPLETE)
        assert talk.events[0] == OutputText("u", "Noon.")
        assert talk.events[-1] == TurnComplete("u")


async def test_a_dropped_answer_that_the_server_never_completes_is_forgotten() -> None:
    async with talking(GEMINI_31) as talk:
        talk.model.respond("t", "hello")
        await talk.says(speaks("Once "))
        talk.model.interrupt("t", "Once")
        await asyncio.sleep(10)
        talk.take()
        await talk.says(hears("Hello?"), speaks("Yes?"))
        assert talk.kinds == ["InputTranscript", "TurnStarted", "OutputText", "OutputAudio"]


@pytest.mark.parametrize("ends", [(), (COMPLETE,), (INTERRUPTED, COMPLETE)])
async def test_the_server_need_not_end_a_turn_that_it_never_began(ends: tuple[dict[str, Any], ...]) -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        talk.model.respond("u", "what time is it?")
        await talk.says(*ends, speaks("Noon."), COMPLETE)
        await asyncio.sleep(2)
        assert talk.events == [
            TurnComplete("t"),
            OutputText("u", "Noon."),
            OutputAudio("u", PCM, "Noon."),
            GenerationComplete("u"),
            TurnComplete("u"),
        ]


async def test_the_end_of_a_turn_may_cross_with_the_next() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        talk.model.respond("u", "what time is it?")
        await talk.says(speaks("Hel"), INTERRUPTED, COMPLETE, speaks("Noon."), COMPLETE)
        assert talk.kinds.count("Interrupted") == 0
        assert talk.events[-1] == TurnComplete("u")
        assert OutputText("u", "Noon.") in talk.events


async def test_nothing_is_lost_if_the_server_answers_both_turns() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        talk.model.respond("u", "what time is it?")
        await talk.says(speaks("Hello. "), GENERATED, COMPLETE, speaks("Noon."), GENERATED, COMPLETE)
        assert [event.text for event in talk.events if isinstance(event, OutputText)] == ["Hello. ", "Noon."]
        assert talk.events[-2:] == [GenerationComplete("u"), TurnComplete("u")]


async def test_words_before_the_audio_of_another_answer_are_kept() -> None:
    async with talking() as talk:
        await talk.says(speaks("Hello."), COMPLETE)
        talk.take()
        await talk.says(content(outputTranscription={"text": "By the way, "}), speaks("it rains."))
        assert talk.kinds[0] == "TurnStarted"
        assert [event.text for event in talk.events if isinstance(event, OutputText)] == ["By the way, ", "it rains."]


async def test_an_answer_that_is_interrupted_later_is_the_one_that_was_begun() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        talk.model.respond("u", "what time is it?")
        await talk.says(speaks("It is "))
        await asyncio.sleep(3)
        await talk.says(INTERRUPTED)
        assert talk.events[-2:] == [Interrupted("u"), TurnComplete("u")]


async def test_speech_after_a_whole_answer_is_answered_even_if_the_turn_was_not_completed() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        await talk.says(speaks("Once upon a time."), GENERATED)
        await asyncio.sleep(1.0)
        assert talk.take()[-1] == GenerationComplete("t")
        await talk.says(hears("What time is it?"), calls("function-call-1"))
        assert talk.kinds == ["InputTranscript", "TurnComplete", "TurnStarted", "ToolCalls"]
        assert talk.events[1] == TurnComplete("t")


async def test_speech_after_an_answer_that_never_began_is_answered() -> None:
    async with talking(GEMINI_31) as talk:
        talk.model.respond("t", "hello")
        talk.model.interrupt("t", "")
        await talk.says(hears("What time is it?"), speaks("Noon."))
        assert talk.kinds == ["TurnComplete", "InputTranscript", "TurnStarted", "OutputText", "OutputAudio"]


@pytest.mark.parametrize("name", NOTE_TAKING)
async def test_a_model_that_takes_notes_is_stopped_and_told_what_was_heard(name: str) -> None:
    async with talking(name) as talk:
        talk.model.respond("t", "hello")
        await talk.says(speaks("Once upon a time"))
        await talk.sent()
        talk.model.interrupt("t", "Once upon")
        assert await talk.sent() == [turn_of(note_heard("Once upon a time", "Once upon"), complete=False)]


async def test_an_answer_that_was_read_is_only_stopped() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        await talk.says(speaks("Once upon a time"))
        await talk.sent()
        talk.model.interrupt("t", None)
        assert await talk.sent() == [{"clientContent": {"turnComplete": False}}]


async def test_an_answer_that_the_server_has_interrupted_is_not_stopped_again() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        await talk.says(speaks("Once upon a time"), INTERRUPTED)
        await talk.sent()
        talk.model.interrupt("t", "Once")
        assert await talk.sent() == []
        await talk.says(COMPLETE)
        assert await talk.sent() == [turn_of(note_heard("Once upon a time", "Once"), complete=False)]


async def test_a_typed_question_does_not_overtake_a_note() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        await talk.says(speaks("Once upon a time"), COMPLETE)
        await talk.sent()
        talk.model.interrupt("t", "Once")
        talk.model.respond("u", "Thanks.")
        heard = note_heard("Once upon a time", "Once")
        assert await talk.sent() == [turn_of(heard, complete=False), turn_of("Thanks.")]


@pytest.mark.parametrize("name", [GEMINI_31, GEMINI_25])
async def test_other_models_are_told_what_was_heard_with_the_next_text(name: str) -> None:
    async with talking(name) as talk:
        talk.model.respond("t", "hello")
        await talk.says(speaks("Once upon a time"), COMPLETE)
        await talk.sent()
        talk.model.interrupt("t", "Once")
        talk.model.interrupt("t", "Once upon")
        assert await talk.sent() == []
        talk.model.respond("u", "Thanks.")
        (sent,) = await talk.sent()
        heard = note_heard("Once upon a time", "Once upon")
        assert sent == (
            turn_of(heard, "Thanks.") if name == GEMINI_25 else {"realtimeInput": {"text": f"{heard}\nThanks."}}
        )


async def test_a_note_about_an_earlier_answer_does_not_disturb_the_current_one() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        await talk.says(speaks("Once upon a time"), COMPLETE)
        talk.model.respond("u", "more")
        await talk.says(speaks("There was"))
        await talk.sent()
        talk.model.interrupt("t", "Once")
        assert await talk.sent() == []
        await talk.says(COMPLETE)
        assert await talk.sent() == [turn_of(note_heard("Once upon a time", "Once"), complete=False)]
