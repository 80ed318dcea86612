"""Reads one of the user's lists, or tells which lists there are."""

from collections.abc import Sequence
from typing import Any, Final

from antiphon.tools.capabilities.lists import ListContent
from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok
from antiphon.tools.spec import Mode
from antiphon.words.lists import NOTES, enumerate_words, speak_list
from antiphon.words.reported import end_sentence

MAX_ITEMS_SAID: Final = {Mode.VOICE: 10, Mode.TEXT: 50}
MAX_NOTES_SAID: Final = {Mode.VOICE: 5, Mode.TEXT: 50}
MAX_LISTS_SAID: Final = 6


async def execute(args: Args, context: Context) -> ToolResult:
    mode = context.session.mode
    if "list" in args:
        lists: Sequence[ListContent] = [await context.lists.show(args["list"])]
    else:
        lists = await context.lists.all()
    if len(lists) == 1:
        return ok({"lists": [_describe(lists[0], with_items=True)]}, spoken=_speak(lists[0], mode))
    return ok({"lists": [_describe(each, with_items=False) for each in lists]}, spoken=_speak_all(lists))


def _describe(content: ListContent, *, with_items: bool) -> dict[str, Any]:
    counted = {"name": content.name, "count": len(content.items)}
    return counted | {"items": content.items} if with_items else counted


def _speak(content: ListContent, mode: Mode) -> str:
    if content.name == NOTES:
        return _speak_notes(content.items, MAX_NOTES_SAID[mode])
    if not content.items:
        return f"There's nothing on {speak_list(content.name)}."
    said = content.items[: MAX_ITEMS_SAID[mode]]
    left = len(content.items) - len(said)
    where = speak_list(content.name)
    if left:
        first = f"{where[:1].upper()}{where[1:]} has {len(content.items)} items. The first {len(said)} are"
        return f"{first} {enumerate_words(said)}."
    return f"{where[:1].upper()}{where[1:]} has {enumerate_words(said)}."


def _speak_notes(notes: Sequence[str], most: int) -> str:
    if not notes:
        return "You don't have any notes."
    count = "one note" if len(notes) == 1 else f"{len(notes)} notes"
    # The newest first, if not all of them are said.
    said = notes if len(notes) <= most else notes[: -most - 1 : -1]
    start = f"You have {count}." if len(notes) <= most else f"You have {count}. The newest {most} are:"
    return " ".join([start, *map(end_sentence, said)])


def _speak_all(lists: Sequence[ListContent]) -> str:
    if not lists:
        return "You don't have any lists or notes yet."
    said = [_speak_count(each) for each in lists[:MAX_LISTS_SAID]]
    more = len(lists) - len(said)
    return f"You have {enumerate_words([*said, f'{more} more'] if more else said)}."


def _speak_count(content: ListContent) -> str:
    count = len(content.items)
    if content.name == NOTES:
        return "one note" if count == 1 else f"{count} notes"
    name = speak_list(content.name).removeprefix("your ")
    article = "an" if name[0] in "aeiou" else "a"
    return f"{article} {name} with {'one item' if count == 1 else f'{count} items'}"
