"""What the offline assistant makes of texts that refer to what was said before, with the built-in tools."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from antiphon.compose import load_tools
from antiphon.config import Settings, Storage
from antiphon.models.base import CallRequested, Event, Prompt, TextDelta
from antiphon.models.builtin import BuiltinModel
from antiphon.models.completeness import Completeness
from antiphon.tools.errors import ErrorType
from antiphon.tools.registry import Registry
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage
from tests.fakes.dialogue import Dialogue, begin
from tests.fakes.talking_tools import Box
from tests.fakes.toolkit import built_in

MODEL = BuiltinModel(Box(built_in()))

Called = list[tuple[str, Mapping[str, Any]]]


def after(
    text: str, tool: str, args: Mapping[str, Any], content: Any = None, *, ok: bool = True, answer: str = "There."
) -> list[Message]:
    """A request that was answered."""
    result = ToolMessage("c1", tool, {} if content is None else content, answer, ok)
    return [UserMessage(text), AssistantMessage(calls=(CallMade("c1", tool, args),)), result, AssistantMessage(answer)]


async def events(*messages: Message, mode: Mode = Mode.TEXT) -> list[Event]:
    return [event async for event in MODEL.reply(Prompt("", messages, (), mode))]


async def calls(*messages: Message, mode: Mode = Mode.TEXT) -> Called:
    found = await events(*messages, mode=mode)
    return [(event.call.name, event.call.args) for event in found if isinstance(event, CallRequested)]


async def answer(*messages: Message, mode: Mode = Mode.TEXT) -> str:
    return "".join(event.text for event in await events(*messages, mode=mode) if isinstance(event, TextDelta))


TIME = after("what time is it in Tokyo", "get_current_time", {"timezone": "Tokyo"})
WEATHER = after("what's the weather in Oslo", "get_weather", {"location": "Oslo"})
RAIN = after("will it rain in Oslo tomorrow", "get_weather", {"location": "Oslo", "day": "tomorrow", "about": "rain"})
SUM = after("what is 15 percent of 80", "calculate", {"expression": "15 percent of 80"}, {"result": 12})
PRODUCT = after("12 times 12", "calculate", {"expression": "12 times 12"}, {"result": 144})
MILES = after(
    "how many kilometers is 5 miles", "convert_units", {"value": 5, "from_unit": "miles", "to_unit": "kilometers"},
    {"value": 5, "from_unit": "miles", "result": 8.05, "to_unit": "kilometers"},
)  # fmt: skip
TIMER = after("set a timer for five minutes", "set_timer", {"duration": "five minutes"}, {"id": "r1", "kind": "timer"})
ALARM = after("wake me tomorrow at seven", "set_alarm", {"time": "tomorrow at seven"}, {"id": "r2", "kind": "alarm"})
REMINDER = after(
    "remind me tomorrow at nine to call Ann", "set_reminder", {"message": "to call Ann", "time": "tomorrow at nine"},
    {"id": "r3", "kind": "reminder"},
)  # fmt: skip
MILK = after(
    "add milk to my shopping list", "list_add", {"item": "milk", "list": "shopping"},
    {"list": "shopping", "added": ["milk"], "duplicates": []},
)  # fmt: skip
LIGHT = after(
    "turn on the kitchen light", "ha_control", {"entity": "kitchen light", "action": "on"},
    {"action": "on", "value": None, "devices": []},
)  # fmt: skip
DAY = after("what day is the fifth of may", "get_day_of_week", {"date": "the 5 of may"})
CHRISTMAS = after("how many days until Christmas", "time_until", {"target_date": "Christmas"}, {"days": 37})
AGENDA = after("what's on my calendar tomorrow", "calendar_list_events", {"range": "tomorrow"})
SHOPPING = after("what's on my shopping list", "list_show", {"list": "shopping"})
GRAMS = after(
    "how many ounces in a hundred grams", "convert_units", {"from_unit": "a hundred grams", "to_unit": "ounces"}
)
DICE = after("roll two d20", "roll_dice", {"dice": "2d20"})
CAPITAL = after("what's the capital of France", "quick_answer", {"query": "what's the capital of France"})
SHOPPED = after("add batteries to my shopping list", "list_add", {"item": "batteries", "list": "shopping"})
CURIE = after("who was Marie Curie", "quick_answer", {"query": "who was Marie Curie"})
GOOD_FRIDAY = after("when's good friday", "get_day_of_week", {"date": "Good Friday"})
JOKE = after("tell me a joke", "tell_joke", {})


@pytest.mark.parametrize(
    ("before", "text", "expected"),
    [
        (TIME, "and in London?", ("get_current_time", {"timezone": "London"})),
        (TIME, "what about Paris", ("get_current_time", {"timezone": "Paris"})),
        (TIME, "And New York?", ("get_current_time", {"timezone": "New York"})),
        (TIME, "Endon London.", ("get_current_time", {"timezone": "London"})),
        (TIME, "London?", ("get_current_time", {"timezone": "London"})),
        (WEATHER, "and tomorrow?", ("get_weather", {"location": "Oslo", "day": "tomorrow"})),
        (WEATHER, "how about on Friday", ("get_weather", {"location": "Oslo", "day": "Friday"})),
        (WEATHER, "how about next week", ("get_forecast", {"location": "Oslo", "days": 7})),
        (WEATHER, "and in Paris tomorrow?", ("get_weather", {"location": "Paris", "day": "tomorrow"})),
        (WEATHER, "and for Lyon?", ("get_weather", {"location": "Lyon"})),
        (WEATHER, "what about Little Snoring", ("get_weather", {"location": "Little Snoring"})),
        (RAIN, "and in Bergen?", ("get_weather", {"location": "Bergen", "day": "tomorrow", "about": "rain"})),
        (TIME, "and the weather?", ("get_weather", {"location": "Tokyo"})),
        (SUM, "what about 20 percent?", ("calculate", {"expression": "20 percent of 80"})),
        (SUM, "and of 200", ("calculate", {"expression": "15 percent of 200"})),
        (MILES, "and ten miles?", ("convert_units", {"from_unit": "10 miles", "to_unit": "kilometers"})),
        (MILES, "and in feet?", ("convert_units", {"value": 5, "from_unit": "miles", "to_unit": "feet"})),
        (CHRISTMAS, "and until Easter?", ("time_until", {"target_date": "Easter"})),
        (DAY, "and the sixth?", ("get_day_of_week", {"date": "the sixth of may"})),
        (AGENDA, "and on friday?", ("calendar_list_events", {"range": "friday"})),
        (MILK, "and eggs", ("list_add", {"item": "eggs", "list": "shopping"})),
        (MILK, "also bread and butter please", ("list_add", {"item": "bread and butter", "list": "shopping"})),
        (SHOPPING, "and my to do list?", ("list_show", {"list": "to do"})),
        (LIGHT, "and the bedroom light too", ("ha_control", {"entity": "bedroom light", "action": "on"})),
        (LIGHT, "what about the hallway", ("ha_control", {"entity": "hallway light", "action": "on"})),
        (TIMER, "and another one for ten minutes", ("set_timer", {"duration": "10 minutes"})),
        (JOKE, "another one about cats", ("tell_joke", {"topic": "cats"})),
        (LIGHT, "and the bedroom one", ("ha_control", {"entity": "bedroom light", "action": "on"})),
        (LIGHT, "a bit brighter", ("ha_control", {"entity": "kitchen light", "action": "up"})),
        (AGENDA, "and the day after", ("calendar_list_events", {"range": "the day after tomorrow"})),
        (CHRISTMAS, "and bonfire night, 5 November?", ("time_until", {"target_date": "5 November"})),
        (MILK, "oh and soy sauce", ("list_add", {"item": "soy sauce", "list": "shopping"})),
        (MILK, "soy sauce as well please", ("list_add", {"item": "soy sauce", "list": "shopping"})),
        (ALARM, "and at eight as well", ("set_alarm", {"time": "tomorrow at eight"})),
        (GRAMS, "and in three hundred and fifty", ("convert_units", {"from_unit": "350 grams", "to_unit": "ounces"})),
        (GRAMS, "what about 12 kilos", ("convert_units", {"from_unit": "12 kilos", "to_unit": "ounces"})),
        (DICE, "and a d12", ("roll_dice", {"dice": "a d12"})),
        (CAPITAL, "and Germany?", ("quick_answer", {"query": "what's the capital of Germany"})),
    ],
)  # fmt: skip
async def test_a_follow_up_repeats_the_request_with_what_it_says(
    before: list[Message], text: str, expected: tuple[str, Mapping[str, Any]]
) -> None:
    assert await calls(*before, UserMessage(text)) == [expected]


async def test_a_follow_up_survives_a_word_of_thanks() -> None:
    thanks: list[Message] = [UserMessage("thanks"), AssistantMessage("You're welcome.")]
    assert await calls(*TIME, *thanks, UserMessage("and in London?")) == [("get_current_time", {"timezone": "London"})]


async def test_a_follow_up_of_a_follow_up() -> None:
    london = after("and in London?", "get_current_time", {"timezone": "London"})
    assert await calls(*TIME, *london, UserMessage("and Rome?")) == [("get_current_time", {"timezone": "Rome"})]


@pytest.mark.parametrize(
    ("before", "text"),
    [
        (TIME, "and then he left"),
        (TIME, "and what do you think"),
        (WEATHER, "Nice."),
        (WEATHER, "and how do you know"),
        (TIMER, "ten minutes"),
        (TIMER, "London"),
        (MILK, "and that's it"),
        (MILK, "I love London"),
        (LIGHT, "the bedroom is cold"),
        (SUM, "twenty people came"),
        (JOKE, "I have two cats"),
        (REMINDER, "we leave tomorrow"),
        (MILK, "and remove the sofa from the hall tomorrow if you can"),
        (WEATHER, "warmer"),
    ],
)
async def test_what_is_no_follow_up_calls_nothing(before: list[Message], text: str) -> None:
    assert await calls(*before, UserMessage(text)) == []


async def test_doing_the_same_again_for_another_time_is_asked_about_first() -> None:
    asked = await answer(*ALARM, UserMessage("and at eight"))
    assert asked == "Shall I do the same with “at eight”?"
    said = [*ALARM, UserMessage("and at eight"), AssistantMessage(asked)]
    assert await calls(*said, UserMessage("yes")) == [("set_alarm", {"time": "tomorrow at eight"})]
    assert await answer(*said, UserMessage("no")) == "All right, I won't do that."


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("plus ten", "144 plus ten"),
        ("+10", "144 plus 10"),
        ("and divided by three", "144 divided by three"),
        ("times two", "144 times two"),
        ("half of that", "half of 144"),
        ("double it", "double 144"),
        ("now subtract 4", "144 minus 4"),
        ("multiply that by 3", "144 times 3"),
        ("what's 20 percent of that", "20 percent of 144"),
        ("and the square root of that", "square root of 144"),
        ("what is that times 7", "144 times 7"),
        ("add 6 to that", "sum of 6 and 144"),
    ],
)
async def test_a_sum_goes_on_with_the_last_result(text: str, expression: str) -> None:
    assert await calls(*PRODUCT, UserMessage(text)) == [("calculate", {"expression": expression})]


CANCEL_TIMER = ("cancel_reminder", {"reminder": "r1"})


@pytest.mark.parametrize(
    ("before", "text", "expected"),
    [
        (WEATHER, "no, I meant Paris", [("get_weather", {"location": "Paris"})]),
        (WEATHER, "not Oslo, Lyon", [("get_weather", {"location": "Lyon"})]),
        (WEATHER, "Lyon, not Oslo", [("get_weather", {"location": "Lyon"})]),
        (RAIN, "sorry, today", [("get_weather", {"location": "Oslo", "day": "today", "about": "rain"})]),
        (SUM, "I said fifty", [("calculate", {"expression": "50 percent of 80"})]),
        (SUM, "no, of 90", [("calculate", {"expression": "15 percent of 90"})]),
        (DAY, "I meant june", [("get_day_of_week", {"date": "the 5 of june"})]),
        (TIMER, "no, ten minutes", [CANCEL_TIMER, ("set_timer", {"duration": "ten minutes"})]),
        (TIMER, "actually make it ten", [CANCEL_TIMER, ("set_timer", {"duration": "ten minutes"})]),
        (TIMER, "no, set a timer for ten minutes", [CANCEL_TIMER, ("set_timer", {"duration": "10 minutes"})]),
        (
            ALARM,
            "change it to eight",
            [("cancel_reminder", {"reminder": "r2"}), ("set_alarm", {"time": "tomorrow at eight"})],
        ),
        (
            REMINDER,
            "no, on Friday",
            [
                ("cancel_reminder", {"reminder": "r3"}),
                ("set_reminder", {"message": "to call Ann", "time": "on Friday at nine"}),
            ],
        ),
        (
            MILK,
            "no, I said silk",
            [("list_remove", {"item": "milk", "list": "shopping"}), ("list_add", {"item": "silk", "list": "shopping"})],
        ),
        (LIGHT, "no the hallway", [("ha_control", {"entity": "hallway light", "action": "on"})]),
        (LIGHT, "sorry I meant the hallway one", [("ha_control", {"entity": "hallway light", "action": "on"})]),
        (DICE, "no three", [("roll_dice", {"dice": "3 d20"})]),
        (
            REMINDER,
            "on second thoughts put it on my to do list",
            [
                ("cancel_reminder", {"reminder": "r3"}),
                ("list_add", {"item": "call Ann", "list": "to do"}),
            ],
        ),
    ],
)
async def test_a_correction_takes_the_place_of_what_was_understood(
    before: list[Message], text: str, expected: Called
) -> None:
    assert await calls(*before, UserMessage(text)) == expected


async def test_a_plain_no_asks_what_was_meant_and_the_next_words_correct_it() -> None:
    asked = await answer(*TIMER, UserMessage("no"))
    assert asked == "Sorry. What did you mean?"
    said = [*TIMER, UserMessage("no"), AssistantMessage(asked)]
    assert await calls(*said, UserMessage("ten minutes")) == [CANCEL_TIMER, ("set_timer", {"duration": "ten minutes"})]


async def test_a_failed_call_is_made_anew_and_nothing_is_cancelled() -> None:
    failed = after("set a timer for banana", "set_timer", {"duration": "banana"}, {"error": {}}, ok=False)
    assert await calls(*failed, UserMessage("no, ten minutes")) == [("set_timer", {"duration": "ten minutes"})]


async def test_the_answer_to_the_question_of_a_tool_completes_its_call() -> None:
    asked = after("set a timer", "set_timer", {"duration": ""}, {"error": {}}, ok=False, answer="For how long?")
    assert await calls(*asked, UserMessage("ten minutes")) == [("set_timer", {"duration": "ten minutes"})]


@pytest.mark.parametrize(
    ("before", "text", "expected"),
    [
        (TIME, "what's the weather there", ("get_weather", {"location": "Tokyo"})),
        (WEATHER, "what time is it there", ("get_current_time", {"timezone": "Oslo"})),
        (MILK, "add eggs to it", ("list_add", {"item": "eggs", "list": "shopping"})),
        (MILK, "add bread to that list", ("list_add", {"item": "bread", "list": "shopping"})),
        (MILK, "what's on it", ("list_show", {"list": "shopping"})),
        (TIMER, "cancel it", CANCEL_TIMER),
        (TIMER, "cancel that timer please", CANCEL_TIMER),
        (TIMER, "how much time is left on it", ("list_reminders", {"kind": "timer"})),
        (LIGHT, "turn it off again", ("ha_control", {"entity": "kitchen light", "action": "off"})),
        (
            RAIN,
            "remind me then to buy an umbrella",
            ("set_reminder", {"message": "to buy an umbrella", "time": "tomorrow"}),
        ),
        (MILK, "undo that", ("list_remove", {"item": "milk", "list": "shopping"})),
        (MILK, "oh wait I don't need those take them off", ("list_remove", {"item": "milk", "list": "shopping"})),
        (CURIE, "search the web for her", ("web_search", {"query": "Marie Curie"})),
        (GOOD_FRIDAY, "how many days away is that", ("time_until", {"unit": "days", "target_date": "Good Friday"})),
        (
            SHOPPED,
            "remind me about it at five",
            ("set_reminder", {"message": "about batteries", "time": "at five"}),
        ),
    ],
)
async def test_there_then_it_and_that_are_what_was_spoken_of(
    before: list[Message], text: str, expected: tuple[str, Mapping[str, Any]]
) -> None:
    assert await calls(*before, UserMessage(text)) == [expected]


async def test_the_only_event_that_was_listed_can_be_deleted() -> None:
    listed = after("what's on my calendar", "calendar_list_events", {}, {"events": [{"id": "e7", "title": "Dentist"}]})
    deleted = [("calendar_delete_event", {"event": "e7"})]
    assert await calls(*listed, UserMessage("delete that event")) == deleted
    assert (
        await answer(*listed, UserMessage("delete that event"), mode=Mode.VOICE) == "I can only do that in text mode."
    )


async def test_the_event_that_was_asked_for_is_taken_out_of_the_calendar() -> None:
    found = {"events": [{"id": "e7", "title": "Dentist"}]}
    asked = after("when am I seeing the dentist", "calendar_list_events", {"about": "dentist"}, found)
    deleted = [("calendar_delete_event", {"event": "e7"})]
    assert await calls(*asked, UserMessage("take it out of my calendar please")) == deleted


@pytest.mark.parametrize("text", ["okay", "oh", "well", "I don't need help"])
async def test_nothing_is_undone_by_words_in_passing(text: str) -> None:
    assert await calls(*MILK, UserMessage(text)) == []


async def test_an_answer_may_have_a_slip_of_the_tongue() -> None:
    refused = {"error": {"type": ErrorType.VALIDATION}}
    asked = after("set a timer", "set_timer", {"duration": ""}, refused, ok=False, answer="For how long?")
    assert await calls(*asked, UserMessage("five, no, six minutes")) == [("set_timer", {"duration": "six minutes"})]


async def test_a_sum_goes_on_whatever_the_amount_is_for() -> None:
    assert await calls(*PRODUCT, UserMessage("plus 4.50 for delivery")) == [
        ("calculate", {"expression": "144 plus 4.50"})
    ]


@pytest.mark.parametrize(
    "text", ["again", "once more", "another one", "do it again please", "another go", "tell me one more"]
)
async def test_reading_requests_are_repeated(text: str) -> None:
    assert await calls(*JOKE, UserMessage(text)) == [("tell_joke", {})]


async def test_a_request_that_writes_is_repeated_after_a_yes_only() -> None:
    asked = await answer(*TIMER, UserMessage("again"))
    assert asked == "Did you mean “set a timer for five minutes”?"
    said = [*TIMER, UserMessage("again"), AssistantMessage(asked)]
    assert await calls(*said, UserMessage("yes")) == [("set_timer", {"duration": "five minutes"})]


@pytest.mark.parametrize("text", ["stop", "never mind", "forget it", "okay", "right", "yeah", "cool", "got it"])
async def test_nothing_is_made_of_a_word_in_passing(text: str) -> None:
    said = await answer(*WEATHER, UserMessage(text))
    assert len(said) <= len("Okay.") + 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "what time is it in Tokyo and in London",
            [("get_current_time", {"timezone": "Tokyo"}), ("get_current_time", {"timezone": "London"})],
        ),
        (
            "what's the weather in Paris and Rome",
            [("get_weather", {"location": "Paris"}), ("get_weather", {"location": "Rome"})],
        ),
        ("what time is it in Trinidad and Tobago", [("get_current_time", {"timezone": "Trinidad and Tobago"})]),
        (
            "what's the weather in Paris and what time is it there",
            [("get_weather", {"location": "Paris"}), ("get_current_time", {"timezone": "Paris"})],
        ),
        (
            "take eggs off the shopping list and put cheese on it",
            [
                ("list_remove", {"item": "eggs", "list": "shopping"}),
                ("list_add", {"item": "cheese", "list": "shopping"}),
            ],
        ),
        (
            "set a timer for five minutes and another one for ten minutes",
            [("set_timer", {"duration": "5 minutes"}), ("set_timer", {"duration": "10 minutes"})],
        ),
        ("What time is it? And tell me a joke.", [("get_current_time", {}), ("tell_joke", {})]),
        ("what time is it, then tell me a joke", [("get_current_time", {}), ("tell_joke", {})]),
    ],
)
async def test_the_second_request_of_a_sentence_may_lack_words_of_the_first(text: str, expected: Called) -> None:
    assert await calls(UserMessage(text)) == expected


async def test_a_conversation_of_another_person_is_not_referred_to() -> None:
    assert await calls(UserMessage("and in London?")) == []
    assert await calls(UserMessage("cancel it")) == []


@pytest.mark.parametrize("text", ["and in London?", "what about tomorrow", "no, ten minutes", "plus ten", "again"])
def test_a_follow_up_may_be_complete_so_a_spoken_one_is_answered_sooner(text: str) -> None:
    assert MODEL.completeness(text, Mode.VOICE) is Completeness.EXTENDABLE


# The tools really run.


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("context")
    return Settings(folder, folder / "data", storage=Storage(url="memory"))


@pytest.fixture(scope="module")
def registry(settings: Settings) -> Registry:
    return load_tools(settings)


@pytest.fixture
async def person(settings: Settings, registry: Registry) -> AsyncIterator[Dialogue]:
    async with begin(settings, registry, MODEL, Mode.TEXT) as person:
        yield person


@pytest.mark.real_time
async def test_a_corrected_timer_runs_once(person: Dialogue) -> None:
    assert await person.say("set a timer for five minutes") == "All right, 5 minutes, starting now."
    corrected = await person.say("no, ten minutes")
    assert corrected == "I've cancelled the one before. All right, 10 minutes, starting now."
    assert (await person.say("what timers do I have")).startswith("Your 10 minute timer has")
    assert await person.say("cancel it") == "All right, I've cancelled your 10 minute timer."


@pytest.mark.real_time
async def test_a_corrected_item_is_on_the_list_once(person: Dialogue) -> None:
    await person.say("add milk to my shopping list")
    assert await person.say("and eggs") == "I've put eggs on your shopping list."
    said = await person.say("no, I meant figs")
    assert said == "I've taken eggs off your shopping list. I've put figs on your shopping list."
    assert await person.say("what's on it") == "Your shopping list has milk and figs."
    assert await person.say("undo that") == "I can't undo that, I'm afraid." or person.called == []


@pytest.mark.real_time
async def test_sums_go_on(person: Dialogue) -> None:
    assert "144" in await person.say("12 times 12")
    assert "154" in await person.say("plus ten")
    assert "77" in await person.say("half of that")
    assert "23.1" in await person.say("what's 30 percent of that")
    assert "46.2" in await person.say("no, 60 percent")
