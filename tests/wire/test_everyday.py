"""Everyday requests to a real server, typed to the offline assistant."""

from pathlib import Path

import pytest

from tests.wire.caller import call
from tests.wire.served import serve

pytestmark = pytest.mark.real_time

TEXT = {"mode": "text"}


async def test_a_list_survives_a_restart_and_is_cleared_after_a_typed_yes(tmp_path: Path) -> None:
    with serve(tmp_path) as served:
        async with call(served.url, TEXT) as caller:
            added = await caller.ask("put milk on the shopping list")
            assert added == "I've put milk on your shopping list."
    with serve(tmp_path) as served:
        async with call(served.url, TEXT) as caller:
            assert await caller.ask("what's on my shopping list") == "Your shopping list has milk."
            question = await caller.ask("clear the shopping list")
            assert question == "Shall I delete everything on your shopping list?"
            assert await caller.ask("yes please") == "I've cleared your shopping list."
            empty = await caller.ask("which lists do i have")
            assert empty == "You don't have any lists or notes yet."
        assert served.failures == []


async def test_the_client_is_told_the_title_of_a_tool(tmp_path: Path) -> None:
    with serve(tmp_path) as served:
        async with call(served.url, TEXT) as caller:
            await caller.ask("put milk on the shopping list")
            await caller.ask("clear the shopping list")
        assert [message["title"] for message in caller.every("tool_call")] == ["Add to a list", "Remove from a list"]
        assert [message["title"] for message in caller.every("confirmation_request")] == ["Remove from a list"]


async def test_units_are_converted_soon_after_the_start(tmp_path: Path) -> None:
    with serve(tmp_path) as served:
        async with call(served.url, TEXT) as caller:
            await caller.ask("flip a coin")
            answer = await caller.ask("how many feet in a mile")
            while answer == "That took too long, so I stopped waiting for it.":
                answer = await caller.ask("how many feet in a mile please")
            assert answer == "1 mile is 5,280 feet."
