import re
from typing import Any

import pytest

from antiphon.models.builtin.replies import CONNECT_A_MODEL, LEFT_ALONE
from antiphon.models.builtin.understanding import MAX_CHARS, Understanding
from antiphon.models.builtin.understood import Ask, Run, Say, Understood, Unknown
from antiphon.models.completeness import Completeness
from antiphon.tools.spec import Mode
from tests.fakes.talking_tools import make_spec, make_tool, talking_tools
from tests.fakes.toolkit import understanding

UNDERSTANDING = Understanding(talking_tools())


def understand(text: str, mode: Mode = Mode.TEXT) -> Understood:
    return UNDERSTANDING.understand(text, mode)


def calls(text: str, mode: Mode = Mode.TEXT) -> list[tuple[str, dict[str, Any]]]:
    understood = understand(text, mode)
    assert isinstance(understood, Run), understood
    return [(wish.tool_id, dict(wish.args)) for wish in understood.calls]


EXACT = [
    ("what time is it", "get_time", {}),
    ("What time is it?", "get_time", {}),
    ("What's the time in Tokyo?", "get_time", {"timezone": "Tokyo"}),
    ("whats the time in new york", "get_time", {"timezone": "new york"}),
    ("hey, could you please tell me what time is it?", "get_time", {}),
    ("Okay so what's the time please", "get_time", {}),
    ("what's the time in London, please?", "get_time", {"timezone": "London"}),
    ("good morning, what time is it", "get_time", {}),
    ("tell me a joke", "tell_joke", {}),
    ("Please tell me a joke.", "tell_joke", {}),
    ("can you tell me a funny joke, thank you", "tell_joke", {}),
    ("make me laugh, will you?", "tell_joke", {}),
    ("what is 15% of 80", "calculate", {"expression": "15 percent of 80"}),
    ("What's 15 % of 80?", "calculate", {"expression": "15 percent of 80"}),
    ("work out (2 + 3) * 4", "calculate", {"expression": "(2 + 3) * 4"}),
    ("what date is it in 30 days", "calculate_date", {"days": 30}),
    ("what date is it in thirty days", "calculate_date", {"days": 30}),
    ("what date is it in one day", "calculate_date", {"days": 1}),
    ("remind me to say please at six", "set_reminder", {"message": "say please", "time": "six"}),
    ("remind me to call mum at six please", "set_reminder", {"message": "call mum", "time": "six"}),
    ("remind me to buy milk and bread at six", "set_reminder", {"message": "buy milk and bread", "time": "six"}),
    (
        "remind me to sing and make me laugh at six",
        "set_reminder",
        {"message": "sing and make me laugh", "time": "six"},
    ),
    ("start voice mode", "start_voice", {}),
    ("start voice mode and tell me a joke", "start_voice", {"pending_request": "tell me a joke"}),
]


@pytest.mark.parametrize(("text", "tool_id", "args"), EXACT)
def test_a_sentence_of_the_grammar_is_a_call(text: str, tool_id: str, args: dict[str, Any]) -> None:
    assert calls(text) == [(tool_id, args)]


NEAR = [
    ("what time was it in tokyo", "get_time", {"timezone": "tokyo"}),
    ("what time it is", "get_time", {}),
    ("could you tell me what time it is in New York please", "get_time", {"timezone": "New York"}),
    ("tell me the time", "get_time", {}),
    ("the time in london", "get_time", {"timezone": "london"}),
    ("what tim is it", "get_time", {}),
    ("what time is it now", "get_time", {}),
    ("tell me a yoke", "tell_joke", {}),
    ("tell me another joke", "tell_joke", {}),
    ("tell me one more joke", "tell_joke", {}),
    ("a joke please", "tell_joke", {}),
    ("give me a joke", "tell_joke", {}),
    ("tell me a really funny joke", "tell_joke", {}),
    ("whats the whether in paris", "get_weather", {"location": "paris"}),
    ("how was the weather in berlin", "get_weather", {"location": "berlin"}),
    ("what's the weather going to be like in rome", "get_weather", {"location": "rome"}),
    ("weather forecast for rome", "get_weather", {"location": "rome"}),
    ("what are 20 percent of 50", "calculate", {"expression": "20 percent of 50"}),
    ("what date will it be in 30 days", "calculate_date", {"days": 30}),
    ("wat time is it in paris", "get_time", {"timezone": "paris"}),
    ("list the reminders", "list_reminders", {}),
    ("show me my reminders", "list_reminders", {}),
    ("list my remainders", "list_reminders", {}),
]


