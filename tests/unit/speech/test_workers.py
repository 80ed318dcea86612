"""The priority, refusal and cancellation of jobs."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from threading import Event, Lock, get_native_id

import pytest

from antiphon.speech.base import SpeechBusy, SpeechError, Urgency
from antiphon.speech.workers import NICE, Workers

pytestmark = pytest.mark.real_time


class Bench:
    """One worker, and jobs that last until they are let go."""

    def __init__(self) -> None:
        self.workers = Workers(threads=1, max_waiting=3)
        self.done: list[str] = []
        self._gate = Event()
        self._lock = Lock()

    def job(self, name: str) -> Callable[[Event], str]:
        def work(abandoned: Event) -> str:
            assert self._gate.wait(10)
            with self._lock:
                self.done.append(name)
            return name

        return work

    def start(self, name: str, urgency: Urgency = Urgency.NOW) -> "asyncio.Task[str]":
        return asyncio.create_task(self.workers.run(self.job(name), urgency))

    async def occupy(self) -> "asyncio.Task[str]":
        """Something that runs, so that the rest has to wait."""
        task = self.start("first")
        await asyncio.sleep(0)
        assert not self.workers.is_idle
        return task

    def let_go(self) -> None:
        self._gate.set()


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    yield bench
    bench.let_go()
    await bench.workers.aclose()


async def test_a_job_returns_its_result(bench: Bench) -> None:
    bench.let_go()
    assert await bench.workers.run(bench.job("one")) == "one"
    assert bench.workers.is_idle


async def test_an_error_of_a_job_is_raised(bench: Bench) -> None:
    def fail(abandoned: Event) -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await bench.workers.run(fail)
    assert bench.workers.is_idle


async def test_jobs_run_by_urgency_and_then_in_order(bench: Bench) -> None:
    await bench.occupy()
    waiting = [bench.start("soon", Urgency.SOON), bench.start("now"), bench.start("now, too")]
    await asyncio.sleep(0)
    bench.let_go()
    await asyncio.gather(*waiting)
    assert bench.done == ["first", "now", "now, too", "soon"]


async def test_an_idle_job_is_refused_unless_a_thread_is_free(bench: Bench) -> None:
    await bench.occupy()
    with pytest.raises(SpeechBusy, match="Please try again"):
        await bench.workers.run(bench.job("aside"), Urgency.IDLE)
    bench.let_go()
    await bench.workers.run(bench.job("now"))
    assert await bench.workers.run(bench.job("aside"), Urgency.IDLE) == "aside"


async def test_the_job_queue_is_bounded(bench: Bench) -> None:
    await bench.occupy()
    waiting = [bench.start(str(number)) for number in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(SpeechBusy):
        await bench.workers.run(bench.job("one too many"))
    bench.let_go()
    assert await asyncio.gather(*waiting) == ["0", "1", "2"]


async def test_a_job_that_continues_a_started_answer_is_not_refused(bench: Bench) -> None:
    await bench.occupy()
    waiting = [bench.start(str(number)) for number in range(3)]
    await asyncio.sleep(0)
    rest = asyncio.create_task(bench.workers.run(bench.job("the rest"), Urgency.SOON, refusable=False))
    await asyncio.sleep(0)
    bench.let_go()
    assert await asyncio.gather(*waiting, rest) == ["0", "1", "2", "the rest"]


async def test_a_cancelled_queued_job_never_runs_and_frees_its_place(bench: Bench) -> None:
    first = await bench.occupy()
    waiting = [bench.start(str(number)) for number in range(3)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    await asyncio.wait([waiting[1]])
    waiting.append(bench.start("another"))
    await asyncio.sleep(0)
    bench.let_go()
    await asyncio.gather(first, *waiting, return_exceptions=True)
    assert bench.done == ["first", "0", "2", "another"]


async def test_a_cancelled_running_job_is_signalled_and_keeps_its_thread_until_it_stops(bench: Bench) -> None:
    told = Event()

    def stubborn(abandoned: Event) -> None:
        assert abandoned.wait(10)
        told.set()

    running = asyncio.create_task(bench.workers.run(stubborn))
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    assert not bench.workers.is_idle
    bench.let_go()
    assert await bench.workers.run(bench.job("next")) == "next"
    assert told.is_set()


async def test_a_failure_of_a_cancelled_job_affects_no_other(bench: Bench) -> None:
    def fail(abandoned: Event) -> None:
        abandoned.wait(10)
        raise ValueError("too late")

    running = asyncio.create_task(bench.workers.run(fail))
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running])
    bench.let_go()
    assert await bench.workers.run(bench.job("next")) == "next"


async def test_closing_waits_for_running_jobs_and_refuses_queued_ones(bench: Bench) -> None:
    running = await bench.occupy()
    waiting = bench.start("never")
    await asyncio.sleep(0)
    closing = asyncio.create_task(bench.workers.aclose())
    with pytest.raises(SpeechError, match="about to stop"):
        await waiting
    assert not closing.done()
    bench.let_go()
    await closing
    assert await running == "first"
    assert bench.done == ["first"]


async def test_no_job_starts_after_close(bench: Bench) -> None:
    await bench.workers.aclose()
    with pytest.raises(SpeechError, match="about to stop"):
        await bench.workers.run(bench.job("late"))


async def test_close_may_be_called_twice(bench: Bench) -> None:
    await bench.workers.aclose()
    await bench.workers.aclose()
    assert bench.done == []


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux is a thread's priority its own")
async def test_threads_that_yield_let_others_go_first() -> None:
    def niceness(_: Event) -> int:
        return os.getpriority(os.PRIO_PROCESS, get_native_id())

    usual, yielding = Workers(threads=1), Workers(threads=1, yielding=True)
    assert await yielding.run(niceness) == min(19, await usual.run(niceness) + NICE)
    await usual.aclose()
    await yielding.aclose()
