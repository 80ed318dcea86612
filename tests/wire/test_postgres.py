"""Servers whose data is in Postgres survive its outages."""

import asyncio
import time
from pathlib import Path

import pytest

from antiphon.storage.base import STORE_UNAVAILABLE
from tests.fakes.postgres import PostgresServer
from tests.wire.caller import call
from tests.wire.served import serve
from tests.wire.test_store_down import SUM, error_after, is_refused, post, until_ready

pytestmark = pytest.mark.real_time

NUL = "What is 2 plus\u0000 3?"


async def test_an_outage_of_the_database_is_reported_at_once_and_forgotten_when_it_is_over(
    tmp_path: Path, postgres: PostgresServer, postgres_url: str
) -> None:
    with serve(tmp_path, storage={"url": postgres_url}) as served:
        async with call(served.url, {"mode": "text"}) as caller:
            assert "5" in await caller.ask(SUM)
            postgres.stop()
            try:
                began = time.monotonic()
                error = await error_after(caller, SUM)
                assert (error["code"], error["message"]) == ("unavailable", STORE_UNAVAILABLE)
                answers = await asyncio.gather(*(post(served, SUM) for _ in range(12)))
                assert all(map(is_refused, answers))
                assert time.monotonic() - began < 20
                assert (await until_ready(served, 503)).json()["problems"] == [STORE_UNAVAILABLE]
            finally:
                postgres.start()
        await until_ready(served)
        async with call(served.url, {"mode": "text"}) as again:
            assert "5" in await again.ask(SUM)
        assert "Check that Postgres runs there" in served.log


async def test_a_nul_character_in_a_message_breaks_nothing(tmp_path: Path, postgres_url: str) -> None:
    with serve(tmp_path, storage={"url": postgres_url}) as served:
        async with call(served.url, {"mode": "text"}) as caller:
            await caller.ask(NUL)
            assert "5" in await caller.ask(SUM)
        assert served.failures == []
