from dataclasses import dataclass, field

import pytest

from antiphon.authoring.testing import make_context
from antiphon.toolkit.list_add.handler import execute
from antiphon.tools.capabilities.lists import Added
from antiphon.tools.result import ToolResult


@dataclass
class FakeLists:
    answer: Added
    asked: list[tuple[str, str | None]] = field(default_factory=list)

    async def add(self, item: str, list: str | None = None) -> Added:
        self.asked.append((item, list))
        return self.answer


async def add(answer: Added) -> ToolResult:
    return await execute({"item": "milk"}, make_context("list_add", granted={"lists": FakeLists(answer)}))


async def test_the_item_and_the_list_are_passed_on() -> None:
    lists = FakeLists(Added("to do", ("x",), ()))
    await execute({"item": "x", "list": "to do"}, make_context("list_add", granted={"lists": lists}))
    await execute({"item": "y"}, make_context("list_add", granted={"lists": lists}))
    assert lists.asked == [("x", "to do"), ("y", None)]


@pytest.mark.parametrize(
    ("answer", "spoken"),
    [
        (Added("shopping", ("milk",), ()), "I've put milk on your shopping list."),
        (Added("shopping", ("eggs", "bread"), ()), "I've put eggs and bread on your shopping list."),
        (Added("shopping", (), ("milk",)), "Milk is already on your shopping list."),
        (Added("shopping", (), ("eggs",)), "Eggs are already on your shopping list."),
        (
            Added("shopping", ("eggs",), ("milk", "tea")),
            "I've put eggs on your shopping list. Milk and tea are already on it.",
        ),
        (Added("shopping", tuple("abcdef"), ()), "I've put 6 things on your shopping list."),
        (Added("notes", ("Call Bob",), ()), "I've made a note of that."),
        (Added("notes", (), ("Call Bob",)), "You have that note already."),
    ],
)
async def test_what_was_done_is_said(answer: Added, spoken: str) -> None:
    result = await add(answer)
    assert result.spoken == spoken
    assert result.data == {"list": answer.list, "added": answer.added, "duplicates": answer.duplicates}
