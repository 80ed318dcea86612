"""Parses dates and times as people say them: "tomorrow at six", "ten days from now", "2026-03-04T10:00Z".

This package's grammar is tried first, then dateparser. The other order was tried, but dateparser skips words that it
cannot read ("tomorrow at six" is tomorrow), takes "friday at 3" for a day in March and "a" for January, and its first
call blocks for 0.3 s to compile its tables.
"""

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from antiphon.words.days import MONTHS, WEEKDAYS, parse_day
from antiphon.words.numbers import to_digits
from antiphon.words.times import SPAN, Part, Span, TimeOfDay, expand_halves, parse_span, parse_time

MAX_TEXT_CHARS: Final = 100

_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d(?:T| )\d\d:?\d\d.*", re.IGNORECASE)
_SPELLINGS: Final = (
    (re.compile(r"['’‘`]"), ""),
    (re.compile(r"(?<=[a-z])\."), ""),  # p.m., Dec.
    (re.compile(r"[,;?!]|(?<=[a-z])-(?=[a-z])|\.$"), " "),
)
_PHRASES: Final = (
    (re.compile(r"^(?:on|by) "), ""),
    (re.compile(r"^right now$"), "now"),
    (re.compile(r" (?:sharp|on the dot|or so|or thereabouts)$"), ""),
    (
        re.compile(r"\b(?:first|1st) thing(?: in the morning)? (?:on )?(tomorrow|(?:next )?[a-z]+day)(?: morning)?\b"),
        r"\1 morning",
    ),
    (re.compile(r"\b(tomorrow|[a-z]+day)(?: morning)? (?:first|1st) thing\b"), r"\1 morning"),
    (re.compile(r"^(?:first|1st) thing(?: in the morning)?$"), "tomorrow morning"),
    (
        re.compile(
            r"\bhalf (\d{1,2})(?=$| (?:in the|at night|am|pm|oclock|tomorrow|today|tonight|on|this|next|every)\b)"
        ),
        r"half past \1",
    ),
    (re.compile(r"\bsaint\b"), "st"),
    (re.compile(r"\bo clock\b"), "oclock"),
    (re.compile(r"\b([ap]) m\b"), r"\1m"),
    (re.compile(r"(?<![\d.])(\d{1,2})\.(\d\d)(?![\d.])"), r"\1:\2"),  # some recognisers write 6.30
    (re.compile(r"\b(?:the )?day (after|before)\b"), r"1 day \1"),
    (re.compile(r"\btonight\b"), "today night"),
    (re.compile(r"\blast night\b"), "yesterday night"),
    (re.compile(r"\bthis (?=morning|afternoon|evening)"), "today "),
)
_PART: Final = re.compile(r"\b(?:(?:in|during) the |at )?(morning|afternoon|evening|night)\b")
_MOVE: Final = re.compile(
    rf"(?:in )?(?P<span>{SPAN})(?: (?P<back>ago)| (?:time|later|hence|from now|from today)"
    r"| (?P<way>from|after|before) (?P<base>.+))?"
)
_MONTH_OR_ZONE: Final = rf"(?:{'|'.join(f'{m[:3]}|{m}' for m in MONTHS)}|utc|gmt|[ecmp][sd]t|bst|ces?t)"
_NAMED: Final = re.compile(rf"(?<![a-z]){_MONTH_OR_ZONE}(?![a-z])")
_CLOCK: Final = re.compile(r"\b(?:[01]?\d|2[0-3])(?::[0-5]\d)+(?: ?[ap]m)?\b|\b(?:1[0-2]|[1-9]) ?[ap]m\b")
_WRITTEN: Final = re.compile(
    rf"(?:(?<![a-z])(?:{_MONTH_OR_ZONE}|{'|'.join(f'{d[:3]}|{d}' for d in WEEKDAYS)}|today|tomorrow|at|of|on|the|[ap]m"
    r"|st|nd|rd|th)(?![a-z])|[\d\s.:/+-])+"
)


