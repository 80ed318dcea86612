"""The contract of the list store: a list has each item once, in the order in which they were added."""

import asyncio

import pytest

from antiphon.storage.lists import ListFull, ListItem, ListStore
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.sql import Database

pytestmark = pytest.mark.real_time


@pytest.fixture
def lists(database: MemoryDatabase | Database) -> ListStore:
    return database.lists


def item(text: str, *, user: str = "ann", name: str = "shopping") -> ListItem:
    return ListItem(user, name, text.lower(), text, 1_000)


async def add(lists: ListStore, *items: ListItem, max_items: int = 100, max_total: int = 1_000) -> list[str]:
    return [each.text for each in await lists.add(items, max_items=max_items, max_total=max_total)]


async def texts(lists: ListStore, user: str = "ann", name: str | None = None) -> list[str]:
    return [each.text for each in await lists.items(user, name)]


async def test_items_are_returned_as_stored_in_the_order_of_their_addition(lists: ListStore) -> None:
    await add(lists, item("Milk"), item("eggs"))
    await add(lists, item("bread"))
    assert list(await lists.items("ann", "shopping")) == [item("Milk"), item("eggs"), item("bread")]


async def test_an_item_with_a_known_key_is_not_added_again(lists: ListStore) -> None:
    await add(lists, item("Milk"))
    assert await add(lists, item("MILK"), item("eggs")) == ["eggs"]
    assert await texts(lists) == ["Milk", "eggs"]


async def test_the_same_key_twice_in_one_addition_is_added_once(lists: ListStore) -> None:
    assert len(await add(lists, item("milk"), item("milk"))) == 1
    assert await texts(lists) == ["milk"]


async def test_adding_nothing_is_allowed(lists: ListStore) -> None:
    assert await add(lists) == []


async def test_lists_of_one_user_are_separate(lists: ListStore) -> None:
    await add(lists, item("milk"))
    assert await add(lists, item("milk", name="to do")) == ["milk"]
    assert await texts(lists, name="to do") == ["milk"]
    assert await texts(lists) == ["milk", "milk"]


async def test_users_do_not_see_each_others_lists(lists: ListStore) -> None:
    await add(lists, item("milk"))
    assert await texts(lists, "bob") == []
    assert await lists.remove("bob", "shopping", ["milk"]) == []
    assert await lists.clear("bob") == 0
    assert await texts(lists) == ["milk"]


async def test_a_full_list_takes_none_of_several_items(lists: ListStore) -> None:
    await add(lists, item("milk"), max_items=2)
    with pytest.raises(ListFull):
        await add(lists, item("eggs"), item("bread"), max_items=2)
    assert await texts(lists) == ["milk"]


async def test_all_lists_of_a_user_together_have_a_limit(lists: ListStore) -> None:
    await add(lists, item("milk"), max_total=1)
    await add(lists, item("milk", user="bob"), max_total=1)
    with pytest.raises(ListFull):
        await add(lists, item("call the bank", name="to do"), max_total=1)


async def test_a_known_item_can_be_added_to_a_full_list(lists: ListStore) -> None:
    await add(lists, item("milk"), max_items=1)
    assert await add(lists, item("milk"), max_items=1) == []


async def test_concurrent_additions_do_not_exceed_the_limit(lists: ListStore) -> None:
    adding = (add(lists, item(f"item {number}"), max_items=5) for number in range(20))
    done = await asyncio.gather(*adding, return_exceptions=True)
    assert sum(isinstance(outcome, ListFull) for outcome in done) == 15
    assert len(await texts(lists)) == 5


async def test_removed_items_are_returned_and_gone(lists: ListStore) -> None:
    await add(lists, item("milk"), item("eggs"), item("bread"))
    removed = await lists.remove("ann", "shopping", ["bread", "milk", "butter"])
    assert [each.text for each in removed] == ["milk", "bread"]
    assert await texts(lists) == ["eggs"]


async def test_of_concurrent_removals_one_gets_the_item(lists: ListStore) -> None:
    await add(lists, item("milk"))
    removed = await asyncio.gather(*(lists.remove("ann", "shopping", ["milk"]) for _ in range(10)))
    assert sorted(map(len, removed)) == [0] * 9 + [1]


async def test_an_item_that_was_removed_is_added_at_the_end(lists: ListStore) -> None:
    await add(lists, item("milk"), item("eggs"))
    await lists.remove("ann", "shopping", ["milk"])
    await add(lists, item("milk"))
    assert await texts(lists) == ["eggs", "milk"]


async def test_clearing_one_list_keeps_the_others(lists: ListStore) -> None:
    await add(lists, item("milk"), item("eggs"))
    await add(lists, item("call the bank", name="to do"))
    assert await lists.clear("ann", "shopping") == 2
    assert await texts(lists) == ["call the bank"]


async def test_clearing_all_lists_of_a_user_keeps_those_of_others(lists: ListStore) -> None:
    await add(lists, item("milk"))
    await add(lists, item("call the bank", name="to do"))
    await add(lists, item("milk", user="bob"))
    assert await lists.clear("ann") == 2
    assert await texts(lists, "bob") == ["milk"]
