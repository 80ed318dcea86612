"""Gives the documentation of a tool."""

import re
from collections.abc import Sequence
from typing import Final

from rapidfuzz import fuzz, process

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok

NEAR_ENOUGH: Final = 60
"""The least similarity, out of 100. Two unrelated names reach about 45 through the letters they share."""

_SUMMARY: Final = re.compile(r"^## Summary\s+(.+?[.!?])(?:\s|$)", re.MULTILINE | re.DOTALL)


async def execute(args: Args, context: Context) -> ToolResult:
    tool_id = re.sub(r"[\s-]+", "_", args["tool_id"].strip()).lower()
    documentation = context.catalog.documentation(tool_id)
    if documentation is None:
        near = _find_nearest(tool_id, context.catalog.tool_ids())
        return fail(
            ErrorType.NOT_FOUND,
            f"There is no tool called {args['tool_id'].strip()}.",
            suggestion=f"Did you mean {near}?" if near else None,
        )
    return ok({"tool_id": tool_id, "documentation": documentation}, spoken=_speak(tool_id, documentation))


def _find_nearest(tool_id: str, known: Sequence[str]) -> str | None:
    found = process.extractOne(tool_id, known, scorer=fuzz.WRatio, score_cutoff=NEAR_ENOUGH)
    return found[0] if found else None


def _speak(tool_id: str, documentation: str) -> str:
    """Returns the first sentence of the summary. The rest is meant to be read."""
    summary = _SUMMARY.search(documentation)
    words = " ".join(summary[1].replace("`", "").split()) if summary else "I have its documentation."
    return f"About {tool_id.replace('_', ' ')}: {words}"
