"""Fragments as they come, calls as they were meant."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from antiphon.models.providers.accumulator import Calls, Fragment, FunctionFragment
from antiphon.tools.call import ToolCall


def part(
    index: int | None = None, id: str | None = None, name: str | None = None, arguments: str | None = None, **extra: Any
) -> Fragment:
    return Fragment(index, id, FunctionFragment(name, arguments), **extra)


def put_together(*fragments: Fragment) -> list[ToolCall]:
    calls = Calls()
    for fragment in fragments:
        calls.add(fragment)
    return calls.finish()


def test_no_fragments_give_no_calls() -> None:
    assert put_together() == []


def test_argument_fragments_are_joined_by_index() -> None:
    made = put_together(
        part(0, "call_A", "f", ""), part(1, "call_B", "g", ""), part(0, arguments='{"a"'), part(0, arguments=":1}")
    )
    assert made == [ToolCall("call_A", "f", {"a": 1}), ToolCall("call_B", "g", {})]


def test_calls_without_an_index_are_separate_calls() -> None:
    made = put_together(part(None, "x1", "f", '{"a":1}'), part(None, "x2", "f", '{"a":1}'))
    assert [call.id for call in made] == ["x1", "x2"]


def test_calls_without_index_and_id_are_separate_calls() -> None:
    made = put_together(part(name="f", arguments="{}"), part(name="f", arguments="{}"))
    assert made == [ToolCall(None, "f", {}), ToolCall(None, "f", {})]


def test_a_fragment_with_only_arguments_continues_the_last_call() -> None:
    assert put_together(part(None, "x1", "f", '{"a"'), part(arguments=":1}")) == [ToolCall("x1", "f", {"a": 1})]


def test_a_fragment_with_the_last_id_and_no_index_continues_the_last_call() -> None:
    made = put_together(part(None, "x1", "f", '{"a"'), part(None, "x1", "f", ":1}"))
    assert made == [ToolCall("x1", "f", {"a": 1})]


def test_another_id_under_the_same_index_begins_a_call() -> None:
    made = put_together(part(0, "call_1", "f", '{"a":1}'), part(0, "call_2", "g", '{"b":2}'))
    assert made == [ToolCall("call_1", "f", {"a": 1}), ToolCall("call_2", "g", {"b": 2})]


def test_complete_calls_under_one_index_without_ids_are_distinguished() -> None:
    made = put_together(part(0, name="f", arguments='{"a":1}'), part(0, name="f", arguments='{"a":2}'))
    assert made == [ToolCall(None, "f", {"a": 1}), ToolCall(None, "f", {"a": 2})]


def test_a_repeated_id_and_name_are_not_duplicated() -> None:
    made = put_together(part(0, "call_1", "f", '{"a"'), part(0, "call_1", "f", ":1}"))
    assert made == [ToolCall("call_1", "f", {"a": 1})]


def test_a_repeated_name_without_an_id_is_not_duplicated() -> None:
    assert put_together(part(0, None, "f", "{}"), part(0, None, "f", "")) == [ToolCall(None, "f", {})]


def test_an_id_that_comes_late_is_kept() -> None:
    assert put_together(part(0, "", "f", "{}"), part(0, "call_1")) == [ToolCall("call_1", "f", {})]


def test_an_empty_id_counts_as_missing() -> None:
    assert put_together(part(0, "", "f", "{}")) == [ToolCall(None, "f", {})]


def test_no_arguments_are_an_empty_object() -> None:
    made = put_together(part(0, "a", "f", None), part(1, "b", "f", ""), part(2, "c", "f", " "))
    assert [call.args for call in made] == [{}, {}, {}]


def test_a_fragment_without_a_function_only_begins_a_call() -> None:
    assert put_together(Fragment(0, "call_1"), part(0, name="f", arguments="{}")) == [ToolCall("call_1", "f", {})]


def test_arguments_that_are_not_json_are_kept_unchanged() -> None:
    broken = ('{"a": ', "{'a': 1}", "NaN", "[" * 5000)
    made = put_together(*(part(n, f"id{n}", "f", text) for n, text in enumerate(broken)))
    assert tuple(call.args for call in made) == broken


def test_the_first_extra_content_of_a_call_is_kept() -> None:
    made = put_together(part(0, "a", "f", "{", extra_content={"s": 1}), part(0, arguments="}", extra_content={"s": 2}))
    assert made == [ToolCall("a", "f", {}, extra={"s": 1})]


@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers(-9, 9), max_size=3), max_size=4), st.randoms())
def test_calls_are_reassembled_however_they_are_split_and_interleaved(args: list[dict[str, Any]], rng: Any) -> None:
    queues = []
    for index, each in enumerate(args):
        text = json.dumps(each)
        cuts = sorted(rng.randrange(len(text) + 1) for _ in range(rng.randrange(5)))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        queues.append([part(index, f"id{index}", "f", ""), *(part(index, arguments=piece) for piece in pieces)])
    # Calls begin in their order, then their pieces come in any.
    fragments = [queue.pop(0) for queue in queues]
    while any(queues):
        fragments.append(rng.choice([queue for queue in queues if queue]).pop(0))
    assert put_together(*fragments) == [ToolCall(f"id{n}", "f", each) for n, each in enumerate(args)]
