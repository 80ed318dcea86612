"""Tidying comes in time, for any number of sessions."""

from antiphon.storage.sql.pruning import PruneCounter


def test_pruning_is_due_after_a_given_amount_and_then_the_count_restarts() -> None:
    tally = PruneCounter(3)
    assert [tally.add("s1") for _ in range(7)] == [False, False, True, False, False, True, False]


def test_amounts_add_up() -> None:
    tally = PruneCounter(100)
    assert [tally.add("s1", amount) for amount in (60, 39, 1, 500)] == [False, False, True, True]


def test_sessions_are_counted_separately() -> None:
    tally = PruneCounter(2)
    assert [tally.add(id) for id in ("s1", "s2", "s1", "s2")] == [False, False, True, True]


def test_the_least_recently_seen_session_is_forgotten() -> None:
    tally = PruneCounter(3, sessions_counted=2)
    for id in ("s1", "s2", "s1", "s3"):
        tally.add(id)
    assert tally.add("s1") is True
    assert [tally.add("s2") for _ in range(3)] == [False, False, True]
