"""Cancels reminders, timers and alarms, by id or by words."""

import re
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Final

from antiphon.tools.capabilities.reminders import Kind, Reminder
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok
from antiphon.words.dates import parse_date
from antiphon.words.reported import join
from antiphon.words.schedules import ScheduleError, parse_duration, parse_schedule
from antiphon.words.sounds import similarity

_WORD: Final = re.compile(r"[\w:]+")
_KINDS: Final = {"timer": Kind.TIMER, "alarm": Kind.ALARM, "reminder": Kind.REMINDER}
_PLACES: Final = {"first": 0, "next": 0, "last": -1}
_EMPTY: Final = re.compile(
    "the|my|an?|that|this|th[eo]se|of|to|about|for|at|on|in|ones?|please|all|every|both|everything|them|it|is|which|set|me|up|"
    "wake|remind|called|named|with|i"
)
"""Words that do not tell which one is meant."""
_ALL: Final = frozenset(("all", "everything", "both", "every", "them"))
MOST_NAMED: Final = 4
ALIKE: Final = 75
"""From which similarity on a word is taken for another: "pastor" for "pasta"."""
_WHEN: Final = re.compile("today|tomorrow|tonight|this|next|morning|afternoon|evening|night|now|later")


async def execute(args: Args, context: Context) -> ToolResult:
    now = context.clock.now(context.session.zone)
    said: str = args["reminder"].strip()
    own = await context.reminders.list()
    found = [each for each in own if each.id == said] or _find(said, own, now)
    if not own:
        return fail(ErrorType.NOT_FOUND, "You have no reminders, timers or alarms.")
    kinds = _kinds_in(said)
    if len(kinds) == 1 and not any(each.kind in kinds for each in own):
        return fail(ErrorType.NOT_FOUND, f"You have no {kinds.pop()}s.")
    if not found:
        return fail(
            ErrorType.NOT_FOUND,
            f"I found nothing like that. You have {_name(own, now)}.",
            suggestion="Look at list_reminders, then pass an id.",
        )
    if len(found) > 1 and not _means_all(said):
        return fail(
            ErrorType.VALIDATION,
            f"Which one? You have {_name(found, now)}.",
            suggestion="Ask the user which one, then pass its id from list_reminders.",
            details={"candidates": [each.data(now) for each in found]},
        )
    cancelled = await context.reminders.cancel([each.id for each in found])
    if not cancelled:
        return fail(ErrorType.NOT_FOUND, "It is gone already: it has just rung, or was cancelled elsewhere.")
    return ok({"cancelled": [each.data(now) for each in cancelled]}, spoken=_confirm(cancelled))


def _find(said: str, own: Sequence[Reminder], now: datetime) -> Sequence[Reminder]:
    """Finds those of the kind that was named, at the time or with the words that were said."""
    words = _WORD.findall(said.lower())
    kinds = _kinds_in(said)
    found = [each for each in own if not kinds or each.kind in kinds]
    rest = [word for word in words if _EMPTY.fullmatch(word) is None and word.removesuffix("s") not in _KINDS]
    if not rest:
        return found
    if len(rest) == 1 and rest[0] in _PLACES and found:
        return [found[_PLACES[rest[0]]]]
    by_words = [each for each in found if set(rest) <= set(_WORD.findall(each.message.lower()))]
    at = " ".join(word for word in words if word.removesuffix("s") not in _KINDS)
    return by_words or _find_at(at, found, now) or _find_on(at, found, now) or _find_like(rest, found)


def _kinds_in(said: str) -> set[Kind]:
    words = _WORD.findall(said.lower())
    return {kind for word in words if (kind := _KINDS.get(word.removesuffix("s"))) is not None}


def _find_at(said: str, found: Sequence[Reminder], now: datetime) -> Sequence[Reminder]:
    """Finds those at a time: "the seven o'clock alarm"; or timers of a length: "the ten minute timer"."""
    bare = re.sub(r"^(?:(?:the|my|for|at|all|that|of) )+", "", said)
    length = parse_duration(bare)
    if length is not None:
        return [each for each in found if each.kind is Kind.TIMER and abs(each.due - each.created - length).seconds < 1]
    matches = []
    for in_morning in (False, True):
        try:
            due = parse_schedule(bare, now, in_morning=in_morning).due
        except ScheduleError:
            continue
        matches += [each for each in found if each.due.time().replace(second=0, microsecond=0) == due.time()]
    return list(dict.fromkeys(matches))


def _find_on(said: str, found: Sequence[Reminder], now: datetime) -> Sequence[Reminder]:
    """Finds those on a day: "the alarm for tomorrow"."""
    day = parse_date(re.sub(r"^(?:(?:the|my|for|on|of|that) )+", "", said), now.date())
    return [] if day is None else [each for each in found if each.due.date() == day]


def _find_like(rest: Sequence[str], found: Sequence[Reminder]) -> Sequence[Reminder]:
    """Finds those whose words sound like what was said, apart from when: "the pastor timer" is for pasta."""
    named = [word for word in rest if _WHEN.fullmatch(word) is None]
    return [
        each
        for each in found
        if named
        and all(
            max(map(partial(similarity, word), _WORD.findall(each.message.lower())), default=0) >= ALIKE
            for word in named
        )
    ]


def _means_all(said: str) -> bool:
    words = _WORD.findall(said.lower())
    is_plural = any(word.removesuffix("s") in _KINDS and word.endswith("s") for word in words)
    return is_plural or not _ALL.isdisjoint(words)


def _name(found: Sequence[Reminder], now: datetime) -> str:
    named = [each.describe(now) for each in found[:MOST_NAMED]]
    more = len(found) - len(named)
    return join([*named, f"{more} more"] if more else named)


def _confirm(cancelled: Sequence[Reminder]) -> str:
    if len(cancelled) == 1:
        return f"All right, I've cancelled your {cancelled[0].name}."
    kinds = {each.kind for each in cancelled}
    what = f"{kinds.pop()}s" if len(kinds) == 1 else "reminders, timers and alarms"
    return f"All right, I've cancelled {len(cancelled)} {what}."