@pytest.mark.parametrize(("text", "tool_id", "args"), NEAR)
def test_a_near_miss_of_a_read_only_tool_is_a_call(text: str, tool_id: str, args: dict[str, Any]) -> None:
    assert calls(text) == [(tool_id, args)]


ASKED = [
    ("set a remainder to call mum at six", "set a reminder to call mum at six"),
    ("set reminder to call Mum at six", "set a reminder to call Mum at six"),
    ("reminder to call mum at six", "remind me to call mum at six"),
    ("canel my reminder about milk", "cancel my reminder about milk"),
    ("cancel the reminders about milk", "cancel the reminder about milk"),
    ("open this website https://example.com/?q=1", "open the website https://example.com/?q=1"),
    ("start the voice mode", "start voice mode"),
]


@pytest.mark.parametrize(("text", "meant"), ASKED)
def test_a_near_miss_of_a_writing_tool_is_asked_about(text: str, meant: str) -> None:
    understood = understand(text)
    assert isinstance(understood, Ask)
    assert understood.question == f"Did you mean “{meant}”?"


FAR = [
    "tell me a story",
    "tell me a joke about cats",
    "tell me a joke and open the door",
    "never tell me a joke",
    "do not cancel my reminder about milk",
    "cancel my subscription about milk",
    "set a reminder to call mum",
    "remind me of calling mum",
    "once upon a time in america",
    "i have no time",
    "it is time to go",
    "time is money",
    "walk out 3 plus 4",
    "delete everything",
    "asdf qwer",
    "",
]


@pytest.mark.parametrize("text", FAR)
def test_an_unknown_request_is_answered_honestly(text: str) -> None:
    understood = understand(text)
    assert isinstance(understood, Say)
    assert understood.text.startswith("I don't know how to do that. You could say “")


@pytest.mark.parametrize("text", ["do not tell me a joke", "don't tell me a joke", "no need to tell me the time"])
def test_what_is_declined_is_left_alone(text: str) -> None:
    assert understand(text) == Say(LEFT_ALONE)


UNANSWERED = [
    "what is the weather",
    "what is the price in paris",
    "what date was it in banana days",
    "what is the meaning of life",
    "who is the president of france",
    "is it raining in paris",
    "???",
]


@pytest.mark.parametrize("text", UNANSWERED)
def test_an_unknown_question_is_answered_honestly(text: str) -> None:
    understood = understand(text)
    assert isinstance(understood, Say)
    assert understood.text.startswith("I don't know that. You could say “")


def test_an_ambiguous_text_matches_neither_tool() -> None:
    tools = {
        name: make_tool(make_spec(name), {"data": [{"sentences": [f"show me the {word} list"]}]})
        for name, word in (("one", "planet"), ("two", "plants"))
    }
    assert isinstance(Understanding(tools).understand("show me the plante list", Mode.TEXT), Say)


@pytest.mark.parametrize(
    ("text", "tool_ids"),
    [
        ("what time is it and tell me a joke", ["get_time", "tell_joke"]),
        ("what time is it in Tokyo, and then tell me a joke please", ["get_time", "tell_joke"]),
        ("list my reminders and what time is it and tell me a joke", ["list_reminders", "get_time", "tell_joke"]),
    ],
)
def test_several_read_only_requests_are_several_calls(text: str, tool_ids: list[str]) -> None:
    assert [tool_id for tool_id, _ in calls(text)] == tool_ids


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tell me a joke and open the website example.com", ["tell_joke", "open_url"]),
        ("open the website example.com and tell me a joke", ["open_url"]),
        ("remind me to call mum at six and tell me a joke", ["set_reminder"]),
    ],
)
def test_a_writing_request_is_split_only_where_no_slot_could_take_the_rest(text: str, expected: list[str]) -> None:
    assert [tool_id for tool_id, _ in calls(text)] == expected


def test_a_tool_of_the_other_mode_is_not_called() -> None:
    assert understand("start voice mode", Mode.VOICE) == Say("I can only do that in text mode.")


def test_a_tool_of_this_mode_is_called() -> None:
    assert calls("stop voice mode", Mode.VOICE) == [("end_voice", {"reason": "user_request"})]


def test_a_near_miss_of_a_tool_of_the_other_mode_is_not_offered() -> None:
    assert isinstance(understand("start the voice mode", Mode.VOICE), Say)


