from collections.abc import Sequence
from pathlib import Path

from antiphon.authoring.testing import load_module, make_context
from antiphon.tools.capabilities.web import QuickAnswer, SearchResult
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult

handler = load_module(Path(__file__).parents[1])


class FakeWeb:
    def __init__(self, answer: QuickAnswer | None) -> None:
        self._answer = answer

    async def search(self, query: str, limit: int) -> Sequence[SearchResult]:
        raise AssertionError

    async def answer(self, query: str) -> QuickAnswer | None:
        return self._answer


async def ask(answer: QuickAnswer | None) -> ToolResult:
    result: ToolResult = await handler.execute(
        {"query": " Ada  Lovelace"}, make_context(granted={"web": FakeWeb(answer)})
    )
    return result


async def test_two_sentences_are_said_with_their_source() -> None:
    text = "Ada was a mathematician. She wrote programs. She lived in London."
    result = await ask(QuickAnswer("Ada Lovelace", text, "Wikipedia", "https://en.wikipedia.org/wiki/Ada_Lovelace"))
    assert result.spoken == "According to Wikipedia: Ada was a mathematician. She wrote programs."
    assert result.data["answer"] == text
    [citation] = result.citations
    assert (citation.title, citation.url) == ("Ada Lovelace (Wikipedia)", "https://en.wikipedia.org/wiki/Ada_Lovelace")


async def test_an_answer_may_have_no_address() -> None:
    result = await ask(QuickAnswer("6 x 7", "42", "DuckDuckGo", None))
    assert result.spoken == "According to DuckDuckGo: 42"
    assert result.data["url"] is None


async def test_no_answer_is_not_found() -> None:
    error = (await ask(None)).error
    assert error is not None
    assert error.type is ErrorType.NOT_FOUND
    assert error.message == "I couldn't find a short answer about Ada Lovelace."
