"""Whether the server can serve now: what `/ready` looks at."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from antiphon.server.desk import STOPPING
from antiphon.storage.base import STORE_UNAVAILABLE, StorageError
from antiphon.telemetry.log import get_logger

CHECK_S: Final = 2.0
"""How long the store may take to write before it counts as unavailable."""
KEEP_S: Final = 1.0
"""How long the outcome of a check holds, so that nobody can make the server write by asking often."""

log = get_logger(__name__)


class Readiness:
    """The problems of the server, a sentence each. Many may ask at the same time; the store is checked once."""

    def __init__(self, check_store: Callable[[], Awaitable[None]], stopping: asyncio.Event) -> None:
        self._check_store = check_store
        self._stopping = stopping
        self._check: asyncio.Task[str | None] | None = None
        self._checked_s = 0.0
        self._reason: str | None = None

    async def find_problems(self) -> list[str]:
        problems = [STOPPING] if self._stopping.is_set() else []
        if not await self._store_is_writable():
            problems.append(STORE_UNAVAILABLE)
        return problems

    async def _store_is_writable(self) -> bool:
        loop = asyncio.get_running_loop()
        if self._check is None or (self._check.done() and loop.time() - self._checked_s > KEEP_S):
            self._check = loop.create_task(self._find_reason())
        # It goes on after the deadline: a statement that waits for a lock cannot be cut short.
        done, _ = await asyncio.wait([self._check], timeout=CHECK_S)
        reason = self._check.result() if done else f"nothing could be stored within {CHECK_S:g} seconds"
        if reason != self._reason:
            self._reason = reason
            if reason is None:
                log.info("store_available")
            else:
                log.error("store_unavailable", error=reason)
        return reason is None

    async def _find_reason(self) -> str | None:
        """Why nothing can be stored; None if it can."""
        try:
            await self._check_store()
        except StorageError as error:
            return str(error)
        finally:
            self._checked_s = asyncio.get_running_loop().time()
        return None
