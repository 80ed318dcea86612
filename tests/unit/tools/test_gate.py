"""The checks before a run, each through the whole gate."""

from typing import Any

import pytest

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, ok
from antiphon.tools.spec import Mode, RateLimit
from tests.fakes.gates import Counted, Gate, make_action, make_retrieval, make_tool

SEARCH: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["query"],
    "properties": {
        "query": {"type": "string", "minLength": 1},
        "top_k": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
        "filters": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"strict": {"type": "boolean", "default": True}, "tags": {"type": "array"}},
        },
        "return_fields": {"type": "array", "items": {"type": "string"}, "default": ["snippet"]},
    },
}


def error_of(result: ToolResult) -> ErrorType:
    assert result.error is not None
    return result.error.type


async def test_a_call_returns_its_data_and_sources() -> None:
    gate = Gate(make_tool("read_it"))
    result = await gate.call("read_it", id="call_0123456789")
    assert result.data == {"run": 1}
    assert result.meta is not None
    assert (result.meta.tool, result.meta.tool_version, result.meta.turn) == ("read_it", "1.0.0", 1)
    assert result.meta.idempotency_key == "provider:call_0123456789"


async def test_an_unknown_tool_is_not_found_and_the_nearest_is_named() -> None:
    gate = Gate(make_tool("kb_search"))
    result = await gate.call("kb_serch")
    assert error_of(result) is ErrorType.NOT_FOUND
    assert result.error is not None
    assert result.error.suggestion == "Did you mean kb_search?"


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "\ud800", "x" * 100_000, "read_it\n", "READ_IT"])
async def test_hostile_names_are_not_found_and_can_be_audited(name: str) -> None:
    gate = Gate(make_tool("read_it"))
    assert error_of(await gate.call(name)) is ErrorType.NOT_FOUND
    assert len((await gate.audit())[0].tool) <= 64


async def test_a_tool_of_the_other_mode_is_refused_in_the_documented_words() -> None:
    gate = Gate(make_tool("start_voice_session", allowed_modes=(Mode.TEXT,)))
    gate.session.mode = Mode.VOICE
    result = await gate.call("start_voice_session")
    assert error_of(result) is ErrorType.MODE_RESTRICTED
    assert result.error is not None
    assert result.error.message == "start_voice_session only available in text mode"
    assert not result.error.retryable


async def test_a_tool_is_available_only_while_its_expression_is_true() -> None:
    gate = Gate(make_tool("secret", availability="user.authenticated && mode == 'text'"))
    assert error_of(await gate.call("secret")) is ErrorType.NOT_FOUND
    gate.session.authenticated = True
    gate.next_turn()
    assert (await gate.call("secret")).ok


async def test_availability_is_evaluated_once_a_turn() -> None:
    gate = Gate(make_tool("secret", availability="user.authenticated"))
    await gate.call("secret")
    gate.session.authenticated = True
    assert not (await gate.call("secret", {"text": "again"})).ok


async def test_an_expression_that_fails_means_not_available() -> None:
    gate = Gate(make_tool("odd", availability="session.nothing.there > 3"))
    assert error_of(await gate.call("odd")) is ErrorType.NOT_FOUND


async def test_a_tool_that_needs_a_signed_in_user_asks_for_one() -> None:
    gate = Gate(make_tool("private", requires_auth=True))
    assert error_of(await gate.call("private")) is ErrorType.AUTH


async def test_a_rate_limit_spans_turns_and_says_when_to_retry() -> None:
    gate = Gate(make_tool("rare", rate_limit=RateLimit(calls=1, window_s=60)))
    assert (await gate.call("rare")).ok
    gate.clock.advance(seconds=20)
    gate.next_turn()
    refused = await gate.call("rare")
    assert error_of(refused) is ErrorType.RATE_LIMIT
    assert refused.error is not None
    assert refused.error.retryable
    assert refused.error.retry_after_s == 40.0
    gate.clock.advance(seconds=41)
    gate.next_turn()
    assert (await gate.call("rare")).ok


async def test_a_rate_limit_applies_per_user() -> None:
    gate = Gate(make_tool("rare", rate_limit=RateLimit(calls=1, window_s=60)))
    await gate.call("rare")
    bob = gate.new_session("s2")
    bob.user = "bob"
    assert (await gate.call("rare", session=bob)).ok


