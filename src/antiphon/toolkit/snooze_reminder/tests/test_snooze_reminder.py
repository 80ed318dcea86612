import json
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml

from antiphon.authoring.fake_reminders import FakeReminders
from antiphon.authoring.testing import make_context
from antiphon.sentences.matching import Matcher
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.templates import parse
from antiphon.toolkit.snooze_reminder import handler
from antiphon.toolkit.snooze_reminder.handler import execute
from antiphon.tools.arguments import compile_schema
from antiphon.tools.capabilities.reminders import Kind, Reminder
from antiphon.tools.errors import ErrorType

FOLDER = Path(handler.__file__).parent
SCHEMA = json.loads((FOLDER / "schema.json").read_text())


def hear(said: str) -> dict[str, Any] | None:
    grammar = parse("snooze_reminder", yaml.safe_load((FOLDER / "sentences.yaml").read_text()))
    match = Matcher(grammar.templates).match(Phrase(said), {"snooze_reminder"})
    return match.args if match else None


@pytest.fixture
def reminders() -> FakeReminders:
    reminders = FakeReminders()
    now = reminders.clock.now(ZoneInfo("UTC"))
    reminders.rang = Reminder("r9-1", Kind.ALARM, "gym", now, now - timedelta(hours=8))
    return reminders


async def test_what_rang_last_rings_again(reminders: FakeReminders) -> None:
    result = await execute({"duration": "five minutes"}, make_context(granted={"reminders": reminders}))
    (again,) = reminders.stored
    assert (again.kind, again.message, again.due.isoformat()) == (Kind.ALARM, "gym", "2026-01-01T12:05:00+00:00")
    assert result.spoken == "All right, again in 5 minutes."
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)


async def test_without_a_ring_there_is_nothing_to_snooze() -> None:
    error = (await execute({"duration": "ten minutes"}, make_context(granted={"reminders": FakeReminders()}))).error
    assert error is not None
    assert (error.type, error.message) == (ErrorType.NOT_FOUND, "Nothing has rung in the last hour.")


@pytest.mark.parametrize("duration", ["banana", "two days", "0 seconds"])
async def test_a_length_that_makes_no_sense_is_refused(reminders: FakeReminders, duration: str) -> None:
    error = (await execute({"duration": duration}, make_context(granted={"reminders": reminders}))).error
    assert error is not None
    assert error.type is ErrorType.VALIDATION
    assert reminders.stored == []


@pytest.mark.parametrize(
    ("said", "args"),
    [
        ("snooze it", {}),
        ("snooze the alarm", {}),
        ("snooze for five minutes", {"duration": "five minutes"}),
        ("snooze the alarm for half an hour", {"duration": "half an hour"}),
        ("remind me again in ten minutes", {"duration": "ten minutes"}),
    ],
)
def test_the_tool_is_matched_by_its_sentences(said: str, args: dict[str, str]) -> None:
    assert hear(said) == args
