"""Step 7: runs the handler with its deadline and one retry, and turns every way it can end into a result."""

import asyncio
from collections.abc import Callable, Coroutine, Generator, Mapping
from types import coroutine
from typing import Any, Final, cast

from msgspec.structs import replace

from antiphon.storage.base import STORE_UNAVAILABLE, StoreUnavailable
from antiphon.telemetry.log import get_logger
from antiphon.telemetry.secrets import scrub
from antiphon.tools import policy
from antiphon.tools.attempt import Attempt, GateDeps, refuse
from antiphon.tools.audit import HandlerAudit
from antiphon.tools.context import NOTHING_GRANTED, Audio, CallTool, Context, Messaging, Offer, Voice
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.journal import encode
from antiphon.tools.messages import Message
from antiphon.tools.outputs import find_mismatches
from antiphon.tools.registry import DEVELOPMENT
from antiphon.tools.result import Failure, Prepared, ToolResult, map_texts, repair
from antiphon.tools.spec import Capability, Mode
from antiphon.tools.tool import Tool

AUDIO: Final = Audio()
IN_VOICE: Final = Voice(active=True)
IN_TEXT: Final = Voice(active=False)

TOOK_TOO_LONG: Final = "That took too long, so I stopped waiting for it."
TOOK_TOO_LONG_TO_KNOW: Final = "That took too long, and I don't know whether it was done."
WENT_WRONG: Final = "Something went wrong while I was doing that, and I don't know how far it got."
COULD_NOT_PREPARE: Final = "Something went wrong before I could do that, so I didn't do it."
"""What the user hears about a failure. The model also learns which tool it was."""

log = get_logger(__name__)


async def run(deps: GateDeps, attempt: Attempt, tool: Tool, caller: Callable[[Attempt], CallTool]) -> ToolResult:
    """Runs the handler once, or twice where the retry rule allows, and stores the outcome.

    `caller` makes `context.call_tool`, for a tool that uses it.
    """
    if tool.announced:
        shared = await deps.journal.begin(attempt, tool)
        if shared is not None:
            return shared
    attempt.ran = True
    context = make_context(deps, attempt, tool, caller)
    try:
        result = (_take_prefetched(deps, attempt) if attempt.session.prefetched else None) or await run_once(
            attempt, tool, context
        )
        if result.error is not None and _may_retry(attempt, tool, result.error):
            result = await run_once(attempt, tool, context)
        if tool.spec.secrets:
            result = map_texts(result, scrub)
        if deps.environment == DEVELOPMENT:
            _log_mismatches(tool, result)
        try:
            try:
                encoded = encode(result)
            except UnicodeEncodeError:
                result = repair(result)
                encoded = encode(result)
        except Exception as error:
            log.error("handler_result_refused", tool=tool.id, problem=f"its data is not JSON: {error}")
            result = _internal(tool)
            encoded = encode(result)
        await deps.journal.finish(attempt, tool, result, encoded)
    finally:
        deps.journal.end(attempt)
    return result


async def run_once(attempt: Attempt, tool: Tool, context: Context) -> ToolResult:
    """Runs the handler once. Whatever it does, there is a result, unless the pass itself is cancelled."""
    deadline: asyncio.Timeout | None = None
    try:
        handler = tool.execute(attempt.args, context)
        try:
            waiting_for = handler.send(None)
        except StopIteration as done:
            result = done.value
        else:
            # A deadline costs as much as the rest of a run, so it is set only once a handler waits for something.
            async with asyncio.timeout(policy.deadline_ms(tool, attempt.mode) / 1000) as deadline:
                result = await _rest(handler, waiting_for)
    except ToolError as error:
        return refuse(_expected(error))
    except StoreUnavailable as error:
        return _without_store(tool, error)
    except TimeoutError:
        expired = deadline is not None and deadline.expired()
        return _overdue(tool, attempt.mode) if expired else _unexpected(tool)
    except Exception:
        return _unexpected(tool)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # This pass was not cancelled: the handler let a cancellation of its own escape.
        return _unexpected(tool)
    if isinstance(result, ToolResult) and result.ok is (result.error is None):
        return result
    problem = f"it returned {type(result).__name__} instead of ok(…) or fail(…)"
    log.error("handler_result_refused", tool=tool.id, problem=problem)
    return _internal(tool)


async def prepare(deps: GateDeps, attempt: Attempt, tool: Tool) -> Prepared | ToolResult:
    """Has the tool prepare a call that a person must approve. Whatever it does, there is a result, and nothing is
    done."""
    made = await _prepare(deps, attempt, tool)
    if not tool.spec.secrets:
        return made
    return map_texts(made, scrub) if isinstance(made, ToolResult) else replace(made, preview=scrub(made.preview))


