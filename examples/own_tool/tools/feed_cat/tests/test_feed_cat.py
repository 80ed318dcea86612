import asyncio
from pathlib import Path
from typing import Any

from antiphon.authoring.testing import load_module, make_context

handler = load_module(Path(__file__).parents[1])


class FakeStorage:
    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    async def get(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    async def set(self, key: str, value: Any) -> None:
        self.values[key] = value


def test_each_call_is_one_portion() -> None:
    context = make_context("feed_cat", granted={"storage": FakeStorage()})
    first = asyncio.run(handler.execute({"portion": "small"}, context))
    second = asyncio.run(handler.execute({"portion": "large"}, context))
    assert first.data == {"portion": "small", "portions_so_far": 1}
    assert second.spoken == "The cat got a large portion. I have fed it 2 times."


def test_the_preview_names_the_portion() -> None:
    assert handler.preview({"portion": "large"}) == "Shall I give the cat a large portion?"
