"""What one process announces wakes those who wait in others."""

import asyncio
from pathlib import Path

import pytest

from antiphon.storage.changes import Topic
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.sql import Database, open_database
from tests.fakes.postgres import PostgresServer

pytestmark = pytest.mark.real_time


async def is_woken(event: asyncio.Event, within_s: float = 20) -> bool:
    try:
        async with asyncio.timeout(within_s):
            await event.wait()
    except TimeoutError:
        return False
    event.clear()
    return True


async def test_every_subscriber_of_the_topic_is_woken(database: MemoryDatabase | Database) -> None:
    changes = database.changes
    events = [changes.subscribe(topic) for topic in (Topic.PEOPLE, Topic.PEOPLE, Topic.COMMANDS)]
    # A listener that has just connected wakes everybody, since it may have missed something.
    await asyncio.sleep(1)
    for event in events:
        event.clear()
    changes.announce(Topic.PEOPLE)
    assert [await is_woken(event) for event in events[:2]] == [True, True]
    assert not events[2].is_set()


async def test_one_who_does_not_wait_any_more_is_not_woken(database: MemoryDatabase | Database) -> None:
    event = database.changes.subscribe(Topic.PEOPLE)
    database.changes.unsubscribe(event)
    event.clear()
    database.changes.announce(Topic.PEOPLE)
    await asyncio.sleep(0.2)
    assert not event.is_set()


async def test_another_process_on_postgres_is_woken(postgres_url: str) -> None:
    one, two = await open_database(postgres_url), await open_database(postgres_url)
    try:
        event = two.changes.subscribe(Topic.CONVERSATIONS)
        assert await is_woken(event)
        one.changes.announce(Topic.CONVERSATIONS)
        assert await is_woken(event)
    finally:
        await one.aclose()
        await two.aclose()


async def test_what_was_announced_is_sent_before_the_database_is_closed(postgres_url: str) -> None:
    one, two = await open_database(postgres_url), await open_database(postgres_url)
    try:
        event = two.changes.subscribe(Topic.PEOPLE)
        assert await is_woken(event)
        one.changes.announce(Topic.PEOPLE)
        await one.aclose()
        assert await is_woken(event)
    finally:
        await two.aclose()


async def test_a_listener_that_was_cut_off_listens_again(postgres: PostgresServer, postgres_url: str) -> None:
    one, two = await open_database(postgres_url), await open_database(postgres_url)
    try:
        event = two.changes.subscribe(Topic.PEOPLE)
        assert await is_woken(event)
        await asyncio.to_thread(
            postgres.execute, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
        )
        # It wakes everybody when it is back.
        assert await is_woken(event)
        one.changes.announce(Topic.PEOPLE)
        assert await is_woken(event)
    finally:
        await one.aclose()
        await two.aclose()


async def test_changes_of_two_processes_on_sqlite_are_no_error(tmp_path: Path) -> None:
    one = await open_database(tmp_path / "antiphon.db")
    event = one.changes.subscribe(Topic.PEOPLE)
    one.changes.announce(Topic.PEOPLE)
    assert event.is_set()
    await one.aclose()
