"""The contract of the store of pins: what was seen first holds until the operator approves something else."""

import asyncio

import pytest

from antiphon.storage.mcp_pins import McpPin, McpPinStore
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.sql import Database

pytestmark = pytest.mark.real_time


@pytest.fixture
def pins(database: MemoryDatabase | Database) -> McpPinStore:
    return database.mcp_pins


async def see(pins: McpPinStore, content: str, tool: str = "now", server: str = "time", at_ms: int = 1) -> McpPin:
    return await pins.see(server, tool, f"digest of {content}", content.encode(), at_ms)


async def test_what_is_seen_first_is_approved(pins: McpPinStore) -> None:
    pin = await see(pins, "old", at_ms=7)
    assert not pin.is_quarantined
    assert (pin.digest, pin.definition, pin.is_offered, pin.first_seen_ms) == ("digest of old", b"old", True, 7)
    assert list(await pins.list()) == [pin]


async def test_a_changed_tool_is_quarantined_and_its_old_definition_is_kept(pins: McpPinStore) -> None:
    await see(pins, "old")
    pin = await see(pins, "new", at_ms=2)
    assert pin.is_quarantined
    assert (pin.definition, pin.seen_definition, pin.first_seen_ms) == (b"old", b"new", 1)


async def test_a_tool_that_changes_back_is_no_longer_quarantined(pins: McpPinStore) -> None:
    for content in ("old", "new"):
        await see(pins, content)
    assert not (await see(pins, "old")).is_quarantined


async def test_approval_takes_what_was_seen_last(pins: McpPinStore) -> None:
    for content in ("old", "new"):
        await see(pins, content)
    assert list(await pins.approve("time", "now")) == ["now"]
    [pin] = await pins.list("time")
    assert (pin.digest, pin.definition, pin.is_quarantined) == ("digest of new", b"new", False)


async def test_approval_of_a_server_takes_its_quarantined_tools_and_no_others(pins: McpPinStore) -> None:
    for tool, server in (("a", "time"), ("b", "time"), ("a", "mail")):
        for content in ("old", "new"):
            await see(pins, content, tool, server)
    await see(pins, "same", "c")
    assert list(await pins.approve("time")) == ["a", "b"]
    assert [pin.tool for pin in await pins.list("mail") if pin.is_quarantined] == ["a"]


async def test_there_is_nothing_to_approve_for_an_unknown_tool(pins: McpPinStore) -> None:
    await see(pins, "old")
    assert list(await pins.approve("time", "later")) == []
    assert list(await pins.approve("mail")) == []


async def test_a_missing_tool_keeps_its_pin(pins: McpPinStore) -> None:
    await see(pins, "old")
    await pins.miss("time", "now")
    assert [pin.is_offered for pin in await pins.list()] == [False]
    back = await see(pins, "new")
    assert back.is_offered
    assert back.is_quarantined


async def test_pins_are_listed_by_server_and_tool(pins: McpPinStore) -> None:
    for server, tool in (("time", "b"), ("mail", "c"), ("time", "a")):
        await see(pins, "x", tool, server)
    assert [(pin.server, pin.tool) for pin in await pins.list()] == [("mail", "c"), ("time", "a"), ("time", "b")]
    assert [pin.tool for pin in await pins.list("time")] == ["a", "b"]


async def test_of_two_first_sights_one_is_approved(pins: McpPinStore) -> None:
    first, second = await asyncio.gather(see(pins, "one"), see(pins, "two"))
    assert first.digest == second.digest
