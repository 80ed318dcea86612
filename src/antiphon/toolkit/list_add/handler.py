"""Puts items on one of the user's lists, or takes a note."""

from typing import Final

from antiphon.tools.capabilities.lists import Added
from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok
from antiphon.words.lists import NOTES, enumerate_words, speak_list

MAX_ITEMS_SAID: Final = 5


async def execute(args: Args, context: Context) -> ToolResult:
    done = await context.lists.add(args["item"], args.get("list"))
    data = {"list": done.list, "added": done.added, "duplicates": done.duplicates}
    return ok(data, spoken=_speak_note(done) if done.list == NOTES else _speak(done))


def _speak_note(done: Added) -> str:
    return "I've made a note of that." if done.added else "You have that note already."


def _speak(done: Added) -> str:
    where = speak_list(done.list)
    sentences = []
    if done.added:
        sentences.append(f"I've put {_speak_items(done.added)} on {where}.")
    if done.duplicates:
        said = _speak_items(done.duplicates)
        verb = "is" if len(done.duplicates) == 1 and not done.duplicates[0].endswith("s") else "are"
        place = "it" if done.added else where
        sentences.append(f"{said[:1].upper()}{said[1:]} {verb} already on {place}.")
    return " ".join(sentences)


def _speak_items(items: tuple[str, ...]) -> str:
    return enumerate_words(items) if len(items) <= MAX_ITEMS_SAID else f"{len(items)} things"
