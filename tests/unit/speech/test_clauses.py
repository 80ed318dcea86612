import time
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antiphon.speech.clauses import MOST_CHARS, MOST_WORD_CHARS, Clauses

PIECES = (*"abIT.,:;!?…—-()[]\"'`~*#|\n 159$@/", "and ", "Dr. ", "e.g. ", " but ", "```", "\n\n", "so the ", "x" * 50)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=300).map("".join) | st.text(max_size=100)


def cut(*deltas: str) -> list[str]:
    clauses = Clauses()
    return [*(clause for delta in deltas for clause in clauses.push(delta)), *clauses.finish()]


@pytest.mark.parametrize(
    "sentences",
    [
        ("It is late.", "Good night."),
        ("Really?", "Yes!", "No?!", "Well."),
        ("Version 3.5 costs $4.99 or 1,000 yen.", "Fine."),
        ("It is 12:30 now.", "Call 555.1234."),
        ("Dr. Smith met Mr. and Mrs. Jones at St. Mary's.", "They left."),
        ("Take fruit, e.g. Apples, i.e. Food.", "Eat."),
        ("We have bread, milk, etc.", "You can go."),
        ("It opens at 10 a.m.", "The shop closes at 5 p.m. on Mondays."),
        ("He lives in the U.S. Army base.", "She does not."),
        ("J. R. R. Tolkien wrote it.", "George W. Bush read it."),
        ("It was Cats vs. Dogs.", "Cats won."),
        ("No. 5 is alive.", "No.", "I am not."),
        ("It began on Jan. 5 of last year.", "It ended in Dec.", "It was cold."),
        ("Well... maybe… not.", "Wait...", "What?"),
        ('He said "Stop."', "“Why?”", "She left (at once.)", "**Now!**", "Then."),
        ('"Stop!" he said.', "Yahoo! is a name."),
        ("See https://example.com/a.b?c=d!e.", "Write to joe@example.com.", "Bye."),
    ],
)
def test_sentences_are_separated(sentences: tuple[str, ...]) -> None:
    # After a first clause that is long enough, for commas end that one.
    start = "This is the first sentence."
    assert cut(" ".join([start, *sentences])) == [start, *sentences]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("The weather in Berlin is fine, and warm.", "The weather in Berlin is fine,"),
        ("Here is what I found: three cats.", "Here is what I found:"),
        ("I went to the shop — it was shut.", "I went to the shop —"),
        ("I went to the shop—it was shut.", "I went to the shop—"),
        ("I went to the shop and then I came back.", "I went to the shop"),
        ("I would like to help but I cannot.", "I would like to help"),
        ("Extraordinarily, it works.", "Extraordinarily, it works."),
        ("Extraordinarily enough, it works.", "Extraordinarily enough,"),
        ("Yes, I am, so to say, here; it works.", "Yes, I am, so to say,"),
        ("Sure!", "Sure!"),
        ("You need bread and butter for it.", "You need bread and butter for it."),
        ("It takes about 3 - 5 days to come.", "It takes about 3 - 5 days to come."),
        ("It was on May 1, 2024 that it rained.", "It was on May 1, 2024 that it rained."),
        (
            "Read [the very long, long story](https://a.b/c) now.",
            "Read [the very long, long story](https://a.b/c) now.",
        ),
        ("Run `print(1, 2, 3, 4, x)` to see it.", "Run `print(1, 2, 3, 4, x)` to see it."),
    ],
)
def test_the_first_clause_comes_as_early_as_it_makes_sense(text: str, first: str) -> None:
    assert cut(text)[0] == first


def test_a_clause_is_emitted_as_soon_as_the_next_word_begins() -> None:
    clauses = Clauses()
    assert clauses.push("The weather in Berlin is fine, ") == []
    assert clauses.push("a") == ["The weather in Berlin is fine,"]


def test_a_short_first_sentence_does_not_make_the_next_one_wait() -> None:
    assert cut("Sure! The weather in Berlin is fine, and warm.")[:2] == ["Sure!", "The weather in Berlin is fine,"]