async def _prepare(deps: GateDeps, attempt: Attempt, tool: Tool) -> Prepared | ToolResult:
    assert tool.prepare is not None
    context = make_context(deps, attempt, tool, _calls_nothing)
    limit_ms = policy.latency_limit_ms(tool, attempt.mode)
    try:
        async with asyncio.timeout(limit_ms / 1000) as deadline:
            made = await tool.prepare(attempt.args, context)
    except ToolError as error:
        return refuse(_expected(error))
    except StoreUnavailable as error:
        return _without_store(tool, error)
    except TimeoutError:
        if deadline.expired():
            message = f"{tool.id} could not be prepared within {limit_ms} ms; nothing was done."
            return refuse(Failure(ErrorType.TRANSIENT, message, retryable=True, retry_after_s=1.0), TOOK_TOO_LONG)
        made = None
        log.exception("prepare_failed", tool=tool.id)
    except Exception:
        made = None
        log.exception("prepare_failed", tool=tool.id)
    match made:
        case ToolResult(error=Failure()):
            return made
        case Prepared(args=args) if tool.arguments.accepts(args):
            return made
        case Prepared() | ToolResult():
            log.error("prepare_refused", tool=tool.id, problem="it returned arguments that do not fit the schema")
    failure = Failure(ErrorType.INTERNAL, f"{tool.id} could not be prepared; nothing was done.")
    return refuse(failure, spoken=COULD_NOT_PREPARE)


def _calls_nothing(attempt: Attempt) -> CallTool:
    raise PermissionError("prepare() must not call tools")


@coroutine
def _rest(handler: Coroutine[Any, Any, ToolResult], waiting_for: Any) -> Generator[Any, Any, ToolResult]:
    """Drives a handler that has begun to wait, as `await` would from here on."""
    try:
        while True:
            try:
                sent = yield waiting_for
            except BaseException as error:
                waiting_for = handler.throw(error)
            else:
                waiting_for = handler.send(sent)
    except StopIteration as done:
        return cast(ToolResult, done.value)


def _take_prefetched(deps: GateDeps, attempt: Attempt) -> ToolResult | None:
    assert attempt.keys is not None
    return attempt.session.take_prefetched(attempt.keys.fingerprint, deps.clock.monotonic())


def _may_retry(attempt: Attempt, tool: Tool, error: Failure) -> bool:
    """Whether to retry: once, in text mode only, if the tool is idempotent and no wait was requested."""
    return (
        error.type is ErrorType.TRANSIENT
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


def _overdue(tool: Tool, mode: Mode) -> ToolResult:
    partial = tool.runs_to_the_end
    failure = Failure(
        ErrorType.TRANSIENT,
        f"{tool.id} did not answer within {policy.deadline_ms(tool, mode)} ms.",
        # The time is spent, so the gate does not retry; what may be half done must not be repeated.
        retryable=not partial,
        retry_after_s=None if partial else 1.0,
        partial_side_effects=partial,
    )
    return refuse(failure, spoken=TOOK_TOO_LONG_TO_KNOW if partial else TOOK_TOO_LONG)


def _without_store(tool: Tool, error: StoreUnavailable) -> ToolResult:
    log.error("store_unavailable", tool=tool.id, error=str(error))
    return refuse(Failure(ErrorType.TRANSIENT, STORE_UNAVAILABLE, retryable=True))


def _log_mismatches(tool: Tool, result: ToolResult) -> None:
    """Tells the developer what is wrong with a result. It is used all the same, so that trying the tool can go on."""
    for mismatch in find_mismatches(tool.spec.outputs, result):
        log.error("outputs_mismatch", tool=tool.id, problem=mismatch)


def _unexpected(tool: Tool) -> ToolResult:
    """Makes the result for an unexpected exception. Its traceback goes to the log, never to the model."""
    log.exception("handler_failed", tool=tool.id)
    return _internal(tool)


def _internal(tool: Tool) -> ToolResult:
    failure = Failure(ErrorType.INTERNAL, f"{tool.id} failed unexpectedly.", partial_side_effects=True)
    return refuse(failure, spoken=WENT_WRONG)


def make_context(deps: GateDeps, attempt: Attempt, tool: Tool, caller: Callable[[Attempt], CallTool]) -> Context:
    spec = tool.spec
    session, mode = attempt.session, attempt.mode
    view = session.view(mode)
    granted: Mapping[str, object] = NOTHING_GRANTED
    if spec.uses:
        offers: dict[str, Offer] = {
            **deps.offers,
            Capability.CALL_TOOL: lambda session, tool: caller(attempt),
            Capability.CATALOG: lambda session, tool: attempt.session.snapshot,
        }
        granted = {name: offers[name](view, tool.view) for name in spec.uses}
    return Context(
        session=view,
        tool=tool.view,
        messaging=_Masked(session.messaging) if spec.secrets else session.messaging,
        voice=IN_VOICE if mode is Mode.VOICE else IN_TEXT,
        audio=AUDIO,
        audit=HandlerAudit(deps, attempt),
        clock=deps.clock,
        rng=deps.rng,
        granted=granted,
        clamped=attempt.clamped or NOTHING_GRANTED,
    )


class _Masked:
    """Sends what a tool with secrets sends, without them."""

    __slots__ = ("_messaging",)

    def __init__(self, messaging: Messaging) -> None:
        self._messaging = messaging

    async def send(self, message: Message) -> None:
        await self._messaging.send(map_texts(message, scrub))
