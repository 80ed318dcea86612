"""Background work: tasks that are cancelled together, and streams that are read before they are needed."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import aclosing
from typing import Any, Generic, TypeVar, cast

from antiphon.errors import AntiphonError
from antiphon.telemetry.log import get_logger

log = get_logger(__name__)

Result = TypeVar("Result")
Item = TypeVar("Item")


class BackgroundTasks:
    """An expected error ends a task, and concerns only those who wait for it. Any other is a bug, and is logged."""

    def __init__(self, parent: "BackgroundTasks | None" = None) -> None:
        """The parent's `cancel` and `aclose` include these tasks."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._parent = parent

    def __bool__(self) -> bool:
        """Whether a task is running."""
        return bool(self._tasks)

    def start(self, work: Coroutine[Any, Any, Result]) -> "asyncio.Task[Result]":
        task = asyncio.create_task(work) if self._parent is None else self._parent.start(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)
        return task

    def cancel(self) -> None:
        """Cancels all tasks, without waiting until they have cleaned up."""
        for task in self._tasks:
            task.cancel()

    async def aclose(self) -> None:
        self.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _end(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() or self._parent is not None else task.exception()
        if error is not None and not isinstance(error, AntiphonError):
            log.error("background_task_failed", exc_info=error)


def has_failed(task: "asyncio.Task[Any]") -> bool:
    """Whether the task has ended without a result."""
    return task.done() and (task.cancelled() or task.exception() is not None)


def result_of(task: "asyncio.Task[Result] | None") -> Result | None:
    """Returns the task's result; None if there is none yet."""
    return None if task is None or not task.done() or has_failed(task) else task.result()


class BufferedStream(Generic[Item]):
    """Reads a source in the background. Its items are kept, and can be read from the first on by several readers."""

    def __init__(self, source: AsyncIterator[Item], tasks: BackgroundTasks, limit: int | None = None) -> None:
        """With a limit, only that many items are read before the stream is taken."""
        self._items: list[Item] = []
        self._limit = limit
        self._is_taken = asyncio.Event()
        self._changed = asyncio.Event()
        self._task = tasks.start(self._read(cast(AsyncGenerator[Item, None], source)))
        self._task.add_done_callback(lambda _: self._wake_readers())

    @property
    def has_failed(self) -> bool:
        return has_failed(self._task)

    def cancel(self) -> None:
        self._task.cancel()

    async def watch(self) -> AsyncIterator[Item]:
        """Yields the items so far and those to come, and then raises the source's error, if any."""
        at = 0
        while True:
            changed = self._changed
            while at < len(self._items):
                yield self._items[at]
                at += 1
            if self._task.done():
                self._task.result()
                return
            await changed.wait()

    async def take(self) -> AsyncIterator[Item]:
        """Like `watch`, for the final reader of the items. The source is closed when it stops reading."""
        self._is_taken.set()
        try:
            async for item in self.watch():
                yield item
        finally:
            self.cancel()
            await asyncio.wait([self._task])

    async def _read(self, source: AsyncGenerator[Item, None]) -> None:
        async with aclosing(source) as items:
            async for item in items:
                self._items.append(item)
                self._wake_readers()
                if len(self._items) == self._limit:
                    await self._is_taken.wait()

    def _wake_readers(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
