import pytest

from antiphon.words.devices import find_room, trim_name, write_out
from antiphon.words.dice import find_dice
from antiphon.words.readers import Reader, find

NAMES = frozenset({"light", "lights", "fan", "bedroom", "living room", "kitchen"})


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("kitchen light a bit", "kitchen light"),
        ("lights still", "lights"),
        ("blinds open or", "blinds"),
        ("the living room light just a touch", "living room light"),
        ("lights in the living room", "living room lights"),
        ("Tom's reading lamp", "Tom's reading lamp"),
        ("front door and turn the hallway light on", None),
        ("sun is in my eyes", None),
    ],
)
def test_a_device_is_named_without_the_words_around_it(said: str, name: str | None) -> None:
    assert trim_name(said) == name


def test_a_room_may_stand_for_the_device_in_it() -> None:
    assert find_room("the kitchen one") == "kitchen"
    assert find_room("the other one") is None


def test_the_contraction_after_a_device_is_written_out() -> None:
    assert write_out("check whether the garage door's open") == "check whether the garage door is open"
    assert write_out("the door's handle") == "the door's handle"


@pytest.mark.parametrize(
    ("said", "device"),
    [
        ("is the fan running in the bedroom", "bedroom fan"),
        ("living room's too bright", "living room"),
        ("it's too cold in the bedroom", "bedroom heating"),
    ],
)
def test_a_device_is_found_with_its_room(said: str, device: str) -> None:
    assert find(Reader.DEVICE, said, NAMES)[0].text == device


@pytest.mark.parametrize(
    ("said", "level"),
    [
        ("lights down to 20 percent in the kitchen", "20"),
        ("blinds at forty percent", "forty"),
        ("put the heating on 21", "21"),
        ("open the blinds halfway", "50"),
    ],
)
def test_a_level_is_found(said: str, level: str) -> None:
    assert [each.text for each in find(Reader.LEVEL, said)] == [level]


@pytest.mark.parametrize("said", ["turn on light 2", "put the kettle on the list", "turn on the light"])
def test_a_number_in_a_name_is_no_level(said: str) -> None:
    assert find(Reader.LEVEL, said) == []


@pytest.mark.parametrize(
    ("said", "dice"),
    [
        ("roll for initiative with a twenty sided die", "a twenty sided die"),
        ("I've lost the dice, can you roll two", "two"),
        ("roll three d20", "three d20"),
    ],
)
def test_dice_are_found_in_a_sentence(said: str, dice: str) -> None:
    assert [each for each, _, _ in find_dice(said)] == [dice]
