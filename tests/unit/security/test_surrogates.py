"""Text that no UTF-8 can hold becomes text that it can."""

from typing import Any

import pytest

from antiphon.security.surrogates import StreamRepairer, repair, repair_json


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ("", ""),
        ("plain", "plain"),
        ("Gr\u00fc\u00dfe \U0001f600", "Gr\u00fc\u00dfe \U0001f600"),
        ("\ud83d\ude00", "\U0001f600"),
        ("a\ud83d", "a\ufffd"),
        ("\ude00b", "\ufffdb"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83dx\ude00 \U0001f600", "\ufffdx\ufffd \U0001f600"),
    ],
)
def test_pairs_are_joined_and_lone_halves_replaced(text: str, repaired: str) -> None:
    assert repair(text) == repaired


def test_keys_and_values_at_every_depth_are_repaired() -> None:
    value: Any = {"\ud83d": [{"a": "\ude00"}, 1, None, True, 1.5]}
    assert repair_json(value) == {"\ufffd": [{"a": "\ufffd"}, 1, None, True, 1.5]}


def test_a_pair_split_over_two_chunks_is_one_character() -> None:
    repairer = StreamRepairer()
    pieces = [repairer.push("Hi \ud83d"), repairer.push(""), repairer.push("\ude00!"), repairer.finish()]
    assert pieces == ["Hi ", "", "\U0001f600!", ""]


def test_a_half_at_the_end_is_replaced() -> None:
    repairer = StreamRepairer()
    assert [repairer.push("Hi \ud83d"), repairer.finish(), repairer.finish()] == ["Hi ", "\ufffd", ""]
