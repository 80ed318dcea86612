from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.authoring.testing import make_context
from antiphon.toolkit.rank_results.handler import Kind, execute, read_value
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult


async def rank(items: list[dict[str, Any]], by: str, order: str = "desc") -> ToolResult:
    return await execute({"items": items, "by": by, "order": order}, make_context("rank_results"))


async def ranked(values: list[Any], order: str = "desc") -> list[Any]:
    result = await rank([{"v": value} for value in values], "v", order)
    return [item["v"] for item in result.data["results"]]


async def test_numbers_are_ranked_largest_first() -> None:
    assert await ranked([2, 10, 1.5, -3]) == [10, 2, 1.5, -3]


async def test_ascending_reverses_the_order() -> None:
    assert await ranked([2, 10, 1.5, -3], "asc") == [-3, 1.5, 2, 10]


async def test_numbers_written_as_text_are_numbers() -> None:
    assert await ranked(["10", "9", "-1.5", 9.5], "asc") == ["-1.5", "9", 9.5, "10"]


async def test_dates_are_points_in_time() -> None:
    dates = ["2026-03-01", "2025-11-20T10:00:00Z", "2026-03-01T01:00:00+02:00", "2026-01-15 08:30"]
    assert await ranked(dates) == [dates[0], dates[2], dates[3], dates[1]]


async def test_text_is_ranked_without_regard_to_case() -> None:
    assert await ranked(["pear", "Apple", "fig"], "asc") == ["Apple", "fig", "pear"]


async def test_the_order_of_text_does_not_depend_on_the_order_it_came_in() -> None:
    assert await ranked(["a", "A"], "asc") == await ranked(["A", "a"], "asc")


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_missing_values_come_last(order: str) -> None:
    items: list[dict[str, Any]] = [{"id": 1}, {"id": 2, "v": None}, {"id": 3, "v": 1}, {"id": 4, "v": []}, {"v": " "}]
    result = await rank(items, "v", order)
    assert result.data["results"][0] == {"id": 3, "v": 1}
    assert result.data["results"][1:] == [items[0], items[1], items[3], items[4]]
    assert result.data["missing"] == 4


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_equal_values_keep_their_order(order: str) -> None:
    items = [{"id": n, "v": 1.0} for n in range(10)]
    assert (await rank(items, "v", order)).data["results"] == items


async def test_mixed_kinds_are_numbers_then_dates_then_text() -> None:
    assert await ranked(["zebra", 3, "2026-01-01", 7]) == [7, 3, "2026-01-01", "zebra"]


async def test_a_dotted_path_goes_into_inner_objects() -> None:
    items: list[dict[str, Any]] = [{"m": {"score": 1}}, {"m": {"score": 2}}, {"m": 5}, {}]
    assert (await rank(items, "m.score")).data["results"][0] == {"m": {"score": 2}}


async def test_a_name_that_contains_a_dot_is_found() -> None:
    result = await rank([{"m.score": 1, "m": {"score": 9}}, {"m.score": 2, "m": {"score": 0}}], "m.score")
    assert result.data["results"][0]["m.score"] == 2


async def test_the_objects_are_unchanged() -> None:
    items = [{"v": 1, "inner": {"x": [1]}}, {"v": 2, "inner": {}}]
    result = await rank(items, "v")
    assert result.data == {"results": [items[1], items[0]], "by": "v", "order": "desc", "missing": 0}


async def test_a_missing_property_is_refused_with_the_existing_ones() -> None:
    error = (await rank([{"title": "a", "metadata": {"score": 1}}], "scores")).error
    assert error is not None
    assert error.type is ErrorType.VALIDATION
    assert error.suggestion == "They have: title, metadata.score."


@pytest.mark.parametrize(
    ("values", "order", "words"),
    [
        ([1, 2], "desc", "highest first"),
        (["2026-01-01", "2026-01-02"], "desc", "newest first"),
        (["a", "b"], "asc", "from A to Z"),
    ],
)
async def test_the_order_is_described_in_words_that_fit_the_values(values: list[Any], order: str, words: str) -> None:
    result = await rank([{"last_seen": value} for value in values], "last_seen", order)
    assert result.spoken == f"I sorted 2 items by last seen, {words}."


async def test_the_first_is_named_if_it_has_a_name() -> None:
    result = await rank([{"title": "Fox", "score": 1}, {"title": "Owl", "score": 2}], "score")
    assert result.spoken == "I sorted 2 items by score, highest first. The first is Owl."


json_values = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.datetimes())


@given(st.lists(json_values))
def test_values_of_one_kind_can_always_be_compared(raw: list[Any]) -> None:
    values = [read_value(value.isoformat() if hasattr(value, "isoformat") else value) for value in raw]
    for kind in Kind:
        group = sorted(value.value for value in values if value.kind is kind)
        assert all(low <= high for low, high in pairwise(group))


async def test_dates_at_the_ends_of_time_can_be_compared() -> None:
    dates = ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "0001-01-01"]
    assert await ranked(dates) == [dates[1], dates[2], dates[0]]
