"""How lists and their items are named and told apart."""

import pytest

from antiphon.words.lists import NOTES, SHOPPING, TO_DO, enumerate_words, item_key, list_name, speak_list, split_items


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("shopping", SHOPPING),
        ("my Shopping list", SHOPPING),
        ("the grocery list", SHOPPING),
        ("groceries", SHOPPING),
        ("to-do", TO_DO),
        ("my todo list", TO_DO),
        ("tasks", TO_DO),
        ("Notes", NOTES),
        ("  packing   list ", "packing"),
        ("list", "list"),
        ("the list", "list"),
        ("Christmas presents", "christmas presents"),
        ("wishlist", "wishlist"),
    ],
)
def test_the_ways_to_name_a_list_lead_to_one_name(said: str, name: str) -> None:
    assert list_name(said) == name


@pytest.mark.parametrize(
    ("name", "spoken"),
    [
        (SHOPPING, "your shopping list"),
        (NOTES, "your notes"),
        ("wishlist", "your wishlist"),
        (TO_DO, "your to do list"),
    ],
)
def test_a_list_is_said_as_people_call_it(name: str, spoken: str) -> None:
    assert speak_list(name) == spoken


@pytest.mark.parametrize(
    ("said", "items"),
    [
        ("milk", ["milk"]),
        ("eggs and bread", ["eggs", "bread"]),
        ("eggs, bread and butter", ["eggs", "bread", "butter"]),
        ("eggs, bread, and butter", ["eggs", "bread", "butter"]),
        ("the eggs and some bread.", ["eggs", "bread"]),
        ("mac and cheese", ["mac and cheese"]),
        ("milk, mac and cheese", ["milk", "mac and cheese"]),
        ('"salt and pepper mill" and napkins', ["salt and pepper mill", "napkins"]),
        ("1,000 staples; tape", ["1,000 staples", "tape"]),
        ("The Economist", ["The Economist"]),
        ("a present for the boy next door and his sister", ["a present for the boy next door and his sister"]),
        ("and", []),
        (" , ; ", []),
    ],
)
def test_things_are_separated_by_commas_and_by_and(said: str, items: list[str]) -> None:
    assert split_items(said, SHOPPING) == items


def test_a_task_is_not_split_at_and() -> None:
    assert split_items("call mom and dad, water the plants", TO_DO) == ["call mom and dad", "water the plants"]


def test_a_note_is_kept_whole() -> None:
    assert split_items("the plumber comes on friday, and his name is Bob", NOTES) == [
        "the plumber comes on friday, and his name is Bob"
    ]


@pytest.mark.parametrize(("one", "other"), [("Milk", "the milk."), ("Oat  milk", "oat milk"), ("a pear", "pear")])
def test_two_ways_of_saying_one_item_have_one_key(one: str, other: str) -> None:
    assert item_key(one) == item_key(other)


@pytest.mark.parametrize("text", ["the", "!!!", "a", "日本茶"])
def test_a_key_is_never_empty(text: str) -> None:
    assert item_key(text)


def test_words_are_joined_as_people_do() -> None:
    assert [enumerate_words(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
