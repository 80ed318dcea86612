import json
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml

from antiphon.authoring.fake_reminders import FakeReminders
from antiphon.authoring.testing import StillClock, make_context
from antiphon.sentences.matching import Matcher
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.templates import parse
from antiphon.toolkit.list_reminders import handler
from antiphon.toolkit.list_reminders.handler import execute
from antiphon.tools.arguments import compile_schema
from antiphon.tools.capabilities.reminders import Kind
from antiphon.tools.result import ToolResult
from antiphon.tools.spec import Mode
from antiphon.words.schedules import parse_schedule

FOLDER = Path(handler.__file__).parent
SCHEMA = json.loads((FOLDER / "schema.json").read_text())


def hear(said: str) -> dict[str, Any] | None:
    grammar = parse("list_reminders", yaml.safe_load((FOLDER / "sentences.yaml").read_text()))
    match = Matcher(grammar.templates).match(Phrase(said), {"list_reminders"})
    return match.args if match else None


async def filled() -> FakeReminders:
    reminders = FakeReminders()
    now = reminders.clock.now(ZoneInfo("UTC"))
    await reminders.add(Kind.TIMER, "pasta", now + timedelta(minutes=9))
    await reminders.add(Kind.REMINDER, "call my mother", now + timedelta(hours=3))
    weekdays = parse_schedule("every weekday at nine", now)
    await reminders.add(Kind.REMINDER, "stand up", weekdays.due, weekdays.repeat)
    await reminders.add(Kind.ALARM, "", now + timedelta(hours=19))
    return reminders


async def ask(reminders: FakeReminders, *, mode: Mode = Mode.TEXT, **args: Any) -> ToolResult:
    context = make_context(mode=mode, clock=reminders.clock, granted={"reminders": reminders})
    result = await execute(args, context)
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)
    return result


async def test_everything_is_listed_in_the_order_in_which_it_rings() -> None:
    result = await ask(await filled())
    assert [each["message"] for each in result.data["reminders"]] == ["pasta", "call my mother", "", "stand up"]
    assert result.spoken == (
        "You have 4 things set: a pasta timer with 9 minutes left, a reminder to call your mother at 3 PM, "
        "an alarm at 7 AM tomorrow, and a reminder to stand up every weekday at 9 AM."
    )


async def test_reminders_are_told_by_what_is_to_be_done() -> None:
    assert (await ask(await filled(), kind="reminder")).spoken == (
        "You have 2 reminders: to call your mother at 3 PM, and to stand up every weekday at 9 AM."
    )


async def test_a_reminder_that_is_no_task_is_quoted() -> None:
    reminders = await filled()
    await reminders.add(Kind.REMINDER, "dentist", reminders.clock.now(ZoneInfo("UTC")) + timedelta(hours=1))
    assert "You have 3 reminders: “dentist” at " in ((await ask(reminders, kind="reminder")).spoken or "")


async def test_a_timer_tells_how_much_time_it_has_left() -> None:
    reminders = await filled()
    reminders.clock.advance(seconds=400)
    result = await ask(reminders, kind="timer")
    assert result.spoken == "Your pasta timer has 2 minutes and 20 seconds left."
    assert result.data["reminders"][0]["remaining_s"] == 140


async def test_one_alarm_is_told_with_its_day() -> None:
    assert (await ask(await filled(), kind="alarm")).spoken == "You have one: an alarm at 7 AM tomorrow."


@pytest.mark.parametrize(
    ("args", "spoken"),
    [
        ({}, "You have no reminders, timers or alarms."),
        ({"kind": "timer"}, "You have no timers running."),
        ({"kind": "timer", "about": "pasta"}, "You have no pasta timers running."),
        ({"kind": "reminder"}, "You have no reminders."),
        ({"kind": "alarm"}, "You have no alarms."),
    ],
)
async def test_nothing_is_not_an_error(args: dict[str, Any], spoken: str) -> None:
    result = await ask(FakeReminders(), **args)
    assert (result.ok, result.data, result.spoken) == (True, {"reminders": []}, spoken)


async def test_only_those_about_the_words_are_listed() -> None:
    result = await ask(await filled(), about="mother")
    assert [each["message"] for each in result.data["reminders"]] == ["call my mother"]


async def test_in_a_call_only_the_next_ones_are_read_out() -> None:
    reminders = FakeReminders(StillClock())
    now = reminders.clock.now(ZoneInfo("UTC"))
    for minutes in range(1, 8):
        await reminders.add(Kind.TIMER, "", now + timedelta(minutes=minutes))
    result = await ask(reminders, mode=Mode.VOICE, kind="timer")
    assert result.spoken is not None
    assert result.spoken.startswith("You have 7 timers. The next are: a 1 minute timer with 1 minute left, ")
    assert "5 minute" not in result.spoken
    assert len(result.data["reminders"]) == 7


@pytest.mark.parametrize(
    ("said", "args"),
    [
        ("what reminders do i have", {"kind": "reminder"}),
        ("list my reminders", {"kind": "reminder"}),
        ("do i have any reminders", {"kind": "reminder"}),
        ("how much time is left on my timer", {"kind": "timer"}),
        ("how long is left on the timer", {"kind": "timer"}),
        ("how much time is left on the pasta timer", {"kind": "timer", "about": "pasta"}),
        ("when does my timer go off", {"kind": "timer"}),
        ("what timers are running", {"kind": "timer"}),
        ("when is my alarm", {"kind": "alarm"}),
        ("what time is my alarm set for", {"kind": "alarm"}),
        ("what timers and alarms do i have", {}),
    ],
)
def test_the_tool_is_matched_by_its_sentences(said: str, args: dict[str, str]) -> None:
    assert hear(said) == args
