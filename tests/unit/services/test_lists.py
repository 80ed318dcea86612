"""The lists of one user: what is added, found and removed by words that are nearly right."""

import pytest

from antiphon.authoring.testing import StillClock
from antiphon.services.lists.user_lists import MAX_ITEM_CHARS, MAX_ITEMS, UserLists
from antiphon.storage.memory import MemoryDatabase
from antiphon.tools.capabilities.lists import Added, ListContent, Removed
from antiphon.tools.errors import ErrorType, ToolError


@pytest.fixture
def database() -> MemoryDatabase:
    return MemoryDatabase()


@pytest.fixture
def lists(database: MemoryDatabase) -> UserLists:
    return UserLists(database.lists, "ann", StillClock())


async def test_items_are_added_to_a_list_that_is_made_by_that(lists: UserLists) -> None:
    assert await lists.add("eggs and bread", "my shopping list") == Added("shopping", ("eggs", "bread"), ())
    assert await lists.show("shopping") == ListContent("shopping", ("eggs", "bread"))


async def test_duplicates_are_told_and_not_added(lists: UserLists) -> None:
    await lists.add("milk", "shopping")
    assert await lists.add("the Milk and eggs", "grocery list") == Added("shopping", ("eggs",), ("Milk",))


async def test_without_a_name_things_go_to_the_shopping_list(lists: UserLists) -> None:
    assert (await lists.add("milk")).list == "shopping"


async def test_without_a_name_things_go_to_the_only_list(lists: UserLists) -> None:
    await lists.add("tent", "camping")
    await lists.add("The plumber comes on Friday", "notes")
    assert (await lists.add("stove")).list == "camping"


async def test_without_a_name_the_user_is_asked_which_of_several_lists(lists: UserLists) -> None:
    await lists.add("tent", "camping")
    await lists.add("call the bank", "to do")
    with pytest.raises(ToolError, match="Which one do you mean: your camping list or your to do list") as refused:
        await lists.add("stove")
    assert refused.value.type is ErrorType.VALIDATION
    assert refused.value.details == {"choices": ["your camping list", "your to do list"]}


async def test_the_list_is_the_shopping_list_if_there_is_one(lists: UserLists) -> None:
    await lists.add("tent", "camping")
    await lists.add("milk", "shopping")
    assert (await lists.add("bin bags")).list == "shopping"


async def test_a_misspelled_list_is_not_made_anew(lists: UserLists) -> None:
    await lists.add("tent", "camping")
    assert (await lists.add("stove", "campin")).list == "camping"


@pytest.mark.parametrize("item", [" ", ",;", "and"])
async def test_nothing_to_add_is_refused(lists: UserLists, item: str) -> None:
    with pytest.raises(ToolError, match="what to add"):
        await lists.add(item, "shopping")


async def test_an_item_that_is_too_long_is_refused_and_nothing_is_added(lists: UserLists) -> None:
    with pytest.raises(ToolError, match="too long for one item of your shopping list"):
        await lists.add(f"milk, {'x' * (MAX_ITEM_CHARS + 1)}", "shopping")
    assert await lists.all() == []


async def test_a_full_list_says_so(lists: UserLists) -> None:
    for number in range(MAX_ITEMS):
        await lists.add(f"thing {number}", "shopping")
    with pytest.raises(ToolError, match="no more room on your shopping list") as refused:
        await lists.add("one more", "shopping")
    assert refused.value.type is ErrorType.PERMANENT
    assert len((await lists.show("shopping")).items) == MAX_ITEMS


@pytest.mark.parametrize("said", ["milk", "the milk", "Milk.", "milks"])
async def test_an_item_is_removed_however_it_is_said(lists: UserLists, said: str) -> None:
    await lists.add("milk and eggs", "shopping")
    assert await lists.remove(said, "shopping") == Removed("shopping", ("milk",), ())


async def test_an_item_is_found_by_one_of_its_words_or_with_a_typing_error(lists: UserLists) -> None:
    await lists.add("oat milk, broccoli", "shopping")
    assert (await lists.remove("milk", "shopping")).removed == ("oat milk",)
    assert (await lists.remove("brocoli", "shopping")).removed == ("broccoli",)


