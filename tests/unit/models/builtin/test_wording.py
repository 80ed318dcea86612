import pytest

from antiphon.models.builtin import BuiltinModel
from antiphon.models.builtin.wording import clean, forms
from antiphon.tools.spec import Mode
from tests.fakes.talking_tools import Box
from tests.fakes.toolkit import built_in

MODEL = BuiltinModel(Box(built_in()))


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("um what time is it", "what time is it"),
        ("set a, uh, timer for ten minutes", "set a timer for ten minutes"),
        ("let me see, what's the weather in Oslo", "what's the weather in Oslo"),
        ("remind me to, you know, call Ann tomorrow", "remind me to call Ann tomorrow"),
        ("what what time is it", "what time is it"),
        ("set a time er for five minutes", "set a timer for five minutes"),
        ("set a larm for seven", "set an alarm for seven"),
        ("what's the weather this week end", "what's the weather this weekend"),
        ('add "um" to my shopping list', 'add "um" to my shopping list'),
        ("um", "um"),
        ("+10", "plus 10"),
        ("well done", "well done"),
        ("what do you know about Paris", "what do you know about Paris"),
        ("set a timer for for minutes", "set a timer for for minutes"),
    ],
)
def test_what_means_nothing_is_removed(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


CALLS: list[tuple[str, str, dict[str, object]]] = [
    ("set a timer for five no wait ten minutes", "set_timer", {"duration": "10 minutes"}),
    ("set a timer for five minutes, sorry, ten minutes", "set_timer", {"duration": "10 minutes"}),
    ("remind me on Monday I mean Tuesday to call Ann", "set_reminder", {"time": "on Tuesday"}),
    ("what time is it in London no wait Paris", "get_current_time", {"timezone": "Paris"}),
    ("add milk no wait eggs to my shopping list", "list_add", {"item": "eggs", "list": "shopping"}),
    ("I'm baking bread, so set a timer for 40 minutes", "set_timer", {"duration": "40 minutes"}),
    ("guests are coming tonight so can you set a timer for 40 minutes", "set_timer", {"duration": "40 minutes"}),
    ("set a timer for 40 minutes because I'm baking bread", "set_timer", {"duration": "40 minutes"}),
    ("what's the whether in Oslo", "get_weather", {"location": "Oslo"}),
    ("set a timer four ten minutes", "set_timer", {"duration": "10 minutes"}),
    ("what's the weather like to day", "get_weather", {"day": "today"}),
    ("dear assistant, would you mind telling me what time it is", "get_current_time", {}),
    ("hey computer what time is it", "get_current_time", {}),
    ("I was wondering if you could tell me a joke", "tell_joke", {}),
    ("could you do me a favour and flip a coin", "flip_coin", {}),
    ("when you have a moment, roll a die please", "roll_dice", {}),
    ("um remind me to uh buy flowers tomorrow", "set_reminder", {"message": "to buy flowers", "time": "tomorrow"}),
    ("remind me to tell Bob I mean business tomorrow", "set_reminder", {"message": "to tell Bob I mean business"}),
    ("remind me to say sorry to Ann tomorrow", "set_reminder", {"message": "to say sorry to Ann", "time": "tomorrow"}),
    ("set the volume to thirty percent", "change_voice", {"volume": 30}),
    ("it's dark in here turn the hallway light on", "ha_control", {"entity": "hallway light", "action": "on"}),
    ("all lights off I'm going to bed", "ha_control", {"entity": "lights", "action": "off"}),
    ("turn of the desk lamp", "ha_control", {"entity": "desk lamp", "action": "off"}),
    ("turn on the lights in the kitchen no in the hallway", "ha_control", {"area": "hallway"}),
    ("remind me two feed the cat at six", "set_reminder", {"message": "to feed the cat", "time": "at six"}),
    ("what's for times ate", "calculate", {"expression": "four times eight"}),
    ("my sister is in Sydney, what time is it there", "get_current_time", {"timezone": "Sydney"}),
    ("I weigh eighty kilos what's that in pounds", "convert_units", {"from_unit": "eighty kilos", "to_unit": "pounds"}),
    ("I was born on the 12th of June 1975, what day was that", "get_day_of_week", {"date": "on the 12th of June 1975"}),
    ("I need to buy tomatoes, add them to the shopping list", "list_add", {"item": "tomatoes", "list": "shopping"}),
    ("we're out of toilet paper, put it on the list", "list_add", {"item": "toilet paper", "list": "shopping"}),
    ("we don't need eggs anymore, take them off the list", "list_remove", {"item": "eggs"}),
    ("shopping list: bananas and yoghurt", "list_add", {"item": "bananas and yoghurt", "list": "shopping"}),
    ("I don't need the seven o'clock alarm anymore", "cancel_reminder", {"reminder": "seven o'clock alarm"}),
    ("tell me they joke", "tell_joke", {}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "tool", "args"), CALLS, ids=[text for text, _, _ in CALLS])
def test_the_request_is_found_in_what_was_said(text: str, tool: str, args: dict[str, object]) -> None:
    found = MODEL.find_request(text, Mode.VOICE)
    assert found is not None
    assert [(call.tool_id, {name: call.args.get(name) for name in args}) for call in found.calls] == [(tool, args)]


@pytest.mark.parametrize(
    "text",
    [
        "she told me set a timer for ten minutes",
        "I don't want you to, set a timer for ten minutes",
        "if it rains, turn on the light",
        "we just had the electrician turn the lights off",
        "my wife and I always set a timer for ten minutes",
    ],
)
def test_a_request_that_is_only_told_of_or_unclear_is_none(text: str) -> None:
    assert MODEL.find_request(text, Mode.VOICE) is None


def test_an_ordinary_request_has_one_form() -> None:
    assert forms("what time is it in Tokyo") == ["what time is it in Tokyo"]
