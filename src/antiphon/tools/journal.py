"""Idempotency: which calls have run, which are running, and which were cut off by a crash."""

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from antiphon.clock import Clock
from antiphon.storage.base import CallRecord, CallStore
from antiphon.telemetry.log import get_logger
from antiphon.tools.attempt import Attempt
from antiphon.tools.call import Keys, UnusableArguments, canonical
from antiphon.tools.errors import ErrorType
from antiphon.tools.policy import deadline_ms
from antiphon.tools.result import Failure, ToolResult
from antiphon.tools.tool import Tool

LEASE_MS: Final = 3_000
"""How long a run counts as alive if its lease is not renewed."""
RENEWED_EVERY_S: Final = 1.0
"""How often a process renews the leases of its runs. Shorter runs cost nothing."""
MAX_CLOCK_SKEW_MS: Final = 5_000
"""How far the clocks of two nodes may differ. A lease that ended longer ago is not watched."""

FIRST_POLL_S: Final = 0.02
LONGEST_POLL_S: Final = 0.25

UNKNOWN: Final = (
    "I was interrupted while doing that, and I don't know whether it worked. Please check before asking again."
)
UNKNOWN_LATER: Final = (
    "Something you asked me to do earlier was interrupted, and I don't know whether it worked. "
    "Please check before asking again."
)

log = get_logger(__name__)


