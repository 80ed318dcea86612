"""Events as iCalendar text (RFC 5545): read, written, and expanded into occurrences. All functions are pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from hashlib import sha256
from typing import Final
from zoneinfo import ZoneInfo

import icalendar
import recurring_ical_events  # type: ignore[import-untyped]
from icalendar.error import BrokenCalendarProperty, InvalidCalendar

from antiphon.errors import AntiphonError
from antiphon.services.calendar.backend import event_id
from antiphon.tools.capabilities.calendar import Event, EventDraft

PRODUCT: Final = "-//Antiphon//Calendar//EN"
UNTITLED: Final = "(no title)"
TOO_FREQUENT: Final = frozenset({"SECONDLY", "MINUTELY"})
"""A series every second has 2.6 million occurrences a month, which is an attack rather than an appointment."""
ZONE_MARGIN: Final = timedelta(hours=15)
"""How far local times may be from UTC, with a margin."""
CANCELLED: Final = "CANCELLED"


class CalendarFileError(AntiphonError):
    """The text is not a calendar that can be used. The message says where and why."""

    code = "calendar_file"


@dataclass(frozen=True, slots=True)
class EventText:
    """One event with all its exceptions, as a calendar of its own."""

    uid: str
    ics: str
    first: datetime
    last: datetime | None
    """When the last occurrence has ended; None for a series without a known end."""


def read_file(content: bytes | str) -> Iterator[EventText]:
    """Reads the events of a file, one after the other. Raises `CalendarFileError` for the first that is not valid."""
    calendars = _parse(content)
    zones = {
        str(zone.get("TZID")): zone for calendar in calendars for zone in calendar.walk("VTIMEZONE") if "TZID" in zone
    }
    parts: defaultdict[str, list[icalendar.Event]] = defaultdict(list)
    for number, component in enumerate((c for each in calendars for c in each.walk("VEVENT")), start=1):
        assert isinstance(component, icalendar.Event)
        uid = str(component.get("UID") or "") or _made_up_uid(component)
        component["UID"] = uid
        _check(component, number, zones)
        parts[uid].append(component)
    for uid, components in parts.items():
        yield _event_text(uid, components, zones)


def _parse(content: bytes | str) -> list[icalendar.Calendar]:
    try:
        text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
    except UnicodeDecodeError:
        raise CalendarFileError("this is not UTF-8 text. Export the calendar again, as iCalendar (.ics).") from None
    try:
        found = icalendar.Calendar.from_ical(text, multiple=True)
    except (ValueError, IndexError, KeyError, InvalidCalendar) as error:
        reason = " ".join(str(error).split())[:120]
        raise CalendarFileError(f"this is not an iCalendar file ({reason}). Export it again, as .ics.") from None
    calendars = [each for each in found if isinstance(each, icalendar.Calendar)]
    if not calendars:
        raise CalendarFileError("there is no calendar in it. An iCalendar file begins with BEGIN:VCALENDAR.")
    return calendars


def _check(component: icalendar.Event, number: int, zones: dict[str, icalendar.Component]) -> None:
    title = str(component.get("SUMMARY") or UNTITLED)
    where = f"event {number} ({title[:60]!r})"
    for name in ("DTSTART", "DTEND", "RECURRENCE-ID"):
        value = component.get(name)
        zone = None if value is None else getattr(value, "params", {}).get("TZID")
        if zone is not None and zone not in zones and _naive(value):
            raise CalendarFileError(f"{where}: there is no time zone {str(zone)[:60]!r}.")
    try:
        start, end = component.start, component.end
    except (ValueError, InvalidCalendar, BrokenCalendarProperty) as error:
        reason = " ".join(str(error).split())[:120]
        raise CalendarFileError(f"{where}: its date or time is not valid ({reason}).") from None
    if _compare(end) < _compare(start):
        raise CalendarFileError(f"{where}: it ends before it starts.")
    broken = [name for name, _ in component.errors if name in ("RRULE", "EXDATE", "RDATE")]
    if broken:
        raise CalendarFileError(f"{where}: its {broken[0]} is not valid.")
    rule = component.get("RRULE")
    for each in rule if isinstance(rule, list) else [rule] if rule else []:
        frequency = str((each.get("FREQ") or [""])[0]).upper()
        if frequency in TOO_FREQUENT:
            raise CalendarFileError(f"{where}: it recurs {frequency.lower()}, which is more often than is supported.")


def _naive(value: object) -> bool:
    moment = getattr(value, "dt", None)
    return isinstance(moment, datetime) and moment.tzinfo is None


def _date_of(value: object) -> date:
    """Returns the date or time of a property. Raises `CalendarFileError` if it has none."""
    moment = getattr(value, "dt", None)
    if not isinstance(moment, date):
        raise CalendarFileError("one of its dates is not valid.")
    return moment


def _compare(moment: date) -> datetime:
    """Makes dates, local times and aware times comparable."""
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _made_up_uid(component: icalendar.Event) -> str:
    return f"{sha256(component.to_ical()).hexdigest()[:32]}@antiphon"


def _event_text(uid: str, components: list[icalendar.Event], zones: dict[str, icalendar.Component]) -> EventText:
    calendar = _new_calendar()
    used = {str(zone) for component in components for zone in _zone_names(component)}
    for name in sorted(used & zones.keys()):
        calendar.add_component(zones[name])
    for component in components:
        calendar.add_component(component)
    starts = [_compare(component.start) for component in components]
    ends = [_last_end(component) for component in components]
    last = None if None in ends else max(end for end in ends if end is not None) + ZONE_MARGIN
    return EventText(uid, calendar.to_ical().decode(), min(starts) - ZONE_MARGIN, last)


def _zone_names(component: icalendar.Component) -> Iterator[str]:
    for _, value in component.property_items():
        zone = getattr(value, "params", {}).get("TZID")
        if zone is not None:
            yield zone


def _last_end(component: icalendar.Event) -> datetime | None:
    """Returns when the last occurrence has ended; None if only expanding the whole series would tell."""
    if "RDATE" in component:
        return None
    rule = component.get("RRULE")
    if rule is None:
        return _compare(component.end)
    until = None if isinstance(rule, list) else rule.get("UNTIL")
    if not until:
        return None
    return max(map(_compare, until)) + (_compare(component.end) - _compare(component.start))


def _new_calendar() -> icalendar.Calendar:
    calendar = icalendar.Calendar()
    calendar.add("VERSION", "2.0")
    calendar.add("PRODID", PRODUCT)
    return calendar


def write_file(texts: Iterable[str]) -> bytes:
    """Puts events into one calendar, with each time zone once."""
    whole = _new_calendar()
    zones: set[str] = set()
    for text in texts:
        calendar = icalendar.Calendar.from_ical(text)
        for component in calendar.subcomponents:
            if component.name == "VTIMEZONE":
                if str(component["TZID"]) in zones:
                    continue
                zones.add(str(component["TZID"]))
            whole.add_component(component)
    return bytes(whole.to_ical())


def make_event(draft: EventDraft, now: datetime) -> EventText:
    """Writes a new event. Its times are in UTC, which every program understands in the same way."""
    event = icalendar.Event()
    event.add("UID", draft.uid)
    event.add("DTSTAMP", now.astimezone(UTC))
    event.add("SUMMARY", draft.title)
    event.add("DTSTART", draft.start.astimezone(UTC))
    event.add("DTEND", draft.end.astimezone(UTC))
    for address in draft.attendees:
        event.add("ATTENDEE", f"mailto:{address}", parameters={"PARTSTAT": "NEEDS-ACTION", "RSVP": "TRUE"})
    if draft.description:
        event.add("DESCRIPTION", draft.description)
    if draft.link is not None:
        event.add("URL", draft.link.url)
        event.add("LOCATION", draft.link.url)
    return _event_text(draft.uid, [event], {})


def find_occurrences(ics: str, start: datetime, end: datetime, *, calendar: str, zone: ZoneInfo) -> list[Event]:
    """Returns the occurrences that overlap the range. Raises `CalendarFileError` if the text cannot be read."""
    (whole, *_) = _parse(ics)
    for number, component in enumerate(whole.walk("VEVENT"), start=1):
        assert isinstance(component, icalendar.Event)
        _check(component, number, {str(each["TZID"]): each for each in whole.walk("VTIMEZONE") if "TZID" in each})
    recurring = any(name in each for each in whole.walk("VEVENT") for name in ("RRULE", "RDATE", "RECURRENCE-ID"))
    try:
        # The query compares local times as they are, so the range is widened and checked again in the zone.
        found = recurring_ical_events.of(whole).between(start - ZONE_MARGIN, end + ZONE_MARGIN)
    except (ValueError, InvalidCalendar, BrokenCalendarProperty, OverflowError) as error:
        raise CalendarFileError(f"its recurrence cannot be read ({' '.join(str(error).split())[:120]}).") from None
    events = [
        _event(component, calendar=calendar, zone=zone, recurring=recurring)
        for component in found
        if isinstance(component, icalendar.Event) and component.get("STATUS") != CANCELLED
    ]
    return [event for event in events if overlaps(event.start, event.end, start, end)]


def overlaps(start: datetime, end: datetime, range_start: datetime, range_end: datetime) -> bool:
    """Whether an event lies in the range, at least in part; one without a length lies where it starts."""
    return start < range_end and (end > range_start or start == end == range_start)


def _event(component: icalendar.Event, *, calendar: str, zone: ZoneInfo, recurring: bool) -> Event:
    uid = str(component["UID"])
    occurrence = component.get("RECURRENCE-ID")
    attendees = component.get("ATTENDEE") or []
    url = component.get("URL")
    return Event(
        id=event_id(uid, _occurrence_id(_date_of(occurrence)) if recurring and occurrence is not None else None),
        calendar=calendar,
        title=str(component.get("SUMMARY") or UNTITLED),
        start=_in_zone(component.start, zone),
        end=_in_zone(component.end, zone),
        all_day=not isinstance(component.start, datetime),
        is_busy=str(component.get("TRANSP") or "OPAQUE").upper() != "TRANSPARENT",
        attendees=tuple(
            str(each).removeprefix("mailto:").removeprefix("MAILTO:")
            for each in (attendees if isinstance(attendees, list) else [attendees])
        ),
        description=str(component.get("DESCRIPTION") or ""),
        link=None if url is None else str(url),
        series=uid if recurring else None,
    )


def _in_zone(moment: date, zone: ZoneInfo) -> datetime:
    """Returns the moment in the zone. Dates and local times are in whatever zone the user is in."""
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(zone)


def _occurrence_id(moment: date) -> str:
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        return moment.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    return moment.strftime("%Y%m%dT%H%M%S" if isinstance(moment, datetime) else "%Y%m%d")


def remove_occurrence(ics: str, occurrence: str) -> EventText | None:
    """Takes one occurrence out of a series; None if the series has no such occurrence, or is not a series."""
    (whole, *_) = _parse(ics)
    events = [each for each in whole.walk("VEVENT") if isinstance(each, icalendar.Event)]
    kept = [
        each
        for each in events
        if "RECURRENCE-ID" not in each or _occurrence_id(_date_of(each["RECURRENCE-ID"])) != occurrence
    ]
    master = next((each for each in kept if "RECURRENCE-ID" not in each), None)
    if master is None:
        return None
    excluded = _excluded_moment(master, occurrence)
    if excluded is None:
        return None
    master.add("EXDATE", excluded)
    zones = {str(each["TZID"]): each for each in whole.walk("VTIMEZONE") if "TZID" in each}
    return _event_text(str(master["UID"]), kept, zones)


def _excluded_moment(master: icalendar.Event, occurrence: str) -> date | None:
    """Returns the occurrence in the form of the series' own start: a date, a local time, or a time in its zone."""
    start = master.start
    try:
        if not isinstance(start, datetime):
            return datetime.strptime(occurrence, "%Y%m%d").date()  # noqa: DTZ007
        if start.tzinfo is None:
            return datetime.strptime(occurrence, "%Y%m%dT%H%M%S")  # noqa: DTZ007
        moment = datetime.strptime(occurrence, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None
    return moment.astimezone(start.tzinfo)