def test_after_the_first_clause_come_whole_sentences() -> None:
    text = "The weather in Berlin is fine, and it is warm, as it was before, so go out. And come back, please, in time."
    assert cut(text)[1:] == [
        "and it is warm, as it was before, so go out.",
        "And come back, please, in time.",
    ]


def test_every_list_item_and_heading_is_a_separate_clause() -> None:
    text = "# Fruit\n\n1. Apples are red\n2. Pears\n   - Green ones.\n* plums\n\nThat is all."
    assert cut(text) == ["# Fruit", "1. Apples are red", "2. Pears", "- Green ones.", "* plums", "That is all."]


def test_every_table_row_is_a_separate_clause() -> None:
    assert cut("| a | b |\n|---|---|\n| 1 | 2 |") == ["| a | b |", "|---|---|", "| 1 | 2 |"]


def test_a_sentence_may_continue_on_the_next_line() -> None:
    assert cut("It is late\nand cold.\nbye\n\nbye") == ["It is late\nand cold.", "bye", "bye"]


@pytest.mark.parametrize("fence", ["```", "~~~", "`````"])
def test_code_stays_in_one_piece(fence: str) -> None:
    code = f"{fence}python\nx = 1. # So, it is. Yes.\n\n- y\n{fence}"
    assert cut(f"Look:\n\n{code}\n\nDone.") == ["Look:", code, "Done."]


def test_unterminated_code_stays_in_one_piece_too() -> None:
    assert cut("```\nx = 1. Then.\n\nY = 2. ``` Z.") == ["```\nx = 1. Then.\n\nY = 2. ``` Z."]


def test_inline_code_is_not_a_fence() -> None:
    assert cut("```x = 1``` is code. So is this.") == ["```x = 1``` is code.", "So is this."]


def test_a_long_sentence_is_split_at_its_commas() -> None:
    clauses = cut("This is the first one. " + "It goes on, and on, without an end, " * 20)
    assert all(len(clause) <= MOST_CHARS and clause.endswith(",") for clause in clauses[1:])


def test_a_long_sentence_without_commas_is_split_between_words() -> None:
    clauses = cut("word " * 200)
    assert {len(clause) % 5 for clause in clauses} == {4}
    assert max(map(len, clauses)) <= MOST_CHARS


def test_a_long_address_is_not_split() -> None:
    address = "https://example.com/" + "a,b.c" * 150
    assert cut(f"Look at {address} now.") == ["Look at", address, "now."]


def test_an_endless_word_is_split_somewhere() -> None:
    assert [len(clause) for clause in cut("x" * 2_500)] == [MOST_WORD_CHARS, MOST_WORD_CHARS, 500]


def test_after_the_end_a_new_text_begins() -> None:
    clauses = Clauses()
    clauses.push("```\ncode")
    clauses.finish()
    assert clauses.push("The weather in Berlin is fine, and") == ["The weather in Berlin is fine,"]


def test_empty_text_gives_no_clause() -> None:
    assert cut("", " \n\t ", "") == []


@given(TEXTS)
@example("a. ((((((((((b")
def test_no_text_is_lost_or_repeated(text: str) -> None:
    clauses = cut(text)
    assert "".join("".join(clauses).split()) == "".join(text.split())
    assert all(clauses)


@given(TEXTS, st.lists(st.integers(0, 400)))
def test_the_clauses_are_the_same_however_the_text_arrives(text: str, places: list[int]) -> None:
    edges = [0, *sorted(place for place in places if place < len(text)), len(text)]
    deltas = [text[first:last] for first, last in pairwise(edges)]
    assert cut(*deltas) == cut(text) == cut(*text)


@pytest.mark.parametrize(
    "hostile", [".", "(", "a. (", ". ", "`", "```\n", "x", " ", "\n", "and ", "Dr. ", ", ", "[", "—", "~~~\n~~"]
)
def test_hostile_text_takes_no_longer_than_other_text(hostile: str) -> None:
    text = hostile * (50_000 // len(hostile))
    start_s = time.process_time()
    cut(text)
    cut(*text[:3_000])
    assert time.process_time() - start_s < 3
