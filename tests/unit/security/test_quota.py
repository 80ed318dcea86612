import math

import pytest

from antiphon.security.quota import LIMITS, Account, Buckets, Kind, Limit, Quota, Rate

ANN = Account(session="s1", user="ann", address="192.0.2.1")


def quota(max_buckets: int = 100, **limits: Rate) -> Quota:
    return Quota({Kind.MESSAGE: Limit(**limits)}, max_buckets)


def take(quota: Quota, who: Account, amount: float = 1, now_s: float = 0) -> float:
    return quota.take(Kind.MESSAGE, who, amount, now_s)


@pytest.mark.parametrize(
    ("taken", "amount", "after_s", "wait_s"),
    [
        (0, 10, 0, 0),
        (10, 1, 0, 0.5),
        (10, 10, 0, 5),
        (10, 1, 0.5, 0),
        (10, 2, 0.5, 0.5),
        (10, 10, 4.9, 0.1),
        (10, 10, 5, 0),
        (10, 10, 5_000, 0),
        (4, 6, 0, 0),
        (4, 7, 0, 0.5),
        (10, 0, 0, 0),
        (0, 10.001, 0, math.inf),
        (0, 0.25, 0, 0),
    ],
)
def test_a_bucket_of_10_refills_at_2_per_second(taken: float, amount: float, after_s: float, wait_s: float) -> None:
    limits = quota(user=Rate(per_s=2, burst=10))
    take(limits, ANN, taken, 100)
    assert take(limits, ANN, amount, 100 + after_s) == pytest.approx(wait_s)


def test_a_request_after_the_given_wait_is_admitted() -> None:
    limits = quota(user=Rate(per_s=3, burst=7))
    now_s = 12_345.678
    for _ in range(1_000):
        wait_s = take(limits, ANN, 1.1, now_s)
        if wait_s:
            now_s += wait_s
            assert take(limits, ANN, 1.1, now_s) == 0


def test_a_refused_request_costs_nothing() -> None:
    limits = quota(user=Rate(1, 1))
    take(limits, ANN)
    waits = [take(limits, ANN) for _ in range(10)]
    assert waits == [1.0] * 10


def test_an_idle_bucket_refills_only_to_the_burst() -> None:
    limits = quota(user=Rate(1, 2))
    take(limits, ANN, 2, 0)
    assert [take(limits, ANN, 1, 1_000_000) for _ in range(3)] == [0, 0, 1]


def test_users_do_not_share_a_bucket() -> None:
    limits = quota(user=Rate(1, 1))
    take(limits, Account(user="ann"))
    assert take(limits, Account(user="bob")) == 0


def test_kinds_do_not_share_a_bucket() -> None:
    limits = Quota({Kind.MESSAGE: Limit(user=Rate(1, 1)), Kind.TOOL_CALL: Limit(user=Rate(1, 1))})
    limits.take(Kind.MESSAGE, ANN, 1, 0)
    assert limits.take(Kind.TOOL_CALL, ANN, 1, 0) == 0


def test_a_user_and_an_address_of_the_same_name_are_separate() -> None:
    limits = quota(user=Rate(1, 1), address=Rate(1, 1))
    take(limits, Account(user="x"))
    assert take(limits, Account(address="x")) == 0


def test_the_longest_wait_of_all_accounts_counts() -> None:
    limits = quota(session=Rate(10, 1), user=Rate(0.1, 1), address=Rate(1, 1))
    take(limits, ANN)
    assert take(limits, ANN) == 10


def test_a_refusal_by_address_does_not_cost_the_user() -> None:
    limits = quota(user=Rate(1, 1), address=Rate(1, 1))
    take(limits, Account(address="192.0.2.1"))
    assert take(limits, ANN) == 1
    assert take(limits, Account(user="ann")) == 0


def test_an_unknown_account_is_not_charged() -> None:
    limits = quota(user=Rate(1, 1))
    assert [take(limits, Account(address="192.0.2.1")) for _ in range(3)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2001:db8::1", "2001:db8::ffff:2"),
        ("2001:db8::1", "2001:0db8:0:0:1:2:3:4"),
        ("192.0.2.1", "::ffff:192.0.2.1"),
        ("odd:address", "odd:address"),
    ],
)
def test_addresses_of_one_network_prefix_share_a_bucket(first: str, second: str) -> None:
    limits = quota(address=Rate(1, 1))
    take(limits, Account(address=first))
    assert take(limits, Account(address=second)) == 1


@pytest.mark.parametrize(("first", "second"), [("2001:db8::1", "2001:db8:0:1::1"), ("192.0.2.1", "192.0.2.2")])
def test_addresses_of_two_network_prefixes_do_not_share_a_bucket(first: str, second: str) -> None:
    limits = quota(address=Rate(1, 1))
    take(limits, Account(address=first))
    assert take(limits, Account(address=second)) == 0


@pytest.mark.parametrize("amount", [-1, -0.001, math.nan, math.inf, -math.inf])
def test_an_invalid_amount_is_refused(amount: float) -> None:
    with pytest.raises(ValueError, match="amount"):
        take(quota(user=Rate(1, 1)), ANN, amount)


def test_idle_buckets_are_forgotten() -> None:
    limits = quota(max_buckets=100_000, user=Rate(1, 1))
    for number in range(10_000):
        take(limits, Account(user=f"u{number}"), 1, number)
    assert limits.remembered <= 2


def test_memory_is_bounded_under_attack_from_everywhere() -> None:
    limits = quota(max_buckets=100, user=Rate(0.001, 1))
    for number in range(1_000):
        take(limits, Account(user=f"u{number}"))
    assert limits.remembered <= 100


