"""Which messages are calls, in which formats."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.models.bounded import MAX_CALLS
from antiphon.models.written_calls.formats import HEAD_CHARS, TAGS, Verdict, judge
from antiphon.models.written_calls.reader import UNKNOWN_NAME, parse_calls

TOOLS: dict[str, dict[str, Any]] = {
    "get_time": {"type": "object", "properties": {"timezone": {"type": "string"}, "hours": {"type": "integer"}}},
    "get_time_zone": {},
    "tell_joke": {"type": "object", "properties": {"topic": {"type": ["string", "null"]}}},
}
TOKYO = {"timezone": "Tokyo"}
CALL = {"name": "get_time", "arguments": TOKYO}
JSON = json.dumps(CALL)
JOKE = '{"name": "tell_joke", "arguments": {}}'
INDENTED = json.dumps(CALL, indent=2)


def parsed(message: str) -> list[tuple[str, Any]] | None:
    calls = parse_calls(message, TOOLS)
    return None if calls is None else [(call.name, call.args) for call in calls]


ONE = [
    JSON,
    f"\n\n{INDENTED}\n",
    f"```json\n{INDENTED}\n```",
    f"```\n{JSON}\n```\n",
    f"```json\n{JSON}",
    f"```tool_call\n{JSON}\n```",
    f"<tool_call>\n{JSON}\n</tool_call>",
    f"<tool_call>{JSON}",
    f"<tool_call>\n```json\n{JSON}\n```\n</tool_call>",
    f"<tool_call>[{JSON}]",
    f"<tool_calls>\n<tool_call>\n{JSON}\n</tool_call>\n</tool_calls>",
    f"<tool_call>{JSON}</tool_call>\n<tool_call>",
    f"<tools>\n{JSON}\n</tools>",
    f"<function_call>{JSON}</function_call>",
    f"```xml\n<tool_call>\n{JSON}\n</tool_call>\n```",
    f"<|tool_call|>[{JSON}]<|/tool_call|>",
    f"<|python_tag|>{JSON}<|eom_id|>",
    f"<|START_ACTION|>[{JSON}]<|END_ACTION|>",
    f"[TOOL_CALLS] [{JSON}]",
    f"[TOOL_CALLS]{JSON}</s>",
    '[TOOL_CALLS]get_time{"timezone": "Tokyo"}',
    '[TOOL_CALLS]get_time[ARGS]{"timezone": "Tokyo"}',
    '[TOOL_CALLS]get_time[CALL_ID]a1B2[ARGS]{"timezone": "Tokyo"}',
    f"functools[{JSON}]",
    '<function=get_time>{"timezone": "Tokyo"}</function>',
    "<function=get_time>\n<parameter=timezone>\nTokyo\n</parameter>\n</function>",
    "<tool_call>\n<function=get_time>\n<parameter=timezone>\nTokyo\n</parameter>\n</function>\n</tool_call>",
    'get_time(timezone="Tokyo")',
    "[get_time(timezone='Tokyo')]",
    "```python\nget_time(timezone='Tokyo')\n```",
    '<|tool_call_start|>[get_time(timezone="Tokyo")]<|tool_call_end|>',
    '<tool_call>get_time(timezone="Tokyo")</tool_call>',
    "{'name': 'get_time', 'arguments': {'timezone': 'Tokyo'}}",
    "<tool_call>\n{'name': 'get_time', 'arguments': {'timezone': 'Tokyo'}}\n</tool_call>",
    '{"name": "get_time", "parameters": {"timezone": "Tokyo"}}',
    '{"tool": "get_time", "args": {"timezone": "Tokyo"}}',
    '{"tool_name": "get_time", "parameters": {"timezone": "Tokyo"}}',
    '{"function": "get_time", "arguments": {"timezone": "Tokyo"}}',
    '{"action": "get_time", "action_input": {"timezone": "Tokyo"}}',
    '{"arguments": {"timezone": "Tokyo"}, "name": "get_time"}',
    '{"name": "get_time", "arguments": "{\\"timezone\\": \\"Tokyo\\"}"}',
    f'{{"function": {JSON}}}',
    f'{{"type": "function", "function": {JSON}}}',
    f'{{"id": "call_5", "type": "function", "function": {JSON}}}',
    f'{{"tool_calls": [{JSON}]}}',
    f'{{"function_call": {JSON}}}',
    f"[{JSON}]",
    '<tool_call>{"name": "get_time", "timezone": "Tokyo"}</tool_call>',
]


@pytest.mark.parametrize("message", ONE)
def test_a_call_is_recognised(message: str) -> None:
    assert parsed(message) == [("get_time", TOKYO)]


@pytest.mark.parametrize(
    "message",
    [
        f"<tool_call>{JSON}</tool_call>\n<tool_call>{JOKE}</tool_call>",
        f"<tool_call>\n{JSON}\n<tool_call>\n{JOKE}\n",
        f"<tools>\n{JSON}\n{JOKE}\n</tools>",
        f"[{JSON}, {JOKE}]",
        f"{JSON}\n{JOKE}",
        f"{JSON}; {JOKE}",
        f"```json\n{JSON}\n```\n\n```json\n{JOKE}\n```",
        f'{{"tool_calls": [{JSON}, {JOKE}]}}',
        f"[TOOL_CALLS] [{JSON}, {JOKE}]",
        '[TOOL_CALLS]get_time{"timezone": "Tokyo"}[TOOL_CALLS]tell_joke{}',
        '<function=get_time>{"timezone": "Tokyo"}</function><function=tell_joke>{}</function>',
        '[get_time(timezone="Tokyo"), tell_joke()]',
    ],
)
def test_several_calls_are_recognised(message: str) -> None:
    assert parsed(message) == [("get_time", TOKYO), ("tell_joke", {})]


@pytest.mark.parametrize(
    "message",
    [
        "",
        "Hello.",
        "It is four o'clock in Tokyo.",
        f"Sure! {JSON}",
        f"I would call:\n```json\n{JSON}\n```",
        f"{JSON}\nThat is how I would ask.",
        f"```json\n{JSON}\n```\nThat is how I would ask.",
        f"<tool_call>{JSON}</tool_call> is how I would ask.",
        "<tool_call> is the tag that Qwen uses.",
        "<tools> are listed below.",
        "functools is a module of Python.",
        "[TOOL_CALLS] is a token of Mistral.",
        '{"name": "get_weather", "arguments": {}}',
        '{"name": "get_time"}',
        '{"name": "get_time", "description": "Tells the time.", "parameters": {}}',
        '{"name": "Ada", "age": 36}',
        '{"temperature": 3}',
        "{}",
        "[]",
        "[1, 2]",
        "{",
        '["get_time"]',
        f"[{JSON}, 3]",
        '{"name": "get_time", "arguments": {}} {"temperature": 3}',
        "get_time",
        "get_time tells the time.",
        "get_time()?",
        "get_time(timezone)",
        'get_time("Tokyo")',
        "get_time(timezone=zone)",
        "get_time(**zones)",
        "get_time(timezone=b'Tokyo')",
        "get_weather(city='Oslo')",
        "os.system(command='ls')",
        "[get_time](https://example.org)",
        "```python\nprint(get_time(timezone='Tokyo'))\n```",
        "```python\nimport os\n```",
        "```\nget_time tells the time\n```",
        "```json\n[1]\n```",
        "`get_time`",
    ],
)
def test_other_messages_are_text(message: str) -> None:
    assert parsed(message) is None


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ('<tool_call>{"name": "get_weather", "arguments": {"a": 1}}</tool_call>', ("get_weather", {"a": 1})),
        ("<function=get_weather>{}</function>", ("get_weather", {})),
        ('<tool_call>{"name": "get the weather", "arguments": {}}</tool_call>', ("get_the_weather", {})),
        ('<tool_call>{"city": "Oslo"}</tool_call>', (UNKNOWN_NAME, {"city": "Oslo"})),
        ("<tool_call>[1]</tool_call>", (UNKNOWN_NAME, "1")),
        (
            '<tool_call>{"name": "get_time", "arguments": {"timezone": }}</tool_call>',
            ("get_time", '{"name": "get_time", "arguments": {"timezone": }}'),
        ),
        ('<tool_call>{"name": "get_time", "arg', ("get_time", '{"name": "get_time", "arg')),
        ('<tool_call>{"name": "get_time", "arguments": NaN}', ("get_time", '{"name": "get_time", "arguments": NaN}')),
        ("<tool_call>get_time\n<arg_key>timezone</arg_key>", ("get_time", "<arg_key>timezone</arg_key>")),
        ('{"name": "get_time", "arguments": {"a": 1}', ("get_time", '{"name": "get_time", "arguments": {"a": 1}')),
        ("<function=get_time>Tokyo</function>", ("get_time", "Tokyo")),
        ("<function=get_time", ("get_time", {})),
        (
            '<tool_call>{"name": "get_time", "arguments": 1e999}',
            ("get_time", '{"name": "get_time", "arguments": 1e999}'),
        ),
        ('<tool_call>{"name": "get\\ud83d", "arguments": {"a": "\\ud83d"}}', ("get_", {"a": "\ufffd"})),
    ],
)
def test_a_call_in_tags_that_is_wrong_is_left_to_the_gate_to_refuse(message: str, call: tuple[str, Any]) -> None:
    assert parsed(message) == [call]


def test_parameters_in_tags_have_the_types_of_the_schema() -> None:
    message = "<function=get_time><parameter=timezone>42</parameter><parameter=hours>42</parameter></function>"
    assert parsed(message) == [("get_time", {"timezone": "42", "hours": 42})]
    assert parsed("<function=tell_joke><parameter=topic>42</parameter></function>") == [("tell_joke", {"topic": "42"})]


def test_a_tag_within_an_argument_is_part_of_it() -> None:
    args = {"timezone": "</tool_call> ``` <tool_call>"}
    message = f"<tool_call>{json.dumps({'name': 'get_time', 'arguments': args})}</tool_call>"
    assert parsed(message) == [("get_time", args)]


def test_line_breaks_within_a_string_are_accepted() -> None:
    assert parsed('{"name": "get_time", "arguments": {"timezone": "a\nb"}}') == [("get_time", {"timezone": "a\nb"})]


@pytest.mark.parametrize("message", ONE)
def test_no_beginning_of_a_call_is_taken_for_text(message: str) -> None:
    verdicts = [judge(message[:end], TOOLS) for end in range(len(message) + 1)]
    assert Verdict.TEXT not in verdicts
    assert verdicts[-1] is Verdict.MAYBE_CALL


@pytest.mark.parametrize(
    ("message", "chars"),
    [
        ("Hello.", 1),
        ("The time is", 1),
        ("<b>bold</b>", 2),
        ("<tool_call> is", 13),
        ("[1, 2]", 2),
        ('{"port": 80}', 7),
        ('{"name": "Ada"}', 14),
        ("```python\nimport os", 11),
        ("```yaml\n", 8),
        ("get_temperature", 6),
        ("get_time is", 9),
        ("2 + 2", 1),
    ],
)
def test_text_is_told_by_its_first_characters(message: str, chars: int) -> None:
    assert judge(message[:chars], TOOLS) is Verdict.TEXT
    assert judge(message[: chars - 1], TOOLS) is Verdict.UNDECIDED


def test_what_is_not_decided_by_the_head_is_text() -> None:
    assert judge("```json\n" + " " * HEAD_CHARS, TOOLS) is Verdict.TEXT
    assert parsed("```json\n" + " " * HEAD_CHARS + JSON) is None


FRAGMENTS = [
    *TAGS,
    *filter(None, TAGS.values()),
    "<function=",
    "get_time",
    ">",
    "</function>",
    "```",
    "json",
    "{",
    "}",
    "[",
]
FRAGMENTS += [
    "]",
    '"name"',
    ":",
    '"get_time"',
    ",",
    '"arguments"',
    JSON,
    JOKE,
    " ",
    "\n",
    "(",
    ")",
    "timezone='x'",
    "Hi",
    "'",
]
FRAGMENTS += [
    "<parameter=timezone>",
    "</parameter>",
    "[ARGS]",
    '"type"',
    '"function"',
    "</s>",
    "\\",
    "\x00",
    "-",
    "NaN",
    "é",
]
MESSAGES = st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join) | st.text()


@given(MESSAGES, st.integers(0, 400))
def test_a_beginning_that_is_text_stays_text(message: str, end: int) -> None:
    if judge(message[:end], TOOLS) is Verdict.TEXT:
        assert judge(message, TOOLS) is Verdict.TEXT
        assert parsed(message) is None


@given(MESSAGES)
def test_a_beginning_that_may_be_a_call_is_not_undecided_again(message: str) -> None:
    verdicts = [judge(message[:end], TOOLS) for end in range(len(message) + 1)]
    decided = next((verdict for verdict in verdicts if verdict is not Verdict.UNDECIDED), Verdict.UNDECIDED)
    assert verdicts[-1] is decided


@given(MESSAGES)
def test_any_call_can_be_sent_back_in_a_history(message: str) -> None:
    for call in parse_calls(message, TOOLS) or ():
        assert call.name.isascii()
        assert 0 < len(call.name) <= 64
        assert msgspec.json.decode(msgspec.json.encode(call.args)) == call.args


@pytest.mark.parametrize("message", ["[" * 100_000, '{"tool_call":' * 50_000, "get_time(a=" + "-" * 9_000 + "1)"])
def test_deep_nesting_is_text(message: str) -> None:
    assert parsed(message) is None


@pytest.mark.parametrize(
    "part", ["<tool_call>{", "```json ", "<parameter=a>", "<parameter=", " ", "<function=a>", "{'name': ", "</s>", JSON]
)
def test_only_as_many_calls_are_parsed_as_are_allowed_and_one_more(part: str) -> None:
    many = part * (100_000 // len(part))
    for message in (f"<tool_call>{{{many}", f"{JSON}{many}", f"<tool_call>{JSON}{many}", f"<function=get_time>{many}"):
        assert len(parse_calls(message, TOOLS) or ()) <= MAX_CALLS + 1
