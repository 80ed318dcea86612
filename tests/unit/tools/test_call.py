import json
from hashlib import sha256

import pytest

from antiphon.tools.call import Keys, ToolCall, UnusableArguments, canonical, is_usable, number


def keys_of(call: ToolCall, turn: int) -> Keys:
    return Keys(call, canonical(call.args), turn)


def test_keys_at_every_depth_are_sorted() -> None:
    assert canonical({"b": {"d": 1, "c": [{"f": 1, "e": 2}]}, "a": 1}) == b'{"a":1,"b":{"c":[{"e":2,"f":1}],"d":1}}'


def test_the_content_key_is_the_hash_of_tool_arguments_and_turn() -> None:
    whole = json.dumps({"args": {"q": "tea"}, "tool": "kb_search", "turn": 7}, separators=(",", ":"))
    expected = sha256(whole.encode()).hexdigest()[:16]
    assert keys_of(ToolCall(None, "kb_search", {"q": "tea"}), 7).content == f"hash:7:{expected}"


def test_the_order_of_arguments_does_not_matter() -> None:
    one = keys_of(ToolCall(None, "t", {"a": 1, "b": {"x": 1, "y": 2}}), 1)
    other = keys_of(ToolCall(None, "t", {"b": {"y": 2, "x": 1}, "a": 1}), 1)
    assert (one.content, one.fingerprint) == (other.content, other.fingerprint)


@pytest.mark.parametrize(
    "other",
    [ToolCall(None, "t", {"a": 2}), ToolCall(None, "u", {"a": 1}), ToolCall(None, "t", {"a": 1}, occurrence=1)],
)
def test_a_different_tool_argument_or_occurrence_is_another_call(other: ToolCall) -> None:
    assert keys_of(other, 1).content != keys_of(ToolCall(None, "t", {"a": 1}), 1).content


def test_another_turn_is_another_call_of_the_same_fingerprint() -> None:
    first, second = (keys_of(ToolCall(None, "t", {"a": 1}), turn) for turn in (1, 2))
    assert first.content != second.content
    assert first.fingerprint == second.fingerprint


@pytest.mark.parametrize(
    ("id", "usable"),
    [
        ("", False),
        ("call_1", False),
        ("12345678", False),
        ("call_abcd", True),
        ("call_temp_42", False),
        ("call_\ud800_0000", False),
        ("x" * 1_000, False),
    ],
)
def test_only_a_unique_id_is_usable(id: str, usable: bool) -> None:
    assert is_usable(id) is usable


@pytest.mark.parametrize("args", [{"a": object()}, {"a": "\ud800"}, {"a": "x" * 70_000}])
def test_invalid_or_oversized_json_is_refused(args: object) -> None:
    with pytest.raises(UnusableArguments):
        canonical(args)


def test_excessively_nested_arguments_are_refused() -> None:
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(UnusableArguments):
        canonical(deep)


def test_equal_calls_of_one_message_are_numbered() -> None:
    calls = [ToolCall("a", "t", {"x": 1}), ToolCall("b", "t", {"x": 1}), ToolCall("c", "t", {"x": 2})]
    assert [call.occurrence for call in number(calls)] == [0, 1, 0]
