"""Step 8: the envelope, the turn's ledger, the session's state, the counters and the audit."""

from antiphon.storage.base import AuditLine, Confirmation
from antiphon.telemetry.log import get_logger
from antiphon.tools import policy
from antiphon.tools.attempt import Attempt
from antiphon.tools.call import fingerprint
from antiphon.tools.gate import Desk, refuse
from antiphon.tools.result import Intent, Meta, ToolResult
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Category
from antiphon.tools.tool import Tool

log = get_logger(__name__)


def record(desk: Desk, attempt: Attempt, result: ToolResult) -> ToolResult:
    """Writes down what became of a pass, and gives the result its `meta`."""
    session, tool = attempt.session, attempt.tool
    duration_ms = round((desk.clock.monotonic() - attempt.started) * 1000, 3)
    if tool is not None:
        result = _enter(attempt, tool, result, duration_ms)
    intents: tuple[Intent, ...] = ()
    if result.intents and result.ok and attempt.ran:
        intents = tuple(intent for intent in result.intents if session.state.apply(intent))
    outcome = "ok" if result.error is None else result.error.type.value
    name, key = attempt.name, attempt.key
    _audit(desk, attempt, name, key, outcome, duration_ms)
    if tool is not None:
        tool.stats.count(outcome, duration_ms, attempt.cache_hit)
    meta = Meta(
        name,
        None if tool is None else tool.spec.version,
        session.snapshot.version,
        duration_ms,
        attempt.turn,
        key,
        attempt.cache_hit,
        attempt.clamped,
    )
    return ToolResult(
        result.ok, result.data, result.error, intents, result.spoken, result.flyout, result.citations, meta
    )


def record_answer(desk: Desk, session: ToolSession, taken: Confirmation | None, outcome: str) -> None:
    """A confirmation that did not lead to a run: denied, or not there to be answered."""
    desk.audit.add(
        AuditLine(
            ts_ms=desk.clock.now_ms(),
            session=session.id,
            user=session.user,
            mode=session.mode,
            turn=session.turn,
            tool="" if taken is None else taken.tool,
            registry_version=session.snapshot.version,
            args_hash=None if taken is None else fingerprint(taken.tool, taken.args),
            outcome="event",
            event="confirmation",
            confirmation=outcome,
        )
    )


def _enter(attempt: Attempt, tool: Tool, result: ToolResult, duration_ms: float) -> ToolResult:
    """What the pass adds to the turn's ledger. A look-up that finds nothing for the third time becomes advice."""
    ledger, spec = attempt.session.ledger, tool.spec
    if tool.untrusted and result.ok:
        ledger.untrusted = True
    if not attempt.ran:
        return result
    ledger.tool_ms += duration_ms
    if duration_ms > spec.latency_budget_ms and tool.runs_to_the_end:
        log.warning("over_latency_budget", tool=tool.id, duration_ms=duration_ms, budget_ms=spec.latency_budget_ms)
    if spec.category is Category.RETRIEVAL and result.ok and policy.is_empty(result.data):
        advice = ledger.note_empty(tool)
        if advice is not None:
            return refuse(advice)
    return result


def _audit(desk: Desk, attempt: Attempt, name: str, key: str | None, outcome: str, duration_ms: float) -> None:
    session, tool, keys = attempt.session, attempt.tool, attempt.keys
    desk.audit.add(
        AuditLine(
            desk.clock.now_ms(),
            session.id,
            session.user,
            attempt.mode,
            attempt.turn,
            name,
            None if tool is None else tool.spec.version,
            session.snapshot.version,
            key,
            None if keys is None else keys.fingerprint,
            attempt.call.args if desk.audit.keep_arguments and keys is not None else None,
            outcome,
            duration_ms,
            attempt.clamped,
            tuple(attempt.defaults),
            attempt.confirmation,
            attempt.cache_hit,
        )
    )
