import pytest

from antiphon.client import Backoff


@pytest.mark.parametrize(("attempt", "whole_s"), [(1, 0.5), (2, 1), (3, 2), (6, 16), (7, 30), (8, 30), (5_000, 30)])
def test_the_wait_doubles_up_to_30_seconds(attempt: int, whole_s: float) -> None:
    assert Backoff(jitter=lambda: 1.0).delay_s(attempt) == whole_s


def test_chance_takes_away_at_most_half() -> None:
    assert Backoff(jitter=lambda: 0.0).delay_s(2) == 0.5
