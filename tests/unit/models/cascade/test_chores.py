import asyncio

import pytest
from structlog.testing import capture_logs

from antiphon.models.cascade.chores import Chores, result_of
from antiphon.speech.base import SpeechError


async def wait() -> str:
    await asyncio.sleep(1)
    return "done"


async def fail(error: Exception) -> str:
    raise error


async def test_a_chore_gives_its_result() -> None:
    chores = Chores()
    assert await chores.start(wait()) == "done"
    assert not chores


async def test_they_are_given_up_together() -> None:
    chores = Chores()
    tasks = [chores.start(wait()), chores.start(wait())]
    await asyncio.sleep(0.1)
    assert chores
    chores.cancel()
    await asyncio.wait(tasks)
    assert all(task.cancelled() for task in tasks)
    assert not chores


async def test_closing_waits_until_they_have_cleared_up() -> None:
    cleared = []

    async def work() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            await asyncio.sleep(1)
            cleared.append(True)

    chores = Chores()
    chores.start(work())
    await asyncio.sleep(0.1)
    await chores.aclose()
    assert cleared == [True]


async def test_only_what_is_over_and_well_has_a_result() -> None:
    chores = Chores()
    done, failed, given_up, running = (chores.start(work) for work in (wait(), fail(ValueError()), wait(), wait()))
    given_up.cancel()
    with capture_logs():
        await asyncio.wait([failed, given_up])
    assert [result_of(task) for task in (None, done, failed, given_up, running)] == [None] * 5
    await done
    assert result_of(done) == "done"
    await chores.aclose()


async def test_closing_nothing_is_nothing() -> None:
    chores = Chores()
    await chores.aclose()
    assert not chores


async def test_a_mistake_is_logged() -> None:
    chores = Chores()
    with capture_logs() as logs:
        await asyncio.wait([chores.start(fail(ValueError("a mistake")))])
    assert [log["event"] for log in logs] == ["chore_failed"]


async def test_an_expected_error_concerns_only_who_waits_for_it() -> None:
    chores = Chores()
    with capture_logs() as logs, pytest.raises(SpeechError, match="busy"):
        await chores.start(fail(SpeechError("busy")))
    assert logs == []
