"""Finds the event that words mean: by its title, its people, its day and its time."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from rapidfuzz import fuzz

from antiphon.tools.capabilities.calendar import Event
from antiphon.words.periods import Period, parse_period

GOOD_SCORE: Final = 80
MAX_DATE_WORDS: Final = 7
_NOUNS: Final = frozenset({"the", "a", "an", "my", "our", "meeting", "appointment", "event", "call", "that"})
"""What every event may be called. "The meeting tomorrow" is whatever is on tomorrow."""
_SMALL_WORDS: Final = frozenset({"with", "on", "at", "for", "of", "called", "named", "titled", "from", "in", "this"})
_POSSESSIVE: Final = re.compile(r"['’]s\b")


def find_events(words: str, events: Sequence[Event], now: datetime) -> list[Event]:
    """Returns the events that the words may mean, all equally likely, in order of time."""
    by_id = [event for event in events if words in (event.id, event.series)]
    if by_id:
        return by_id[:1]
    said = _POSSESSIVE.sub("", words.casefold()).replace(",", " ").split()
    subject, period = _split([word for word in said if word not in _NOUNS], now)
    # What is over is seldom deleted, so an event to come is preferred.
    within = [event for event in events if _is_in(event, period)]
    coming = [event for event in within if event.end > now] or within
    topic = [word for word in subject if word not in _SMALL_WORDS]
    if not topic:
        return coming if period is not None else []
    scores = [(_score(" ".join(topic), event), event) for event in coming]
    best = max((score for score, _ in scores), default=0.0)
    return [event for score, event in scores if score >= GOOD_SCORE and score == best]


def _split(words: list[str], now: datetime) -> tuple[list[str], Period | None]:
    """Splits the words into what the event is and when it is: the longest end or beginning that names a time."""
    for count in range(min(MAX_DATE_WORDS, len(words)), 0, -1):
        cut = len(words) - count
        for when, what in ((words[cut:], words[:cut]), (words[:count], words[count:])):
            period = parse_period(" ".join(when), now)
            if period is not None:
                return what, period
    return words, None


def _is_in(event: Event, period: Period | None) -> bool:
    if period is None:
        return True
    if period.is_moment:
        return event.start == period.start
    return event.start < period.end and event.end > period.start


def _score(topic: str, event: Event) -> float:
    names = " ".join(address.partition("@")[0] for address in event.attendees)
    whole = f"{event.title} {names} {' '.join(event.attendees)}".casefold()
    return max(fuzz.token_set_ratio(topic, whole), fuzz.partial_ratio(topic, event.title.casefold()) - 1)