def test_examples_depend_only_on_the_text() -> None:
    again = Understanding(talking_tools())
    answers = [understand(f"gibberish {word}") for word in ("one", "two", "three")]
    assert len(set(answers)) > 1
    assert answers == [again.understand(f"gibberish {word}", Mode.TEXT) for word in ("one", "two", "three")]


def test_every_example_is_a_complete_sentence_that_is_understood() -> None:
    sentences: dict[str, dict[str, Any]] = {
        "sum": {"data": [{"sentences": ["what is {a} plus {b}"]}], "slot_examples": {"a": "three", "b": "four"}},
        "joke": {"data": [{"sentences": ["make {x} laugh", "tell me a joke"]}]},
        "days": {"data": [{"sentences": ["count {n} days"]}], "lists": {"n": {"range": {"from": 5, "to": 10}}}},
        "none": {"data": [{"sentences": ["make {x} smile"]}]},
    }
    understanding = Understanding({name: make_tool(make_spec(name), said) for name, said in sentences.items()})
    understood = understanding.understand("help", Mode.TEXT)
    assert isinstance(understood, Say)
    assert set(re.findall("“([^”]+)”", understood.text)) == {
        "what is three plus four",
        "tell me a joke",
        "count 10 days",
    }


def test_a_tool_takes_precedence_over_small_talk() -> None:
    tools = {"bye": make_tool(make_spec("bye"), {"data": [{"sentences": ["good bye"]}]})}
    assert isinstance(Understanding(tools).understand("good bye", Mode.TEXT), Run)


@pytest.mark.parametrize("text", ["what time is it " * MAX_CHARS, "work out " + "1+" * (MAX_CHARS // 3)])
def test_a_very_long_text_is_not_parsed(text: str) -> None:
    understood = understand(text)
    assert isinstance(understood, Say)
    assert "in fewer words" in understood.text


def test_without_any_tool_the_answer_is_still_honest() -> None:
    understood = Understanding({}).understand("what time is it", Mode.TEXT)
    assert isinstance(understood, Unknown)
    assert understood.text == f"I don't know that. {CONNECT_A_MODEL}"


def test_a_tool_without_sentences_is_ignored() -> None:
    assert isinstance(Understanding({"mute": make_tool(make_spec("mute"), None)}).understand("mute it", Mode.TEXT), Say)


@pytest.mark.parametrize(
    ("text", "completeness"),
    [
        ("what is the time in Tokyo", Completeness.COMPLETE),
        ("please tell me a joke", Completeness.COMPLETE),
        ("what time is it", Completeness.EXTENDABLE),
        ("Okay, what time is it?", Completeness.EXTENDABLE),
        ("what time is it in Toronto", Completeness.COMPLETE),
        ("tell me a joke,", Completeness.EXTENDABLE),
        ("what time is it in May", Completeness.EXTENDABLE),
        ("yes", Completeness.EXTENDABLE),
        ("Thank you.", Completeness.EXTENDABLE),
        ("what time is", Completeness.PARTIAL),
        ("what time", Completeness.PARTIAL),
        ("what time is it in", Completeness.HANGING),
        ("What time is it in?", Completeness.HANGING),
        ("tell me a joke about um", Completeness.HANGING),
        ("remind me to", Completeness.HANGING),
        ("I would like a table for.", Completeness.HANGING),
        ("I was wondering,", Completeness.PARTIAL),
        ("My number is 555 123", Completeness.LISTING),
        ("what time was it", Completeness.BRIEF),
        ("what time was it when you called me", Completeness.UNKNOWN),
        ("I would like a table for two.", Completeness.UNKNOWN),
        ("", Completeness.BRIEF),
        ("one " * MAX_CHARS, Completeness.UNKNOWN),
    ],
)
def test_the_grammar_reports_how_complete_a_request_is(text: str, completeness: Completeness) -> None:
    assert UNDERSTANDING.completeness(text, Mode.TEXT) is completeness


def test_sentences_of_tools_of_the_other_mode_are_ignored() -> None:
    assert UNDERSTANDING.completeness("start voice mode", Mode.VOICE) is Completeness.BRIEF
    assert UNDERSTANDING.completeness("start voice", Mode.VOICE) is Completeness.BRIEF


def test_a_day_that_does_not_exist_is_not_taken_for_its_month() -> None:
    understood = understanding().understand("remind me on february thirtieth to dance", Mode.TEXT)
    assert isinstance(understood, Run)
    assert [call.args["time"] for call in understood.calls] == ["on february thirtieth"]
