"""Tasks on the side, which are given up together."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from antiphon.errors import AntiphonError
from antiphon.telemetry.log import get_logger

log = get_logger(__name__)

Done = TypeVar("Done")


class Chores:
    """An expected error ends a chore, and concerns only who waits for it. Any other is a mistake, and is logged."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def __bool__(self) -> bool:
        """Whether one is not over yet."""
        return bool(self._tasks)

    def start(self, work: Coroutine[Any, Any, Done]) -> "asyncio.Task[Done]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)
        return task

    def cancel(self) -> None:
        """None of them does anything more than to clear up."""
        for task in self._tasks:
            task.cancel()

    async def aclose(self) -> None:
        self.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _end(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, AntiphonError):
            log.error("chore_failed", exc_info=error)


def has_failed(task: "asyncio.Task[Any]") -> bool:
    """Whether it is over and has given nothing."""
    return task.done() and (task.cancelled() or task.exception() is not None)


def result_of(task: "asyncio.Task[Done] | None") -> Done | None:
    """What it has given, if it is over and did not fail."""
    return None if task is None or not task.done() or has_failed(task) else task.result()