def test_an_active_account_is_remembered_under_attack() -> None:
    limits = quota(max_buckets=10, user=Rate(0.001, 5))
    admitted = 0
    for number in range(100):
        take(limits, Account(user=f"u{number}"))
        admitted += take(limits, Account(user="greedy")) == 0
    assert admitted == 5


def test_an_untouched_bucket_is_not_kept() -> None:
    buckets = Buckets(Rate(1, 1))
    buckets.take("a", 0, 5)
    assert buckets.remembered == 0


def test_a_quota_of_which_nothing_was_taken_is_a_quota() -> None:
    limits = Quota()
    assert limits.remembered == 0
    assert limits


def test_real_time_speech_is_never_refused() -> None:
    limits = Quota()
    waits = {limits.take(Kind.AUDIO_S, ANN, 0.02, frame * 0.02) for frame in range(50 * 600)}
    assert waits == {0}


def test_a_sound_card_that_runs_fast_is_not_refused_within_a_day() -> None:
    limits = Quota()
    waits = {limits.take(Kind.AUDIO_S, ANN, 2.018, second) for second in range(0, 24 * 3_600, 2)}
    assert waits == {0}


def test_at_most_thirty_seconds_of_audio_may_come_at_once() -> None:
    limits = Quota()
    admitted = sum(limits.take(Kind.AUDIO_S, ANN, 1, 0) == 0 for _ in range(100))
    assert admitted == 30


def test_user_actions_are_limited_per_user_and_address() -> None:
    of_users = {Kind.CONNECTION, Kind.MESSAGE, Kind.AUDIO_S, Kind.TOOL_CALL}
    assert all(LIMITS[kind].user and LIMITS[kind].address for kind in of_users)


def test_wrong_tokens_are_charged_only_to_the_address() -> None:
    assert LIMITS[Kind.WRONG_TOKEN].address
    assert LIMITS[Kind.WRONG_TOKEN].user is None


def test_asking_how_long_to_wait_costs_nothing() -> None:
    limits = quota(address=Rate(1, 2))
    assert [limits.wait_s(Kind.MESSAGE, ANN, 2, 0) for _ in range(5)] == [0.0] * 5
    take(limits, ANN, 2)
    assert limits.wait_s(Kind.MESSAGE, ANN, 1, 0) == 1.0


def test_what_is_taken_here_is_shared_once_a_tenth_is_used() -> None:
    limits = quota(user=Rate(per_s=1, burst=100))
    take(limits, ANN, 9)
    assert limits.unshared(0) == {}
    take(limits, ANN, 1)
    assert limits.unshared(0) == {"message:user:ann": 10}


def test_limits_of_a_session_are_not_shared() -> None:
    limits = quota(session=Rate(per_s=1, burst=10))
    take(limits, ANN, 10)
    assert limits.unshared(0) == {}


def test_what_others_have_taken_counts_here() -> None:
    limits = quota(address=Rate(per_s=1, burst=100))
    take(limits, ANN, 20)
    uses_s = limits.unshared(0)
    limits.share(uses_s, dict.fromkeys(uses_s, 95.0), 0)
    assert take(limits, ANN, 5) == 0
    assert take(limits, ANN, 1) == 1
    assert limits.unshared(0) == {"message:address:192.0.2.1": 5}


def test_what_is_taken_while_it_is_being_shared_is_not_forgotten() -> None:
    limits = quota(user=Rate(per_s=1, burst=100))
    take(limits, ANN, 20)
    uses_s = limits.unshared(0)
    take(limits, ANN, 30)
    limits.share(uses_s, dict.fromkeys(uses_s, 20.0), 0)
    assert take(limits, ANN, 51) == 1
    assert limits.unshared(0) == {"message:user:ann": 30}


def test_a_bucket_that_has_filled_up_again_is_not_shared() -> None:
    limits = quota(user=Rate(per_s=1, burst=10))
    take(limits, ANN, 5)
    assert limits.unshared(10) == {}
    take(limits, ANN, 2, 10)
    assert limits.unshared(10) == {"message:user:ann": 2}


def test_a_key_with_colons_is_shared() -> None:
    limits, who = quota(address=Rate(per_s=1, burst=10)), Account(address="2001:db8::1")
    take(limits, who, 5)
    uses_s = limits.unshared(0)
    limits.share(uses_s, dict.fromkeys(uses_s, 10.0), 0)
    assert take(limits, who) == 1


def test_refusals_are_counted_by_their_kind_unless_the_caller_can_do_with_less() -> None:
    quota, who = Quota({Kind.TOOL_CALL: Limit(user=Rate(per_s=1, burst=2))}), Account(user="ann")
    assert quota.take(Kind.TOOL_CALL, who, 2, 0.0) == 0
    assert quota.take(Kind.TOOL_CALL, who, 1, 0.0, is_optional=True) > 0
    assert quota.refusals[Kind.TOOL_CALL] == 0
    assert quota.take(Kind.TOOL_CALL, who, 1, 0.0) > 0
    assert quota.refusals == {Kind.TOOL_CALL: 1}


def test_what_has_filled_up_again_before_it_was_shared_is_not_shared_later() -> None:
    limits = quota(user=Rate(per_s=1, burst=100))
    take(limits, ANN, 50)
    uses_s = limits.unshared(1)
    assert uses_s == {"message:user:ann": 49}
    limits.share(uses_s, uses_s, 1)
    assert limits.unshared(1) == {}
    assert limits.unshared(2) == {}
    assert take(limits, ANN, 52, 1) == 1
