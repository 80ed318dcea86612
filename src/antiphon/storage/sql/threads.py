"""Runs units of work in threads, each with its own connection."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, Protocol

from sqlalchemy import Connection

from antiphon.storage.base import StorageError
from antiphon.storage.sql.connections import Done


class Job(Generic[Done]):
    """A unit of work, its result, and the future of its caller."""

    __slots__ = ("done", "error", "in_transaction", "is_long", "queued_at", "result", "work")

    def __init__(
        self,
        work: Callable[[Connection], Done],
        done: asyncio.Future[None],
        *,
        in_transaction: bool = False,
        is_long: bool = False,
    ) -> None:
        self.work = work
        self.done = done
        self.in_transaction = in_transaction
        self.is_long = is_long
        self.queued_at = time.monotonic()
        self.result: Done
        self.error: BaseException | None = None


class JobRunner(Protocol):
    """A connection, used by one thread."""

    def perform(self, job: Job[Any]) -> None:
        """Does the work, and stores its result or its error in the job."""
        ...

    def close(self) -> None: ...


class JobThreads:
    """Threads that share one fair queue. One is started when there is more work than threads, up to `limit`."""

    def __init__(self, make_runner: Callable[[], JobRunner], name: str, limit: int = 1) -> None:
        """`name` is how errors call the database."""
        self._make_runner = make_runner
        self._name = name
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[Job[Any] | None] = SimpleQueue()
        self._unfinished = 0
        self._threads: list[Thread] = []
        self._open = True

    async def run(
        self, work: Callable[[Connection], Done], *, in_transaction: bool = False, is_long: bool = False
    ) -> Done:
        if not self._open:
            raise StorageError(f"The database {self._name} was closed. Open it again to use it.")
        job = Job(work, self._loop.create_future(), in_transaction=in_transaction, is_long=is_long)
        self._unfinished += 1
        if self._unfinished > len(self._threads) and len(self._threads) < self._limit:
            self._start_thread()
        self._jobs.put(job)
        try:
            await asyncio.shield(job.done)
        except asyncio.CancelledError:
            await asyncio.wait([job.done])
            raise
        finally:
            self._unfinished -= 1
        if job.error is not None:
            raise job.error
        return job.result

    async def aclose(self) -> None:
        """Waits for all work in the queue, and closes the connections."""
        self._open = False
        for _ in self._threads:
            self._jobs.put(None)
        threads, self._threads = self._threads, []
        for thread in threads:
            await asyncio.to_thread(thread.join)

    def _start_thread(self) -> None:
        # A daemon, so that it does not delay the end of the program: what was committed is safe.
        thread = Thread(target=self._serve, name=f"database {self._name}", daemon=True)
        thread.start()
        self._threads.append(thread)

    def _serve(self) -> None:
        runner = self._make_runner()
        while (job := self._jobs.get()) is not None:
            runner.perform(job)
            # The loop may be closed already, and then the result is not needed.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(job.done.set_result, None)
        runner.close()
