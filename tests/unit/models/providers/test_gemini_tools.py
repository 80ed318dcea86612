"""Calls of Gemini Live, and their results."""

import asyncio
from typing import Any

import pytest

from antiphon.models.live import (
    GenerationComplete,
    OutputAudio,
    OutputText,
    ToolAnswer,
    ToolCalls,
    ToolCancelled,
    TurnComplete,
    TurnStarted,
)
from antiphon.models.providers.gemini_content import ANSWER_NOW, note_result
from antiphon.tools.call import ToolCall
from tests.fakes.gemini_talk import (
    COMPLETE,
    GEMINI_25,
    GEMINI_31,
    GEMINI_38,
    GEMINI_THINKING,
    GENERATED,
    IDLE,
    INTERRUPTED,
    PCM,
    Talk,
    calls,
    hears,
    speaks,
    talking,
    turn_of,
)


def result(id: str | None, value: object = "noon", place: int = 0, *, ok: bool = True) -> ToolAnswer:
    return ToolAnswer(ToolCall(id, "get_time", {"place": place}), value, ok=ok)


def note(place: int = 0, value: object = "noon") -> str:
    return note_result("get_time", {"place": place}, value)


async def ask(talk: Talk, *ids: str | None) -> tuple[ToolCall, ...]:
    talk.model.respond("t", "What time is it?")
    await talk.says(calls(*ids))
    await talk.sent()
    (made,) = talk.take()
    assert isinstance(made, ToolCalls)
    return made.calls


def response(id: str, output: object = "noon", **fields: Any) -> dict[str, Any]:
    return {"id": id, "name": "get_time", "response": {"output": output}, **fields}


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        (GEMINI_38, {"scheduling": "WHEN_IDLE"}),
        (GEMINI_THINKING, {}),
        (GEMINI_31, {}),
        (GEMINI_25, {"scheduling": "WHEN_IDLE"}),
    ],
)
async def test_results_name_the_ids_of_their_calls(name: str, fields: dict[str, str]) -> None:
    async with talking(name) as talk:
        made = await ask(talk, "function-call-1", "function-call-2")
        assert made == (result("function-call-1").call, result("function-call-2", place=1).call)
        talk.model.send_tool_results("t", [result("function-call-1"), result("function-call-2", place=1)])
        responses = [response("function-call-1", **fields), response("function-call-2", **fields)]
        assert await talk.sent() == [{"toolResponse": {"functionResponses": responses}}]
        await talk.says(speaks("Noon."), GENERATED, IDLE)
        assert talk.events[-2:] == [GenerationComplete("t"), TurnComplete("t")]


async def test_a_failed_call_is_told_as_an_error() -> None:
    async with talking(GEMINI_31) as talk:
        await ask(talk, "function-call-1")
        talk.model.send_tool_results("t", [result("function-call-1", {"error": "no such place"}, ok=False)])
        (sent,) = await talk.sent()
        assert sent["toolResponse"]["functionResponses"][0]["response"] == {"error": "no such place"}


@pytest.mark.parametrize("ends", [(), (INTERRUPTED, COMPLETE), (COMPLETE,)])
async def test_a_call_without_an_id_is_answered_in_words(ends: tuple[dict[str, Any], ...]) -> None:
    async with talking() as talk:
        await ask(talk, None)
        talk.model.send_tool_results("t", [result(None)])
        assert await talk.sent() == [turn_of(note(), ANSWER_NOW)]
        await talk.says(*ends, speaks("Noon."), COMPLETE)
        await asyncio.sleep(2)
        assert talk.events == [
            OutputText("t", "Noon."),
            OutputAudio("t", PCM, "Noon."),
            GenerationComplete("t"),
            TurnComplete("t"),
        ]


async def test_a_turn_that_the_server_completes_while_a_tool_runs_goes_on() -> None:
    async with talking() as talk:
        talk.model.respond("t", "What time is it?")
        await talk.says(speaks("One moment. "), calls("function-call-1"), GENERATED, COMPLETE)
        await asyncio.sleep(60)
        assert talk.kinds == ["OutputText", "OutputAudio", "ToolCalls"]
        talk.model.send_tool_results("t", [result("function-call-1")])
        await talk.says(speaks("Noon."), GENERATED, COMPLETE)
        assert talk.events[-2:] == [GenerationComplete("t"), TurnComplete("t")]
        assert "".join(event.text for event in talk.events if isinstance(event, OutputText)) == "One moment. Noon."


async def test_the_end_of_the_first_part_may_cross_with_the_results() -> None:
    async with talking() as talk:
        talk.model.respond("t", "What time is it?")
        await talk.says(speaks("One moment. "), calls("function-call-1"))
        talk.model.send_tool_results("t", [result("function-call-1")])
        await talk.says(GENERATED, COMPLETE)
        assert "TurnComplete" not in talk.kinds
        await talk.says(speaks("Noon."), GENERATED, COMPLETE)
        assert talk.events[-2:] == [GenerationComplete("t"), TurnComplete("t")]
        assert talk.kinds.count("TurnStarted") == 0


