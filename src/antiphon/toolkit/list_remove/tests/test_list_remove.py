from dataclasses import dataclass, field
from typing import Any

import pytest

from antiphon.authoring.testing import make_context
from antiphon.toolkit.list_remove.handler import execute, needs_confirmation, preview
from antiphon.tools.capabilities.lists import ListContent, Removed
from antiphon.tools.errors import ErrorType

NOTHING = Removed("shopping", (), ())


@dataclass
class FakeLists:
    answer: Removed = NOTHING
    cleared: list[str | None] = field(default_factory=list)

    async def remove(self, item: str, list: str | None = None) -> Removed:
        return self.answer

    async def clear(self, list: str | None = None) -> ListContent:
        self.cleared.append(list)
        return ListContent(list or "shopping", ("milk", "eggs"))


@pytest.mark.parametrize(
    ("answer", "spoken"),
    [
        (Removed("shopping", ("milk",), ()), "I've taken milk off your shopping list."),
        (Removed("shopping", ("eggs",), ("cheese",)), "I've taken eggs off your shopping list. Cheese wasn't on it."),
        (Removed("notes", ("Call Bob",), ()), "I've deleted that note."),
        (Removed("shopping", tuple("abcdef"), ()), "I've taken 6 things off your shopping list."),
    ],
)
async def test_what_was_removed_is_said(answer: Removed, spoken: str) -> None:
    result = await execute({"item": "x"}, make_context("list_remove", granted={"lists": FakeLists(answer)}))
    assert result.spoken == spoken


@pytest.mark.parametrize(
    ("name", "spoken"), [("shopping", "I've cleared your shopping list."), ("notes", "I've deleted all your notes.")]
)
async def test_a_list_is_cleared(name: str, spoken: str) -> None:
    lists = FakeLists()
    result = await execute({"all": True, "list": name}, make_context("list_remove", granted={"lists": lists}))
    assert lists.cleared == [name]
    assert result.spoken == spoken
    assert result.data["removed"] == ("milk", "eggs")


@pytest.mark.parametrize("args", [{}, {"list": "shopping"}, {"item": "milk", "all": True}, {"all": False}])
async def test_either_an_item_or_all_must_be_given(args: dict[str, Any]) -> None:
    lists = FakeLists()
    error = (await execute(args, make_context("list_remove", granted={"lists": lists}))).error
    assert error is not None
    assert error.type is ErrorType.VALIDATION
    assert lists.cleared == []


@pytest.mark.parametrize(
    ("args", "untrusted", "asks"),
    [
        ({"item": "milk"}, False, False),
        ({"item": "milk"}, True, True),
        ({"all": True}, False, True),
        ({"item": "milk", "all": False}, False, False),
    ],
)
def test_the_user_is_asked_before_a_list_is_cleared_or_if_a_web_page_was_read(
    args: dict[str, Any], untrusted: bool, asks: bool
) -> None:
    assert needs_confirmation(args, untrusted) is asks


@pytest.mark.parametrize(
    ("args", "question"),
    [
        ({"all": True, "list": "my groceries"}, "Shall I delete everything on your shopping list?"),
        ({"all": True, "list": "notes"}, "Shall I delete all your notes?"),
        ({"all": True}, "Shall I delete everything on your list?"),
        ({"item": "milk", "list": "shopping"}, "Shall I take milk off your shopping list?"),
    ],
)
def test_the_question_names_the_list(args: dict[str, Any], question: str) -> None:
    assert preview(args) == question
