import json
from collections.abc import Collection, Sequence
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import yaml

from antiphon.authoring.fake_reminders import FakeReminders
from antiphon.authoring.testing import make_context
from antiphon.sentences.matching import Matcher
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.templates import parse
from antiphon.toolkit.cancel_reminder import handler
from antiphon.toolkit.cancel_reminder.handler import execute
from antiphon.tools.arguments import compile_schema
from antiphon.tools.capabilities.reminders import Kind, Reminder
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult
from antiphon.words.schedules import parse_schedule

FOLDER = Path(handler.__file__).parent
SCHEMA = json.loads((FOLDER / "schema.json").read_text())


def hear(said: str) -> str | None:
    grammar = parse("cancel_reminder", yaml.safe_load((FOLDER / "sentences.yaml").read_text()))
    match = Matcher(grammar.templates).match(Phrase(said), {"cancel_reminder"})
    return match.args["reminder"] if match else None


@pytest.fixture
async def reminders() -> FakeReminders:
    """r1 pasta timer, r2 ten minute timer, r3 and r4 reminders, r5 alarm at seven, r6 alarm at eight."""
    reminders = FakeReminders()
    now = reminders.clock.now(ZoneInfo("UTC"))
    await reminders.add(Kind.TIMER, "pasta", now + timedelta(minutes=9))
    await reminders.add(Kind.TIMER, "", now + timedelta(minutes=10))
    await reminders.add(Kind.REMINDER, "call my mother", now + timedelta(hours=3))
    daily = parse_schedule("every day at nine", now)
    await reminders.add(Kind.REMINDER, "take my pills", daily.due, daily.repeat)
    await reminders.add(Kind.ALARM, "", now + timedelta(hours=19))
    await reminders.add(Kind.ALARM, "gym", now + timedelta(hours=20))
    return reminders


async def cancel(reminders: FakeReminders, which: str) -> ToolResult:
    return await execute({"reminder": which}, make_context(clock=reminders.clock, granted={"reminders": reminders}))


def ids(reminders: FakeReminders) -> list[str]:
    return [each.id for each in reminders.stored]


@pytest.mark.parametrize(
    ("which", "gone"),
    [
        ("r3", "r3"),
        ("pasta timer", "r1"),
        ("the pasta timer", "r1"),
        ("the ten minute timer", "r2"),
        ("reminder call my mother", "r3"),
        ("call my mother", "r3"),
        ("the reminder about my pills", "r4"),
        ("the alarm at seven", "r5"),
        ("8 am alarm", "r6"),
        ("gym alarm", "r6"),
        ("the first alarm", "r5"),
        ("the last timer", "r2"),
    ],
)
async def test_the_one_that_is_meant_is_cancelled(reminders: FakeReminders, which: str, gone: str) -> None:
    result = await cancel(reminders, which)
    assert result.ok, result.error
    assert {"r1", "r2", "r3", "r4", "r5", "r6"} - set(ids(reminders)) == {gone}
    assert [each["id"] for each in result.data["cancelled"]] == [gone]
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)


@pytest.mark.parametrize(
    ("which", "left", "spoken"),
    [
        ("all timers", ["r3", "r4", "r5", "r6"], "All right, I've cancelled 2 timers."),
        ("my alarms", ["r1", "r2", "r3", "r4"], "All right, I've cancelled 2 alarms."),
        ("everything", [], "All right, I've cancelled 6 reminders, timers and alarms."),
    ],
)
async def test_several_are_cancelled_if_the_user_says_so(
    reminders: FakeReminders, which: str, left: list[str], spoken: str
) -> None:
    assert (await cancel(reminders, which)).spoken == spoken
    assert ids(reminders) == left


async def test_the_cancelled_one_is_named(reminders: FakeReminders) -> None:
    assert (await cancel(reminders, "pasta timer")).spoken == "All right, I've cancelled your pasta timer."


async def test_if_several_fit_it_asks_which_one(reminders: FakeReminders) -> None:
    error = (await cancel(reminders, "timer")).error
    assert error is not None
    assert error.type is ErrorType.VALIDATION
    assert error.message == (
        "Which one? You have a pasta timer with 9 minutes left and a 10 minute timer with 10 minutes left."
    )
    assert error.details is not None
    assert [each["id"] for each in error.details["candidates"]] == ["r1", "r2"]
    assert len(reminders.stored) == 6


async def test_what_does_not_exist_is_not_cancelled(reminders: FakeReminders) -> None:
    error = (await cancel(reminders, "reminder to feed the dragon")).error
    assert error is not None
    assert error.type is ErrorType.NOT_FOUND
    assert error.message.startswith("I found nothing like that. You have a pasta timer with")
    assert len(reminders.stored) == 6


async def test_a_kind_of_which_there_is_none_is_said_so(reminders: FakeReminders) -> None:
    await cancel(reminders, "all alarms")
    error = (await cancel(reminders, "the alarm at seven")).error
    assert error is not None
    assert (error.type, error.message) == (ErrorType.NOT_FOUND, "You have no alarms.")


async def test_nothing_at_all_is_said_so() -> None:
    error = (await cancel(FakeReminders(), "timer")).error
    assert error is not None
    assert (error.type, error.message) == (ErrorType.NOT_FOUND, "You have no reminders, timers or alarms.")


class JustRung(FakeReminders):
    async def cancel(self, ids: Collection[str]) -> Sequence[Reminder]:
        return []


async def test_what_rings_in_this_moment_is_not_said_to_be_cancelled() -> None:
    reminders = JustRung()
    await reminders.add(Kind.TIMER, "pasta", reminders.clock.now(ZoneInfo("UTC")) + timedelta(seconds=1))
    error = (await cancel(reminders, "pasta timer")).error
    assert error is not None
    assert error.type is ErrorType.NOT_FOUND


@pytest.mark.parametrize(
    ("said", "which"),
    [
        ("cancel the timer", "timer"),
        ("stop my timer", "timer"),
        ("cancel timer", "timer"),
        ("cancel all my timers", "all timers"),
        ("delete all alarms", "all alarms"),
        ("cancel the pasta timer", "pasta timer"),
        ("cancel the alarm for seven", "alarm seven"),
        ("cancel my reminder to call my mother", "reminder call my mother"),
        ("stop reminding me to take my pills", "reminder take my pills"),
        ("don't wake me up", "alarm"),
    ],
)
def test_the_tool_is_matched_by_its_sentences(said: str, which: str) -> None:
    assert hear(said) == which
