"""Lists what is still to ring."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from antiphon.tools.capabilities.reminders import Kind, Reminder
from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok
from antiphon.tools.spec import Mode
from antiphon.words.schedules import speak_left
from antiphon.words.tasks import speak_task

SPOKEN: Final = 4
"""More than this nobody remembers."""


async def execute(args: Args, context: Context) -> ToolResult:
    now = context.clock.now(context.session.zone)
    kind = Kind(args["kind"]) if "kind" in args else None
    about = args.get("about", "").strip().lower()
    own = await context.reminders.list()
    found = [each for each in own if (kind is None or each.kind is kind) and about in each.message.lower()]
    spoken = _say(found, kind, about, now, in_voice=context.session.mode is Mode.VOICE)
    return ok({"reminders": [each.data(now) for each in found]}, spoken=spoken)


def _say(found: Sequence[Reminder], kind: Kind | None, about: str, now: datetime, *, in_voice: bool) -> str:
    if not found:
        what = {None: "reminders, timers or alarms", Kind.REMINDER: "reminders"}.get(kind, f"{kind}s")
        return f"You have no {f'{about} ' if about else ''}{what}{' running' if kind is Kind.TIMER else ''}."
    first = found[0]
    if len(found) == 1:
        if first.kind is Kind.TIMER:
            return f"Your {first.name} has {speak_left(first.remaining(now))} left."
        return f"You have one: {first.describe(now)}."
    shown = found[:SPOKEN] if in_voice else found
    what = f"{kind}s" if kind is not None else "things set"
    if kind is Kind.REMINDER:
        told = [f"{speak_task(each.message)} {each.speak_when(now)}" for each in shown]
    else:
        told = [each.describe(now) for each in shown]
    # Each has words of its own after its name, so there is a comma even between two.
    listed = f"{', '.join(told[:-1])}, and {told[-1]}"
    if len(told) < len(found):
        return f"You have {len(found)} {what}. The next are: {listed}."
    return f"You have {len(found)} {what}: {listed}."
