"""Step 7: the handler, with its deadline, its one retry, and every way it can end made into a result."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from antiphon.storage.base import AuditLine
from antiphon.telemetry.log import get_logger
from antiphon.tools import policy
from antiphon.tools.attempt import Attempt
from antiphon.tools.context import NOTHING_GRANTED, Audio, CallTool, Context, ToolView, Voice
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.gate import Desk, refuse
from antiphon.tools.journal import encode
from antiphon.tools.result import Failure, ToolResult
from antiphon.tools.spec import Capability, Mode
from antiphon.tools.tool import Tool

AUDIO: Final = Audio()
VOICES: Final = {mode: Voice(mode is Mode.VOICE) for mode in Mode}

log = get_logger(__name__)


async def run(desk: Desk, attempt: Attempt, tool: Tool, call_tool: CallTool) -> ToolResult:
    """Runs the handler once, or twice where the retry rule allows, and stores what came of it."""
    shared = await desk.journal.begin(attempt, tool)
    if shared is not None:
        return shared
    attempt.ran = True
    context = _context(desk, attempt, tool, call_tool)
    result = await _once(attempt, tool, context)
    if _may_retry(attempt, tool, result):
        result = await _once(attempt, tool, context)
    try:
        encoded = encode(result)
    except Exception as error:
        log.error("handler_result_refused", tool=tool.id, problem=f"its data is not JSON: {error}")
        result = refuse(_internal(tool))
        encoded = encode(result)
    await desk.journal.finish(attempt, tool, result, encoded)
    return result


async def _once(attempt: Attempt, tool: Tool, context: Context) -> ToolResult:
    limit_ms = policy.deadline_ms(tool, attempt.mode)
    deadline = asyncio.timeout(limit_ms / 1000)
    try:
        async with deadline:
            result = await tool.execute(attempt.args, context)
    except ToolError as error:
        return refuse(_expected(error))
    except TimeoutError:
        if deadline.expired():
            return refuse(_overdue(tool, limit_ms))
        return refuse(_unexpected(tool))
    except Exception:
        return refuse(_unexpected(tool))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # Nobody cancelled this pass: the handler let the cancellation of something of its own escape.
        return refuse(_unexpected(tool))
    if isinstance(result, ToolResult) and result.ok is (result.error is None):
        return result
    log.error(
        "handler_result_refused", tool=tool.id, problem=f"it returned {type(result).__name__}, not ok(…) or fail(…)"
    )
    return refuse(_internal(tool))


def _may_retry(attempt: Attempt, tool: Tool, result: ToolResult) -> bool:
    """Once, in text, where repeating is harmless and nobody asked us to wait. Speech has no time for it."""
    error = result.error
    return (
        error is not None
        and error.type is ErrorType.TRANSIENT
        and error.retryable
        and error.retry_after_s is None
        and tool.spec.idempotent
        and attempt.mode is Mode.TEXT
    )


def _expected(error: ToolError) -> Failure:
    return Failure(
        error.type,
        error.message,
        retryable=error.retryable,
        suggestion=error.suggestion,
        retry_after_s=error.retry_after_s,
        details=error.details,
        partial_side_effects=error.partial_side_effects,
    )


def _overdue(tool: Tool, limit_ms: int) -> Failure:
    partial = tool.runs_to_the_end
    return Failure(
        ErrorType.TRANSIENT,
        f"{tool.id} did not answer within {limit_ms} ms.",
        # The time is spent: the gate does not try again by itself, and what may be half done must not be repeated.
        retryable=not partial,
        retry_after_s=None if partial else 1.0,
        partial_side_effects=partial,
    )


def _unexpected(tool: Tool) -> Failure:
    """For an exception that the handler did not foresee. Its traceback goes to the log, never to the model."""
    log.exception("handler_failed", tool=tool.id)
    return _internal(tool)


def _internal(tool: Tool) -> Failure:
    return Failure(ErrorType.INTERNAL, f"{tool.id} failed unexpectedly.", partial_side_effects=True)


def _context(desk: Desk, attempt: Attempt, tool: Tool, call_tool: CallTool) -> Context:
    spec = tool.spec
    granted: Mapping[Capability, object] = NOTHING_GRANTED
    if spec.uses:
        offered = {
            **desk.capabilities,
            Capability.CALL_TOOL: call_tool,
            Capability.CATALOG: attempt.session.snapshot,
        }
        granted = {capability: offered[capability] for capability in spec.uses}
    return Context(
        session=attempt.session.view(attempt.mode),
        tool=ToolView(tool.id, spec.version, spec.idempotent),
        messaging=attempt.session.messaging,
        voice=VOICES[attempt.mode],
        audio=AUDIO,
        audit=Trail(desk, attempt),
        clock=desk.clock,
        rng=desk.rng,
        granted=granted,
    )


class Trail:
    """A handler's own lines in the audit."""

    __slots__ = ("_attempt", "_desk")

    def __init__(self, desk: Desk, attempt: Attempt) -> None:
        self._desk = desk
        self._attempt = attempt

    def log(self, event: str, **data: Any) -> None:
        attempt = self._attempt
        try:
            msgspec.json.encode(data)
        except Exception:
            # One line that cannot be written would keep the whole batch from the store.
            data = {"not_json": repr(data)[:200]}
        self._desk.audit.add(
            AuditLine(
                ts_ms=self._desk.clock.now_ms(),
                session=attempt.session.id,
                user=attempt.session.user,
                mode=attempt.mode,
                turn=attempt.turn,
                tool=attempt.name,
                idempotency_key=attempt.key,
                outcome="event",
                event=event,
                data=data,
            )
        )
