"""Checks the data of a result against the `outputs` of the tool's schema."""

from typing import Any

import msgspec

from antiphon.tools.arguments import Arguments
from antiphon.tools.result import ToolResult


def find_mismatches(outputs: dict[str, Any] | None, result: ToolResult) -> list[str]:
    """Lists what the schema does not allow in the data of a result, each with its path. A failure has no data."""
    if outputs is None or not result.ok:
        return []
    try:
        # As the caller will see it: a tuple is a list there.
        data = msgspec.json.decode(msgspec.json.encode(result.data))
    except (TypeError, ValueError) as error:
        return [f"/: the data is not JSON: {error}"]
    return [f"{problem['path']}: {problem['message']}" for problem in Arguments(outputs).problems(data)]
