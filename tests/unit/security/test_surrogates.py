"""Text that no UTF-8 can hold becomes text that it can."""

from typing import Any

import pytest

from antiphon.security.surrogates import Mender, mend, mend_json


@pytest.mark.parametrize(
    ("text", "mended"),
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
def test_pairs_are_joined_and_lone_halves_replaced(text: str, mended: str) -> None:
    assert mend(text) == mended


def test_keys_and_values_at_every_depth_are_repaired() -> None:
    value: Any = {"\ud83d": [{"a": "\ude00"}, 1, None, True, 1.5]}
    assert mend_json(value) == {"\ufffd": [{"a": "\ufffd"}, 1, None, True, 1.5]}


def test_a_pair_split_over_two_chunks_is_one_character() -> None:
    mender = Mender()
    pieces = [mender.push("Hi \ud83d"), mender.push(""), mender.push("\ude00!"), mender.finish()]
    assert pieces == ["Hi ", "", "\U0001f600!", ""]


def test_a_half_at_the_end_is_replaced() -> None:
    mender = Mender()
    assert [mender.push("Hi \ud83d"), mender.finish(), mender.finish()] == ["Hi ", "\ufffd", ""]
