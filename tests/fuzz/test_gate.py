"""Whatever a model sends, the gate answers with a result, and a handler sees only what its schema allows."""

import asyncio
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from antiphon.tools.arguments import Arguments, compile_schema
from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok
from antiphon.tools.spec import Mode
from tests.fakes.gates import Counted, Gate, make_action, make_retrieval
from tests.fakes.schemas import any_json, arguments_for, tool_parameters

HOSTILE = st.one_of(
    any_json(),
    st.binary(),
    st.floats(),
    st.text(st.characters(codec=None)),
    st.dictionaries(st.integers(), st.none()),
    st.sets(st.integers()),
    st.builds(object),
)


def extends(value: Any, part: Any) -> bool:
    """Whether a value is what it was, but for properties that were added."""
    if isinstance(value, dict) and isinstance(part, dict):
        return all(name in value and extends(value[name], inner) for name, inner in part.items())
    return bool(value == part)


def pass_through(parameters: dict[str, Any], args: Any, mode: Mode, writes: bool) -> tuple[ToolResult, Counted]:
    async def echo(args: Args, context: Context) -> ToolResult:
        return ok(dict(args))

    async def call() -> ToolResult:
        make = make_action if writes else make_retrieval
        gate = Gate(make("tool", handler, parameters=parameters))
        gate.session.mode = mode
        result = await gate.call("tool", args)
        await gate.executor.aclose()
        return result

    handler = Counted(echo)
    return asyncio.run(call()), handler


@given(st.data(), tool_parameters(), st.sampled_from(Mode), st.booleans())
@settings(max_examples=150, deadline=None)
def test_valid_arguments_reach_the_handler_valid(
    data: st.DataObject, parameters: dict[str, Any], mode: Mode, writes: bool
) -> None:
    args = data.draw(arguments_for(parameters))
    # Defaults can break a bound on the number of properties; then the call is refused, and rightly.
    assume(compile_schema(parameters).is_valid(Arguments(parameters).complete(args)[0]))
    result, handler = pass_through(parameters, args, mode, writes)
    assert result.ok, result.error
    if mode is Mode.TEXT:
        assert extends(handler.seen[0], args)


@given(tool_parameters(), HOSTILE, st.sampled_from(Mode), st.booleans())
@settings(max_examples=200, deadline=None)
def test_any_arguments_get_an_answer_and_only_valid_ones_run(
    parameters: dict[str, Any], args: Any, mode: Mode, writes: bool
) -> None:
    result, handler = pass_through(parameters, args, mode, writes)
    assert result.meta is not None
    assert result.ok is bool(handler.runs)
    for seen in handler.seen:
        assert compile_schema(parameters).is_valid(seen)


@given(st.text(st.characters(codec=None)), st.text(st.characters(codec=None)))
@settings(max_examples=200, deadline=None)
def test_any_name_and_id_get_an_answer(name: str, id: str) -> None:
    async def call() -> ToolResult:
        gate = Gate(make_action("tool"))
        result = await gate.call(name, {}, id=id)
        again = await gate.call("tool", {}, id=id)
        assert again.ok
        await gate.executor.aclose()
        return result

    assert asyncio.run(call()).ok is (name == "tool")
