from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from antiphon.authoring.testing import make_context
from antiphon.toolkit.list_show.handler import execute
from antiphon.tools.capabilities.lists import ListContent
from antiphon.tools.result import ToolResult
from antiphon.tools.spec import Mode


@dataclass
class FakeLists:
    lists: Sequence[ListContent]

    async def all(self) -> Sequence[ListContent]:
        return self.lists

    async def show(self, list: str) -> ListContent:
        return next(each for each in self.lists if each.name == list)


async def show(*lists: ListContent, name: str | None = None, mode: Mode = Mode.TEXT) -> ToolResult:
    context = make_context("list_show", mode=mode, granted={"lists": FakeLists(lists)})
    return await execute({} if name is None else {"list": name}, context)


SHOPPING = ListContent("shopping", ("milk", "eggs", "bread"))
NOTES = ListContent("notes", ("the plumber comes on friday", "Call Bob!"))
TO_DO = ListContent("to do", ("call the bank",))


async def test_a_list_is_read() -> None:
    result = await show(SHOPPING, TO_DO, name="shopping")
    assert result.spoken == "Your shopping list has milk, eggs and bread."
    assert result.data == {"lists": [{"name": "shopping", "count": 3, "items": ("milk", "eggs", "bread")}]}


async def test_notes_are_read_as_sentences() -> None:
    result = await show(NOTES, name="notes")
    assert result.spoken == "You have 2 notes. The plumber comes on friday. Call Bob!"


async def test_the_only_list_is_read_without_its_name() -> None:
    assert (await show(SHOPPING)).spoken == "Your shopping list has milk, eggs and bread."


async def test_several_lists_are_counted() -> None:
    result = await show(NOTES, SHOPPING, TO_DO)
    assert result.spoken == "You have 2 notes, a shopping list with 3 items and a to do list with one item."
    assert result.data["lists"][0] == {"name": "notes", "count": 2}


async def test_no_lists_are_no_error() -> None:
    result = await show()
    assert result.ok
    assert result.data == {"lists": []}
    assert result.spoken == "You don't have any lists or notes yet."


async def test_many_lists_are_not_all_said() -> None:
    lists = [ListContent(f"list of {letter}", ("x",)) for letter in "abcdefgh"]
    assert (await show(*lists)).spoken.endswith("and 2 more.")  # type: ignore[union-attr]


@pytest.mark.parametrize(("mode", "said"), [(Mode.VOICE, 10), (Mode.TEXT, 50)])
async def test_a_long_list_is_read_to_a_point_and_given_whole(mode: Mode, said: int) -> None:
    items = tuple(f"thing {number}" for number in range(60))
    result = await show(ListContent("shopping", items), name="shopping", mode=mode)
    assert result.spoken is not None
    assert result.spoken.startswith(f"Your shopping list has 60 items. The first {said} are thing 0,")
    assert result.data["lists"][0]["items"] == items


async def test_of_many_notes_the_newest_are_read_first() -> None:
    notes = tuple(f"note {number}" for number in range(9))
    result = await show(ListContent("notes", notes), name="notes", mode=Mode.VOICE)
    assert result.spoken == "You have 9 notes. The newest 5 are: Note 8. Note 7. Note 6. Note 5. Note 4."


@pytest.mark.parametrize(
    ("name", "spoken"), [("shopping", "There's nothing on your shopping list."), ("notes", "You don't have any notes.")]
)
async def test_an_empty_list_is_said(name: str, spoken: str) -> None:
    result = await show(ListContent(name, ()), name=name)
    assert result.spoken == spoken
    assert result.data == {"lists": [{"name": name, "count": 0, "items": ()}]}
