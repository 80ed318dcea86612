"""A short chaos run. `make chaos` runs the long one."""

from tests.chaos.conversation import run_conversation
from tests.chaos.report import trace_hash


def test_the_same_seed_gives_the_same_run() -> None:
    once, again = ([run_conversation(3, number) for number in range(2)] for _ in range(2))
    assert trace_hash(once) == trace_hash(again)
    assert trace_hash(once) != trace_hash([run_conversation(4, number) for number in range(2)])
