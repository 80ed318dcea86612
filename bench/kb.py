"""Measures the knowledge base: how fast records are imported, and how fast natural questions are searched.

The records are generated: facts about made-up projects, in plain words, with sentences of Python's documentation around
them. The questions are those that people would ask about them. Beside it, in the same run and on the same records, are
FTS5 as one would use it without thinking (all words of the question, joined by OR) and a product with all vectors in
numpy, and the same search on a Postgres with pgvector. A record's vector is the mean of its sentences' vectors, since
embedding 100,000 texts would take an hour.
"""

import argparse
import asyncio
import json
import re
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Final

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from antiphon.clock import SystemClock
from antiphon.config import load
from antiphon.embedding.minilm import MiniLmEmbedder
from antiphon.services.kb import Knowledge
from antiphon.services.kb.embedders import LazyEmbedder
from antiphon.services.kb.terms import terms, words
from antiphon.services.kb.vectors import pack
from antiphon.storage.knowledge import Namespace, Record, RecordType
from antiphon.storage.sql import Database, open_database
from antiphon.storage.sql.full_text_sqlite import NAME, quote
from tests.fakes.postgres import run_postgres

RESULTS: Final = Path(__file__).parent / "results"
RECORDS: Final = 100_000
QUESTIONS: Final = 300
TOP: Final = 10
LIMITS_MS: Final = {"p50": 20.0, "p99": 50.0}
RECORDS_PER_S: Final = 2_000
SET_AT_ONCE: Final = 2_000
SENTENCES_STEP: Final = 4
"""Every fourth sentence is enough: 650 of them."""
DEPARTMENTS: Final = ("finance", "research", "support", "logistics", "design", "legal", "sales", "training")
_FIRST: Final = re.findall("[A-Z][a-z]+", "AlBeCorDaElFenGorHalIsJorKelLorMarNorOsPerQuinRalSalTorUrVelWenYarZel")
_LAST: Final = ["den", "mar", "vik", "ton", "son", "ley", "wyn", "ric", "dar", "mir", "lin", "bert", "holm", "grove"]
NAMES: Final = [first + last for first in _FIRST for last in _LAST]


@dataclass(frozen=True, slots=True)
class Fact:
    """What a record says, and the numbers of its sentences in the pool."""

    project: str
    place: str
    lead: str
    department: str
    budget: int
    sentences: tuple[int, ...]


def collect_sentences() -> list[str]:
    text = (re.sub(r"\s+", " ", topic) for topic in topics.values())
    found = (sentence.strip() for topic in text for sentence in re.split(r"(?<=[.])\s+", topic))
    return [sentence for sentence in found if 40 < len(sentence) < 240][::SENTENCES_STEP]


def make_facts(count: int, sentences: int, rng: Random) -> list[Fact]:
    return [
        Fact(
            project=rng.choice(NAMES),
            place=rng.choice(NAMES),
            lead=f"{rng.choice(NAMES)} {rng.choice(NAMES)}",
            department=rng.choice(DEPARTMENTS),
            budget=rng.randint(10, 999),
            sentences=tuple(rng.randrange(sentences) for _ in range(rng.randint(2, 5))),
        )
        for _ in range(count)
    ]


def make_record(number: int, fact: Fact, pool: Sequence[str]) -> Record:
    told = (
        f"The {fact.project} project in {fact.place} is led by {fact.lead} for the {fact.department} department. "
        f"Its budget is {fact.budget} thousand euros. "
    )
    return Record(
        id=f"project:number_{number}",
        namespace=Namespace.STUDIO,
        type=RecordType.PROJECT,
        title=f"{fact.project} in {fact.place}",
        body=told + " ".join(pool[each] for each in fact.sentences),
        tags=(fact.department,),
        source_type="generated",
        last_updated_ms=1_700_000_000_000 + number,
    )


def make_questions(facts: Sequence[Fact], pool: Sequence[str], rng: Random) -> list[str]:
    """Half of them ask for a fact, and half are about the sentences around it."""
    questions = []
    for number in range(QUESTIONS):
        fact = rng.choice(facts)
        told = [word.text for word in words(pool[fact.sentences[0]]) if word.text.isalpha() and len(word.text) > 3]
        some = (rng.sample(told, 4) if len(told) >= 4 else told * 4)[:4]
        questions.append(
            (
                f"what is the budget of the {fact.project} project in {fact.place}",
                f"how does {some[0]} work together with {some[1]} and {some[2]}",
                f"who leads the {fact.department} work on {fact.project} in {fact.place}",
                f"what should I know about {some[0]} {some[1]} when the {some[2]} is a {some[3]}",
            )[number % 4]
        )
    return questions


