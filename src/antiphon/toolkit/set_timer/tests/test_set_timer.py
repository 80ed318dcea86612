import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from antiphon.authoring.fake_reminders import FakeReminders
from antiphon.authoring.testing import StillClock, make_context
from antiphon.sentences.matching import Matcher
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.templates import parse
from antiphon.toolkit.set_timer import handler
from antiphon.toolkit.set_timer.handler import execute
from antiphon.tools.arguments import compile_schema
from antiphon.tools.capabilities.reminders import Kind
from antiphon.tools.errors import ErrorType

FOLDER = Path(handler.__file__).parent
SCHEMA = json.loads((FOLDER / "schema.json").read_text())
BEFORE_DST_MS = 1_774_742_100_000
"""2026-03-29 00:55 in Berlin, an hour and five minutes before summer time starts."""


def hear(said: str) -> dict[str, Any] | None:
    grammar = parse("set_timer", yaml.safe_load((FOLDER / "sentences.yaml").read_text()))
    match = Matcher(grammar.templates).match(Phrase(said), {"set_timer"})
    return match.args if match else None


async def test_the_timer_is_stored_with_its_end() -> None:
    reminders = FakeReminders()
    result = await execute({"duration": "ten minutes"}, make_context(granted={"reminders": reminders}))
    (timer,) = reminders.stored
    assert (timer.kind, timer.message, timer.due.isoformat()) == (Kind.TIMER, "", "2026-01-01T12:10:00+00:00")
    assert result.data["remaining_s"] == 600
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)


async def test_it_counts_real_time_over_a_change_of_the_clocks() -> None:
    clock = StillClock(BEFORE_DST_MS)
    context = make_context(zone="Europe/Berlin", clock=clock, granted={"reminders": FakeReminders(clock)})
    result = await execute({"duration": "two hours"}, context)
    assert result.data["due"] == "2026-03-29T03:55:00+02:00"
    assert result.data["remaining_s"] == 7200


@pytest.mark.parametrize(
    ("args", "spoken", "label"),
    [
        ({"duration": "ten minutes"}, "All right, 10 minutes, starting now.", ""),
        ({"duration": "90 seconds"}, "All right, 1 minute and 30 seconds, starting now.", ""),
        ({"duration": "nine minutes", "label": "pasta"}, "Your pasta timer is set for 9 minutes.", "pasta"),
        ({"duration": "the eggs", "label": "ten minute"}, "Your eggs timer is set for 10 minutes.", "eggs"),
        ({"duration": "PT1H", "label": "the laundry timer"}, "Your laundry timer is set for 1 hour.", "laundry"),
    ],
)
async def test_it_is_confirmed_with_its_length(args: dict[str, str], spoken: str, label: str) -> None:
    reminders = FakeReminders()
    assert (await execute(args, make_context(granted={"reminders": reminders}))).spoken == spoken
    assert reminders.stored[0].message == label


@pytest.mark.parametrize(
    ("duration", "said"),
    [
        ("", "For how long?"),
        ("banana", "I don't understand how long “banana” is."),
        ("ten", "I don't understand how long “ten” is."),
        ("a month", "I don't understand how long “a month” is."),
        ("0 seconds", "A timer needs at least a second."),
        ("eight days", "A timer can run for a week at most."),
    ],
)
async def test_what_cannot_be_timed_is_explained_and_nothing_is_stored(duration: str, said: str) -> None:
    reminders = FakeReminders()
    error = (await execute({"duration": duration}, make_context(granted={"reminders": reminders}))).error
    assert error is not None
    assert (error.type, error.message) == (ErrorType.VALIDATION, said)
    assert error.suggestion
    assert reminders.stored == []


@pytest.mark.parametrize(
    ("said", "args"),
    [
        ("set a timer for ten minutes", {"duration": "10 minutes"}),
        ("set a ten minute timer", {"duration": "10 minute"}),
        ("start an hour and a half timer", {"duration": "hour and a half"}),
        ("timer for five minutes", {"duration": "5 minutes"}),
        ("set a pasta timer for nine minutes", {"duration": "nine minutes", "label": "pasta"}),
        ("set a ten minute timer for the eggs", {"duration": "the eggs", "label": "ten minute"}),
        ("set a timer for ten minutes for the rice", {"duration": "ten minutes", "label": "the rice"}),
        ("start another timer for 90 seconds", {"duration": "90 seconds"}),
        ("count down from ten seconds", {"duration": "ten seconds"}),
        ("set a timer", {"duration": ""}),
    ],
)
def test_the_tool_is_matched_by_its_sentences(said: str, args: dict[str, str]) -> None:
    assert hear(said) == args
