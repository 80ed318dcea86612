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

LEASE_GRACE_MS: Final = 5_000
"""Added to a tool's time limit before a run without a result is given up: clocks of two nodes may differ."""

FIRST_POLL_S: Final = 0.02
LONGEST_POLL_S: Final = 0.5

log = get_logger(__name__)

INTERRUPTED: Final = ToolResult(
    False, error=Failure(ErrorType.TRANSIENT, "The call was interrupted before it was done.", retryable=True)
)


class Journal:
    """Duplicates in this process share one run through `_running`; those of other processes through the store."""

    def __init__(self, store: CallStore, clock: Clock, new_id: Callable[[], str]) -> None:
        self._store = store
        self._clock = clock
        self._new_id = new_id
        self._running: dict[tuple[str, str], Attempt] = {}

    async def recall(self, attempt: Attempt, tool: Tool) -> ToolResult | None:
        """The result of an earlier or running delivery of this call; None if this one is to go on.

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
        """Writes down that a handler is about to run. A result means that another process was faster."""
        attempt.record = record = self._record(attempt, tool)
        if attempt.unfinished is not None:
            if await self._store.restart(attempt.unfinished, record):
                return None
            other = await self._store.find(record.session_id, record.provider_key, record.hash_key)
        else:
            other = await self._store.start(record)
        return None if other is None else await self._answer(attempt, tool, other)

    async def finish(self, attempt: Attempt, tool: Tool, result: ToolResult, encoded: bytes) -> None:
        """Stores a handler's outcome, as `encode` has made it."""
        if attempt.record is not None:
            finished = msgspec.structs.replace(attempt.record, result=encoded)
        elif result.error is None or not result.error.retryable:
            finished = self._record(attempt, tool, encoded)
        else:
            return
        try:
            await self._store.finish(finished)
        except Exception as error:
            # The handler has run, and its result is told all the same; a later delivery finds "outcome unknown".
            log.error("outcome_not_stored", tool=tool.id, key=attempt.key, error=str(error))

    def release(self, attempt: Attempt, result: ToolResult | None) -> None:
        """Gives the keys up, and the result to those who wait for it."""
        running, session_id = self._running, attempt.session.id
        for key in attempt.looked_up:
            if key is not None and running.get((session_id, key)) is attempt:
                del running[session_id, key]
        if attempt.outcome is not None and not attempt.outcome.done():
            attempt.outcome.set_result(result or INTERRUPTED)

    def _record(self, attempt: Attempt, tool: Tool, result: bytes | None = None) -> CallRecord:
        assert attempt.keys is not None
        provider, content = attempt.looked_up
        now_ms = self._clock.now_ms()
        lease_until_ms = now_ms + tool.spec.timeout_ms + LEASE_GRACE_MS
        return CallRecord(
            self._new_id(),
            attempt.session.id,
            provider,
            content,
            attempt.keys.fingerprint,
            tool.id,
            attempt.turn,
            now_ms,
            lease_until_ms,
            result,
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
        # Shielded: a duplicate that is cancelled must not cancel the future that the others wait for.
        result = await asyncio.shield(owner.outcome)
        attempt.cache_hit = True
        return _repeatable(result)

    async def _repeat(self, attempt: Attempt, tool: Tool, record: CallRecord) -> ToolResult | None:
        result = await self._answer(attempt, tool, record)
        keys = attempt.keys
        if keys is None or not attempt.cache_hit or (keys.provider and record.provider_key == keys.provider):
            return result
        # Under a new id it may be a model that goes round in a circle, so it counts as one more of the same.
        refusal = attempt.session.ledger.repeat(keys.fingerprint)
        return result if refusal is None else ToolResult(False, error=refusal)

    async def _answer(self, attempt: Attempt, tool: Tool, record: CallRecord) -> ToolResult | None:
        """What an existing record says to a new delivery of its call."""
        waited_s, pause_s = 0.0, FIRST_POLL_S
        while record.result is None:
            if self._clock.now_ms() >= record.lease_until_ms:
                if not tool.spec.idempotent:
                    return _outcome_unknown(tool)
                attempt.unfinished = record
                return None
            if waited_s * 1000 >= deadline_ms(tool, attempt.mode):
                return _still_running(tool)
            await asyncio.sleep(pause_s)
            waited_s += pause_s
            pause_s = min(pause_s * 2, LONGEST_POLL_S)
            found = await self._store.find(record.session_id, record.provider_key, record.hash_key)
            if found is None:
                return _outcome_unknown(tool)
            record = found
        attempt.cache_hit = True
        return msgspec.json.decode(record.result, type=ToolResult)


def encode(result: ToolResult) -> bytes:
    """A result as it is stored. Raises if a handler's data is no JSON."""
    return msgspec.json.encode(_repeatable(result))


def _repeatable(result: ToolResult) -> ToolResult:
    """A result without its intents, which are never applied a second time, and without the meta of its first pass."""
    if not result.intents and result.meta is None:
        return result
    return ToolResult(result.ok, result.data, result.error, (), result.spoken, result.flyout, result.citations)


def _looked_up(keys: Keys, tool: Tool) -> tuple[str | None, str | None]:
    """Both keys for a tool that writes: one provider delivers a call twice under new ids. For a reader, the better."""
    if tool.announced or keys.provider is None:
        return keys.provider, keys.content
    return keys.provider, None


def _outcome_unknown(tool: Tool) -> ToolResult:
    failure = Failure(
        ErrorType.CONFLICT,
        f"An earlier run of {tool.id} was started and its outcome is not known, so it is not run again.",
        suggestion="Find out whether it took effect before asking for it anew.",
        details={"outcome": "unknown"},
        idempotency_required=True,
        partial_side_effects=True,
    )
    return ToolResult(False, error=failure)


def _still_running(tool: Tool) -> ToolResult:
    failure = Failure(
        ErrorType.TRANSIENT,
        f"{tool.id} is still running for an earlier delivery of this call.",
        retryable=True,
        retry_after_s=1.0,
    )
    return ToolResult(False, error=failure)