class Journal:
    """Duplicates in this process share one run through `_running`; those of other processes through the store."""

    def __init__(self, store: CallStore, clock: Clock, new_id: Callable[[], str]) -> None:
        self._store = store
        self._clock = clock
        self._new_id = new_id
        self._running: dict[tuple[str, str], Attempt] = {}
        self._held: dict[str, CallRecord] = {}
        """Unfinished runs of this process, whose leases are renewed."""
        self._timer: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None

    async def recall(self, attempt: Attempt, tool: Tool) -> ToolResult | None:
        """Returns the result of an earlier or running delivery of this call; None if this one should continue.

        From here until `release`, the attempt owns its keys in this process.
        """
        try:
            attempt.keys = keys = Keys(attempt.call, canonical(attempt.call.args), attempt.turn)
        except UnusableArguments as error:
            return ToolResult(False, error=Failure(ErrorType.VALIDATION, f"{tool.id}: {error}."))
        session_id = attempt.session.id
        while True:
            attempt.looked_up = provider, content = _looked_up(keys, tool)
            owner = self._owner(session_id, provider, content) if self._running else None
            if owner is None:
                self._claim(attempt, provider, content)
                found = await self._store.find(session_id, provider, content)
                if found is None:
                    return None
                if found.fingerprint == keys.fingerprint:
                    return await self._repeat(attempt, tool, found)
                self.release(attempt, None)
            elif owner.keys is not None and owner.keys.fingerprint == keys.fingerprint:
                return await self._share(owner, attempt)
            # The provider has used this id for another call, so it identifies neither.
            keys.provider = None

    async def begin(self, attempt: Attempt, tool: Tool) -> ToolResult | None:
        """Records that a handler is about to run. A result means that another process was faster."""
        attempt.record = record = self._record(attempt, tool)
        if attempt.unfinished is not None:
            if await self._store.restart(attempt.unfinished, record):
                self._hold(record)
                return None
            other = await self._store.find(record.session_id, record.provider_key, record.hash_key)
        else:
            other = await self._store.start(record)
        if other is None:
            self._hold(record)
            return None
        return await self._answer(attempt, tool, other)

    async def finish(self, attempt: Attempt, tool: Tool, result: ToolResult, encoded: bytes) -> None:
        """Stores a handler's outcome as encoded by `encode`."""
        if attempt.record is not None:
            finished = msgspec.structs.replace(attempt.record, result=encoded)
        elif result.error is None or not result.error.retryable:
            finished = self._record(attempt, tool, encoded)
        else:
            return
        try:
            await self._store.finish(finished)
        except Exception as error:
            # The handler has run, so its result is still returned; a later delivery finds "outcome unknown".
            log.error("outcome_not_stored", tool=tool.id, key=attempt.key, error=str(error))

    def end(self, attempt: Attempt) -> None:
        """Stops renewing the lease of a run that is over, whether or not its outcome is stored."""
        if attempt.record is not None:
            self._held.pop(attempt.record.id, None)

    def aclose(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    async def left_running(self, session_id: str) -> list[CallRecord]:
        """Lists the session's runs without an outcome, except those that another of them has called."""
        unfinished = await self._store.unfinished(session_id)
        callers = {f"provider:{record.provider_key or record.hash_key}" for record in unfinished}
        return [record for record in unfinished if (record.provider_key or "").rpartition("/")[0] not in callers]

    async def outcome(self, record: CallRecord, *, patience_s: float) -> ToolResult | None:
        """Waits for the outcome of a run of another process; None if it is still running after that time."""
        watched = await self._watch(record, patience_s)
        if watched is None:
            return None
        result = await self._give_up(watched) if watched.result is None else _decode(watched.result)
        return msgspec.structs.replace(result, spoken=UNKNOWN_LATER) if result.spoken == UNKNOWN else result

    def release(self, attempt: Attempt, result: ToolResult | None) -> None:
        """Releases the keys and hands the result to waiting duplicates."""
        running, session_id = self._running, attempt.session.id
        for key in attempt.looked_up:
            if key is not None and running.get((session_id, key)) is attempt:
                del running[session_id, key]
        if attempt.outcome is not None and not attempt.outcome.done():
            attempt.outcome.set_result(result or _interrupted(attempt))

    def _record(self, attempt: Attempt, tool: Tool, result: bytes | None = None) -> CallRecord:
        assert attempt.keys is not None
        provider, content = attempt.looked_up
        now_ms = self._clock.now_ms()
        return CallRecord(
            id=self._new_id(),
            session_id=attempt.session.id,
            provider_key=provider,
            hash_key=content,
            fingerprint=attempt.keys.fingerprint,
            tool=tool.id,
            turn=attempt.turn,
            started_ms=now_ms,
            lease_until_ms=now_ms + LEASE_MS,
            result=result,
        )

    def _owner(self, session_id: str, provider: str | None, content: str | None) -> Attempt | None:
        owner = None if provider is None else self._running.get((session_id, provider))
        if owner is None and content is not None:
            owner = self._running.get((session_id, content))
        return owner

    def _claim(self, attempt: Attempt, provider: str | None, content: str | None) -> None:
        if provider is not None:
            self._running[attempt.session.id, provider] = attempt
        if content is not None:
            self._running[attempt.session.id, content] = attempt

    async def _share(self, owner: Attempt, attempt: Attempt) -> ToolResult:
        if owner.outcome is None:
            owner.outcome = asyncio.get_running_loop().create_future()
        # Shielded, because a cancelled duplicate must not cancel the future that the others wait for.
        result = await asyncio.shield(owner.outcome)
        attempt.cache_hit = True
        return _repeatable(result)

    async def _repeat(self, attempt: Attempt, tool: Tool, record: CallRecord) -> ToolResult | None:
        result = await self._answer(attempt, tool, record)
        keys = attempt.keys
        if keys is None or not attempt.cache_hit or (keys.provider and record.provider_key == keys.provider):
            return result
        # Under a new id it may be a model in a loop, so it counts as a repeated call.
        refusal = attempt.session.ledger.repeat(keys.fingerprint)
        return result if refusal is None else ToolResult(False, error=refusal)

    async def _answer(self, attempt: Attempt, tool: Tool, record: CallRecord) -> ToolResult | None:
        """Answers a new delivery of a call from its existing record."""
        watched = await self._watch(record, deadline_ms(tool, attempt.mode) / 1000)
        if watched is None:
            return _still_running(tool)
        # This delivery reports the outcome, so no other one has to.
        attempt.session.left.pop(watched.id, None)
        if watched.result is None and tool.spec.idempotent:
            attempt.unfinished = watched
            return None
        if watched.result is None:
            return await self._give_up(watched)
        attempt.cache_hit = True
        return _decode(watched.result)

    async def _watch(self, record: CallRecord, patience_s: float) -> CallRecord | None:
        """Waits for the outcome of a run. A record without an outcome means that its owner is gone; None means timeout.

        An owner is alive as long as it renews its lease, which can be seen without trusting its clock.
        """
        waited_s = unrenewed_s = 0.0
        pause_s = FIRST_POLL_S
        while record.result is None:
            is_over = self._clock.now_ms() >= record.lease_until_ms + MAX_CLOCK_SKEW_MS
            if is_over or unrenewed_s * 1000 >= LEASE_MS:
                return record
            if waited_s >= patience_s:
                return None
            await asyncio.sleep(pause_s)
            waited_s += pause_s
            unrenewed_s += pause_s
            pause_s = min(pause_s * 2, LONGEST_POLL_S)
            found = await self._store.find(record.session_id, record.provider_key, record.hash_key)
            if found is None:
                return record
            if found.lease_until_ms != record.lease_until_ms:
                unrenewed_s = 0.0
            record = found
        return record

    async def _give_up(self, record: CallRecord) -> ToolResult:
        """Stores that an outcome is unknown, to report it once. An owner that is alive after all replaces it."""
        unknown = _outcome_unknown(record.tool)
        if not await self._store.restart(record, msgspec.structs.replace(record, result=encode(unknown))):
            found = await self._store.find(record.session_id, record.provider_key, record.hash_key)
            if found is not None and found.result is not None:
                return _decode(found.result)
        return unknown

    def _hold(self, record: CallRecord) -> None:
        self._held[record.id] = record
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(RENEWED_EVERY_S, self._renew_held)

    def _renew_held(self) -> None:
        self._timer = None
        if self._held:
            self._timer = asyncio.get_running_loop().call_later(RENEWED_EVERY_S, self._renew_held)
            if self._renewing is None or self._renewing.done():
                self._renewing = asyncio.create_task(self._renew(list(self._held.values())))

    async def _renew(self, records: list[CallRecord]) -> None:
        try:
            await self._store.renew(records, self._clock.now_ms() + LEASE_MS)
        except Exception as error:
            log.warning("call_leases_not_renewed", calls=len(records), error=str(error))


def encode(result: ToolResult) -> bytes:
    """Encodes a result for the store. Raises if a handler's data is not JSON."""
    return msgspec.json.encode(_repeatable(result))


def _decode(result: bytes) -> ToolResult:
    return msgspec.json.decode(result, type=ToolResult)


def _repeatable(result: ToolResult) -> ToolResult:
    """Strips a result of its intents, which are never applied twice, and of the meta of its first pass."""
    if not result.intents and result.meta is None:
        return result
    return msgspec.structs.replace(result, intents=(), meta=None)


def _looked_up(keys: Keys, tool: Tool) -> tuple[str | None, str | None]:
    """Returns both keys for a tool that writes, since providers may repeat calls under new ids; else the better one."""
    if tool.announced or keys.provider is None:
        return keys.provider, keys.content
    return keys.provider, None


def _outcome_unknown(tool_id: str) -> ToolResult:
    failure = Failure(
        ErrorType.CONFLICT,
        f"An earlier run of {tool_id} was started and its outcome is not known, so it is not run again.",
        suggestion="Find out whether it took effect before you call it again.",
        details={"outcome": "unknown"},
        idempotency_required=True,
        partial_side_effects=True,
    )
    return ToolResult(False, error=failure, spoken=UNKNOWN)


def _interrupted(attempt: Attempt) -> ToolResult:
    """Makes the result for those who have waited for a pass that was cancelled. An action goes on without it."""
    if attempt.ran and attempt.tool is not None and attempt.tool.runs_to_the_end:
        return _outcome_unknown(attempt.name)
    failure = Failure(ErrorType.TRANSIENT, "The call was interrupted before it was done.", retryable=True)
    return ToolResult(False, error=failure)


def _still_running(tool: Tool) -> ToolResult:
    failure = Failure(
        ErrorType.TRANSIENT,
        f"{tool.id} is still running for an earlier delivery of this call.",
        retryable=True,
        retry_after_s=1.0,
        partial_side_effects=tool.runs_to_the_end,
    )
    return ToolResult(False, error=failure)
