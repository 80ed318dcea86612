"""Faults that change messages: each waits for a message that it fits, and changes that one or a whole response."""

import json
from collections.abc import Sequence

from antiphon.sim import actions
from antiphon.sim.actions import Alteration
from antiphon.sim.vendors.base import CloseWith, Conversation, Message


class RawText(str):
    """Text that is sent as it is, since it is not a whole message."""

    __slots__ = ()


class HalfText(str):
    """Text of which only half is sent, before the connection is reset."""

    __slots__ = ()


Item = Message | CloseWith | RawText | HalfText
"""What is sent to a client."""


class Alterations:
    """The alterations that wait, or that are not finished yet."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._waiting: list[Alteration] = []

    def add(self, alteration: Alteration) -> None:
        self._waiting.append(alteration)

    def apply(self, message: Message) -> list[Item]:
        """Returns what is sent in the message's place."""
        items: list[Item] = [message]
        for alteration in list(self._waiting):
            changed: list[Item] = []
            is_finished = False
            for item in items:
                instead = None if is_finished or not isinstance(item, dict) else self._change(alteration, item)
                if instead is None or not isinstance(item, dict):
                    changed.append(item)
                    continue
                changed += instead
                is_finished = _changes_one(alteration) or self._conversation.is_finished(alteration, item)
            items = changed
            if is_finished:
                self._waiting.remove(alteration)
        return items

    def _change(self, alteration: Alteration, message: Message) -> Sequence[Item] | None:
        text = json.dumps(message, ensure_ascii=False)
        match alteration:
            case actions.Drop():
                return ()
            case actions.Malformed():
                return (RawText(text[: len(text) // 2]),)
            case actions.HalfFrame():
                return (HalfText(text),)
        return self._conversation.alter(alteration, message)


def _changes_one(alteration: Alteration) -> bool:
    return isinstance(alteration, actions.Drop | actions.Malformed | actions.HalfFrame)
