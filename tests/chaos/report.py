"""Runs many conversations in chaos, and reports what happened."""

import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Sequence

from tests.chaos.conversation import Story, run_conversation


def trace_hash(stories: Sequence[Story]) -> str:
    """The same for two runs in which the same has happened at the same times."""
    return hashlib.sha256("\n".join(line for story in stories for line in story.trace).encode()).hexdigest()[:16]


def run(seed: int, numbers: Iterable[int], *, shows_details: bool = False) -> bool:
    """Returns whether everything held that must hold."""
    began_s = time.monotonic()
    stories: list[Story] = []
    for number in numbers:
        story = run_conversation(seed, number)
        stories.append(story)
        if shows_details:
            print("\n".join([*story.details, *story.trace]))
        for problem in story.problems:
            print(f"conversation {number}: {problem}", flush=True)
    _print_counts("faults", Counter(fault for story in stories for fault in story.faults.elements()))
    _print_counts("turns", Counter(turn.outcome for story in stories for turn in story.turns))
    problems = Counter(problem.partition(":")[0] for story in stories for problem in story.problems)
    _print_counts("problems", problems)
    took_s = time.monotonic() - began_s
    print(f"\n{len(stories)} conversations with the seed {seed} in {took_s:.0f} s; trace {trace_hash(stories)}")
    return not problems


def _print_counts(title: str, counted: "Counter[str]") -> None:
    print(f"\n{title}: {counted.total()}")
    for name, count in counted.most_common():
        print(f"{count:6} {name}")