async def test_an_exact_item_wins_over_longer_ones(lists: UserLists) -> None:
    await lists.add("oat milk, milk, milk chocolate", "shopping")
    assert (await lists.remove("milk", "shopping")).removed == ("milk",)


async def test_if_several_items_fit_the_user_is_asked_and_nothing_is_removed(lists: UserLists) -> None:
    await lists.add("oat milk, soy milk", "shopping")
    with pytest.raises(ToolError, match="Which one do you mean: oat milk or soy milk") as refused:
        await lists.remove("milk", "shopping")
    assert refused.value.type is ErrorType.VALIDATION
    assert len((await lists.show("shopping")).items) == 2


@pytest.mark.parametrize("said", ["tea", "beans", "breakfast cereal"])
async def test_another_thing_is_not_taken_for_a_misspelled_one(lists: UserLists, said: str) -> None:
    await lists.add("pea, bread", "shopping")
    with pytest.raises(ToolError, match="isn't on your shopping list") as refused:
        await lists.remove(said, "shopping")
    assert refused.value.type is ErrorType.NOT_FOUND


async def test_several_items_are_removed_and_the_missing_ones_told(lists: UserLists) -> None:
    await lists.add("milk, eggs, bread", "shopping")
    assert await lists.remove("eggs, cheese and bread", "shopping") == Removed(
        "shopping", ("eggs", "bread"), ("cheese",)
    )


async def test_an_item_with_an_and_of_its_own_is_removed_whole(lists: UserLists) -> None:
    await lists.add("call mom and dad", "to do")
    assert (await lists.remove("call mom and dad", "to do")).removed == ("call mom and dad",)


async def test_without_a_list_the_item_is_looked_for_on_all(lists: UserLists) -> None:
    await lists.add("tent", "camping")
    await lists.add("milk", "shopping")
    assert (await lists.remove("tent")).list == "camping"
    with pytest.raises(ToolError, match="can't find tent on any of your lists"):
        await lists.remove("tent")


async def test_an_item_on_two_lists_needs_the_name_of_one(lists: UserLists) -> None:
    await lists.add("batteries", "camping")
    await lists.add("batteries", "shopping")
    with pytest.raises(ToolError, match="Batteries is on several lists"):
        await lists.remove("batteries")


async def test_an_unknown_list_is_not_found_and_the_others_are_named(lists: UserLists) -> None:
    await lists.add("milk", "shopping")
    with pytest.raises(ToolError, match=r"nothing on your camping list\. You have shopping list") as refused:
        await lists.show("camping")
    assert refused.value.type is ErrorType.NOT_FOUND


@pytest.mark.parametrize("name", ["notes", "shopping", "to do"])
async def test_the_usual_lists_may_be_empty(lists: UserLists, name: str) -> None:
    await lists.add("tent", "camping")
    assert await lists.show(name) == ListContent(name, ())


async def test_removing_a_note_that_does_not_exist_says_so(lists: UserLists) -> None:
    with pytest.raises(ToolError, match="You don't have any notes"):
        await lists.remove("plumber", "notes")


async def test_a_cleared_list_is_gone(lists: UserLists) -> None:
    await lists.add("milk, eggs", "shopping")
    await lists.add("Call Bob", "notes")
    assert await lists.clear("shopping") == ListContent("shopping", ("milk", "eggs"))
    assert [each.name for each in await lists.all()] == ["notes"]


async def test_without_a_name_the_only_list_is_cleared(lists: UserLists) -> None:
    with pytest.raises(ToolError, match="You don't have any lists"):
        await lists.clear()
    await lists.add("milk", "shopping")
    assert (await lists.clear()).name == "shopping"


async def test_each_user_has_lists_of_their_own(lists: UserLists, database: MemoryDatabase) -> None:
    await lists.add("milk", "shopping")
    others = UserLists(database.lists, "bob", StillClock())
    assert await others.all() == []
    with pytest.raises(ToolError):
        await others.remove("milk", "shopping")
