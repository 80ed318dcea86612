"""Puts what was said before in the place of "there", "then", "it" and "that"."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from antiphon.models.builtin.context import Context
from antiphon.models.builtin.understood import Run
from antiphon.words.lists import NOTES

FindRequest = Callable[[str], Run | None]

_END: Final = (
    r"(?=[\s,.!?]*\Z|\s+(?:too|as well|also|please|now|right now|today|tomorrow|tonight|this|next|on|for|again|then)\b)"
)
_REFERENCE: Final = re.compile(
    r"\b(?:there|then|it|that|them|this|one|that day|the same|him|her|he|she|they|his|their|its)\b", re.IGNORECASE
)
_AWAY: Final = re.compile(
    r"how (?P<much>many \w+|long|far)(?: (?:away|off|ahead))? (?:is|are|until|till|to|before) (?:that|it|then|we)"
    r"(?: (?:away|off|from now|from today))?(?=[\s,.!?]*\Z)",
    re.IGNORECASE,
)
_WHICH_DAY: Final = re.compile(
    r"(?:what|which) (?:day|weekday)(?: of the week)? (?:is|was|will) (?:that|it)(?: (?:on|be))?(?=[\s,.!?]*\Z)", re.I
)
_TASK: Final = re.compile(
    r"\b(?P<verb>put|add|stick|pop|write|note|enter|save|get)(?: down)? (?:it|that|this)(?: down)?(?= (?:on|to|onto|"
    r"in|into)\b)",
    re.IGNORECASE,
)
_REMIND: Final = re.compile(r"\bremind me (?:about|of|to do) (?:it|that|this)\b", re.IGNORECASE)
_SECOND_THOUGHTS: Final = re.compile(
    r"\A(?:(?:no|oh|well|actually|on second thoughts?|i(?:['’]ve)? changed my mind|come to think of it)[\s,.!]+)+|"
    r"[\s,]+(?:instead|rather)(?=[\s.!?]*\Z)",
    re.IGNORECASE,
)
_PERSON: Final = re.compile(
    r"\b(?:him|he|she|they|them|it|her(?!\s+\w)|her(?= (?:on|in|at|from|for|online|please|up|and)\b))\b", re.IGNORECASE
)
_OWNER: Final = re.compile(
    r"\b(?:his|their|its|her(?= (?!(?:on|in|at|from|for|online|please|up|and)\b)\w))\b", re.IGNORECASE
)
_LOOKING_UP: Final = ("web_search", "quick_answer", "linkedin_lookup", "image_generate", "kb_search")
_THERE: Final = re.compile(
    rf"(?<!\bis )(?<!\bare )(?<!\byou )(?<!\bhi )(?<!\bhello )(?<!\bhey )\b(?:over |in |out )?there{_END}",
    re.IGNORECASE,
)
_THEN: Final = re.compile(
    r"\b(?:then|(?:on |at )?(?:that (?:day|date|time)|the same (?:day|time)))(?=[\s,.!?]*\Z|\s+(?:to|that|about)\b)",
    re.I,
)
_ON_LIST: Final = re.compile(
    rf"\b(to|on|onto|from|off|in)\s+(?:it|there|(?:that|this|the same|the) (?:list|one)){_END}", re.IGNORECASE
)
_WHOLE_LIST: Final = re.compile(
    r"\b(read|show(?: me)?|clear|empty|check|open)\s+(?:it|that(?: list)?|the (?:whole )?list)"
    r"(?:\s+(?:to me|out|aloud|back|again))*(?=[\s,.!?]*\Z)",
    re.IGNORECASE,
)
_RESULT: Final = re.compile(
    r"\b(?:that|it|this|the (?:result|answer|total))\b(?=[\s,.!?]*\Z|\s+(?:plus|minus|times|divided|multiplied|"
    r"in|to|into|by|squared|miles|is|are)\b)",
    re.I,
)
_DEVICE: Final = re.compile(r"\b(?:it|them|that)\b(?! (?:is|was|degrees))", re.IGNORECASE)
_TIMER: Final = re.compile(r"\b(on|for)\s+(?:it|that)(?=[\s,.!?]*\Z)", re.IGNORECASE)
_ONE: Final = re.compile(r"\b(?:a new|another|a second|a different) one\b", re.IGNORECASE)
_HOW_MANY: Final = re.compile(r"\bhow many \w+", re.IGNORECASE)
_HOW_MANY_IS_THAT: Final = re.compile(r"(?:and )?how many (\w+) (?:is|are|would) (?:that|it)\b", re.IGNORECASE)
_AGAIN: Final = re.compile(r"\s+(?:again|too|as well)(?=[\s.!?]*\Z)", re.IGNORECASE)


def resolve(text: str, context: Context, find_request: FindRequest, plain: Run | None) -> Run | None:
    """Returns the request that the text is with what it refers to; None if it refers to nothing."""
    if plain is not None and not any(_refers(value) for call in plain.calls for value in call.args.values()):
        return None
    for tools, candidate in candidates(text, context):
        found = find_request(candidate)
        if found is None or not all(call.tool_id.startswith(tools) for call in found.calls):
            continue
        # The same once more would tell nothing new: "how many weeks is that".
        if [(call.tool_id, call.args) for call in found.calls] != _last_calls(context):
            return found
    return None


def candidates(text: str, context: Context) -> Iterator[tuple[str, str]]:
    """Yields texts with what they refer to, and with how the ids of the tools begin that such a text can ask for."""
    if not _refers(text) and _WHOLE_LIST.search(text) is None:
        return
    said = _AGAIN.sub("", text)
    there = said if context.place is None else _THERE.sub(f"in {context.place}", said)
    if context.when is not None and _THEN.search(there):
        yield "", _THEN.sub(context.when, there)
        yield "", _THEN.sub(f"on {context.when}", there)
    if there != said:
        yield "", there
    yield from _other_unit(said, context)
    if context.when is not None:
        if match := _AWAY.search(said):
            yield "time_", f"how {match['much'].replace('far', 'long')} until {context.when}"
        if _WHICH_DAY.search(said):
            yield "get_day", f"what day of the week is {context.when}"
    if (task := context.task) is not None:
        meant = _SECOND_THOUGHTS.sub("", said)
        yield from (
            (tool, _TASK.sub(rf"\g<verb> {task}", meant)) for tool in ("list_", "calendar_") if _TASK.search(meant)
        )
        if _REMIND.search(meant):
            yield "set_reminder", _REMIND.sub(f"remind me about {task}", meant)
    if (subject := context.subject) is not None and _refers(said):
        named = _PERSON.sub(subject, _OWNER.sub(f"{subject}'s", said))
        yield from ((tool, named) for tool in _LOOKING_UP if named != said)
    yield from _lists(said, context)
    if (amount := context.amount) is not None and _RESULT.search(said):
        number, unit = amount
        if unit:
            yield "convert_", _RESULT.sub(f"{number} {unit}", said)
        yield "calculate", _RESULT.sub(number, said)
    entity, area = context.device
    if (entity or area) and _DEVICE.search(said):
        named = f"{entity or 'lights'} in the {area}" if area else f"{entity}"
        yield "ha_", _DEVICE.sub(f"the {named}", said, count=1)
        yield "ha_", _DEVICE.sub(f"the {entity or 'lights'}", said, count=1)
    if (kind := context.reminder_kind) is not None:
        if _TIMER.search(said):
            yield "list_reminders", _TIMER.sub(rf"\1 my {kind}", said)
        if _ONE.search(said):
            yield f"set_{kind}", _ONE.sub(f"a {kind}", said)


def _other_unit(text: str, context: Context) -> Iterator[tuple[str, str]]:
    """Yields the last question in another unit: "how many weeks is that" after "how many days until Christmas"."""
    asked, request = _HOW_MANY_IS_THAT.match(text), context.request
    if asked is not None and request is not None and _HOW_MANY.search(request.text):
        yield "time_", _HOW_MANY.sub(f"how many {asked[1]}", request.text, count=1)


def _last_calls(context: Context) -> list[tuple[str, object]]:
    return [(call.tool_id, call.args) for call in context.request.calls] if context.request is not None else []


def _refers(value: object) -> bool:
    return isinstance(value, str) and _REFERENCE.search(value) is not None


def _lists(text: str, context: Context) -> Iterator[tuple[str, str]]:
    name = context.list_name
    if name is None:
        return
    shown = "my notes" if name == NOTES else f"my {name} list"
    for pattern in (_ON_LIST, _WHOLE_LIST):
        if pattern.search(text):
            yield "list_", pattern.sub(rf"\1 {shown}", text)
