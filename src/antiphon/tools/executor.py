"""The executor: the only gate to a tool, for every caller."""

import asyncio
import math
import secrets
from collections.abc import Callable, Coroutine, Mapping, Set
from itertools import count
from random import SystemRandom
from typing import Any, Final
from uuid import uuid4

from opentelemetry.trace import Status, StatusCode, Tracer

from antiphon.clock import Clock
from antiphon.storage.base import AuditLine, AuditStore, CallRecord, CallStore, Confirmation, ConfirmationStore
from antiphon.storage.limits import LimitStore
from antiphon.telemetry.log import get_logger
from antiphon.telemetry.tracing import find_tracer
from antiphon.tools import policy
from antiphon.tools.affirmation import verdict
from antiphon.tools.attempt import Attempt, GateDeps, refuse
from antiphon.tools.audit import AuditLog, record, record_answer
from antiphon.tools.call import ToolCall, fingerprint
from antiphon.tools.confirm import Confirmations, Decision, call_of, hash_of
from antiphon.tools.context import CallTool, Offer
from antiphon.tools.errors import ErrorType, RegistryChanged, RegistryError
from antiphon.tools.gate import check, confirm_again, declined, not_found
from antiphon.tools.journal import Journal
from antiphon.tools.policy import Ledger
from antiphon.tools.prefetch import prefetch
from antiphon.tools.registry import DEVELOPMENT, Registry, Snapshot
from antiphon.tools.result import Failure, ToolResult
from antiphon.tools.running import run
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Capability, Mode
from antiphon.tools.tool import Tool

ALWAYS_OFFERED: Final[frozenset[str]] = frozenset({Capability.CALL_TOOL, Capability.CATALOG})
CLOSE_S: Final = 30.0
"""How long a process that ends waits for running actions."""
CANCEL_S: Final = 1.0
"""How long a cancelled action may take to clean up."""

log = get_logger(__name__)