def warm() -> None:
    """Loads dateparser, in a background thread. Otherwise the first written date takes 0.2 s longer."""
    _written("5 mar 2027 6 pm est", datetime(2027, 1, 1))  # noqa: DTZ001


def parse_date(text: str, today: date) -> date | None:
    """Returns the day, with or without a time of day; None if the text names no day."""
    try:
        if (moment := _iso(text)) is not None:
            return moment.date()
        heard = normalize(text)
        if (day := _day(heard, today)) is not None:
            return day
        if (parts := _day_and_time(heard, today)) is not None:
            return _day(parts[0], today) if parts[0] else None
        written = _written(heard, datetime.combine(today, time(12)), needs_day=True)
        return written.date() if isinstance(written, datetime) else written
    except (ValueError, OverflowError):
        return None


def parse_when(text: str, now: datetime) -> datetime | date | None:
    """Returns a datetime if the text has a time of day, else a date. `now` must be aware, and sets the zone."""
    try:
        return read_when(text, now)
    except (ValueError, OverflowError):
        return None


def parse_last(text: str, now: datetime) -> datetime | date | None:
    """Does the same for what has been: a day that comes round again is its last occurrence, not the next one."""
    forms = ("{}", "today at {}", "yesterday at {}", "last {}", "{} this year", "{} last year")
    found = [when for form in forms if (when := parse_when(form.format(text), now)) is not None]
    past = [when for when in found if _moment(when, now) <= now]
    return max(past, key=lambda when: _moment(when, now), default=found[0] if found else None)


def _moment(when: datetime | date, now: datetime) -> datetime:
    return when if isinstance(when, datetime) else localize(datetime.combine(when, time()), now)


def read_when(text: str, now: datetime, *, in_morning: bool = False) -> datetime | date | None:
    """Does the same, and raises ValueError or OverflowError for a day that does not exist.

    `in_morning`: an hour without AM or PM is one of the morning, as people mean it for an alarm.
    """
    if (moment := _iso(text)) is not None:
        return localize(moment, now)
    return _when(normalize(text), now, in_morning=in_morning)


def read_moved(text: str, now: datetime) -> datetime | None:
    """Returns the moment for a length of time from now, such as "in two days"; None for other times."""
    span, base = _move(normalize(text))
    return span.after(now) if span is not None and base is None else None


def parse_datetime(text: str, now: datetime) -> datetime | None:
    """Returns a datetime. A day without a time is its start, but "in ten days" keeps the time of day."""
    try:
        if (moved := _moved(normalize(text), now)) is not None:
            return moved
        when = parse_when(text, now)
        return when if when is None or isinstance(when, datetime) else localize(datetime.combine(when, time()), now)
    except (ValueError, OverflowError):
        return None


def _iso(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text.strip().upper()) if _ISO.fullmatch(text.strip()) else None
    except ValueError:
        return None


def normalize(text: str) -> str:
    """Returns lower case text with digits for number words, and one form for things with several."""
    if len(text) > MAX_TEXT_CHARS:
        raise ValueError("longer than any date")
    text = text.casefold()
    for pattern, plain in _SPELLINGS:
        text = pattern.sub(plain, text)
    text = to_digits(text)
    for pattern, plain in _PHRASES:
        text = pattern.sub(plain, text)
    return expand_halves(text)


def _when(text: str, now: datetime, *, in_morning: bool = False) -> datetime | date | None:
    if text == "now":
        return now
    if (day := _day(text, now.date())) is not None:
        return day
    if (moved := _moved(text, now)) is not None:
        return moved
    if (parts := _day_and_time(text, now.date())) is not None:
        day_text, clock = parts[0], parts[1].in_morning if in_morning else parts[1]
        return _next(clock, now) if day_text is None else _on_day(day_text, clock, now)
    written = _written(text, now.replace(tzinfo=None))
    return localize(written, now) if isinstance(written, datetime) else written


