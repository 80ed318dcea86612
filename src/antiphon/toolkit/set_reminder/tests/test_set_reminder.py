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
from antiphon.toolkit.set_reminder import handler
from antiphon.toolkit.set_reminder.handler import execute
from antiphon.tools.arguments import compile_schema
from antiphon.tools.capabilities.reminders import Kind
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult

FOLDER = Path(handler.__file__).parent
SCHEMA = json.loads((FOLDER / "schema.json").read_text())
BEFORE_DST_MS = 1_774_695_600_000
"""2026-03-28 12:00 in Berlin, the day before summer time starts."""


def hear(said: str) -> dict[str, Any] | None:
    grammar = parse("set_reminder", yaml.safe_load((FOLDER / "sentences.yaml").read_text()))
    match = Matcher(grammar.templates).match(Phrase(said), {"set_reminder"})
    return match.args if match else None


async def remind(message: str, time: str, reminders: FakeReminders | None = None, **context: Any) -> ToolResult:
    granted = {"reminders": reminders or FakeReminders(context.get("clock"))}
    return await execute({"message": message, "time": time}, make_context(granted=granted, **context))


async def refuse(message: str, time: str, **context: Any) -> str:
    reminders = FakeReminders()
    error = (await remind(message, time, reminders, **context)).error
    assert error is not None
    assert error.type is ErrorType.VALIDATION
    assert error.suggestion
    assert reminders.stored == []
    return error.message


async def test_the_reminder_is_stored_as_the_user_said_it() -> None:
    reminders = FakeReminders()
    result = await remind("to call my mother", "in one minute", reminders)
    (stored,) = reminders.stored
    assert (stored.kind, stored.message, stored.due.isoformat()) == (
        Kind.REMINDER,
        "call my mother",
        "2026-01-01T12:01:00+00:00",
    )
    assert result.data["remaining_s"] == 60
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)


@pytest.mark.parametrize(
    ("message", "time", "spoken"),
    [
        ("to call my mother", "in one minute", "All right, I'll remind you in 1 minute to call your mother."),
        ("to call my mother", "at 3:05 pm", "All right, I'll remind you at 3:05 PM to call your mother."),
        ("that I have to leave", "at six", "All right, I'll remind you at 6 PM that you have to leave."),
        ("about our taxes", "tomorrow", "All right, I'll remind you at 9 AM tomorrow about your taxes."),
        ("call your mother", "at noon tomorrow", "All right, I'll remind you at noon tomorrow: call your mother."),
        ("to stand up", "every weekday at nine", "All right, I'll remind you every weekday at 9 AM to stand up."),
        ("to drink", "every two hours", "All right, I'll remind you every 2 hours to drink."),
        ("to dance", "2026-01-09T18:30", "All right, I'll remind you at 6:30 PM on Friday, January 9th to dance."),
    ],
)
async def test_it_is_confirmed_with_its_time(message: str, time: str, spoken: str) -> None:
    assert (await remind(message, time)).spoken == spoken


async def test_the_time_is_in_the_zone_of_the_user() -> None:
    result = await remind("to eat", "at 6 pm", zone="Asia/Tokyo")
    assert result.data["due"] == "2026-01-02T18:00:00+09:00"


async def test_a_time_that_the_clocks_skip_is_said_to_be_later() -> None:
    result = await remind(
        "to feed the cat", "tomorrow at 2:30 am", zone="Europe/Berlin", clock=StillClock(BEFORE_DST_MS)
    )
    assert result.data["due"] == "2026-03-29T03:30:00+02:00"
    assert result.spoken == (
        "The clocks skip 2:30 AM that day, so I'll remind you at 3:30 AM tomorrow to feed the cat."
    )


@pytest.mark.parametrize(
    ("message", "time", "said"),
    [
        ("to call bob on friday", "at nine", "All right, I'll remind you at 9 AM tomorrow to call bob."),
        (
            "to call bob next",
            "friday at five",
            "All right, I'll remind you at 5 PM on Friday, January 9th to call bob.",
        ),
        ("to six to leave", "at quarter", "All right, I'll remind you at 5:45 PM to leave."),
    ],
)
async def test_words_on_the_wrong_side_of_the_time_are_put_right(message: str, time: str, said: str) -> None:
    assert (await remind(message, time)).spoken == said


@pytest.mark.parametrize(
    ("message", "time", "said"),
    [
        ("", "in ten minutes", "What should I remind you of?"),
        ("to call my mother", "", "When should I remind you to call your mother?"),
        ("to look", "at the stars", "When should I remind you to look at the stars?"),
        ("call", "banana", "I don't understand when “banana” is."),
        ("to call", "today at nine am", "9 AM has already passed."),
        ("to call", "yesterday at five", "5 PM yesterday has already passed."),
        ("to call", "2025-12-31T10:00", "10 AM yesterday has already passed."),
        ("to call", "on february thirtieth", "There is no such time as february thirtieth."),
        ("to call", "today", "What time today?"),
        ("to call", "in 50 years", "That is more than ten years away, which is too far for me."),
        (
            "to pay",
            "every month",
            "I can only repeat something on days of the week, or every so many minutes or hours.",
        ),
    ],
)
async def test_what_cannot_be_set_is_explained_and_nothing_is_stored(message: str, time: str, said: str) -> None:
    assert await refuse(message, time) == said


@pytest.mark.parametrize(
    ("said", "message", "time"),
    [
        ("remind me to call my mother in one minute", "to call my mother", "in one minute"),
        ("remind me in an hour to take the cake out", "to take the cake out", "in an hour"),
        ("remind me tomorrow at nine that the shop closes", "that the shop closes", "tomorrow at nine"),
        ("remind me to look at the stars at nine", "to look at the stars", "at nine"),
        ("every weekday at nine remind me to stand up", "to stand up", "every weekday at nine"),
        ("remind me every day at 8 to take my pills", "to take my pills", "every day at 8"),
        ("remind me to water the plants tomorrow", "to water the plants", "tomorrow"),
        ("remind me tomorrow to water the plants", "to water the plants", "tomorrow"),
        ("remind me about the meeting tomorrow at nine", "about the meeting", "tomorrow at nine"),
        ("set a reminder to call mum at six", "to call mum", "at six"),
        ("set a reminder for tomorrow at nine to call the bank", "to call the bank", "for tomorrow at nine"),
        ("don't let me forget to call dad tonight", "to call dad", "tonight"),
        ("in five minutes remind me to check the oven", "to check the oven", "in five minutes"),
        ("remind me to call my mother", "to call my mother", ""),
        ("remind me in ten minutes", "", "in ten minutes"),
        ("set a reminder", "", ""),
    ],
)
def test_the_tool_is_matched_by_its_sentences(said: str, message: str, time: str) -> None:
    assert hear(said) == {"message": message, "time": time}


def test_a_question_about_the_conversation_is_not_a_reminder() -> None:
    assert hear("remind me what I just said") is None
