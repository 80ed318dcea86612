import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from antiphon.authoring.fake_reminders import FakeReminders
from antiphon.authoring.testing import make_context
from antiphon.sentences.matching import Matcher
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.templates import parse
from antiphon.toolkit.set_alarm import handler
from antiphon.toolkit.set_alarm.handler import execute
from antiphon.tools.arguments import compile_schema
from antiphon.tools.capabilities.reminders import Kind
from antiphon.tools.errors import ErrorType

FOLDER = Path(handler.__file__).parent
SCHEMA = json.loads((FOLDER / "schema.json").read_text())


def hear(said: str) -> dict[str, Any] | None:
    grammar = parse("set_alarm", yaml.safe_load((FOLDER / "sentences.yaml").read_text()))
    match = Matcher(grammar.templates).match(Phrase(said), {"set_alarm"})
    return match.args if match else None


async def test_the_alarm_is_stored() -> None:
    reminders = FakeReminders()
    result = await execute({"time": "seven", "label": "gym"}, make_context(granted={"reminders": reminders}))
    (alarm,) = reminders.stored
    assert (alarm.kind, alarm.message, alarm.due.isoformat()) == (Kind.ALARM, "gym", "2026-01-02T07:00:00+00:00")
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)


@pytest.mark.parametrize(
    ("args", "spoken"),
    [
        # It is noon: people who say "seven" want to be woken in the morning.
        ({"time": "at seven"}, "Your alarm is set for 7 AM tomorrow."),
        ({"time": "at 7 pm"}, "Your alarm is set for 7 PM."),
        ({"time": "at three"}, "Your alarm is set for 3 PM."),
        ({"time": "for 6 30 tomorrow"}, "Your alarm is set for 6:30 AM tomorrow."),
        ({"time": "in twenty minutes"}, "Your alarm is set for 12:20 PM."),
        ({"time": "in thirty seconds"}, "Your alarm is set in 30 seconds."),
        ({"time": "every weekday at seven"}, "Your alarm is set every weekday at 7 AM."),
        ({"time": "6:30", "repeat": "weekdays", "label": "gym"}, "Your gym alarm is set every weekday at 6:30 AM."),
        ({"time": "eight", "repeat": "monday"}, "Your alarm is set every Monday at 8 AM."),
        ({"time": "noon", "repeat": "mondays and thursdays"}, "Your alarm is set every Monday and Thursday at noon."),
        ({"time": "six thirty", "label": "weekday"}, "Your alarm is set every weekday at 6:30 AM."),
        ({"time": "eight", "label": "daily"}, "Your alarm is set every day at 8 AM."),
        ({"time": "2026-01-03T05:15"}, "Your alarm is set for 5:15 AM on Saturday."),
    ],
)
async def test_it_is_confirmed_with_its_time(args: dict[str, str], spoken: str) -> None:
    assert (await execute(args, make_context(granted={"reminders": FakeReminders()}))).spoken == spoken


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"time": ""}, "For what time?"),
        ({"time": "banana"}, "I don't understand when “banana” is."),
        ({"time": "today at 7 am"}, "7 AM has already passed."),
        ({"time": "seven", "repeat": "every month"}, "I can only repeat something on days of the week"),
        ({"time": "seven", "repeat": "banana"}, "I don't understand when “every banana at seven” is."),
    ],
)
async def test_what_cannot_be_set_is_explained_and_nothing_is_stored(args: dict[str, str], said: str) -> None:
    reminders = FakeReminders()
    error = (await execute(args, make_context(granted={"reminders": reminders}))).error
    assert error is not None
    assert error.type is ErrorType.VALIDATION
    assert error.message.startswith(said)
    assert reminders.stored == []


@pytest.mark.parametrize(
    ("said", "args"),
    [
        ("wake me at seven", {"time": "at seven"}),
        ("wake me up at half past six", {"time": "at half past six"}),
        ("wake me up in twenty minutes", {"time": "in twenty minutes"}),
        ("wake me up every weekday at seven", {"time": "every weekday at seven"}),
        ("every weekday wake me up at seven", {"time": "every weekday at seven"}),
        ("set an alarm for 6 30 tomorrow", {"time": "for 6 30 tomorrow"}),
        ("set my alarm clock for seven", {"time": "for seven"}),
        ("set a seven am alarm", {"time": "seven am"}),
        ("set a gym alarm for five thirty", {"time": "five thirty", "label": "gym"}),
        ("alarm at six", {"time": "six"}),
        ("wake me up", {"time": ""}),
        ("set an alarm", {"time": ""}),
    ],
)
def test_the_tool_is_matched_by_its_sentences(said: str, args: dict[str, str]) -> None:
    assert hear(said) == args
