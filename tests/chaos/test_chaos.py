"""A short chaos run. `make chaos` runs the long one."""

import pytest

from tests.chaos.conversation import run_conversation
from tests.chaos.report import trace_hash

CONVERSATIONS = 10


@pytest.mark.parametrize("seed", [1, 2])
def test_conversations_survive_chaos(seed: int) -> None:
    stories = [run_conversation(seed, number) for number in range(CONVERSATIONS)]
    assert [problem for story in stories for problem in story.problems] == []
    assert sum(story.faults.total() for story in stories) >= 5 * CONVERSATIONS


def test_the_same_seed_gives_the_same_run() -> None:
    once, again = ([run_conversation(3, number) for number in range(2)] for _ in range(2))
    assert trace_hash(once) == trace_hash(again)
    assert trace_hash(once) != trace_hash([run_conversation(4, 0)])
