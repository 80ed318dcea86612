"""Measures the offline assistant: how long its sentences take to compile and its examples to learn, how fast it
understands a text with all tiers, and how much memory the second one takes.

The texts are those of tests/unit/models/builtin/test_requests.py, requests for every built-in tool and sentences that
are none, and examples of the tools, which few templates match. Beside it, in the same process, are hassil as one would
use it without an index (`recognize_all` over all templates: it only matches, and has neither guesses nor suggestions),
and the tool of the nearest example, with no grammar and no arguments. All figures are processor time on one core, since
another program may run on the machine. It needs the embedding model: `antiphon models pull minilm`.
"""

import argparse
import json
import resource
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import median, quantiles
from time import process_time
from typing import Final

import numpy as np
from hassil import Intents, recognize_all
from rich.console import Console
from rich.table import Table

from antiphon.config import load
from antiphon.embedding.minilm import MiniLmEmbedder
from antiphon.models.builtin.meaning import Meaning, normalize
from antiphon.models.builtin.understanding import Understanding
from antiphon.models.builtin.understood import Run
from antiphon.sentences import templates
from antiphon.sentences.matching import LANGUAGE, Template
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.templates import parse
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.fakes.toolkit import built_in
from tests.unit.models.builtin.test_requests import NO_REQUESTS, REQUESTS

RESULTS: Final = Path(__file__).parent / "results"
COMPILATIONS: Final = 5
EVERY: Final = 3
"""Each third example of a tool is understood, and not learned."""
MODE: Final = Mode.VOICE
LIMITS_MS: Final = {"compile": 600.0, "all tiers": 20.0, "completeness": 10.0}
"""The limits of the 99th percentile, and of the median of the few compilations."""
MEDIAN_LIMIT_MS: Final = 6.0
"""The limit of the median of all tiers."""


@dataclass(frozen=True, slots=True)
class Spread:
    p50: float
    p99: float


def time_ms(work: Callable[[], object]) -> float:
    started = process_time()
    work()
    return (process_time() - started) * 1_000


def spread(times: Sequence[float]) -> Spread:
    return Spread(median(times), quantiles(times, n=100, method="inclusive")[98])


def compile_all(tools: dict[str, Tool]) -> Understanding:
    """Compiles as the start of a server does, without what was parsed before."""
    templates._compile.cache_clear()
    templates._shared.cache_clear()
    return Understanding(tools)


def plain(all_templates: Sequence[Template]) -> Callable[[str], object]:
    """Returns a function that matches a text against all templates, one after the other."""
    intents = [Intents(LANGUAGE, {t.compiled.intent.name: t.compiled.intent}) for t in all_templates]

    def match(text: str) -> object:
        said = Phrase(text).text
        return list(chain.from_iterable(recognize_all(said, each) for each in intents))

    return match


def resident_mb() -> float:
    """Returns the memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def nearest(embedder: MiniLmEmbedder, examples: Sequence[tuple[str | None, str]]) -> Callable[[str], object]:
    """Returns a function that finds the tool of the nearest example."""
    rows = embedder.embed_now([text for _, text in examples])

    def find(text: str) -> object:
        # Not by `@`, whose threads would spin on all cores.
        return examples[int(np.einsum("ij,j->i", rows, embedder.embed_now([normalize(text)])[0]).argmax())][0]

    return find


def tier_of(understanding: Understanding, text: str) -> str:
    understood = understanding.understand(text, MODE)
    return f"tier: {understood.tier}" if isinstance(understood, Run) else "tier: other"


def measure(rounds: int) -> tuple[dict[str, Spread], dict[str, float]]:
    tools = built_in()
    compiling = [time_ms(partial(compile_all, tools)) for _ in range(COMPILATIONS)]
    grammars = [parse(tool_id, tool.sentences) for tool_id, tool in tools.items() if tool.sentences is not None]
    alone = plain([template for grammar in grammars for template in grammar.templates])
    texts = [*(said for asked in REQUESTS.values() for said, _ in asked), *NO_REQUESTS]
    texts += [example for grammar in grammars for example in grammar.examples[::EVERY]]

    before_mb = resident_mb()
    embedder = MiniLmEmbedder(load(None).models_dir)
    embedder.embed_now(["what time is it"])
    others = {"memory of the embedding model, MB": resident_mb() - before_mb}
    # Part of the examples is understood below, so they are not learned here: nobody says an example word for word.
    left_out = {normalize(text) for text in texts}
    examples = [each for each in Understanding(tools).known_requests() if each[1] not in left_out]
    began = process_time()
    meaning = Meaning.fit(examples, embedder.embed_now([text for _, text in examples]))
    others |= {"learning, s": process_time() - began, "examples": float(len(examples))}
    others["memory of the embedding model and of learning, MB"] = resident_mb() - before_mb

    times: dict[str, list[float]] = {"all tiers": [], "completeness": []}
    for _ in range(rounds):
        # A new one for each round, since it remembers what it has understood.
        understanding = Understanding(tools)
        for text in texts:
            times["completeness"].append(time_ms(partial(understanding.completeness, text, MODE)))
        understanding = Understanding(tools)
        understanding.learn(meaning, embedder.embed_now)
        for text in texts:
            taken = time_ms(partial(understanding.understand, text, MODE))
            times["all tiers"].append(taken)
            times.setdefault(tier_of(understanding, text), []).append(taken)
    neighbour = nearest(embedder, examples)
    times["nearest example"] = [time_ms(partial(neighbour, text)) for text in texts]
    times["plain hassil"] = [time_ms(partial(alone, text)) for text in texts]
    return {"compile": spread(compiling)} | {name: spread(each) for name, each in times.items()}, others


def show(figures: dict[str, Spread], others: dict[str, float], console: Console) -> list[str]:
    table = Table(title="The offline assistant, processor time in ms")
    for column in ("what", "p50", "p99", "p50, ratio to plain hassil"):
        table.add_column(column, justify="left" if column == "what" else "right")
    beside = figures["plain hassil"].p50
    for name, each in figures.items():
        ratio = f"{each.p50 / beside:.3f} ×" if name != "compile" else ""
        table.add_row(name, f"{each.p50:.2f}", f"{each.p99:.2f}", ratio)
    console.print(table)
    for name, value in others.items():
        console.print(f"{name}: {value:,.1f}")
    reached = {name: each.p50 if name == "compile" else each.p99 for name, each in figures.items()}
    missed = [name for name, most in LIMITS_MS.items() if reached[name] > most]
    return [*missed, *(["the median of all tiers"] if figures["all tiers"].p50 > MEDIAN_LIMIT_MS else [])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2, metavar="N", help="how often each text is understood")
    rounds = parser.parse_args().rounds
    if rounds < 1:
        parser.error("--rounds must be at least 1")
    console = Console()
    figures, others = measure(rounds)
    missed = show(figures, others, console)
    RESULTS.mkdir(exist_ok=True)
    told: dict[str, object] = {name: {"p50": each.p50, "p99": each.p99} for name, each in figures.items()}
    told |= others
    (RESULTS / "understanding.json").write_text(json.dumps(told, indent=2) + "\n")
    if missed:
        console.print(f"Missed: {', '.join(missed)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
