"""Sets an alarm."""

import re
from datetime import datetime
from typing import Final

from antiphon.tools.capabilities.reminders import Kind
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok
from antiphon.words.days import WEEKDAYS
from antiphon.words.schedules import Schedule, ScheduleError, parse_schedule, speak_when
from antiphon.words.speech import speak_time

_DAY_ONLY: Final = re.compile(
    rf"(?:on |this |next |in the )?(?:today|tomorrow|morning|{'|'.join(WEEKDAYS)})(?: morning)?", re.IGNORECASE
)
"""A day without a time. A reminder can do without one, but nobody is woken at any time."""


async def execute(args: Args, context: Context) -> ToolResult:
    time, repeat, label = (args.get(name, "").strip() for name in ("time", "repeat", "label"))
    now = context.clock.now(context.session.zone)
    if not time or _DAY_ONLY.fullmatch(time):
        return fail(ErrorType.VALIDATION, "For what time?", suggestion="Ask the user for the time of the alarm.")
    try:
        schedule, label = _find(time, repeat, label, now)
    except ScheduleError as error:
        return fail(ErrorType.VALIDATION, str(error), suggestion=error.suggestion)
    alarm = await context.reminders.add(Kind.ALARM, label, schedule.due, schedule.repeat)
    when = speak_when(schedule.due, schedule.repeat, now)
    when = when if schedule.repeat is not None or when.startswith("in ") else when.replace("at ", "for ", 1)
    named = f"{label} alarm" if label else "alarm"
    begin = f"The clocks skip {speak_time(schedule.skipped)} that day, so your" if schedule.skipped else "Your"
    return ok(alarm.data(now), spoken=f"{begin} {named} is set {when}.")


def _find(time: str, repeat: str, label: str, now: datetime) -> tuple[Schedule, str]:
    """Returns the schedule and the label. "Set a weekday alarm for seven" has its days where a label could be."""
    if repeat:
        return _parse(f"{_plural(repeat)} {_at(time)}", now), label
    if label:
        try:
            repeated = _parse(f"{_plural(label)} {_at(time)}", now)
        except ScheduleError:
            pass
        else:
            if repeated.repeat is not None:
                return repeated, ""
    return _parse(time, now), label


def _parse(text: str, now: datetime) -> Schedule:
    return parse_schedule(text, now, in_morning=True)


def _at(time: str) -> str:
    return time if time.startswith(("at ", "in the ")) else f"at {time}"


def _plural(days: str) -> str:
    """ "Weekday" and "monday" stand for every one of them."""
    return days if " " in days or days.endswith("s") or days == "daily" else f"every {days}"
