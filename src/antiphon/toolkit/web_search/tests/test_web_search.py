from collections.abc import Sequence
from pathlib import Path

from antiphon.authoring.testing import load_module, make_context
from antiphon.tools.capabilities.web import QuickAnswer, SearchResult
from antiphon.tools.result import ToolResult

handler = load_module(Path(__file__).parents[1])


class FakeWeb:
    def __init__(self, *results: SearchResult) -> None:
        self.results = results
        self.asked: list[tuple[str, int]] = []

    async def search(self, query: str, limit: int) -> Sequence[SearchResult]:
        self.asked.append((query, limit))
        return self.results[:limit]

    async def answer(self, query: str) -> QuickAnswer | None:
        raise AssertionError


async def search(web: FakeWeb, query: str = "tea") -> ToolResult:
    result: ToolResult = await handler.execute({"query": query, "top_k": 5}, make_context(granted={"web": web}))
    return result


async def test_the_best_result_is_said_with_its_site() -> None:
    web = FakeWeb(
        SearchResult("Tea", "https://www.tea.example/a", "Tea is a drink."), SearchResult("B", "https://b/", "")
    )
    result = await search(web, "  green \n tea ")
    assert result.spoken == "According to tea.example: Tea is a drink."
    assert web.asked == [("green tea", 5)]
    assert [citation.url for citation in result.citations] == ["https://www.tea.example/a", "https://b/"]


async def test_a_result_without_an_excerpt_is_said_by_its_title() -> None:
    assert (await search(FakeWeb(SearchResult("Tea", "https://tea.example/", "")))).spoken == (
        "According to tea.example: Tea"
    )


async def test_a_long_excerpt_is_cut() -> None:
    spoken = (await search(FakeWeb(SearchResult("Tea", "https://tea.example/", "word " * 100)))).spoken
    assert spoken is not None
    assert len(spoken) < 240


async def test_nothing_found_is_no_error() -> None:
    result = await search(FakeWeb())
    assert result.ok
    assert result.spoken == "I found nothing about that on the web."
    assert result.data == {"query": "tea", "results": []}