class Executor:
    """One executor serves all the sessions of a process."""

    def __init__(
        self,
        registry: Registry,
        *,
        calls: CallStore,
        confirmations: ConfirmationStore,
        audit: AuditStore,
        limits: LimitStore,
        clock: Clock,
        environment: str = "production",
        keep_arguments: bool = False,
        offers: Mapping[str, Offer] | None = None,
        watch_calls: Callable[[AuditLine], None] = lambda line: None,
    ) -> None:
        self.registry = registry
        self._deps = GateDeps(
            journal=Journal(calls, clock, _numbered(uuid4().hex)),
            confirmations=Confirmations(confirmations, clock, lambda: secrets.token_urlsafe(24)),
            audit=AuditLog(audit, keep_arguments=keep_arguments, watch=watch_calls),
            limits=limits,
            clock=clock,
            rng=SystemRandom(),
            environment=environment,
            offers=dict(offers or {}),
        )
        self._tracer = find_tracer("antiphon.tools")
        self._actions: set[asyncio.Task[ToolResult]] = set()
        """Runs that outlive their caller if it is interrupted."""
        self.check_capabilities(registry.snapshot())

    def execute(self, call: ToolCall, session: ToolSession) -> Coroutine[Any, Any, ToolResult]:
        """Passes a call through the gate. It never raises because of a model or a handler.

        Cancelling it (the user has interrupted) cancels a tool that can be repeated; an action is let finish, and
        its result is put into `session.unheard` for the next turn.
        """
        return self._execute(call, session)

    async def prefetch(self, call: ToolCall, session: ToolSession) -> ToolResult | None:
        """Runs a call ahead of time if it has no side effects; None otherwise. If the same call is made within two
        seconds, it gets this result."""
        return await prefetch(self._deps, Attempt(call, session, self._deps.clock.monotonic()))

    async def decide(self, token: str, approved: bool, session: ToolSession) -> Decision | None:
        """Takes the person's answer to a confirmation request, which uses it up. None if there is nothing to answer."""
        taken = await self._deps.confirmations.take(hash_of(token), session)
        if taken is None:
            record_answer(self._deps, session, None, "expired")
            return None
        return Decision(taken, approved)

    async def questions_of(self, session: ToolSession, turn: int) -> list[str]:
        """Returns the token hashes of the questions that were asked in a turn and still wait for an answer."""
        waiting = await self._deps.confirmations.pending(session)
        return [each.token_hash for each in waiting if each.turn == turn]

    async def withdraw(self, token_hash: str, session: ToolSession) -> None:
        """Withdraws a question: nothing can approve its call any more."""
        taken = await self._deps.confirmations.take(token_hash, session)
        if taken is not None:
            record_answer(self._deps, session, taken, "withdrawn")

    async def hear(self, text: str, session: ToolSession, turn: int | None = None) -> Decision | None:
        """Takes the user's words in a turn, by default the current one, as an answer to the previous turn's question.

        None if they are not a plain yes or no to one question.
        """
        session.heard.append(text)
        answer = verdict(text)
        if answer is None:
            return None
        turn = session.turn if turn is None else turn
        confirmations = self._deps.confirmations
        asked = await confirmations.asked_before(session, turn)
        taken = None if asked is None else await confirmations.take(asked.token_hash, session)
        if taken is None:
            return None
        return Decision(taken, answer, await confirmations.take_repeats(taken, session, turn))

    async def hear_any(self, text: str, session: ToolSession) -> Decision | None:
        """Takes the user's words as an answer to the only question that the session has asked, in whichever turn.

        For a session whose turns are not counted. None if the words are not a plain yes or no to one question.
        """
        answer = verdict(text)
        if answer is None:
            return None
        taken = await self._deps.confirmations.take_only(session)
        return None if taken is None else Decision(taken, answer)

    async def carry_out(self, decision: Decision, session: ToolSession) -> ToolResult:
        """Runs an approved call as it was shown. A declined one is not run."""
        if decision.approved:
            return await self._execute(decision.call, session, approved=decision.confirmation)
        taken = decision.confirmation
        session.ledger.denied.add(fingerprint(taken.tool, taken.args))
        record_answer(self._deps, session, taken, "denied")
        return declined()

    async def resolve(self, token: str, approved: bool, session: ToolSession) -> ToolResult:
        """Does `decide` and `carry_out` in one step."""
        decision = await self.decide(token, approved, session)
        if decision is None:
            failure = Failure(
                ErrorType.NOT_FOUND,
                "That confirmation is unknown, used or expired; nothing was done.",
                suggestion="Ask for the action again.",
            )
            return refuse(failure)
        return await self.carry_out(decision, session)

    async def confirm_again(self, session: ToolSession) -> None:
        """Asks again about every call that waits for this person. Each gets a new token, which replaces the old one.

        For a session that comes from another process: tokens are in no store, so the client may not have them.
        """
        for waiting in await self._deps.confirmations.pending(session):
            attempt = Attempt(call_of(waiting), session, self._deps.clock.monotonic(), approved=waiting)
            assert attempt.tool is not None
            await confirm_again(self._deps, attempt, attempt.tool, waiting)

    async def find_left(self, session: ToolSession) -> None:
        """Finds the calls that were running when another process last had the session, and sets `session.left`."""
        session.left = {record.id: record for record in await self._deps.journal.left_running(session.id)}

    async def await_left(
        self, record: CallRecord, session: ToolSession, *, patience_s: float = math.inf
    ) -> tuple[ToolCall, ToolResult] | None:
        """Returns the outcome of one of `session.left`, which the caller must report; None if it was already reported.

        Its arguments are no longer known. Also None if it is still running after that time.
        """
        result = await self._deps.journal.outcome(record, patience_s=patience_s)
        if result is None or session.left.pop(record.id, None) is None:
            return None
        key = record.provider_key or record.hash_key or record.id
        return ToolCall(key.removeprefix("provider:"), record.tool, {}), result

    def begin_turn(self, session: ToolSession) -> bool:
        """Begins a turn of the user with fresh budgets. The session gets the tools of this process if it came from
        another one, if they were reloaded in development, or if tools of other servers came or went.

        Returns True if the session's tools have changed.
        """
        _log_voice_turn(session)
        session.turn += 1
        session.ledger = Ledger()
        session.state.end_turn()
        return self._repin(session)

    def check_capabilities(self, snapshot: Snapshot) -> None:
        """Raises `RegistryError` for a tool that uses what this server does not offer."""
        offered = {*self._deps.offers, *ALWAYS_OFFERED}
        for tool in snapshot.tools.values():
            missing = [use for use in tool.spec.uses if use not in offered]
            if missing:
                raise RegistryError(
                    f"{tool.id} uses {', '.join(missing)}, which this server does not offer. "
                    f'Remove it from the "uses" of {tool.origin}, or disable the tool with tools.disable.'
                )

    async def aclose(self) -> None:
        """Waits for running actions to finish, at most for `CLOSE_S`, and makes the audit durable.

        An action that takes longer is cancelled. Its record has no result then, as after a crash, so that a later
        delivery and a resumed session learn that its outcome is unknown.
        """
        if self._actions:
            _, late = await asyncio.wait(set(self._actions), timeout=CLOSE_S)
            await self._cancel(late)
        self._deps.journal.aclose()
        await self._deps.audit.aclose()

    async def _cancel(self, late: Set[asyncio.Task[ToolResult]]) -> None:
        if not late:
            return
        log.warning("actions_cancelled", count=len(late), waited_s=CLOSE_S)
        for task in late:
            task.cancel()
        await asyncio.wait(late, timeout=CANCEL_S)

    def _execute(
        self, call: ToolCall, session: ToolSession, depth: int = 0, approved: Confirmation | None = None
    ) -> Coroutine[Any, Any, ToolResult]:
        attempt = Attempt(call, session, self._deps.clock.monotonic(), depth=depth, approved=approved)
        return self._pass(attempt) if self._tracer is None else self._trace(attempt, self._tracer)

    async def _trace(self, attempt: Attempt, tracer: Tracer) -> ToolResult:
        # A model may make up any number of names.
        name = "tool" if attempt.tool is None else f"tool {attempt.name}"
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": attempt.name}
        with tracer.start_as_current_span(name, attributes=attributes) as span:
            result = await self._pass(attempt)
            span.set_attributes(
                {
                    "session.id": attempt.session.id,
                    "antiphon.gate.turn": attempt.turn,
                    "antiphon.outcome": "ok" if result.error is None else result.error.type,
                    "antiphon.gate": _decision(attempt, result),
                }
            )
            if result.error is not None and attempt.ran:
                span.set_status(Status(StatusCode.ERROR, result.error.type))
            return result

    async def _pass(self, attempt: Attempt) -> ToolResult:
        if attempt.session.pinned_version != self.registry.version:
            self._allow_other_version(attempt.session)
        deps, tool = self._deps, attempt.tool
        if tool is None:
            return record(deps, attempt, not_found(attempt))
        result: ToolResult | None = None
        try:
            refusal = await check(deps, attempt, tool)
            if refusal is not None:
                result = record(deps, attempt, refusal)
            elif tool.runs_to_the_end:
                result = await self._run_to_the_end(attempt, tool)
            else:
                result = record(deps, attempt, await run(deps, attempt, tool, self._caller))
        except Exception:
            result = record(deps, attempt, _gate_failed(tool))
        finally:
            deps.journal.release(attempt, result)
        return result

    async def _run_to_the_end(self, attempt: Attempt, tool: Tool) -> ToolResult:
        """Runs an action in a task of its own, so that an interruption of the turn cannot leave it half done."""
        task = asyncio.create_task(self._act(attempt, tool))
        self._actions.add(task)
        task.add_done_callback(self._actions.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            attempt.session.going_on[task] = attempt.turn
            task.add_done_callback(lambda done: _keep_for_next_turn(attempt, done))
            raise

    async def _act(self, attempt: Attempt, tool: Tool) -> ToolResult:
        result = record(self._deps, attempt, await run(self._deps, attempt, tool, self._caller))
        if attempt.ran and tool.spec.writes:
            # A change must be in the audit before it is reported.
            await self._deps.audit.flush()
        return result

    def _caller(self, attempt: Attempt) -> CallTool:
        """Makes `context.call_tool` for the handler of this attempt."""

        async def call_tool(name: str, args: Mapping[str, Any]) -> ToolResult:
            if attempt.depth + 1 >= policy.MAX_DEPTH:
                message = f"Tools may call each other at most {policy.MAX_DEPTH} levels deep."
                return refuse(Failure(ErrorType.PERMANENT, message))
            # The same handler makes the same calls in a replay, so their place in it identifies them.
            call = ToolCall(f"{attempt.key}/{attempt.children}", name, dict(args), occurrence=attempt.children)
            attempt.children += 1
            return await self._execute(call, attempt.session, attempt.depth + 1)

        return call_tool

    def _allow_other_version(self, session: ToolSession) -> None:
        """Raises `RegistryChanged` in development, where files that change in the middle of a turn are an error."""
        is_pinned_here = session.pinned_version == session.snapshot.version
        if is_pinned_here and session.snapshot.built_version == self.registry.built_version:
            return
        if self._deps.environment == DEVELOPMENT:
            raise RegistryChanged(
                f"Session {session.id} has tools {session.pinned_version}, this process has "
                f"{self.registry.version}. Restart the session to use the new ones."
            )

    def _repin(self, session: ToolSession) -> bool:
        version = self.registry.version
        if session.snapshot.version != version:
            is_same_build = session.snapshot.built_version == self.registry.built_version
            if self._deps.environment != DEVELOPMENT and not is_same_build:
                log.warning("tools_changed", session=session.id, old=session.snapshot.version, new=version)
                return False
            session.pin(self.registry.snapshot())
        if session.pinned_version == version:
            return False
        log.info("session_repinned", session=session.id, old=session.pinned_version, new=version)
        session.pinned_version = version
        return True


def _decision(attempt: Attempt, result: ToolResult) -> str:
    """Returns what the gate has decided about a call, for its span."""
    if attempt.cache_hit:
        return "recalled"
    if attempt.ran:
        return "ran"
    asked = result.error is not None and result.error.type is ErrorType.CONFIRMATION_REQUIRED
    return "asked" if asked else "refused"


def _numbered(prefix: str) -> Callable[[], str]:
    """Makes ids that no other process makes. A new UUID for each call would cost a tenth of the gate's time."""
    numbers = count()
    return lambda: f"{prefix}-{next(numbers)}"


def _gate_failed(tool: Tool) -> ToolResult:
    """Makes the result if a store is down or the gate fails: the model gets a failure, the log gets the traceback."""
    log.exception("gate_failed", tool=tool.id)
    return refuse(Failure(ErrorType.TRANSIENT, f"{tool.id} cannot be run at the moment.", retryable=True))


def _keep_for_next_turn(attempt: Attempt, done: asyncio.Task[ToolResult]) -> None:
    attempt.session.going_on.pop(done, None)
    if not done.cancelled() and done.exception() is None:
        attempt.session.unheard.append((attempt.call, done.result()))


def _log_voice_turn(session: ToolSession) -> None:
    ledger = session.ledger
    if session.mode is Mode.VOICE and (ledger.calls or ledger.refused):
        log.info(
            "voice_turn_tools",
            session=session.id,
            turn=session.turn,
            calls=ledger.calls,
            retrieval_calls=ledger.retrieval_calls,
            refused=ledger.refused,
            tool_ms=round(ledger.tool_ms, 1),
        )
