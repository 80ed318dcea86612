"""The contract of the block store: a user is blocked until the longest block ends."""

import asyncio

import pytest

from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.people import Block, BlockStore
from antiphon.storage.sql import Database

pytestmark = pytest.mark.real_time


@pytest.fixture
def blocks(database: MemoryDatabase | Database) -> BlockStore:
    return database.blocks


async def test_a_block_lasts_until_its_end(blocks: BlockStore) -> None:
    await blocks.block("ann", 1_000, "rude")
    assert await blocks.blocked_until("ann", 999) == 1_000
    assert await blocks.blocked_until("ann", 1_000) is None


async def test_other_users_are_not_blocked(blocks: BlockStore) -> None:
    await blocks.block("ann", 1_000, "rude")
    assert await blocks.blocked_until("bob", 0) is None


@pytest.mark.parametrize("ends", [(1_000, 2_000), (2_000, 1_000), (2_000, 2_000)])
async def test_the_later_end_wins(blocks: BlockStore, ends: tuple[int, int]) -> None:
    for until_ms in ends:
        await blocks.block("ann", until_ms, f"until {until_ms}")
    assert list(await blocks.list(0)) == [Block("ann", 2_000, "until 2000")]


async def test_the_longest_of_50_concurrent_blocks_wins(blocks: BlockStore) -> None:
    await asyncio.gather(*(blocks.block("ann", (until * 37) % 50 + 1, "rude") for until in range(50)))
    assert await blocks.blocked_until("ann", 0) == 50


async def test_a_block_is_taken_once_and_only_when_it_has_expired(blocks: BlockStore) -> None:
    await blocks.block("ann", 1_000, "rude")
    assert await blocks.take_expired("ann", 999) is None
    taken = await asyncio.gather(*(blocks.take_expired("ann", 1_000) for _ in range(10)))
    assert [block for block in taken if block is not None] == [Block("ann", 1_000, "rude")]
    assert await blocks.unblock("ann") is False


async def test_another_users_block_is_not_taken(blocks: BlockStore) -> None:
    await blocks.block("ann", 1_000, "rude")
    assert await blocks.take_expired("bob", 2_000) is None
    assert await blocks.unblock("ann") is True


async def test_a_lifted_block_no_longer_applies(blocks: BlockStore) -> None:
    await blocks.block("ann", 1_000, "rude")
    assert await blocks.unblock("ann") is True
    assert await blocks.blocked_until("ann", 0) is None
    assert await blocks.unblock("ann") is False


async def test_a_shorter_block_applies_after_a_longer_one_was_lifted(blocks: BlockStore) -> None:
    await blocks.block("ann", 2_000, "rude")
    await blocks.unblock("ann")
    await blocks.block("ann", 1_000, "rude again")
    assert await blocks.blocked_until("ann", 0) == 1_000


async def test_active_blocks_are_listed_by_end_time(blocks: BlockStore) -> None:
    for user, until_ms in (("ann", 3_000), ("bob", 1_000), ("cyd", 2_000)):
        await blocks.block(user, until_ms, "rude")
    assert [block.user for block in await blocks.list(1_000)] == ["cyd", "ann"]
