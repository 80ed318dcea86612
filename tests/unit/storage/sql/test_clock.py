"""The clock of the database server, which does not depend on those of the machines."""

import asyncio
import time
from datetime import UTC, datetime

import pytest

from antiphon.clock import SystemClock
from antiphon.storage.base import StoreUnavailable
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.sql import open_database
from antiphon.storage.sql.clock import MEASURED_EVERY_S, DatabaseClock
from tests.fakes.postgres import PostgresServer

FIVE_SECONDS_MS = 5_000


class Server:
    """A server whose clock is ahead of that of this machine."""

    def __init__(self, ahead_ms: int) -> None:
        self.ahead_ms = ahead_ms
        self.is_gone = False
        self.asked = 0

    async def ask(self) -> int:
        self.asked += 1
        if self.is_gone:
            raise StoreUnavailable("gone")
        return SystemClock().now_ms() + self.ahead_ms


async def test_the_time_is_that_of_the_server() -> None:
    clock = DatabaseClock(Server(ahead_ms=3_600_000).ask)
    await clock.measure()
    assert abs(clock.now_ms() - SystemClock().now_ms() - 3_600_000) < FIVE_SECONDS_MS
    assert abs(clock.now(UTC).timestamp() - datetime.now(UTC).timestamp() - 3_600) < 5


async def test_the_machines_time_of_day_may_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = DatabaseClock(Server(ahead_ms=0).ask)
    await clock.measure()
    before = clock.now_ms()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert 0 <= clock.now_ms() - before < FIVE_SECONDS_MS


async def test_the_server_is_asked_again_and_again_and_may_be_gone_meanwhile() -> None:
    server = Server(ahead_ms=0)
    clock = DatabaseClock(server.ask)
    await clock.start()
    try:
        server.is_gone = True
        await asyncio.sleep(2.5 * MEASURED_EVERY_S)
        server.is_gone, server.ahead_ms = False, 3_600_000
        await asyncio.sleep(MEASURED_EVERY_S)
        assert server.asked == 4
        assert abs(clock.now_ms() - SystemClock().now_ms() - 3_600_000) < FIVE_SECONDS_MS
    finally:
        await clock.aclose()


@pytest.mark.real_time
async def test_a_postgres_database_gives_the_time_of_its_server(
    postgres: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = time.time() + 3_600
    monkeypatch.setattr(time, "time", lambda: wrong)
    database = await open_database(postgres_url)
    try:
        [(told,)] = postgres.execute("SELECT extract(epoch FROM clock_timestamp())")
        assert abs(database.clock.now_ms() / 1000 - float(told)) < 5
    finally:
        await database.aclose()


async def test_what_is_on_one_machine_uses_its_clock() -> None:
    database = MemoryDatabase()
    assert isinstance(database.clock, SystemClock)
    await database.aclose()
