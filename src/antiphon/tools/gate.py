"""The checks that every call passes, in order. A check that returns a result ends the pass."""

from typing import Final

import msgspec
from rapidfuzz import process

from antiphon.storage.base import Confirmation
from antiphon.telemetry.log import get_logger
from antiphon.tools import policy
from antiphon.tools.attempt import Attempt, GateDeps, refuse
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ConfirmationRequest, Failure, ToolResult
from antiphon.tools.running import prepare
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool

DECLINED: Final = "All right, I won't do that."

log = get_logger(__name__)


def not_found(attempt: Attempt) -> ToolResult:
    """Makes the result for an unknown tool, with the closest known one."""
    name = attempt.name
    near = process.extractOne(name, list(attempt.session.snapshot.tools), score_cutoff=70)
    suggestion = f"Did you mean {near[0]}?" if near else "Use only the tools that are listed."
    return refuse(Failure(ErrorType.NOT_FOUND, f"There is no tool called {name!r}.", suggestion=suggestion))


async def check(deps: GateDeps, attempt: Attempt, tool: Tool) -> ToolResult | None:
    """Steps 1 to 6. If none of them refuses, step 7 follows in `running.py`; step 8 in `audit.py` always follows."""
    return (
        await deps.journal.recall(attempt, tool)
        or admit(deps, attempt, tool)
        or (await limit_rate(deps, attempt, tool) if tool.spec.rate_limit is not None else None)
        or budget(attempt, tool)
        or validate(attempt, tool)
        or clamp(attempt, tool)
        or (await confirm(deps, attempt, tool) if is_unconfirmed(attempt, tool) else None)
        or use_prepared(attempt)
    )


def admit(deps: GateDeps, attempt: Attempt, tool: Tool) -> ToolResult | None:
    """Step 2: the tool is allowed in this mode, available, and open to this user."""
    spec, session = tool.spec, attempt.session
    if attempt.mode not in spec.allowed_modes:
        modes = " or ".join(spec.allowed_modes)
        return refuse(Failure(ErrorType.MODE_RESTRICTED, f"{tool.id} only available in {modes} mode"))
    if tool.availability is not None:
        available = session.ledger.available
        if tool.id not in available:
            available[tool.id] = tool.is_available(session.facts(deps.environment))
        if not available[tool.id]:
            return refuse(Failure(ErrorType.NOT_FOUND, f"{tool.id} is not available at the moment."))
    if spec.requires_auth and not session.authenticated:
        return refuse(Failure(ErrorType.AUTH, f"{tool.id} needs a signed-in user."))
    return None


async def limit_rate(deps: GateDeps, attempt: Attempt, tool: Tool) -> ToolResult | None:
    """Also step 2: the user has not called the tool too often. What a person has approved was counted before."""
    limit, user = tool.spec.rate_limit, attempt.session.user
    if limit is None or attempt.approved is not None:
        return None
    wait_s = await deps.limits.admit(user, tool.id, calls=limit.calls, window_s=limit.window_s)
    if wait_s <= 0:
        return None
    message = f"{tool.id} was called too often."
    return refuse(Failure(ErrorType.RATE_LIMIT, message, retryable=True, retry_after_s=round(wait_s, 1)))


def budget(attempt: Attempt, tool: Tool) -> ToolResult | None:
    """Step 3: the call is within the turn's budget and not a loop. What a person has approved is exempt."""
    if attempt.approved is not None:
        return None
    assert attempt.keys is not None
    ledger = attempt.session.ledger
    limits = policy.VOICE_BUDGET if attempt.mode is Mode.VOICE else policy.TEXT_BUDGET
    refusal = ledger.repeat(attempt.keys.fingerprint) or ledger.spend(tool, limits)
    return None if refusal is None else refuse(refusal)


def validate(attempt: Attempt, tool: Tool) -> ToolResult | None:
    """Step 4: the arguments match the schema. Defaults are set on a copy; nothing is coerced or ignored."""
    args = attempt.call.args
    if isinstance(args, dict):
        attempt.args, attempt.defaults = tool.arguments.complete(args)
        if tool.arguments.accepts(attempt.args):
            return None
        args = attempt.args
    problems = tool.arguments.problems(args)
    told = "; ".join(f"{problem['path']}: {problem['message']}" for problem in problems)
    failure = Failure(
        ErrorType.VALIDATION,
        f"Invalid arguments for {tool.id}: {told}",
        suggestion="Correct the arguments and call again; the examples show how.",
        details={"problems": problems, "examples": tool.examples},
    )
    return refuse(failure)


def clamp(attempt: Attempt, tool: Tool) -> ToolResult | None:
    """Step 5: the arguments are limited to what speech can use."""
    if attempt.mode is Mode.VOICE:
        clamped, asked_for = policy.clamp_for_voice(attempt.args)
        # Where the schema demands more than speech can use, the schema wins.
        if asked_for and tool.arguments.accepts(clamped):
            attempt.args, attempt.clamped = clamped, asked_for
    return None


def is_unconfirmed(attempt: Attempt, tool: Tool) -> bool:
    session = attempt.session
    return attempt.approved is None and policy.must_confirm(tool, attempt.args, session.ledger.untrusted, session.heard)


async def confirm(deps: GateDeps, attempt: Attempt, tool: Tool) -> ToolResult:
    """Step 6: the person is asked. Their answer arrives separately (`Executor.resolve`) and then runs the call."""
    assert attempt.keys is not None
    if attempt.keys.fingerprint in attempt.session.ledger.denied:
        return declined()
    prepared = None
    if tool.prepare is not None:
        made = await prepare(deps, attempt, tool)
        if isinstance(made, ToolResult):
            return made
        prepared, attempt.args = made, made.args
    request = await deps.confirmations.ask(attempt, tool, prepared)
    attempt.confirmation = "requested"
    await _tell_client(attempt, request)
    failure = Failure(
        ErrorType.CONFIRMATION_REQUIRED,
        f"This needs the user's confirmation: {request.preview}",
        suggestion="Ask the user. The call runs when they approve it; do not call it again.",
        confirmation_request=request,
    )
    return refuse(failure)


def use_prepared(attempt: Attempt) -> ToolResult | None:
    """Gives an approved call the arguments that were prepared when the person was asked."""
    if attempt.approved is not None and attempt.approved.prepared is not None:
        attempt.args = msgspec.json.decode(attempt.approved.prepared)
    return None


async def confirm_again(deps: GateDeps, attempt: Attempt, tool: Tool, waiting: Confirmation) -> None:
    """Shows a waiting call again to a client that has lost its token, since no store has the token."""
    if validate(attempt, tool) is None:
        clamp(attempt, tool)
        use_prepared(attempt)
        request = await deps.confirmations.reissue(waiting, tool, attempt.args)
        if request is not None:
            await _tell_client(attempt, request)


def declined() -> ToolResult:
    failure = Failure(
        ErrorType.PERMANENT,
        "This was declined, and nothing was done.",
        suggestion="Say in one short sentence that you won't do it. Do not try it again unless you are asked to.",
    )
    return refuse(failure, spoken=DECLINED)


async def _tell_client(attempt: Attempt, request: ConfirmationRequest) -> None:
    """Shows the question to the person. Without a client it stays in the result and in the store."""
    try:
        await attempt.session.messaging.send(request)
    except Exception as error:
        log.warning("confirmation_not_shown", tool=request.tool, error=str(error))
