"""When something is to happen, as people say it: once, or again and again; and how long a timer is to run."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from antiphon.words.dates import localize, normalize, read_moved, read_when
from antiphon.words.days import WEEKDAYS
from antiphon.words.numbers import parse_number
from antiphon.words.repeats import Repeat, UnsupportedRepeat, parse_repeat
from antiphon.words.speech import speak_date, speak_duration, speak_length, speak_time
from antiphon.words.times import SPAN, parse_span

FURTHEST: Final = timedelta(days=3_660)
DEFAULT_TIME: Final = time(9)
"""The time of day for a day without one."""

SOON: Final = timedelta(seconds=90)
"""Until then it is clearer to say how long it is than at what time."""

TO_THE_SECOND: Final = timedelta(minutes=10)

_UNITS: Final = (
    (re.compile(r"(?<=\d) ?(?:h|hr|hrs)(?:\b|(?=\d))"), " hours "),
    (re.compile(r"(?<=\d) ?(?:m|min|mins)\b"), " minutes"),
    (re.compile(r"(?<=\d) ?(?:s|sec|secs)\b"), " seconds"),
    (re.compile(r"\b(hours?) (?:and )?(\d{1,2})$"), r"\1 \2 minutes"),
    (re.compile(r"\b(minutes?) (?:and )?(\d{1,2})$"), r"\1 \2 seconds"),
    (re.compile(r"\b([a-z]+)-(?=[a-z])"), r"\1 "),
    (re.compile(r"(?<=s) and (?=\d+ [a-z]+ and )"), " "),
)
_COUNTED: Final = re.compile(
    r"(?P<more>\b(?:another|a further|an extra|an additional) )?(?P<count>\b[\w.]+)(?: (?:more|further|extra))?"
    r"(?:-| )(?P<unit>second|minute|hour)(?P<s>s?)(?:['’]s)?\b",
    re.IGNORECASE,
)
"""A number with its unit, as before a noun: "an eight-minute timer", "a forty second plank"; or "five more minutes"."""
_ISO_DURATION: Final = re.compile(r"pt?(?:(\d+)d)?t?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", re.IGNORECASE)


MOST_MOVED: Final = 6
_BEGINS_TIME: Final = re.compile(
    rf"(?:in|at|on|by|yesterday|tomorrow|tonight|today|this|next|every|each|the day after|{'|'.join(WEEKDAYS)})\b",
    re.IGNORECASE,
)


class ScheduleError(ValueError):
    """A time that cannot be used. The text is a sentence for the person, the suggestion is for a model."""

    def __init__(self, message: str, suggestion: str, *, is_time: bool = True) -> None:
        super().__init__(message)
        self.suggestion = suggestion
        self.is_time = is_time
        """Whether the words are a time at all."""


@dataclass(frozen=True, slots=True)
class Schedule:
    due: datetime
    """The first or only time, in the zone of the user."""
    repeat: Repeat | None = None
    skipped: time | None = None
    """The time that was asked for, if the clocks skip it on that day. `due` is then an hour later."""


_TRY: Final = 'Pass a time such as "in ten minutes", "tomorrow at 6 pm", "every weekday at 9 am" or "2026-03-04T18:00".'


def parse_schedule(text: str, now: datetime, *, in_morning: bool = False) -> Schedule:
    """Parses a time or a repetition. `now` must be aware, and sets the zone. Raises ScheduleError.

    `in_morning`: an hour without AM or PM is one of the morning, as people mean it for an alarm.
    """
    try:
        text = re.sub(r"^(?:for|at|on) (?=(?:at|on|every|each) )|^for ", "", text.strip(), flags=re.IGNORECASE)
        repeat = parse_repeat(text, in_morning=in_morning)
        if repeat is not None:
            return Schedule(repeat.next_after(now, now), repeat)
        due, skipped = _parse_once(text, now, in_morning)
    except UnsupportedRepeat:
        raise ScheduleError(
            "I can only repeat something on days of the week, or every so many minutes or hours.",
            'Pass "every day at 8 am", "every weekday at 9", "on mondays and thursdays at noon" or "every 2 hours".',
        ) from None
    except (ValueError, OverflowError) as error:
        if isinstance(error, ScheduleError):
            raise
        named = re.sub(r"^(?:on|at) ", "", text)
        raise ScheduleError(f"There is no such time as {named}.", _TRY) from None
    if due <= now.astimezone(UTC):
        raise ScheduleError(f"{_speak_past(due, now)} has already passed.", "Ask for a time in the future.")
    if due - now.astimezone(UTC) > FURTHEST:
        raise ScheduleError("That is more than ten years away, which is too far for me.", "Ask for an earlier time.")
    return Schedule(due, skipped=skipped)


def find_schedule(message: str, text: str, now: datetime) -> tuple[str, Schedule]:
    """Parses a time, and returns it with the message, where words may be on the wrong side of the border between the
    two: "call bob on friday", "at nine"; or "at quarter", "to six to call bob". Raises ScheduleError.
    """
    words = message.split()
    for count in range(min(len(words) - 1, MOST_MOVED), 0, -1):
        moved = " ".join(words[-count:])
        if _BEGINS_TIME.match(moved):
            try:
                return " ".join(words[:-count]), parse_schedule(f"{moved} {text}", now)
            except ScheduleError as error:
                if error.is_time:
                    raise
    try:
        return message, parse_schedule(text, now)
    except ScheduleError as error:
        for count in range(1, min(len(words) - 1, MOST_MOVED) + 1):
            if words[count] in ("to", "that", "about"):
                try:
                    return " ".join(words[count:]), parse_schedule(f"{text} {' '.join(words[:count])}", now)
                except ScheduleError:
                    continue
        raise error


def _parse_once(text: str, now: datetime, in_morning: bool) -> tuple[datetime, time | None]:
    moved = read_moved(text, now)
    if moved is not None:
        return moved, None
    when = read_when(text, now, in_morning=in_morning)
    if when is None:
        # "7" and "6 30" alone are times here, but not in other texts.
        when = read_when(f"at {text}", now, in_morning=in_morning)
    if when is None:
        raise ScheduleError(f"I don't understand when “{text}” is.", _TRY, is_time=False)
    if isinstance(when, datetime):
        wall = read_when(text, now.replace(tzinfo=UTC), in_morning=in_morning)
        return when, _find_skipped(wall, when)
    due = localize(datetime.combine(when, DEFAULT_TIME), now)
    if when == now.date() and due <= now.astimezone(UTC):
        raise ScheduleError("What time today?", "Ask the user for the time of day.")
    return due, None


def _find_skipped(wall: object, due: datetime) -> time | None:
    """Returns the time that was said, if the clocks skip it on that day."""
    if not isinstance(wall, datetime) or wall.date() != due.date() or wall.time() == due.time():
        return None
    said = wall.replace(tzinfo=due.tzinfo)
    return said.time() if said.astimezone(UTC).astimezone(due.tzinfo).time() != said.time() else None


def _speak_past(due: datetime, now: datetime) -> str:
    return speak_moment(due, now)[:1].upper() + speak_moment(due, now)[1:]


def _write_counted(match: re.Match[str]) -> str:
    """Writes a number with its unit as they stand alone: "40 second", which may be an ordinal, is "40 seconds"."""
    is_one = match["count"].lower() in ("a", "an", "one", "1", "the", "half")
    plural = match["s"] or ("" if is_one or parse_number(match["count"]) is None else "s")
    return f"{match['count']} {match['unit']}{plural}"


def parse_duration(text: str) -> timedelta | None:
    """Parses a length of time: "an hour and a half", "90 seconds", "1h 30m", "PT10M". None if it is none."""
    iso = _ISO_DURATION.fullmatch(text.strip())
    if iso is not None and any(iso.groups()):
        days, hours, minutes, seconds = (int(each or 0) for each in iso.groups())
        return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    try:
        heard = re.sub(r"^(?:for|of|in) ", "", normalize(_COUNTED.sub(_write_counted, text)))
    except ValueError:
        return None
    for pattern, plain in _UNITS:
        heard = pattern.sub(plain, heard)
    heard = " ".join(heard.split())
    if re.fullmatch(SPAN, heard) is None:
        return None
    span = parse_span(heard)
    if span is None or span.months:
        return None
    return timedelta(days=span.days, seconds=span.seconds)


def speak_moment(moment: datetime, now: datetime) -> str:
    """Phrases a moment for a person: "3:05 PM", "9 AM tomorrow", "noon on Friday, January 9th"."""
    days = (moment.date() - now.date()).days
    day = {-1: " yesterday", 0: "", 1: " tomorrow"}.get(days)
    if days == 1 and moment.time() == time():
        day = " tonight"
    if day is None:
        day = f" on {moment:%A}" if 1 < days < 7 else f" on {speak_date(moment.date(), now.date())}"
    return f"{speak_time(moment)}{day}"


def speak_when(due: datetime, repeat: Repeat | None, now: datetime) -> str:
    """Phrases when something happens: "in 30 seconds", "at 3:05 PM", "every weekday at 9 AM"."""
    if repeat is not None:
        return repeat.speak()
    left = due.astimezone(UTC) - now.astimezone(UTC)
    return f"in {speak_length(left)}" if left < SOON else f"at {speak_moment(due, now)}"


def name_timer(label: str, length: timedelta) -> str:
    """Returns "pasta timer", or "10 minute timer" if it has no label."""
    if label:
        return label if label.endswith("timer") else f"{label} timer"
    words = speak_length(length)
    return f"timer of {words}" if " and " in words else f"{words.removesuffix('s')} timer"


def speak_left(left: timedelta) -> str:
    """Phrases what a timer has left: to the second below ten minutes, else to the minute."""
    return speak_length(left) if left < TO_THE_SECOND else speak_duration(left)


def zone_of(name: str) -> ZoneInfo:
    """Returns the zone that a stored time belongs to; UTC if this machine does not know it any more."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return ZoneInfo("UTC")
