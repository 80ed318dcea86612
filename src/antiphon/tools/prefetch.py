"""Prefetch: runs a call before the model makes it, so that an answer can be prepared while the speaker pauses.

Only tools without side effects are prefetched, and nothing is counted, stored or shown. The real call passes the gate
like any other; only its handler does not run a second time.
"""

from typing import Any, Final

from msgspec.structs import replace

from antiphon.tools.attempt import Attempt, GateDeps
from antiphon.tools.call import UnusableArguments, canonical, fingerprint
from antiphon.tools.context import CallTool
from antiphon.tools.gate import admit, clamp, is_unconfirmed, validate
from antiphon.tools.result import ToolResult, repair
from antiphon.tools.running import make_context, run_once
from antiphon.tools.session import NoClient, Prefetched
from antiphon.tools.spec import Capability, Category, SideEffects
from antiphon.tools.tool import Tool

HARMLESS_USES: Final[frozenset[str]] = frozenset({Capability.CATALOG})


async def prefetch(deps: GateDeps, attempt: Attempt) -> ToolResult | None:
    """Runs the call and keeps its result in the session; None if the tool must not be prefetched or fails."""
    tool = attempt.tool
    if tool is None or not can_prefetch(tool):
        return None
    try:
        key = fingerprint(tool.id, canonical(attempt.call.args))
    except UnusableArguments:
        return None
    refusal = admit(deps, attempt, tool) or validate(attempt, tool) or clamp(attempt, tool)
    if refusal is not None or is_unconfirmed(attempt, tool):
        return None
    context = replace(make_context(deps, attempt, tool, _call_nothing), messaging=NoClient(), audit=_Silent())
    result = repair(await run_once(attempt, tool, context))
    if not result.ok:
        return None
    attempt.session.prefetched[key] = Prefetched(result, deps.clock.monotonic())
    return result


def can_prefetch(tool: Tool) -> bool:
    """Whether the tool has no visible effects. Tools with a rate limit or an availability rule are left out."""
    spec = tool.spec
    return (
        spec.side_effects is SideEffects.NONE
        and spec.idempotent
        and spec.category is not Category.ACTION
        and spec.rate_limit is None
        and tool.availability is None
        and HARMLESS_USES.issuperset(spec.uses)
    )


class _Silent:
    """Drops the audit lines of a prefetched call."""

    def log(self, event: str, **data: Any) -> None:
        pass


def _call_nothing(attempt: Attempt) -> CallTool:
    raise PermissionError(f"{attempt.name} may not call other tools while it is prefetched.")
