"""Tasks that are cancelled together, and streams that are read before anybody wants them."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from antiphon.models.background import BackgroundTasks, BufferedStream, result_of
from antiphon.models.base import ModelError
from antiphon.speech.base import SpeechError


async def wait() -> str:
    await asyncio.sleep(1)
    return "done"


async def fail(error: Exception) -> str:
    raise error


async def test_a_task_gives_its_result() -> None:
    tasks = BackgroundTasks()
    assert await tasks.start(wait()) == "done"
    assert not tasks


async def test_tasks_of_a_group_are_cancelled_together() -> None:
    tasks = BackgroundTasks()
    both = [tasks.start(wait()), tasks.start(wait())]
    await asyncio.sleep(0.1)
    assert tasks
    tasks.cancel()
    await asyncio.wait(both)
    assert all(task.cancelled() for task in both)
    assert not tasks


async def test_closing_waits_for_the_cleanup_of_tasks() -> None:
    cleared = []

    async def work() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            await asyncio.sleep(1)
            cleared.append(True)

    tasks = BackgroundTasks()
    tasks.start(work())
    await asyncio.sleep(0.1)
    await tasks.aclose()
    assert cleared == [True]


async def test_only_a_task_that_succeeded_has_a_result() -> None:
    tasks = BackgroundTasks()
    done, failed, given_up, running = (tasks.start(work) for work in (wait(), fail(ValueError()), wait(), wait()))
    given_up.cancel()
    with capture_logs():
        await asyncio.wait([failed, given_up])
    assert [result_of(task) for task in (None, done, failed, given_up, running)] == [None] * 5
    await done
    assert result_of(done) == "done"
    await tasks.aclose()


async def test_closing_an_empty_group_does_nothing() -> None:
    tasks = BackgroundTasks()
    await tasks.aclose()
    assert not tasks


async def test_an_unexpected_error_is_logged() -> None:
    tasks = BackgroundTasks()
    with capture_logs() as logs:
        await asyncio.wait([tasks.start(fail(ValueError("a mistake")))])
    assert [log["event"] for log in logs] == ["background_task_failed"]


async def test_an_expected_error_is_raised_only_to_the_waiter() -> None:
    tasks = BackgroundTasks()
    with capture_logs() as logs, pytest.raises(SpeechError, match="busy"):
        await tasks.start(fail(SpeechError("busy")))
    assert logs == []


async def test_a_parent_closes_the_tasks_of_its_groups_too() -> None:
    parent = BackgroundTasks()
    group, other = BackgroundTasks(parent), BackgroundTasks(parent)
    task, left = group.start(wait()), other.start(wait())
    await asyncio.sleep(0.1)
    group.cancel()
    await asyncio.wait([task])
    assert not group
    assert other
    await parent.aclose()
    assert left.cancelled()
    assert not other


async def test_an_error_in_a_group_is_logged_once() -> None:
    with capture_logs() as logs:
        await asyncio.wait([BackgroundTasks(BackgroundTasks()).start(fail(ValueError("a mistake")))])
        await asyncio.sleep(0)
    assert [log["event"] for log in logs] == ["background_task_failed"]


# Streams.

STEP_S = 1.0


class Source:
    """Gives numbers, one a second."""

    def __init__(self, count: int, error: Exception | None = None) -> None:
        self._count = count
        self._error = error
        self.made = 0
        self.is_closed = False

    async def run(self) -> AsyncIterator[int]:
        try:
            while self.made < self._count:
                await asyncio.sleep(STEP_S)
                self.made += 1
                yield self.made
            if self._error is not None:
                raise self._error
        finally:
            self.is_closed = True


async def read(items: AsyncIterator[int]) -> list[int]:
    return [item async for item in items]


async def test_items_are_produced_before_anyone_reads_them() -> None:
    source, tasks = Source(3), BackgroundTasks()
    stream = BufferedStream(source.run(), tasks)
    await asyncio.sleep(10)
    assert source.made == 3
    assert await asyncio.wait_for(read(stream.take()), 0.01) == [1, 2, 3]


async def test_several_readers_get_every_item_while_they_arrive() -> None:
    stream = BufferedStream(Source(3).run(), BackgroundTasks())
    await asyncio.sleep(1.5 * STEP_S)
    both = await asyncio.gather(read(stream.watch()), read(stream.watch()))
    assert tuple(both) == ([1, 2, 3], [1, 2, 3])


async def test_production_is_bounded_until_the_stream_is_taken() -> None:
    source = Source(3)
    stream = BufferedStream(source.run(), BackgroundTasks(), limit=1)
    await asyncio.sleep(10)
    assert source.made == 1
    assert await read(stream.take()) == [1, 2, 3]
    assert source.is_closed


async def test_a_reader_that_stops_cancels_the_rest() -> None:
    source = Source(3)
    items = BufferedStream(source.run(), BackgroundTasks()).take()
    assert await anext(items) == 1
    await items.aclose()  # type: ignore[attr-defined]
    assert source.is_closed


async def test_an_error_is_raised_at_its_position() -> None:
    stream = BufferedStream(Source(1, ModelError("no")).run(), BackgroundTasks())
    items = stream.watch()
    assert await anext(items) == 1
    with pytest.raises(ModelError):
        await anext(items)
    assert stream.has_failed


async def test_a_cancelled_source_is_closed() -> None:
    source, tasks = Source(3), BackgroundTasks()
    stream = BufferedStream(source.run(), tasks)
    await asyncio.sleep(1.5 * STEP_S)
    stream.cancel()
    await tasks.aclose()
    assert source.is_closed
    assert stream.has_failed
