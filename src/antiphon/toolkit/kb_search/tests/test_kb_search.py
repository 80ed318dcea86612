from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from antiphon.authoring.testing import load_module, make_context
from antiphon.tools.capabilities.kb import Answer, Evidence, Found
from antiphon.tools.result import Citation

handler = load_module(Path(__file__).parents[1])

TEA = Evidence(
    id="doc:tea",
    namespace="studio",
    type="doc",
    title="Tea",
    snippet="Tea is in the cupboard.",
    text="Tea is in the cupboard.",
    score=0.9,
    coverage=1.0,
    similarity=None,
    tags=(),
    source_type="text",
    source="/tea.txt",
    last_updated="2026-01-01T12:00:00Z",
    url=None,
    metadata={},
)


@dataclass
class FakeKnowledge:
    results: tuple[Evidence, ...] = (TEA,)
    answers: bool = True
    asked: dict[str, Any] = field(default_factory=dict)

    async def search(self, query: str, **wanted: Any) -> Found:
        self.asked = wanted
        return Found(self.results, by_meaning=True)

    async def answer(self, question: str, found: Found) -> Answer | None:
        return Answer(found.results[0], "Tea is in the cupboard.") if self.answers and found.results else None


async def run(kb: FakeKnowledge, **args: Any) -> Any:
    return await handler.execute({"top_k": 5, "include_snippets": True, **args}, make_context(granted={"kb": kb}))


async def test_a_question_is_answered_with_its_source() -> None:
    result = await run(FakeKnowledge(), query="where is the tea")
    assert result.spoken == "According to “Tea”: Tea is in the cupboard."
    assert result.citations == (Citation("doc:tea", "Tea"),)
    assert result.data["search"] == "hybrid"


async def test_words_that_ask_nothing_get_the_best_passage() -> None:
    result = await run(FakeKnowledge(), query="tea")
    assert result.spoken == "In “Tea” I found: Tea is in the cupboard."
    assert result.data["answer"] is None


async def test_a_question_without_an_answer_is_not_answered() -> None:
    result = await run(FakeKnowledge(answers=False), query="who drinks tea")
    assert result.spoken == "I found nothing that clearly answers that. The closest is “Tea”."


async def test_records_whose_text_was_not_returned_are_not_cited() -> None:
    assert (await run(FakeKnowledge(answers=False), query="who drinks tea", include_snippets=False)).citations == ()
    assert (await run(FakeKnowledge(answers=False), query="who drinks tea")).citations == (Citation("doc:tea", "Tea"),)


@pytest.mark.parametrize("name", ["start", "end"])
async def test_dates_are_passed_on_with_their_zone(name: str) -> None:
    kb = FakeKnowledge()
    await run(kb, query="tea", filters={"date_range": {name: "2026-01-01T00:00:00Z"}})
    assert kb.asked[name].isoformat() == "2026-01-01T00:00:00+00:00"