async def test_the_end_of_a_silent_first_part_may_cross_with_the_results() -> None:
    async with talking() as talk:
        await ask(talk, "function-call-1")
        talk.model.send_tool_results("t", [result("function-call-1")])
        await talk.says(COMPLETE)
        await talk.says(speaks("Noon."), GENERATED, COMPLETE)
        assert [event for event in talk.events if isinstance(event, OutputText)] == [OutputText("t", "Noon.")]
        assert talk.events[-2:] == [GenerationComplete("t"), TurnComplete("t")]


async def test_a_model_with_nothing_to_add_to_its_results_ends_its_turn() -> None:
    async with talking() as talk:
        talk.model.respond("t", "Set a timer.")
        await talk.says(speaks("Done. "), calls("function-call-1"))
        talk.model.send_tool_results("t", [result("function-call-1")])
        await talk.says(COMPLETE)
        await asyncio.sleep(10)
        assert talk.events[-2:] == [GenerationComplete("t"), TurnComplete("t")]


async def test_a_cancelled_call_is_told_and_not_answered() -> None:
    async with talking(GEMINI_31) as talk:
        await ask(talk, "function-call-1", "function-call-2")
        await talk.says({"toolCallCancellation": {"ids": ["function-call-1", "another"]}})
        assert talk.take() == [ToolCancelled("t", ("function-call-1",))]
        talk.model.send_tool_results("t", [result("function-call-2", place=1)])
        assert await talk.sent() == [{"toolResponse": {"functionResponses": [response("function-call-2")]}}]


async def test_a_waiting_turn_ends_when_all_its_calls_are_cancelled() -> None:
    async with talking() as talk:
        await ask(talk, "function-call-1")
        await talk.says(COMPLETE, {"toolCallCancellation": {"ids": ["function-call-1"]}})
        assert talk.events == [ToolCancelled("t", ("function-call-1",)), GenerationComplete("t"), TurnComplete("t")]


async def test_speech_while_a_tool_runs_is_a_turn_of_its_own() -> None:
    async with talking() as talk:
        await ask(talk, "function-call-1")
        await talk.says(COMPLETE, hears("And the date?"), speaks("The first."), COMPLETE)
        assert talk.events[1] == TurnComplete("t")
        begun = next(event for event in talk.events if isinstance(event, TurnStarted))
        assert talk.events[-1] == TurnComplete(begun.turn)


async def test_a_late_result_is_added_silently_where_the_model_can() -> None:
    async with talking() as talk:
        await ask(talk, "function-call-1")
        await talk.says(COMPLETE)
        talk.model.interrupt("t", "")
        await talk.sent()
        talk.model.send_tool_results("t", [result("function-call-1")])
        assert await talk.sent() == [
            {"toolResponse": {"functionResponses": [response("function-call-1", scheduling="SILENT")]}}
        ]
        talk.model.send_tool_results("t", [result("function-call-1")])
        assert await talk.sent() == []


async def test_a_late_result_of_a_cancelled_call_is_a_note() -> None:
    async with talking() as talk:
        await ask(talk, "function-call-1")
        await talk.says({"toolCallCancellation": {"ids": ["function-call-1"]}}, INTERRUPTED, COMPLETE)
        talk.model.send_tool_results("t", [result("function-call-1")])
        assert await talk.sent() == [turn_of(note(), complete=False)]


async def test_a_late_result_goes_with_the_next_text_otherwise() -> None:
    async with talking(GEMINI_31) as talk:
        await ask(talk, "function-call-1")
        talk.model.interrupt("t", "")
        talk.model.send_tool_results("t", [result("function-call-1")])
        assert await talk.sent() == []
        talk.model.respond("u", "Well?")
        assert await talk.sent() == [{"realtimeInput": {"text": f"{note()}\nWell?"}}]


async def test_calls_that_a_yes_let_run_are_told_with_the_turn() -> None:
    async with talking() as talk:
        talk.model.respond("t", "yes", [result("function-call-1", "booked")])
        talk.model.respond("u", "", [result("function-call-1", "booked")])
        booked = note(value="booked")
        assert await talk.sent() == [turn_of("yes", booked), turn_of(booked, ANSWER_NOW)]


async def test_a_thousand_calls_are_refused() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        await talk.says(calls(*[f"function-call-{place}" for place in range(1_000)]))
        assert talk.kinds == ["TurnFailed", "TurnComplete"]


async def test_calls_without_end_are_stopped() -> None:
    async with talking(GEMINI_31) as talk:
        talk.model.respond("t", "hello")
        for place in range(17):
            await talk.says(calls(f"function-call-{place}"))
            talk.model.send_tool_results("t", [result(f"function-call-{place}")])
            await talk.sent()
        assert talk.kinds == ["ToolCalls"] * 16 + ["TurnFailed", "TurnComplete"]


async def test_the_same_call_may_come_again_and_be_answered_again() -> None:
    async with talking(GEMINI_31) as talk:
        await ask(talk, "function-call-1")
        for _ in range(2):
            talk.model.send_tool_results("t", [result("function-call-1")])
            assert await talk.sent() == [{"toolResponse": {"functionResponses": [response("function-call-1")]}}]
            await talk.says(calls("function-call-1"))
