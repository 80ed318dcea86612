import asyncio
from pathlib import Path

import pytest

from antiphon.authoring.testing import load_module, make_context
from antiphon.tools.errors import ToolError

handler = load_module(Path(__file__).parents[1])


class FakeInventory:
    async def count(self, item: str) -> int | None:
        return {"lamp": 4}.get(item)


def test_an_item_may_be_asked_for_in_the_plural() -> None:
    context = make_context("check_stock", granted={"inventory": FakeInventory()})
    result = asyncio.run(handler.execute({"item": "Lamps"}, context))
    assert result.data == {"item": "lamp", "count": 4}
    assert result.spoken == "There are 4 lamps in stock."


def test_an_unknown_item_is_an_error() -> None:
    context = make_context("check_stock", granted={"inventory": FakeInventory()})
    with pytest.raises(ToolError, match="boat is not an item"):
        asyncio.run(handler.execute({"item": "boat"}, context))
