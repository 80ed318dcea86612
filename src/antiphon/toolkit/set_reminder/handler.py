"""Sets a reminder."""

import re
from datetime import datetime
from typing import Final

from antiphon.tools.capabilities.reminders import Kind
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok
from antiphon.words.reported import to_second_person
from antiphon.words.schedules import Schedule, ScheduleError, find_schedule, speak_when
from antiphon.words.speech import speak_time

_CLAUSE: Final = re.compile(r"(?P<opener>to|that|about|of)\s+(?P<message>.+)", re.IGNORECASE | re.DOTALL)


async def execute(args: Args, context: Context) -> ToolResult:
    said, time = args["message"].strip(), args["time"].strip()
    now = context.clock.now(context.session.zone)
    if not said:
        return _ask("What should I remind you of?")
    if not time:
        return _ask(f"When should I remind you{_clause(said)}?")
    try:
        said, schedule = find_schedule(said, time, now)
    except ScheduleError as error:
        if not error.is_time and _CLAUSE.fullmatch(said):
            # What was taken for a time is the end of the message: "remind me to look at the stars".
            return _ask(f"When should I remind you{_clause(f'{said} {time}')}?")
        return fail(ErrorType.VALIDATION, str(error), suggestion=error.suggestion)
    reminder = await context.reminders.add(Kind.REMINDER, _message(said), schedule.due, schedule.repeat)
    return ok(reminder.data(now), spoken=_confirm(said, schedule, now))


def _ask(question: str) -> ToolResult:
    return fail(ErrorType.VALIDATION, question, suggestion="Ask the user, then call this again with the answer.")


def _message(said: str) -> str:
    clause = _CLAUSE.fullmatch(said)
    return said if clause is None else clause["message"]


def _clause(said: str) -> str:
    clause = _CLAUSE.fullmatch(said)
    if clause is None:
        return f": {to_second_person(said)}"
    return f" {clause['opener'].lower()} {to_second_person(clause['message'])}".rstrip(".!?")


def _confirm(said: str, schedule: Schedule, now: datetime) -> str:
    skipped = schedule.skipped
    begin = "All right" if skipped is None else f"The clocks skip {speak_time(skipped)} that day, so"
    comma = "," if skipped is None else ""
    when = speak_when(schedule.due, schedule.repeat, now)
    return f"{begin}{comma} I'll remind you {when}{_clause(said)}."
