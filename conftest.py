"""Rules for every test: async tests run on a virtual clock, and none leaves a task running."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path

import pytest
import pytest_asyncio

from antiphon.config import load
from tests.fakes.postgres import PostgresServer, run_postgres
from tests.fakes.virtual_loop import LOOPS


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return LOOPS[item.get_closest_marker("real_time") is not None]


@pytest_asyncio.fixture(autouse=True)
async def no_task_left_behind() -> AsyncIterator[None]:
    """Fails a test that leaves a task running: in a server, such a task would run for months."""
    before = asyncio.all_tasks()
    yield
    # One turn of the loop lets tasks finish that the last line of the test cancelled or completed.
    await asyncio.sleep(0)
    left = [task for task in asyncio.all_tasks() - before if not task.done() and task is not asyncio.current_task()]
    for task in left:
        task.cancel()
    assert not left, f"tasks left running: {[task.get_coro() for task in left]}"


@pytest.fixture(scope="session")
def models_dir() -> Path:
    """The folder of the model files. `make test` has pulled them."""
    return load(None).models_dir


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A Postgres server of this test process. It is started for the first test that needs it."""
    with run_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> str:
    """The address of a Postgres database with empty tables."""
    return postgres.empty_database()


@pytest.fixture(scope="session")
def postgres_with_pgvector() -> Iterator[PostgresServer]:
    """The same with pgvector."""
    with run_postgres(has_pgvector=True) as server:
        yield server
