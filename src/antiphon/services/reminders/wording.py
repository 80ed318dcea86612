"""What is shown and said when something rings."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from antiphon.services.reminders.service import to_moment
from antiphon.storage.reminders import Ring
from antiphon.tools.capabilities.reminders import DueReminder, Kind
from antiphon.words.reported import end_sentence, to_second_person
from antiphon.words.schedules import name_timer, speak_moment, zone_of
from antiphon.words.speech import speak_time

LATE_MS: Final = 60_000
"""A ring that comes later than this was missed. A shorter delay, such as a restart of the server, is not mentioned."""


def tell(ring: Ring, now_ms: int) -> DueReminder:
    """Makes what a client is told of a ring."""
    kind = Kind(ring.kind)
    text = to_second_person(ring.message) if kind is Kind.REMINDER else _name(ring)
    missed = now_ms - ring.due_ms > LATE_MS
    return DueReminder(ring.id, kind, text[:1].upper() + text[1:], ring.due_ms, missed)


def announce(rings: Sequence[Ring], now_ms: int) -> str:
    """Says that these have rung: those that ring now, then those that were missed."""
    late = [ring for ring in rings if now_ms - ring.due_ms > LATE_MS]
    said = [_say(ring) for ring in rings if ring not in late]
    for place, ring in enumerate(late):
        said.append(end_sentence(f"{'' if place else 'while you were away, '}{_say_late(ring, now_ms)}"))
    return " ".join(said)


def _say(ring: Ring) -> str:
    match Kind(ring.kind):
        case Kind.TIMER:
            return f"Your {_name(ring)} is done."
        case Kind.ALARM:
            time = speak_time(to_moment(ring.due_ms, zone_of(ring.zone)))
            label = f" {end_sentence(to_second_person(ring.message))}" if ring.message else " This is your alarm."
            return f"It's {time}.{label}"
        case Kind.REMINDER:
            return end_sentence(f"here's your reminder: {to_second_person(ring.message)}")


def _say_late(ring: Ring, now_ms: int) -> str:
    zone = zone_of(ring.zone)
    at = speak_moment(to_moment(ring.due_ms, zone), to_moment(now_ms, zone))
    match Kind(ring.kind):
        case Kind.TIMER:
            return f"your {_name(ring)} finished at {at}"
        case Kind.ALARM:
            return f"your alarm went off at {at}"
        case Kind.REMINDER:
            return f"you had a reminder at {at}: {to_second_person(ring.message)}"


def _name(ring: Ring) -> str:
    if ring.kind == Kind.TIMER:
        return name_timer(ring.message, timedelta(milliseconds=ring.due_ms - ring.created_ms))
    return to_second_person(ring.message) or "alarm"