async def test_voice_allows_two_lookups_a_turn() -> None:
    gate = Gate(make_retrieval("look_up"))
    gate.session.mode = Mode.VOICE
    results = [await gate.call("look_up", {"text": str(n)}) for n in range(3)]
    assert [result.ok for result in results] == [True, True, False]
    assert error_of(results[2]) is ErrorType.RATE_LIMIT
    assert results[2].error is not None
    assert not results[2].error.retryable
    assert results[2].error.suggestion


async def test_voice_allows_three_calls_a_turn() -> None:
    gate = Gate(make_tool("read_it"))
    gate.session.mode = Mode.VOICE
    results = [await gate.call("read_it", {"text": str(n)}) for n in range(4)]
    assert [result.ok for result in results] == [True, True, True, False]
    gate.next_turn()
    assert (await gate.call("read_it", {"text": "0"})).ok


async def test_text_allows_five_lookups_and_twelve_calls_a_turn() -> None:
    gate = Gate(make_retrieval("look_up"), make_tool("read_it"))
    looked_up = [await gate.call("look_up", {"text": str(n)}) for n in range(6)]
    assert [result.ok for result in looked_up] == [True] * 5 + [False]
    read = [await gate.call("read_it", {"text": str(n)}) for n in range(8)]
    assert [result.ok for result in read] == [True] * 7 + [False]


async def test_an_exhausted_time_budget_refuses_only_lookups() -> None:
    gate = Gate(make_retrieval("look_up"), make_tool("read_it"))
    gate.session.mode = Mode.VOICE
    gate.session.ledger.tool_ms = 1_501
    assert error_of(await gate.call("look_up")) is ErrorType.RATE_LIMIT
    assert (await gate.call("read_it")).ok


@pytest.mark.parametrize("name", ["ignore_user", "end_voice_session", "describe_tool"])
async def test_exempt_tools_are_never_refused_for_budget(name: str) -> None:
    gate = Gate(make_tool("read_it"), make_tool(name))
    gate.session.mode = Mode.VOICE
    for n in range(5):
        await gate.call("read_it", {"text": str(n)})
    assert (await gate.call(name)).ok


async def test_the_third_identical_call_is_refused_with_advice() -> None:
    gate = Gate(make_tool("read_it"))
    ids = ["call_aaaaaaaaa", "call_bbbbbbbbb", "call_ccccccccc"]
    results = [await gate.call("read_it", {"text": "same"}, id=id) for id in ids]
    assert [result.ok for result in results] == [True, True, False]
    assert error_of(results[2]) is ErrorType.RATE_LIMIT


async def test_a_looping_model_without_ids_is_stopped_too() -> None:
    handler = Counted()
    gate = Gate(make_tool("read_it", handler))
    results = [await gate.call("read_it", {"text": "same"}) for _ in range(3)]
    assert [result.ok for result in results] == [True, True, False]
    assert handler.runs == 1


async def test_a_redelivery_does_not_count_as_repetition() -> None:
    gate = Gate(make_tool("read_it"))
    results = [await gate.call("read_it", {"text": "same"}, id="call_aaaaaaaaa") for _ in range(5)]
    assert all(result.ok for result in results)


async def test_a_third_empty_result_becomes_advice() -> None:
    async def nothing(args: Args, context: Context) -> ToolResult:
        return ok({"results": [], "query_time_ms": 1})

    gate = Gate(make_retrieval("look_up", nothing))
    results = [await gate.call("look_up", {"text": str(n)}) for n in range(3)]
    assert [result.ok for result in results] == [True, True, False]
    assert results[2].error is not None
    assert "nothing" in results[2].error.message


async def test_defaults_are_filled_in_at_every_depth_on_a_copy() -> None:
    handler = Counted()
    gate = Gate(make_retrieval("search", handler, parameters=SEARCH))
    args = {"query": "tea", "filters": {"tags": ["a"]}}
    await gate.call("search", args)
    assert handler.seen == [
        {"query": "tea", "top_k": 5, "filters": {"tags": ["a"], "strict": True}, "return_fields": ["snippet"]}
    ]
    assert args == {"query": "tea", "filters": {"tags": ["a"]}}
    assert (await gate.audit())[0].defaults == ("top_k", "return_fields", "filters.strict")


async def test_a_handler_that_changes_a_default_does_not_change_the_next_calls() -> None:
    async def spoil(args: Args, context: Context) -> ToolResult:
        args["return_fields"].append("spoilt")
        return ok()

    handler = Counted(spoil)
    gate = Gate(make_retrieval("search", handler, parameters=SEARCH))
    await gate.call("search", {"query": "one"})
    await gate.call("search", {"query": "two"})
    assert handler.seen[1]["return_fields"] == ["snippet", "spoilt"]
    assert len(handler.seen[1]["return_fields"]) == 2