def _day(text: str, today: date) -> date | None:
    """Parses a named day, or a number of days, weeks, months or years from one."""
    if (day := parse_day(text, today)) is not None:
        return day
    span, base = _move(text)
    if span is None or span.seconds:
        return None
    start = _day(base, today) if base else today
    return start and span.after_day(start)


def _moved(text: str, now: datetime) -> datetime | None:
    """Parses a length of time from now, or from a named moment."""
    span, base = _move(text)
    if span is None:
        return None
    start = _when(base, now) if base else now
    if start is not None and not isinstance(start, datetime):
        start = localize(datetime.combine(start, time()), now)
    return start and span.after(start)


def _move(text: str) -> tuple[Span | None, str | None]:
    """Returns the length of time and its base; None means now."""
    match = _MOVE.fullmatch(text)
    span = parse_span(match["span"]) if match else None
    if match is None or span is None:
        return None, None
    return (-span if match["back"] or match["way"] == "before" else span), match["base"]


def _day_and_time(text: str, today: date) -> tuple[str | None, TimeOfDay] | None:
    """Splits the text into a day, if any, and a time of day. The day takes as many words as possible."""
    match = _PART.search(text)
    part = Part(match[1]) if match else None
    words = (text[: match.start()] + text[match.end() :] if match else text).split()
    for count in range(len(words), -1, -1):
        for day_words, time_words in (
            (words[:count], words[count:]),
            (words[len(words) - count :], words[: len(words) - count]),
        ):
            day = re.sub(r"^on ", "", " ".join(day_words))
            clock = parse_time(" ".join(time_words), part)
            if clock and (not day or _day(day, today) is not None):
                return day or None, clock
    return None


def _next(clock: TimeOfDay, now: datetime) -> datetime | None:
    """Returns the next time the clock shows this time."""
    days = (now.date(), now.date() + timedelta(days=1))
    moments = (localize(datetime.combine(day, at), now) for day in days for at in clock.readings)
    return next((moment for moment in moments if moment > now), None)


def _on_day(day_text: str, clock: TimeOfDay, now: datetime) -> datetime | None:
    today = now.date()
    day = _day(day_text, today)
    if day is None:
        return None
    if clock.is_after_midnight:
        return localize(datetime.combine(day + timedelta(days=1), clock.at), now)
    if day != today:
        return localize(datetime.combine(day, clock.by_day), now)
    moments = [localize(datetime.combine(day, at), now) for at in clock.readings]
    coming = next((moment for moment in moments if moment > now), None)
    if coming is None and day_text not in ("now", "today"):
        # "friday at nine", said on a Friday at ten.
        later = parse_day(day_text, today + timedelta(days=1))
        if later is not None and later > today:
            return localize(datetime.combine(later, clock.by_day), now)
    return coming or moments[-1]


def _written(text: str, base: datetime, *, needs_day: bool = False) -> datetime | date | None:
    """Parses written forms with dateparser: "Fri, 05 Mar 2027 10:00 +0100", "6 pm EST"."""
    has_time = _CLOCK.search(text) is not None
    # dateparser skips what it cannot read and turns any two numbers into a date, so it only gets what is clearly one.
    is_plain = _WRITTEN.fullmatch(text) and _NAMED.search(text) and (has_time or re.search(r"\b\d{4}\b", text))
    if not is_plain or ":" in _CLOCK.sub("", text):
        return None
    # Imported here: it takes 0.1 s, and most processes never need it.
    import dateparser

    required = ["day"] if needs_day or not has_time else []
    settings = {"RELATIVE_BASE": base, "PREFER_DATES_FROM": "future", "REQUIRE_PARTS": required}
    found = dateparser.parse(text, languages=["en"], settings=settings)
    return found.date() if found and not has_time else found


def localize(moment: datetime, now: datetime) -> datetime:
    """Converts to the zone of `now`. A time skipped by daylight saving moves forward by an hour."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
    return aware.astimezone(UTC).astimezone(now.tzinfo)
