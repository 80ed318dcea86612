"""How well the search by words ranks, over every backend: a passage that is looked for by its words comes first."""

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.services.kb.terms import terms
from antiphon.storage.knowledge import Namespace, Passage, Readable, Record, RecordType
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.sql import Database

pytestmark = pytest.mark.real_time

DOCS = Path(__file__).parents[2] / "docs"
QUERIES = 100
WORDS = 4


def read_passages() -> Iterator[tuple[str, str]]:
    """The paragraphs of our own guides, each with its heading."""
    for path in sorted(DOCS.glob("*.md")):
        heading = path.stem
        for part in re.split(r"\n\n|\n(?=#)", path.read_text()):
            if part.startswith("#"):
                heading = part.strip("# ").partition("\n")[0]
            elif len(part.split()) > 12:
                yield heading, part[:1_500]


async def test_a_passage_that_is_looked_for_by_its_words_is_among_the_first(
    database: MemoryDatabase | Database,
) -> None:
    passages = list(read_passages())
    store = database.knowledge
    records = [
        Record(
            id=f"doc:{number}",
            namespace=Namespace.STUDIO,
            type=RecordType.DOC,
            title=heading,
            body=body,
            source_type="text",
            last_updated_ms=number,
        )
        for number, (heading, body) in enumerate(passages)
    ]
    await store.stage("b1", [(each, [Passage(each.body)]) for each in records])
    await store.publish("b1")
    seqs = sorted(await store.readable_passages(Readable("ann")))
    chance = random.Random(1)
    ranks: list[float] = []
    while len(ranks) < QUERIES:
        wanted = chance.randrange(len(passages))
        words = terms(" ".join(chance.sample(passages[wanted][1].split(), 8)))[:WORDS]
        if len(words) == WORDS:
            found = list(await store.match(words, 10))
            ranks.append(1 / (found.index(seqs[wanted]) + 1) if seqs[wanted] in found else 0)
    assert sum(ranks) / QUERIES > 0.85