@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({"query": 7}, "/query"),
        ({"query": "tea", "top_k": "3"}, "/top_k"),
        ({"query": "tea", "colour": "red"}, "/"),
        ({"query": "tea", "filters": {"strict": "yes"}}, "/filters/strict"),
        ({}, "/"),
        ([], "/"),
        ("tea", "/"),
        (None, "/"),
        ({"query": float("nan")}, "/query"),
    ],
)
async def test_wrong_arguments_are_an_error_with_their_path(args: Any, path: str) -> None:
    handler = Counted()
    gate = Gate(make_retrieval("search", handler, parameters=SEARCH))
    call_args = args if args is not None else 5
    result = await gate.call("search", call_args)
    assert error_of(result) is ErrorType.VALIDATION
    assert result.error is not None
    assert result.error.details is not None
    assert path in [problem["path"] for problem in result.error.details["problems"]]
    assert handler.runs == 0


async def test_all_mistakes_are_reported_at_once_with_the_examples() -> None:
    gate = Gate(make_retrieval("search", parameters=SEARCH))
    result = await gate.call("search", {"top_k": 99, "colour": "red"})
    assert result.error is not None
    assert result.error.details is not None
    assert len(result.error.details["problems"]) == 3
    assert result.error.details["examples"].startswith("```args")


@pytest.mark.parametrize("args", [{"text": "\ud800"}, {"text": object()}, {"text": "x" * 70_000}, {1: "a"}])
async def test_arguments_that_are_not_json_are_refused(args: Any) -> None:
    assert error_of(await Gate(make_tool("read_it")).call("read_it", args)) is ErrorType.VALIDATION


async def test_voice_reduces_the_arguments_and_reports_it() -> None:
    handler = Counted()
    gate = Gate(make_retrieval("search", handler, parameters=SEARCH))
    gate.session.mode = Mode.VOICE
    result = await gate.call("search", {"query": "tea", "return_fields": ["full_text", "url"]})
    assert handler.seen[0]["top_k"] == 3
    assert handler.seen[0]["return_fields"] == ["url"]
    assert result.meta is not None
    assert result.meta.clamped == {"top_k": 5, "return_fields": ["full_text", "url"]}
    assert (await gate.audit())[0].clamped == result.meta.clamped


async def test_text_does_not_change_the_arguments() -> None:
    handler = Counted()
    gate = Gate(make_retrieval("search", handler, parameters=SEARCH))
    await gate.call("search", {"query": "tea", "top_k": 10})
    assert handler.seen[0]["top_k"] == 10


async def test_a_hostile_model_gets_answers_and_runs_no_more_than_the_budget() -> None:
    handler = Counted()
    gate = Gate(make_action("write_it", handler))
    results = [await gate.call("write_it", {"text": str(n)}, id=f"call_{n:09}") for n in range(1_000)]
    assert handler.runs == 12
    assert {error_of(result) for result in results[12:]} == {ErrorType.RATE_LIMIT}


async def test_each_call_is_audited_in_one_line_without_its_arguments() -> None:
    gate = Gate(make_tool("read_it"))
    await gate.call("read_it", {"text": "my secret"}, id="call_0123456789")
    await gate.call("read_it", {"txt": 1})
    lines = await gate.audit()
    assert [line.outcome for line in lines] == ["ok", "VALIDATION"]
    assert lines[0].args is None
    assert lines[0].args_hash
    assert (lines[0].session, lines[0].user, lines[0].mode) == ("s1", "ann", "text")


async def test_arguments_are_audited_if_configured() -> None:
    gate = Gate(make_tool("read_it"), keep_arguments=True)
    await gate.call("read_it", {"text": "tea"})
    assert (await gate.audit())[0].args == {"text": "tea"}


async def test_the_registry_counts_the_outcomes_of_calls() -> None:
    gate = Gate(make_tool("read_it"))
    await gate.call("read_it", id="call_0123456789")
    await gate.call("read_it", id="call_0123456789")
    await gate.call("read_it", {"wrong": 1})
    summary = gate.session.snapshot.metrics()["read_it"]
    assert (summary["calls"], summary["errors"], summary["cache_hits"]) == (3, 1, 1)
