"""Names that sound alike are found, and those that do not are told apart."""

import pytest

from antiphon.words.sounds import similarity, sound_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("lights", "lites"),
        ("knight", "night"),
        ("write", "right"),
        ("desk", "desc"),
        ("phone", "fone"),
        ("kitchen", "kichen"),
        ("hall", "hole"),
    ],
)
def test_words_that_sound_the_same_have_one_key(one: str, other: str) -> None:
    assert sound_of(one) == sound_of(other)


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("kitchen lice", "kitchen lights"),
        ("disc lamp", "desk lamp"),
        ("car port", "carport"),
        ("shop in list", "shopping list"),
        ("guess room", "guest room"),
        ("pairs", "paris"),
    ],
)
def test_a_misheard_name_is_close(said: str, name: str) -> None:
    assert similarity(said, name) >= 84


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("bedroom", "bathroom"),
        ("front door", "back door"),
        ("kitchen", "kitten"),
        ("fan", "van"),
        ("ear", "oar"),
        ("garage", "carriage"),
    ],
)
def test_another_name_is_not(said: str, name: str) -> None:
    assert similarity(said, name) < 80


def test_the_same_name_is_the_closest() -> None:
    assert similarity("desk lamp", "desk lamp") == 100 > similarity("disc lamp", "desk lamp")


@pytest.mark.parametrize("text", ["", "42", "é", "…"])
def test_anything_has_a_key(text: str) -> None:
    assert isinstance(sound_of(text), str)
