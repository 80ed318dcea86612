"""Starts a timer."""

from datetime import UTC, timedelta
from typing import Final

from antiphon.tools.capabilities.reminders import Kind
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok
from antiphon.words.schedules import parse_duration
from antiphon.words.speech import speak_length

LONGEST: Final = timedelta(days=7)
_ARTICLES: Final = ("the ", "my ", "a ", "an ", "some ")


async def execute(args: Args, context: Context) -> ToolResult:
    said, label = args["duration"].strip(), args.get("label", "").strip()
    if not said:
        return fail(ErrorType.VALIDATION, "For how long?", suggestion="Ask the user for the length of the timer.")
    length = parse_duration(said)
    if length is None and label and (swapped := parse_duration(label)) is not None:
        # "A ten minute timer for the pasta" is built like "a pasta timer for ten minutes".
        length, label = swapped, said
    if length is None:
        return fail(
            ErrorType.VALIDATION,
            f"I don't understand how long “{said}” is.",
            suggestion='Pass a length of time such as "ten minutes", "an hour and a half" or "90 seconds".',
        )
    if length < timedelta(seconds=1):
        return fail(ErrorType.VALIDATION, "A timer needs at least a second.", suggestion="Ask for a longer time.")
    if length > LONGEST:
        return fail(
            ErrorType.VALIDATION,
            "A timer can run for a week at most.",
            suggestion="For a later time, set a reminder.",
        )
    now = context.clock.now(context.session.zone)
    due = (now.astimezone(UTC) + length).astimezone(now.tzinfo)
    timer = await context.reminders.add(Kind.TIMER, _label(label), due)
    named = f"Your {timer.name} is set for {speak_length(length)}." if timer.message else ""
    return ok(timer.data(now), spoken=named or f"All right, {speak_length(length)}, starting now.")


def _label(said: str) -> str:
    label = said.removesuffix(" timer")
    for article in _ARTICLES:
        label = label.removeprefix(article)
    return label
