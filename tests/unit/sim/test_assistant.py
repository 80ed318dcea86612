"""How the simulators' assistant finds the client's tools in what is said."""

from typing import Any

import pytest

from antiphon.models.base import Prompt, TextDelta
from antiphon.models.providers.gemini_content import SAY
from antiphon.models.providers.realtime_events import verbatim
from antiphon.prompts.composer import Composer, summary_note
from antiphon.sim.assistant import ToolAssistant, find_calls, fit_arguments
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, Message, UserMessage

WEATHER = {
    "type": "object",
    "required": ["city", "days"],
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 2}, "unit": {"enum": ["C"]}},
}
DECLARED: dict[str, dict[str, Any]] = {
    "get_weather": WEATHER,
    "setVolume": {"type": "object", "required": ["level"], "properties": {"level": {"type": "NUMBER"}}},
    "ping": {},
}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("call get_weather with Oslo", [("get_weather", {"city": "Oslo", "days": 2})]),
        ("Please use the tool get weather with New York.", [("get_weather", {"city": "New York", "days": 2})]),
        ('call get_weather with {"city": "Oslo", "days": 5}', [("get_weather", {"city": "Oslo", "days": 5})]),
        ("run set volume with 3.5", [("setVolume", {"level": 3.5})]),
        ("run set volume with loud", [("setVolume", {"level": 1})]),
        ("call ping", [("ping", {})]),
        ("Call ping!", [("ping", {})]),
        ("call ping and call set volume with 2", [("ping", {}), ("setVolume", {"level": 2.0})]),
        ("call nobody", []),
        ("call ping and call nobody", []),
        ("what time is it", []),
        ("", []),
    ],
)
def test_tools_are_called_by_their_names(words: str, expected: list[tuple[str, Any]]) -> None:
    assert [(call.name, call.args) for call in find_calls(words, DECLARED)] == expected


def test_arguments_are_fitted_to_what_the_client_declared() -> None:
    assert fit_arguments({"city": "Oslo", "zone": "CET"}, WEATHER) == {"city": "Oslo", "days": 2}
    nested = {"type": "object", "required": ["a"], "properties": {"a": {"type": "object", "properties": {}}}}
    assert fit_arguments(None, nested) == {"a": {}}


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (
            'A tool has run: {"tool": "calculate", "args": {}, "result": {"result": 102}} Please go on.',
            "The result is 102.",
        ),
        ('{"tool": "get_weather", "result": {"sky": "clear"}}', "Sky: clear."),
    ],
)
async def test_a_result_that_comes_as_a_note_is_said(words: str, answer: str) -> None:
    prompt = Prompt("", [UserMessage(words)], [], Mode.VOICE)
    events = [event async for event in ToolAssistant({}).reply(prompt)]
    assert events[0] == TextDelta(answer)


async def test_words_that_the_instructions_of_a_response_give_are_said() -> None:
    instructions = str(verbatim("Good morning!\n\nHow are you?")["instructions"])
    composed = Composer().compose(Mode.VOICE, tools_version="1", summaries="", client_instructions=instructions)
    said: list[Message] = [UserMessage("what is 2 plus 2"), AssistantMessage("The result is 4.")]
    prompt = Prompt(composed.text, said, [], Mode.VOICE, composed.mode_note)
    events = [event async for event in ToolAssistant({}).reply(prompt)]
    assert events[0] == TextDelta("Good morning!\n\nHow are you?")


async def test_words_that_a_note_gives_are_said() -> None:
    prompt = Prompt("", [UserMessage(SAY.format(words="Good morning! [Really]"))], [], Mode.VOICE)
    events = [event async for event in ToolAssistant({}).reply(prompt)]
    assert events[0] == TextDelta("Good morning! [Really]")


@pytest.mark.parametrize("words", ["{", '{"tool": "x"}', "{}", "[1]"])
async def test_other_words_with_braces_are_words(words: str) -> None:
    events = [event async for event in ToolAssistant({}).reply(Prompt("", [UserMessage(words)], [], Mode.VOICE))]
    assert events[0] == TextDelta("I can't do that.")


async def test_what_a_client_summarizes_in_its_instructions_is_remembered() -> None:
    system = Composer().compose(
        Mode.VOICE, tools_version="1", summaries="", notes=[summary_note("You asked about tea."), "Go on."]
    )
    prompt = Prompt(system.text, [UserMessage("what did I ask you?")], [], Mode.VOICE, system.mode_note)
    events = [event async for event in ToolAssistant({}).reply(prompt)]
    assert events[0] == TextDelta("You asked about tea.")
