"""Runs many conversations in chaos and reports what happened: `python -m tests.chaos --seed 1 --conversations 200`."""

import argparse
import hashlib
import sys
import time
from collections import Counter

from tests.chaos.conversation import Story, run_conversation


def trace_hash(stories: list[Story]) -> str:
    return hashlib.sha256("\n".join(line for story in stories for line in story.trace).encode()).hexdigest()[:16]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--conversations", type=int, default=200)
    parser.add_argument("--only", type=int, help="run this conversation alone, and print everything about it")
    options = parser.parse_args()
    numbers = range(options.conversations) if options.only is None else [options.only]
    began_s = time.monotonic()
    stories = []
    for number in numbers:
        story = run_conversation(options.seed, number)
        stories.append(story)
        if options.only is not None:
            print("\n".join([*story.details, *story.trace]))
        for problem in story.problems:
            print(f"conversation {number}: {problem}", flush=True)
    faults = sum((story.faults for story in stories), Counter())
    outcomes = Counter(turn.outcome for story in stories for turn in story.turns)
    problems = Counter(problem.partition(":")[0] for story in stories for problem in story.problems)
    for title, counted in (("faults", faults), ("turns", outcomes), ("problems", problems)):
        print(f"\n{title}: {counted.total()}")
        print("\n".join(f"{count:6} {name}" for name, count in counted.most_common()))
    took_s = time.monotonic() - began_s
    print(f"\n{len(stories)} conversations, seed {options.seed}, trace {trace_hash(stories)}, {took_s:.0f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
