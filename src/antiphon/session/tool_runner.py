"""Runs the tools of a session: each call goes through the gate, and the client is told before and after it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import Context
from functools import partial
from typing import Any, Final

import msgspec

from antiphon.clock import Clock
from antiphon.models.live import ToolAnswer
from antiphon.protocol import codec
from antiphon.protocol.server_messages import (
    ConfirmationResolved,
    Flyout,
    FlyoutType,
    Outcome,
    ToolCall,
    ToolResult,
    Transcript,
)
from antiphon.security.quota import Account, Kind, Quota
from antiphon.session.events import Work
from antiphon.session.messaging import ClientMessages
from antiphon.session.outbox import Outbox, is_speech
from antiphon.storage.base import CallRecord
from antiphon.storage.sessions import SentMessages
from antiphon.tools import call as tool_call
from antiphon.tools.attempt import refuse
from antiphon.tools.confirm import Decision
from antiphon.tools.errors import ErrorType
from antiphon.tools.executor import Executor
from antiphon.tools.policy import NEVER_REFUSED, VOICE_BUDGET
from antiphon.tools.result import Citation, Failure, IntentType
from antiphon.tools.result import ToolResult as Result
from antiphon.tools.session import ToolSession

QuotaCharge = Callable[[], float]
"""Charges one call to the quota of the caller: the seconds to wait, 0 if the call may run."""

CANCELLED: Final = {"error": {"type": "CANCELLED", "message": "The result was no longer needed."}}
"""What a client is shown of a call that the model has cancelled."""

RECENT_TURNS: Final = 8
"""How many turns back it is remembered which turn of the tools a turn was."""


def charge_to(quota: Quota, account: Account, clock: Clock) -> QuotaCharge:
    return lambda: quota.take(Kind.TOOL_CALL, account, 1, clock.monotonic())


class ToolRunner:
    def __init__(
        self,
        executor: Executor,
        session: ToolSession,
        outbox: Outbox,
        client: ClientMessages,
        post: Callable[[Work], None],
    ) -> None:
        self._executor = executor
        self._session = session
        self._outbox = outbox
        self._client = client
        self._post = post
        self._tasks: set[asyncio.Task[None]] = set()
        self._runs: dict[str, asyncio.Task[ToolAnswer]] = {}
        """The calls under way that have a provider's id, by which they can be cancelled."""
        self._watchers: set[asyncio.Task[None]] = set()
        """Tasks that wait for calls that another process runs. An interruption does not end them."""
        self.charge: QuotaCharge = lambda: 0.0
        self.context: Callable[[], Context | None] = lambda: None
        """Returns the context that calls run in, which has the trace of the turn; None for the current one."""
        self.goodbye: tuple[str, str | None] = ("user_request", None)
        """Why a tool has ended the call, and its last words."""
        self._cited: list[Citation] = []
        """The sources of the results of one turn."""
        self._cited_turn = 0
        self.approved: dict[str, Any] = {}
        """The arguments of the calls that were approved, by the ids under which they are shown."""
        self._told: list[ToolCall] = []
        """Calls of one turn that an earlier process has told the client of, and not the results."""
        self._told_turn = 0
        self._turns: dict[str, int] = {}
        """The numbers that the newest turns have for the gate, by their ids."""
        self._completed_turn = 0
        """The number of the turn whose request the user has completed in the turn under way; 0 if there is none."""
        self._void: list[str] = []
        """The token hashes of the questions that were asked for the first words of that request. They are withdrawn
        when something is called for the whole."""

    def citations(self) -> Sequence[Citation]:
        """Returns the sources of the results of the turn under way, or of the last one."""
        return self._cited if self._cited_turn == self._session.turn else ()

    def begin_turn(self, turn: str) -> bool:
        """A turn of the user begins: what is called from now on belongs to it. Returns whether the tools changed."""
        has_new_tools = self._executor.begin_turn(self._session)
        self._completed_turn, self._void = 0, []
        self.note_turn(turn)
        return has_new_tools

    async def complete(self, turn: str) -> None:
        """The turn under way completes the request of this one, or continues it."""
        self._session.ledger.renew()
        self._completed_turn = self._turns.get(turn, 0)
        self._void = await self._executor.questions_of(self._session, self._completed_turn)

    @property
    def is_acting_for_completed(self) -> bool:
        """Whether something is still being done for the first words of a request that the user has completed."""
        return self._completed_turn in self._session.going_on.values()

    def start_after_actions(self, done: Work) -> None:
        """Does something in the mailbox once what is being done for those words is done."""

        async def wait() -> None:
            while going_on := [task for task, turn in self._session.going_on.items() if turn == self._completed_turn]:
                await asyncio.wait(going_on)
            self._post(done)

        self._start(wait())

    def note_turn(self, turn: str) -> None:
        """The turn has the gate's number of the turn under way."""
        self._turns.pop(turn, None)
        self._turns[turn] = self._session.turn
        for old in list(self._turns)[:-RECENT_TURNS]:
            del self._turns[old]

    def restore(self, sent: SentMessages) -> None:
        """The turn that another process has left is about to begin: the client was told of some calls of it."""
        for _, text in sent:
            match codec.decode_server(text) if not is_speech(text) else None:
                case Transcript(is_final=True):
                    self._told.clear()
                case ToolCall() as call:
                    self._told.append(call)
                case ToolResult(id=id):
                    self._told = [call for call in self._told if call.id != id]
        self._told_turn = self._session.turn + 1

    def start(self, calls: Sequence[tool_call.ToolCall], done: Callable[[list[ToolAnswer]], Awaitable[None]]) -> None:
        """All calls of one model message at once, beside the mailbox; what came of them comes into it."""
        shown = [(call, self._show(call)) for call in calls]
        self._start(self._run_all(shown, done))

    def start_decided(self, decision: Decision, done: Callable[[ToolAnswer], Awaitable[None]]) -> None:
        """Runs a call that the person has approved, beside the mailbox. A declined one only gets its answer."""

        async def run() -> None:
            answer = await self._carry_out(decision)

            async def tell() -> None:
                await done(answer)

            self._post(tell)

        self._start(run())

    async def prefetch(self, calls: Sequence[tool_call.ToolCall]) -> list[ToolAnswer] | None:
        """What the calls of one model message would give, if nobody can tell that they were tried."""
        if len(calls) > VOICE_BUDGET.calls:
            return None
        answers = []
        for call in calls:
            result = await self._executor.prefetch(call, self._session)
            if result is None:
                return None
            answers.append(answer_of(call, result))
        return answers

    def cancel(self) -> None:
        """Stops the calls that can be stopped. An action is let finish, and its result is told in the next turn."""
        for task in self._tasks:
            task.cancel()

    def cancel_calls(self, ids: Sequence[str]) -> None:
        """The model does not want these results any more: they are not sent."""
        for id in ids:
            if id in self._runs:
                self._runs[id].cancel()

    async def stop(self) -> None:
        tasks = [*self._tasks, *self._watchers]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def watch_left(self, done: Callable[[ToolAnswer], Awaitable[None]]) -> None:
        """Waits, beside the mailbox, for what came of calls that another process has left running."""
        if not self._watchers:
            for record in list(self._session.left.values()):
                task = asyncio.create_task(self._await_left(record, done))
                self._watchers.add(task)
                task.add_done_callback(self._watchers.discard)

    async def _await_left(self, record: CallRecord, done: Callable[[ToolAnswer], Awaitable[None]]) -> None:
        left = await self._executor.await_left(record, self._session)
        if left is not None:
            answer = self._tell(*left)

            async def tell() -> None:
                await done(answer)

            self._post(tell)

    def take_late(self) -> list[ToolAnswer]:
        """Results of actions that went on when their turn was interrupted."""
        unheard, self._session.unheard = self._session.unheard, []
        return [self._tell(call, result) for call, result in unheard]

    def take_late_of_completed(self) -> list[ToolAnswer]:
        """Results of those that were done for the first words of the request that the user has completed."""
        unheard, self._session.unheard = self._session.unheard, []
        late = []
        for call, result in unheard:
            if result.meta is not None and result.meta.turn == self._completed_turn:
                late.append(self._tell(call, result))
            else:
                self._session.unheard.append((call, result))
        return late

    async def hear(self, text: str, turn: str) -> Decision | None:
        """What the user's words in this turn decide, if they are a plain yes or no. A yes is still to be run."""
        decision = await self._executor.hear(text, self._session, self._turns.get(turn))
        if decision is not None:
            self._client.resolve(decision)
        return decision

    async def decide(self, token: str, approved: bool) -> Decision | None:
        """The person's answer by a button; None if there is no such question. A yes is still to be run."""
        decision = await self._executor.decide(token, approved, self._session)
        if decision is None:
            # It may be the token of a question of another session, which still waits.
            self._outbox.send(ConfirmationResolved(token, Outcome.EXPIRED), secret=True)
            return None
        self._client.resolve(decision, token)
        if not approved:
            await self._executor.carry_out(decision, self._session)
        return decision

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, context=self.context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry_out(self, decision: Decision) -> ToolAnswer:
        result = await self._executor.carry_out(decision, self._session)
        # The model's own id has its answer already, that the person must be asked. This run gets another.
        call = msgspec.structs.replace(decision.call, id=None)
        if not decision.approved:
            return answer_of(call, result)
        self.approved[decision.shown_id] = call.args
        return self._tell(call, result, decision.shown_id)

    async def _withdraw_void(self) -> None:
        void, self._void = self._void, []
        for token_hash in void:
            await self._executor.withdraw(token_hash, self._session)
            self._client.withdraw(token_hash)

    async def _run_all(
        self, shown: Sequence[tuple[tool_call.ToolCall, str]], done: Callable[[list[ToolAnswer]], Awaitable[None]]
    ) -> None:
        await self._withdraw_void()
        runs = [self._start_run(call, shown_id) for call, shown_id in shown]
        try:
            await asyncio.wait(runs)
        except asyncio.CancelledError:
            for run in runs:
                run.cancel()
            await asyncio.wait(runs)
            raise
        error = next((run.exception() for run in runs if not run.cancelled() and run.exception()), None)
        if error is not None:
            self._post(partial(_fail, error))
            return
        answers = []
        for (call, shown_id), run in zip(shown, runs, strict=True):
            if run.cancelled():
                self._outbox.send(ToolResult(call.name, CANCELLED, shown_id, ok=False))
            else:
                answers.append(run.result())
        if not answers:
            return

        async def tell() -> None:
            await done(answers)

        self._post(tell)

    def _start_run(self, call: tool_call.ToolCall, shown_id: str) -> "asyncio.Task[ToolAnswer]":
        run = asyncio.create_task(self._run(call, shown_id))
        if (id := call.id) is not None:
            self._runs[id] = run
            run.add_done_callback(lambda _: self._runs.pop(id, None))
        return run

    def _show(self, call: tool_call.ToolCall) -> str:
        """Tells the client of a call, unless an earlier process has: the id that it is told by."""
        sent = self._told if self._told_turn == self._session.turn else []
        known = next((each for each in sent if (each.name, each.args) == (call.name, call.args)), None)
        if known is not None and known.id is not None:
            sent.remove(known)
            return known.id
        shown_id = tool_call.shown_id(call, self._session.turn)
        tool = self._session.snapshot.tools.get(call.name)
        self._outbox.send(ToolCall(call.name, call.args, shown_id, None if tool is None else tool.spec.shown_title))
        return shown_id

    async def _run(self, call: tool_call.ToolCall, shown_id: str) -> ToolAnswer:
        result = await run_charged(self._executor, call, self._session, self.charge)
        if any(intent.type == IntentType.END_VOICE_SESSION for intent in result.intents):
            self._note_goodbye(result.data)
        return self._tell(call, result, shown_id)

    def _tell(self, call: tool_call.ToolCall, result: Result, shown_id: str | None = None) -> ToolAnswer:
        """Shows what came of a call to the client, and gives it in the model's words."""
        if shown_id is None:
            turn = self._session.turn if result.meta is None else result.meta.turn
            shown_id = tool_call.shown_id(call, turn)
        answer = answer_of(call, result)
        self._cite(result.citations)
        if result.flyout is not None:
            flyout = result.flyout
            kind = FlyoutType(flyout.flyout_type)
            self._outbox.send(Flyout(kind, flyout.content, flyout.language, flyout.title))
        duration_ms = None if result.meta is None else result.meta.duration_ms
        self._outbox.send(ToolResult(call.name, answer.content, shown_id, result.ok, duration_ms))
        return answer

    def _note_goodbye(self, data: Any) -> None:
        """A tool that ends a call may say why in its data."""
        match data:
            case {"reason": str(reason), "final_message": str() | None as final_message}:
                self.goodbye = (reason, final_message)
            case _ if self._client.farewell is not None:
                self.goodbye = ("blocked", self._client.farewell.message)
            case _:
                self.goodbye = ("user_request", None)

    def _cite(self, citations: Sequence[Citation]) -> None:
        if self._cited_turn != self._session.turn:
            self._cited_turn, self._cited = self._session.turn, []
        self._cited += (citation for citation in citations if citation not in self._cited)


async def _fail(error: BaseException) -> None:
    """Raises the error in the session's own task, which gives the turn up and tells the client."""
    raise error


def answer_of(call: tool_call.ToolCall, result: Result) -> ToolAnswer:
    """Returns the result of a call for the model that made it."""
    return ToolAnswer(call, result.for_model(), result.spoken, result.ok)


async def run_charged(
    executor: Executor, call: tool_call.ToolCall, session: ToolSession, charge: QuotaCharge
) -> Result:
    """Passes a call through the gate, unless the caller's quota is used up."""
    wait_s = 0.0 if call.name in NEVER_REFUSED else charge()
    return _over_quota(wait_s) if wait_s else await executor.execute(call, session)


def _over_quota(wait_s: float) -> Result:
    failure = Failure(
        ErrorType.RATE_LIMIT,
        "Too many tools were used in a short time.",
        retryable=True,
        suggestion="Answer without it, or ask the user to try again in a moment.",
        retry_after_s=wait_s,
    )
    return refuse(failure)
