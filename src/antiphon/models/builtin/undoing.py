"""How people ask to take back what was done, and which call does that."""

import re
from collections.abc import Sequence
from typing import Final

from antiphon.models.builtin.context import DoneCall
from antiphon.models.builtin.understood import PlannedCall
from antiphon.words.lists import item_key, list_name, split_items

CANCELLED: Final = "I've cancelled the one before."
_SETS: Final = frozenset({"set_timer", "set_alarm", "set_reminder"})
_OPPOSITES: Final = {"on": "off", "off": "on", "open": "close", "close": "open"}
_STEPS: Final = frozenset({"toggle", "up", "down", "dim"})
"""What `ha_control` does relative to how it was."""

_IT: Final = r"(?:it|that|this|them|those|these)"
_UNWANTED: Final = rf"(?:i|we) (?:do not|don['’]?t|no longer) (?:want|need) {_IT}(?: any ?more| after all| now)?"
_TAKE_BACK: Final = (
    r"(?:please )?(?:(?:cancel|delete|remove|undo|scratch|scrap|drop|get rid of|revert|turn off|call off|bin)"
    rf"(?:\s+(?:{_IT}|the last one|that one|this one|what you (?:just )?did|"
    r"(?:that|this|the last) (?P<what>timer|alarm|reminder|event|meeting|appointment|item|entry)))?|"
    rf"(?:take|get|remove|delete|wipe|strike|clear|cross|scratch|cancel|pull) (?:{_IT}|(?:that|this) (?:event|meeting|"
    r"appointment)) (?:out of|off|from|off of) (?:my|the|our) (?P<where>calendar|diary|agenda|schedule|planner)|"
    rf"(?:take|get|cross|tick|pull) {_IT} (?:back|off|out)(?: (?:again|(?:of )?(?:it|the list|there)))?)"
)
UNDO: Final = re.compile(
    r"(?:(?:no|oh|sorry|ok|okay|wait|actually|please|well|oops|ah|on second thoughts?|can you|could you)[\s,.!]+)*"
    rf"(?:{_UNWANTED}|(?:{_UNWANTED}[\s,.!]+(?:(?:so|and|please|just|can you) )*)?{_TAKE_BACK})"
    r"(?:\s+(?:again|please|then|now))*[\s,.!?]*",
    re.IGNORECASE,
)
"""Asks to take back what was done. What nobody needs any more is taken back, too."""


def undo(call: DoneCall, *, corrects: bool = False) -> PlannedCall | None:
    """Returns the call that undoes this one; None if it did nothing, or if no call can undo it.

    `corrects`: another one takes its place. A light that was switched on by mistake stays on then: nobody knows whether
    it was on before.
    """
    match call.tool_id, call.data:
        case tool_id, {"id": str(id)} if tool_id in _SETS:
            return PlannedCall("cancel_reminder", {"reminder": id}, CANCELLED if corrects else None)
        case "list_add", {"list": str(name), "added": [_, *_] as added}:
            return PlannedCall("list_remove", {"item": _join(added), "list": name}, None)
        case "list_remove", {"list": str(name), "removed": [_, *_] as removed}:
            return PlannedCall("list_add", {"item": _join(removed), "list": name}, None)
        case "ha_control", {"action": str(action)} if action in _OPPOSITES and not corrects:
            return PlannedCall("ha_control", {**call.args, "action": _OPPOSITES[action]}, None)
    return None


def covers(call: PlannedCall, done: DoneCall) -> bool:
    """Whether a call does what was done and more, and nothing twice: what is on a list is not put there again."""
    match done.tool_id, done.data:
        case "list_add", {"list": str(name), "added": list(added)} if call.tool_id == "list_add":
            is_same_list = list_name(call.args.get("list") or name) == name
            items = {item_key(item) for item in split_items(call.args.get("item", ""), name)}
            return is_same_list and items.issuperset(item_key(str(item)) for item in added)
    return False


def can_follow(call: PlannedCall, done: DoneCall) -> bool:
    """Whether a call does nothing twice if it comes after one that cannot be undone: a light that is off can be
    switched off."""
    return call.tool_id == done.tool_id == "ha_control" and call.args.get("action") not in _STEPS


def _join(items: Sequence[object]) -> str:
    """An item with a comma or an "and" is put in quotation marks, so that it stays one."""
    texts = [str(item) for item in items]
    return ", ".join(f"“{text}”" if " and " in text or "," in text else text for text in texts)
