"""Takes items off one of the user's lists, or clears it."""

from typing import Final

from antiphon.tools.capabilities.lists import Removed
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok
from antiphon.words.lists import NOTES, enumerate_words, list_name, speak_list

MAX_ITEMS_SAID: Final = 5


def needs_confirmation(args: Args, untrusted: bool) -> bool:
    return args.get("all") is True or untrusted


def preview(args: Args) -> str:
    where = speak_list(list_name(args["list"])) if "list" in args else "your list"
    if args.get("all") is True:
        return f"Shall I delete everything on {where}?" if where != "your notes" else "Shall I delete all your notes?"
    return f"Shall I take {args.get('item', 'something')} off {where}?"


async def execute(args: Args, context: Context) -> ToolResult:
    item, clears = args.get("item"), args.get("all") is True
    if (item is not None) is clears:
        return fail(
            ErrorType.VALIDATION,
            "I need to know what to remove.",
            suggestion='Give either "item", or "all": true to clear the whole list.',
        )
    if item is None:
        cleared = await context.lists.clear(args.get("list"))
        data = {"list": cleared.name, "removed": cleared.items, "missing": []}
        spoken = (
            "I've deleted all your notes." if cleared.name == NOTES else f"I've cleared {speak_list(cleared.name)}."
        )
        return ok(data, spoken=spoken)
    done = await context.lists.remove(item, args.get("list"))
    return ok({"list": done.list, "removed": done.removed, "missing": done.missing}, spoken=_speak(done))


def _speak(done: Removed) -> str:
    where = speak_list(done.list)
    if done.list == NOTES and not done.missing:
        return "I've deleted that note." if len(done.removed) == 1 else f"I've deleted {len(done.removed)} notes."
    count = len(done.removed)
    said = enumerate_words(done.removed) if count <= MAX_ITEMS_SAID else f"{count} things"
    missing = enumerate_words(done.missing, "or")
    rest = f" {missing[:1].upper()}{missing[1:]} wasn't on it." if missing else ""
    return f"I've taken {said} off {where}.{rest}"