def make_vectors(facts: Sequence[Fact], pool: Sequence[str], embedder: MiniLmEmbedder) -> NDArray[np.float32]:
    sentences, names = embedder.embed_now(pool), embedder.embed_now(NAMES)
    named = dict(zip(NAMES, names, strict=True))
    rows = np.stack(
        [sentences[list(fact.sentences)].sum(axis=0) + named[fact.project] + named[fact.place] for fact in facts]
    )
    unit: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


Search = Callable[[str], Awaitable[object]]


async def time_all(search: Search, questions: Sequence[str]) -> dict[str, float]:
    """Returns the milliseconds of a search, and the milliseconds that it takes of this process's processor."""
    for question in questions[:10]:
        await search(question)
    took = []
    processor_s = process_time()
    for question in questions:
        begun = perf_counter()
        await search(question)
        took.append((perf_counter() - begun) * 1000)
    processor_ms = (process_time() - processor_s) * 1000 / len(questions)
    p50, p99 = np.percentile(took, [50, 99])
    return {"p50": float(p50), "p99": float(p99), "processor": processor_ms}


async def add_records(knowledge: Knowledge, records: Sequence[Record]) -> float:
    """Returns how many records were added a second."""
    begun = perf_counter()
    await knowledge.add(records, by_meaning=False)
    return len(records) / (perf_counter() - begun)


async def add_vectors(database: Database, vectors: NDArray[np.float32], embedder: MiniLmEmbedder) -> list[int]:
    """Returns the passages, in the order of the vectors."""
    await database.knowledge.clear_vectors(embedder.name)
    passages = [seq for seq, _, _ in await database.knowledge.without_vector(len(vectors))]
    assert len(passages) == len(vectors), "a record must have one passage here"
    packed = list(zip(passages, pack(vectors), strict=True))
    for start in range(0, len(packed), SET_AT_ONCE):
        await database.knowledge.set_vectors(packed[start : start + SET_AT_ONCE])
    return passages


async def measure(count: int, folder: Path, console: Console) -> dict[str, dict[str, float]]:
    rng, pool = Random(7), collect_sentences()
    facts = make_facts(count, len(pool), rng)
    records = [make_record(number, fact, pool) for number, fact in enumerate(facts)]
    questions = make_questions(facts, pool, rng)
    embedder = MiniLmEmbedder(load(None).models_dir)
    database = await open_database(folder / "bench.db")

    async def get_embedder() -> MiniLmEmbedder:
        return embedder

    figures: dict[str, dict[str, float]] = {}
    by_words = Knowledge(database.knowledge, LazyEmbedder(None), SystemClock())
    with console.status("Importing"):
        figures["import"] = {"records_per_s": await add_records(by_words, records)}
    with console.status("Making vectors"):
        vectors = make_vectors(facts, pool, embedder)
        passages = await add_vectors(database, vectors, embedder)
    hybrid = Knowledge(database.knowledge, LazyEmbedder(get_embedder), SystemClock())
    readable = by_words.readable("ann")
    begun = perf_counter()
    await hybrid.warm()
    figures["load vectors"] = {"seconds": perf_counter() - begun}
    with sqlite3.connect(folder / "bench.db") as plain:

        async def naive(question: str) -> object:
            query = " OR ".join(quote(word.text) for word in words(question))
            statement = f"SELECT rowid FROM {NAME} WHERE {NAME} MATCH ? ORDER BY rank LIMIT ?"
            return plain.execute(statement, (query, TOP)).fetchall()

        async def brute(question: str) -> NDArray[np.intp]:
            near = vectors @ embedder.embed_now([question])[0]
            best = np.argpartition(-near, TOP)[:TOP]
            return best[np.argsort(-near[best])]

        ways: dict[str, Search] = {
            "plain FTS5, all words": naive,
            "words": lambda question: by_words.search(question, readable, TOP),
            "numpy, all vectors": brute,
            "hybrid": lambda question: hybrid.search(question, readable, TOP),
        }
        for name, search in ways.items():
            with console.status(f"Searching: {name}"):
                figures[name] = await time_all(search, questions)
        figures["vectors kept by signs"] = {"of ten": await agreement(hybrid, brute, passages, questions, embedder)}
    plain.close()
    figures["words per question"] = {"mean": float(np.mean([len(terms(question)) for question in questions]))}
    await database.aclose()
    figures |= await measure_pgvector(records, vectors, questions, embedder, console)
    await embedder.aclose()
    return figures


