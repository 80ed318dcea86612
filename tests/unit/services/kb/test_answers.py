"""Questions that the records answer are answered with the right sentence; all others are not answered."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from antiphon.authoring.testing import StillClock
from antiphon.embedding.minilm import MiniLmEmbedder
from antiphon.services.kb import Knowledge
from antiphon.services.kb.embedders import LazyEmbedder
from antiphon.storage.memory import MemoryDatabase
from tests.unit.services.kb.handbook import HANDBOOK, KNOWN, PARAPHRASED, UNKNOWN

pytestmark = pytest.mark.real_time


@pytest.fixture(params=["words", "hybrid"])
async def handbook(request: pytest.FixtureRequest, models_dir: Path) -> AsyncIterator[Knowledge]:
    async def load() -> MiniLmEmbedder:
        return MiniLmEmbedder(models_dir)

    database = MemoryDatabase()
    knowledge = Knowledge(database.knowledge, LazyEmbedder(load if request.param == "hybrid" else None), StillClock())
    await knowledge.add(HANDBOOK)
    yield knowledge
    await knowledge.aclose()
    await database.aclose()


async def answer(knowledge: Knowledge, question: str) -> tuple[str, str] | None:
    found = await knowledge.search(question, knowledge.readable("ann"), 3)
    told = await knowledge.answer(question, found)
    return None if told is None else (told.evidence.id, told.text)


async def test_questions_in_the_words_of_a_record_are_answered_by_its_sentence(handbook: Knowledge) -> None:
    for question, id, part in KNOWN:
        told = await answer(handbook, question)
        assert told is not None, question
        assert told[0] == id, question
        assert part in told[1], (question, told[1])


async def test_questions_about_other_things_are_not_answered(handbook: Knowledge) -> None:
    assert [question for question in UNKNOWN if await answer(handbook, question) is not None] == []


@pytest.mark.parametrize("handbook", ["hybrid"], indirect=True)
async def test_questions_in_other_words_are_answered_by_their_meaning(handbook: Knowledge) -> None:
    for question, id in PARAPHRASED:
        told = await answer(handbook, question)
        assert told is not None, question
        assert told[0] == id, question
