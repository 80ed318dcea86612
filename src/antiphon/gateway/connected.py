"""Work for a request that ends when its client goes away, when the server stops, or when it takes too long."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from antiphon.gateway.api_errors import ApiError
from antiphon.storage.base import STORE_UNAVAILABLE, StoreUnavailable
from antiphon.telemetry.log import get_logger

ANSWER_LIMIT_S: Final = 300.0
"""How long an answer may take in all. The model and each tool have shorter limits of their own."""
STOPPING: Final = "The server is about to stop. Try again in a moment."
RETRY_AFTER_S: Final = 5.0

Result = TypeVar("Result")

log = get_logger(__name__)


def server_stopping() -> ApiError:
    return ApiError(503, STOPPING, code="unavailable", retry_after_s=RETRY_AFTER_S)


def explain_failure(error: Exception, path: str) -> ApiError:
    """Returns what the client is told about an error, and logs one that is not its own."""
    match error:
        case ApiError():
            return error
        case StoreUnavailable():
            log.error("request_failed", path=path, error=str(error))
            return ApiError(503, STORE_UNAVAILABLE, code="unavailable", retry_after_s=RETRY_AFTER_S)
    log.error("request_failed", path=path, exc_info=error)
    return ApiError(500, "An error in the server prevented this.", code="internal", may_retry=False)


class RequestWork:
    """The work of all requests under way."""

    def __init__(self, must_end: asyncio.Event) -> None:
        """`must_end` is set when the time for finishing answers is over."""
        self._must_end = must_end
        self._running: set[asyncio.Task[Any]] = set()

    async def run(self, work: Coroutine[Any, Any, Result], receive: Receive) -> Result:
        """Returns what the work returns. Raises `ClientDisconnect` if the client goes away, and `ApiError` if the
        server stops or the time is up; the work is then cancelled. The body must have been read before."""
        working = asyncio.create_task(work)
        leaving = asyncio.create_task(_disconnect(receive))
        ending = asyncio.create_task(self._must_end.wait())
        tasks: list[asyncio.Task[Any]] = [working, leaving, ending]
        self._running.add(working)
        try:
            await asyncio.wait(tasks, timeout=ANSWER_LIMIT_S, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            if leaving.done():
                raise ClientDisconnect
            if ending.done():
                raise server_stopping()
            raise ApiError(504, f"There was no answer within {ANSWER_LIMIT_S:.0f} seconds.", code="deadline")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            self._running.discard(working)

    async def finish(self, time_left_s: float) -> None:
        """Waits for the work under way, at most this long."""
        if self._running:
            await asyncio.wait(set(self._running), timeout=time_left_s)


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