async def measure_pgvector(
    records: Sequence[Record],
    vectors: NDArray[np.float32],
    questions: Sequence[str],
    embedder: MiniLmEmbedder,
    console: Console,
) -> dict[str, dict[str, float]]:
    async def get_embedder() -> MiniLmEmbedder:
        return embedder

    figures: dict[str, dict[str, float]] = {}
    with run_postgres({"shared_buffers": "512MB", "autovacuum": "on"}, has_pgvector=True) as server:
        url = server.make_database()
        database = await open_database(url)
        knowledge = Knowledge(database.knowledge, LazyEmbedder(get_embedder), SystemClock())
        readable = knowledge.readable("ann")
        with console.status("Importing into Postgres"):
            figures["import into Postgres"] = {"records_per_s": await add_records(knowledge, records)}
            passages = await add_vectors(database, vectors, embedder)
        with console.status("Making the index of pgvector"):
            begun = perf_counter()
            assert await database.knowledge.make_vector_index()
            figures["index"] = {"seconds": perf_counter() - begun}
            server.execute("VACUUM ANALYZE", url.rpartition("/")[2])
        with console.status("Searching: hybrid, pgvector"):
            await knowledge.warm()
            figures["hybrid, pgvector"] = await time_all(lambda it: knowledge.search(it, readable, TOP), questions)
        shared = []
        for question in questions[:100]:
            asked = embedder.embed_now([question])[0]
            nearest = {passages[n] for n in np.argsort(-(vectors @ asked))[:TOP]}
            found = await database.knowledge.nearest(asked.tolist(), readable, TOP)
            shared.append(len(nearest & {passage for passage, _ in found}))
        figures["vectors found by pgvector"] = {"of ten": float(np.mean(shared))}
        await database.aclose()
    return figures


async def agreement(
    hybrid: Knowledge,
    brute: Callable[[str], Awaitable[NDArray[np.intp]]],
    passages: Sequence[int],
    questions: Sequence[str],
    embedder: MiniLmEmbedder,
) -> float:
    """Returns how many of the ten nearest vectors the search by signs finds."""
    index = hybrid.vectors
    assert index is not None
    shared = []
    for question in questions[:100]:
        nearest = {passages[n] for n in await brute(question)}
        found = index.search(embedder.embed_now([question])[0], TOP, places=set(index.place_names))
        shared.append(len(nearest & {passage for passage, _ in found}))
    return float(np.mean(shared))


def show(figures: dict[str, dict[str, float]], count: int, console: Console) -> list[str]:
    table = Table(title=f"{count:,} records, {QUESTIONS} questions, times in ms")
    for column in ("search", "p50", "p99", "processor", "p50, ratio"):
        table.add_column(column, justify="left" if column == "search" else "right")
    beside = {"words": "plain FTS5, all words", "hybrid": "numpy, all vectors", "hybrid, pgvector": "hybrid"}
    missed = []
    for name, each in figures.items():
        if "p50" not in each:
            continue
        ratio = f"{each['p50'] / figures[beside[name]]['p50']:.2f} × {beside[name]}" if name in beside else ""
        table.add_row(name, f"{each['p50']:.1f}", f"{each['p99']:.1f}", f"{each['processor']:.1f}", ratio)
        if name in ("words", "hybrid"):
            missed += [f"{name} {key}" for key, most in LIMITS_MS.items() if each[key] > most]
    console.print(table)
    rate = figures["import"]["records_per_s"]
    console.print(f"Import without vectors: {rate:,.0f} records/s (at least {RECORDS_PER_S:,})")
    console.print(f"Vectors loaded at the start: {figures['load vectors']['seconds']:.2f} s")
    console.print(
        f"Of the ten nearest vectors, the search by signs finds {figures['vectors kept by signs']['of ten']:.1f}"
    )
    console.print(
        f"Postgres: {figures['import into Postgres']['records_per_s']:,.0f} records/s imported, "
        f"{figures['index']['seconds']:.0f} s for the index of pgvector, which finds "
        f"{figures['vectors found by pgvector']['of ten']:.1f} of the ten nearest vectors"
    )
    return missed + (["import"] if rate < RECORDS_PER_S else [])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=RECORDS, metavar="N")
    count = parser.parse_args().records
    console = Console()
    with TemporaryDirectory() as folder:
        figures = asyncio.run(measure(count, Path(folder), console))
    missed = show(figures, count, console)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "kb.json").write_text(json.dumps(figures, indent=2) + "\n")
    if missed:
        console.print(f"Missed: {', '.join(missed)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
