"""A thread pool for inference, shared by all sessions, with priorities and a bounded queue."""

import asyncio
import heapq
import os
import sys
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from itertools import count
from threading import Event, get_native_id
from typing import Any, Final, Generic, TypeVar

from antiphon.speech.base import SpeechBusy, SpeechError, Urgency

MAX_WAITING: Final = 16
"""The longest queue. Behind it a caller would wait for seconds, so it is refused at once."""

NICE: Final = 10
"""The niceness of low-priority threads. With 100 callers on one core, answers took twice as long without it."""

BUSY: Final = "Too many people are talking to this server at once. Please try again in a moment."
CLOSED: Final = "This server is about to stop. Please try again later."

Done = TypeVar("Done")
Job = Callable[[Event], Done]
"""Work for one thread. The event is set when the result is no longer needed; long jobs check it and stop."""


class _Waiting(Generic[Done]):
    def __init__(self, job: Job[Done]) -> None:
        self.job = job
        self.abandoned = Event()
        self.done: asyncio.Future[Done] = asyncio.get_running_loop().create_future()


class Workers:
    """A pool that belongs to one event loop. Threads are started when first needed."""

    def __init__(
        self, threads: int, max_waiting: int = MAX_WAITING, pool: Executor | None = None, *, yielding: bool = False
    ) -> None:
        """A given pool provides the threads and is closed with this one. With `yielding`, the threads have a low
        priority where the system supports that.
        """
        self.threads = threads
        initializer = _lower_priority if yielding else None
        self._pool = pool or ThreadPoolExecutor(threads, thread_name_prefix="speech", initializer=initializer)
        self._max_waiting = max_waiting
        self._waiting: list[tuple[int, int, _Waiting[Any]]] = []
        """A heap. The sequence number in the middle is unique, so the jobs themselves are never compared."""
        self._order = count()
        self._working = 0
        self._is_closed = False

    @property
    def is_idle(self) -> bool:
        """Whether a new job would start at once."""
        return self._working < self.threads

    async def run(self, job: Job[Done], urgency: Urgency = Urgency.NOW, *, refusable: bool = True) -> Done:
        """Runs a job. Raises `SpeechBusy` if the queue is full, unless the job is not refusable.


        Cancelling the caller tells the job to stop.
        """
        if self._is_closed:
            raise SpeechError(CLOSED)
        is_full = urgency is Urgency.IDLE or len(self._waiting) >= self._max_waiting
        if refusable and is_full and not self.is_idle:
            raise SpeechBusy(BUSY)
        waiting = _Waiting(job)
        entry = (urgency, next(self._order), waiting)
        heapq.heappush(self._waiting, entry)
        self._start()
        try:
            return await waiting.done
        finally:
            waiting.abandoned.set()
            if entry in self._waiting:
                self._waiting.remove(entry)
                heapq.heapify(self._waiting)

    async def aclose(self) -> None:
        """Waits for running jobs, and refuses the queued ones."""
        self._is_closed = True
        refused, self._waiting = self._waiting, []
        for _, _, waiting in refused:
            waiting.done.set_exception(SpeechError(CLOSED))
        await asyncio.to_thread(self._pool.shutdown)

    def _start(self) -> None:
        while self._waiting and self.is_idle:
            _, _, waiting = heapq.heappop(self._waiting)
            self._working += 1
            running = asyncio.get_running_loop().run_in_executor(self._pool, waiting.job, waiting.abandoned)
            running.add_done_callback(partial(self._finish, waiting))

    def _finish(self, waiting: _Waiting[Any], running: "asyncio.Future[Any]") -> None:
        self._working -= 1
        self._start()
        error = running.exception()
        if waiting.done.done():
            return
        if error is not None:
            waiting.done.set_exception(error)
        else:
            waiting.done.set_result(running.result())


def _lower_priority() -> None:
    # Only on Linux is a thread's priority its own.
    if sys.platform == "linux":
        thread = get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + NICE)
