"""What people say about the weather, the web and their home, without any model. As a recogniser writes it."""

from typing import Any

import pytest

from antiphon.tools.spec import Mode
from tests.fakes.toolkit import understood

WEATHER: list[tuple[str, dict[str, Any]]] = [
    ("what's the weather", {}),
    ("what is the weather like", {}),
    ("hows the weather outside", {}),
    ("what's the weather like today", {"day": "today"}),
    ("what's the weather in oslo", {"location": "oslo"}),
    ("What's the weather in Oslo?", {"location": "Oslo"}),
    ("could you please tell me the weather in new york", {"location": "new york"}),
    ("what's the weather like in paris this weekend", {"location": "paris", "day": "this weekend"}),
    ("what's the weather tomorrow in berlin", {"location": "berlin", "day": "tomorrow"}),
    ("what will the weather be like on friday", {"day": "friday"}),
    ("weather in smallville tomorrow", {"location": "smallville", "day": "tomorrow"}),
    ("will it rain tomorrow", {"day": "tomorrow", "about": "rain"}),
    ("is it going to rain today", {"day": "today", "about": "rain"}),
    ("will it snow in bergen on sunday", {"location": "bergen", "day": "sunday", "about": "rain"}),
    ("is it raining", {}),
    ("is it raining in london", {"location": "london"}),
    ("do i need an umbrella", {"about": "rain"}),
    ("do i need an umbrella tomorrow", {"day": "tomorrow", "about": "rain"}),
    ("how hot will it get on friday", {"day": "friday", "about": "temperature"}),
    ("how cold will it be tonight", {"day": "today", "about": "temperature"}),
    ("how cold is it outside", {"about": "temperature"}),
    ("what's the temperature outside", {"about": "temperature"}),
    ("what's the temperature in tokyo", {"location": "Tokyo", "about": "temperature"}),
    ("how windy will it be tomorrow", {"day": "tomorrow", "about": "wind"}),
]
FORECAST: list[tuple[str, dict[str, Any]]] = [
    ("what's the forecast", {}),
    ("what's the weather forecast for oslo", {"location": "oslo"}),
    ("give me the forecast for the next five days", {"days": 5}),
    ("what's the weather going to be like this week", {"days": 7}),
    ("what's the forecast for this week in rome", {"location": "rome", "days": 7}),
]
SEARCH: list[tuple[str, dict[str, Any]]] = [
    ("search the web for vegan pizza", {"query": "vegan pizza"}),
    ("search the internet for the best laptop", {"query": "the best laptop"}),
    ("look up opening hours of the louvre online", {"query": "opening hours of the louvre"}),
    ("google the population of peru", {"query": "population of peru"}),
    ("can you search online for cheap flights", {"query": "cheap flights"}),
]
ANSWER: list[tuple[str, dict[str, Any]]] = [
    ("what does wikipedia say about photosynthesis", {"query": "photosynthesis"}),
    ("look up ada lovelace on wikipedia", {"query": "ada lovelace"}),
    ("search wikipedia for alan turing", {"query": "alan turing"}),
]
CONTROL: list[tuple[str, dict[str, Any]]] = [
    ("turn on the kitchen light", {"entity": "kitchen light", "action": "on"}),
    ("turn the kitchen light off please", {"entity": "kitchen light", "action": "off"}),
    ("switch off the lights", {"entity": "lights", "action": "off"}),
    ("turn off all the lights in the living room", {"entity": "lights", "area": "living room", "action": "off"}),
    ("turn off all the lights", {"entity": "lights", "action": "off"}),
    ("turn on the coffee machine", {"entity": "coffee machine", "action": "on"}),
    ("turn off everything in the kitchen", {"entity": "everything", "area": "kitchen", "action": "off"}),
    ("dim the bedroom to 30 percent", {"entity": "bedroom", "action": "dim", "value": 30}),
    ("dim the bedroom to thirty percent", {"entity": "bedroom", "action": "dim", "value": 30}),
    ("dim the lights", {"entity": "lights", "action": "dim"}),
    ("set the thermostat to 21", {"entity": "thermostat", "action": "set", "value": 21}),
    ("set the thermostat to twenty one degrees", {"entity": "thermostat", "action": "set", "value": 21}),
    (
        "set the temperature in the bedroom to 19",
        {"entity": "temperature", "area": "bedroom", "action": "set", "value": 19},
    ),
    ("lock the front door", {"entity": "front door", "action": "lock"}),
    ("unlock the front door", {"entity": "front door", "action": "unlock"}),
    ("open the garage", {"entity": "garage", "action": "open"}),
    ("close the garage door", {"entity": "garage door", "action": "close"}),
    ("close the blinds", {"entity": "blinds", "action": "close"}),
    ("brighten the kitchen light a bit", {"entity": "kitchen light", "action": "up"}),
    ("pop the kitchen light on", {"entity": "kitchen light", "action": "on"}),
    ("lights out in the kitchen", {"entity": "lights", "area": "kitchen", "action": "off"}),
    ("put the blinds at forty percent", {"entity": "blinds", "action": "set", "value": 40}),
    ("put the thermostat on 22", {"entity": "thermostat", "action": "set", "value": 22}),
    ("open the living room curtains", {"entity": "living room curtains", "action": "open"}),
    ("close the blinds in the bedroom", {"entity": "blinds", "area": "bedroom", "action": "close"}),
    ("disarm the alarm system", {"entity": "alarm", "action": "disarm"}),
    ("activate the movie night scene", {"entity": "movie night scene", "action": "on"}),
]
STATE: list[tuple[str, dict[str, Any]]] = [
    ("is the front door locked", {"entity": "front door", "expected": "locked"}),
    ("is the kitchen light on", {"entity": "kitchen light", "expected": "on"}),
    ("are the lights off", {"entity": "lights", "expected": "off"}),
    ("is the garage open", {"entity": "garage", "expected": "open"}),
    ("did i leave the oven on", {"entity": "oven", "expected": "on"}),
    ("are any windows open", {"entity": "windows", "expected": "open"}),
    ("are any lights still on", {"entity": "lights", "expected": "on"}),
    ("is any light on", {"entity": "lights", "expected": "on"}),
    ("are the blinds open or closed", {"entity": "blinds"}),
    ("is the fan running in the bedroom", {"entity": "fan", "area": "bedroom", "expected": "on"}),
    ("did anybody lock the front door", {"entity": "front door", "expected": "locked"}),
    ("which lights are on in the living room", {"entity": "lights", "area": "living room", "expected": "on"}),
    ("what's the temperature in the bedroom", {"area": "bedroom", "about": "temperature"}),
    ("how warm is the living room", {"area": "living room", "about": "temperature"}),
    ("what's the temperature inside", {"about": "temperature"}),
    ("what's the humidity in the bathroom", {"area": "bathroom", "about": "humidity"}),
    ("what is the thermostat set to", {"entity": "thermostat"}),
]


@pytest.mark.parametrize(
    ("said", "tool", "args"),
    [
        (said, tool, args)
        for tool, cases in (
            ("get_weather", WEATHER),
            ("get_forecast", FORECAST),
            ("web_search", SEARCH),
            ("quick_answer", ANSWER),
            ("ha_control", CONTROL),
            ("ha_state", STATE),
        )
        for said, args in cases
    ],
)
def test_a_sentence_asks_for_a_tool(said: str, tool: str, args: dict[str, Any]) -> None:
    assert understood(said) == [(tool, args)]


@pytest.mark.parametrize(
    ("said", "tool"),
    [
        ("turn on voice mode", "start_voice_session"),
        ("turn off voice mode", "end_voice_session"),
        ("open the website example.org", "open_url"),
        ("what time is it in oslo", "get_current_time"),
        ("what day is it", "get_current_date"),
    ],
)
def test_sentences_of_other_tools_stay_theirs(said: str, tool: str) -> None:
    assert {found for mode in Mode for found, _ in understood(said, mode)} == {tool}
