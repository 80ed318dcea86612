"""Results, checked against the `outputs` of a tool's schema: while a tool is written, never while it serves."""

from typing import Any

import msgspec

from antiphon.tools.arguments import Arguments
from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult
from antiphon.tools.tool import Execute


def find_mismatches(outputs: dict[str, Any] | None, result: ToolResult) -> list[str]:
    """What in the data of a result its schema does not allow, each with the path to it. A failure has no data."""
    if outputs is None or not result.ok:
        return []
    try:
        # As the caller will see it: a tuple is a list there.
        data = msgspec.json.decode(msgspec.json.encode(result.data))
    except (TypeError, ValueError) as error:
        return [f"/: the data is not JSON: {error}"]
    return [f"{problem['path']}: {problem['message']}" for problem in Arguments(outputs).problems(data)]


def checked(execute: Execute, outputs: dict[str, Any]) -> Execute:
    """The same handler, for tests: it raises `AssertionError` for a result that does not fit the schema."""

    async def execute_and_check(args: Args, context: Context) -> ToolResult:
        result = await execute(args, context)
        mismatches = find_mismatches(outputs, result) if isinstance(result, ToolResult) else []
        assert not mismatches, f"the result does not fit the outputs in schema.json: {'; '.join(mismatches)}"
        return result

    return execute_and_check
