"""Names that are expected get a bonus, token by token."""

import numpy as np
import pytest
from numpy.typing import NDArray

from antiphon.speech.engines.moonshine.bias import BEGIN, CONTINUE, Bias
from antiphon.speech.engines.moonshine.tokens import Tokens

PIECES = ["<s>", "<a>", "</s>", "▁desk", "▁disc", "▁lamp", "▁lump", "s", "▁", "d", "e", "s k", "K"]
DESK, DISC, LAMP, LUMP = 3, 4, 5, 6


def tokens() -> Tokens:
    return Tokens(b"".join(bytes([len(each.encode())]) + each.encode() for each in PIECES))


def logits(**given: float) -> NDArray[np.float32]:
    row = np.zeros(len(PIECES), np.float32)
    for name, value in given.items():
        row[globals()[name]] = value
    return row


def test_a_phrase_is_split_into_the_longest_tokens() -> None:
    assert tokens().split("desk lamps") == [DESK, LAMP, 7]
    assert tokens().split("desk ümlaut") == []


def test_a_token_that_begins_a_name_wins_if_it_is_nearly_as_likely() -> None:
    bias = Bias(tokens(), ["desk lamp"])
    assert bias.follow().choose_all(logits(DISC=BEGIN - 0.5)[np.newaxis], ()) == [DESK]
    assert bias.follow().choose_all(logits(DISC=BEGIN + 0.5)[np.newaxis], ()) == [DISC]


def test_a_name_that_was_begun_is_continued() -> None:
    following = Bias(tokens(), ["desk lamp"]).follow()
    assert following.choose_all(logits(DESK=9)[np.newaxis], ()) == [DESK]
    assert following.choose_all(logits(LUMP=CONTINUE - 0.5)[np.newaxis], ()) == [LAMP]
    # The name is over, so the next word gets no bonus.
    assert following.choose_all(logits(LUMP=BEGIN + 0.5)[np.newaxis], ()) == [LUMP]


def test_guesses_are_accepted_up_to_the_first_wrong_one() -> None:
    rows = np.stack([logits(DESK=9), logits(LUMP=CONTINUE - 0.5), logits(DISC=9)])
    assert Bias(tokens(), ["desk lamp"]).follow().choose_all(rows, (DESK, LAMP)) == [DESK, LAMP, DISC]
    assert Bias(tokens(), ["desk lamp"]).follow().choose_all(rows, (DESK, LUMP)) == [DESK, LAMP]
    assert Bias(tokens(), ["desk lamp"]).follow().choose_all(rows, (DISC, LAMP)) == [DESK]


def test_names_may_be_capitalised_in_the_settings() -> None:
    assert Bias(tokens(), ["Desk lamp"]).follow().choose_all(logits(DISC=1)[np.newaxis], ()) == [DESK]


def test_names_of_a_speaker_count_beside_those_of_all() -> None:
    of_all, own = Bias(tokens(), ["desk lamp"]), Bias(tokens(), ["disc lump"])
    both = of_all.follow(own)
    assert both.choose_all(logits(LAMP=BEGIN - 0.5, DISC=0.1)[np.newaxis], ()) == [DISC]
    assert both.choose_all(logits(LAMP=CONTINUE - 0.5)[np.newaxis], ()) == [LUMP]
    assert of_all.follow().choose_all(logits(LAMP=BEGIN - 0.5, DISC=0.1)[np.newaxis], ()) == [DESK]


def test_a_name_that_two_biases_have_gets_one_bonus() -> None:
    bias = Bias(tokens(), ["desk lamp"])
    assert bias.follow(bias).choose_all(logits(LUMP=BEGIN + 0.5)[np.newaxis], ()) == [LUMP]


@pytest.mark.parametrize("phrases", [[], [""], ["tv"], ["x" * 100], ["ünknown"]])
def test_names_that_are_too_short_too_long_or_cannot_be_written_are_left_out(phrases: list[str]) -> None:
    assert not Bias(tokens(), phrases)
