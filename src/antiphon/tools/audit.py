"""Step 8: the result's `meta`, the turn's ledger, the session's state, the counters, and the audit.

The audit has one line per call. Lines are written in batches off the hot path, or at once after a write.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from antiphon.storage.base import AuditLine, AuditStore, Confirmation
from antiphon.storage.batches import Batches
from antiphon.telemetry.log import get_logger
from antiphon.telemetry.secrets import scrub
from antiphon.tools import policy
from antiphon.tools.attempt import Attempt, GateDeps, refuse
from antiphon.tools.call import fingerprint
from antiphon.tools.result import Intent, Meta, ToolResult, map_texts
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import UNTRUSTED_TAG, Category
from antiphon.tools.tool import Tool

FLUSH_AFTER_S: Final = 0.2
MAX_WAITING_LINES: Final = 100_000
"""How many lines wait while the store is down. Beyond this the oldest are dropped, and the log says how many."""


log = get_logger(__name__)


class AuditLog:
    def __init__(
        self,
        store: AuditStore,
        *,
        keep_arguments: bool = False,
        watch: Callable[[AuditLine], None] = lambda line: None,
    ) -> None:
        """`watch` is called with each line as it is added."""
        self.keep_arguments = keep_arguments
        self._watch = watch
        self._lines = Batches(store.append, "audit", after_s=FLUSH_AFTER_S, max_waiting=MAX_WAITING_LINES)
        self.flush = self._lines.flush
        self.aclose = self._lines.aclose

    def add(self, line: AuditLine) -> None:
        """Queues a line, which is durable within a fraction of a second or after `flush`."""
        self._lines.add(line)
        self._watch(line)


def record(deps: GateDeps, attempt: Attempt, result: ToolResult) -> ToolResult:
    """Records the outcome of a pass and gives the result its `meta`."""
    session, tool, keys, key = attempt.session, attempt.tool, attempt.keys, attempt.key
    duration_ms = round((deps.clock.monotonic() - attempt.started) * 1000, 3)
    version = None if tool is None else tool.spec.version
    if tool is not None:
        result = _enter(attempt, tool, result, duration_ms)
    intents: tuple[Intent, ...] = ()
    if result.intents and result.ok and attempt.ran:
        intents = tuple(intent for intent in result.intents if session.state.apply(intent))
    outcome = "ok" if result.error is None else result.error.type.value
    line = AuditLine(
        ts_ms=deps.clock.now_ms(),
        session=session.id,
        user=session.user,
        mode=attempt.mode,
        turn=attempt.turn,
        tool=attempt.name,
        tool_version=version,
        registry_version=session.snapshot.version,
        idempotency_key=key,
        args_hash=None if keys is None else keys.fingerprint,
        outcome=outcome,
        duration_ms=duration_ms,
        defaults=tuple(attempt.defaults),
        cache_hit=attempt.cache_hit,
        conversation=session.conversation(),
    )
    # Rare fields are set separately: with more than 15 keywords, creating a struct takes five times as long.
    if attempt.clamped is not None or attempt.confirmation is not None:
        line = replace(line, clamped=attempt.clamped, confirmation=attempt.confirmation)
    if deps.audit.keep_arguments and keys is not None:
        line = replace(line, args=attempt.call.args)
    deps.audit.add(line)
    if tool is not None:
        tool.stats.count(outcome, duration_ms, attempt.cache_hit)
    meta = Meta(
        tool=attempt.name,
        tool_version=version,
        registry_version=session.snapshot.version,
        duration_ms=duration_ms,
        turn=attempt.turn,
        idempotency_key=key,
        cache_hit=attempt.cache_hit,
        clamped=attempt.clamped,
    )
    return replace(result, intents=intents, meta=meta)


def record_answer(deps: GateDeps, session: ToolSession, taken: Confirmation | None, outcome: str) -> None:
    """Records a confirmation that did not lead to a run because it was denied or had expired."""
    deps.audit.add(
        AuditLine(
            ts_ms=deps.clock.now_ms(),
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
            conversation=session.conversation(),
        )
    )


def _enter(attempt: Attempt, tool: Tool, result: ToolResult, duration_ms: float) -> ToolResult:
    """Adds the pass to the turn's ledger. The third look-up that finds nothing is replaced by advice."""
    ledger, spec = attempt.session.ledger, tool.spec
    # A tool that is marked may pass on what the other side says about a failure. Those of the web do not.
    if (tool.untrusted and result.ok) or (attempt.ran and UNTRUSTED_TAG in spec.tags):
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


class HandlerAudit:
    """Writes a handler's own lines to the audit."""

    __slots__ = ("_attempt", "_deps")

    def __init__(self, deps: GateDeps, attempt: Attempt) -> None:
        self._deps = deps
        self._attempt = attempt

    def log(self, event: str, **data: Any) -> None:
        attempt = self._attempt
        if attempt.tool is not None and attempt.tool.spec.secrets:
            data = map_texts(data, scrub)
        try:
            msgspec.json.encode(data)
        except Exception:
            # A line that cannot be encoded would block the whole batch.
            data = {"not_json": repr(data)[:200]}
        self._deps.audit.add(
            AuditLine(
                ts_ms=self._deps.clock.now_ms(),
                session=attempt.session.id,
                user=attempt.session.user,
                mode=attempt.mode,
                turn=attempt.turn,
                tool=attempt.name,
                idempotency_key=attempt.key,
                outcome="event",
                event=event,
                data=data,
                conversation=attempt.session.conversation(),
            )
        )
