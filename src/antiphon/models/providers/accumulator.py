"""Assembles the tool calls of a streamed chat completion, however a server splits them.

Pure: fragments in, calls out. No two servers agree on how a call is streamed: OpenAI sends a name and then pieces of
the arguments under one index; Gemini sends whole calls without an index; Ollama sent whole calls all under index 0;
some vLLM parsers repeat the id and the name with the last piece.
"""

import json
from typing import Any, Final

import msgspec
from msgspec import Struct

from antiphon.models.bounded import MAX_CALL_CHARS, MAX_CALLS, TOO_MANY_CALLS, LimitExceeded
from antiphon.security.surrogates import repair, repair_json
from antiphon.tools.call import ToolCall

NO_ARGUMENTS: Final = "{}"
TOO_LONG_CALLS: Final = f"sent tool calls with more than {MAX_CALL_CHARS >> 10} KB of arguments"


class FunctionFragment(Struct, frozen=True):
    name: str | None = None
    arguments: str | None = None


class Fragment(Struct, frozen=True):
    """One item of `delta.tool_calls`. Every field may be missing, null or empty."""

    index: int | None = None
    id: str | None = None
    function: FunctionFragment | None = None
    extra_content: Any = None
    """What the server expects back with the call, such as Gemini's thought signature."""


class _Slot:
    """A call that is being received."""

    __slots__ = ("arguments", "extra", "id", "name")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.extra: Any = None


class Calls:
    """The calls of one message, in the order in which they began."""

    def __init__(self) -> None:
        self._slots: list[_Slot] = []
        self._by_index: dict[int, _Slot] = {}
        self._chars = 0

    @property
    def are_whole(self) -> bool:
        """Whether there are calls, and the arguments of each are a whole JSON object."""
        return bool(self._slots) and all(_is_whole("".join(slot.arguments)) for slot in self._slots)

    def add(self, fragment: Fragment) -> None:
        """Raises `LimitExceeded`: until a message ends, all of its calls are held in memory."""
        function = fragment.function or FunctionFragment()
        self._measure(fragment, function)
        slot = self._find(fragment, function) or self._begin(fragment.index)
        slot.id = slot.id or fragment.id or ""
        slot.name = slot.name or function.name or ""
        if function.arguments:
            slot.arguments.append(function.arguments)
        if slot.extra is None:
            slot.extra = repair_json(fragment.extra_content)

    def finish(self) -> list[ToolCall]:
        """Returns the calls. A call without an id from the server gets none, because the gate must know."""
        return [
            ToolCall(
                repair(slot.id) or None, repair(slot.name), decode_arguments("".join(slot.arguments)), extra=slot.extra
            )
            for slot in self._slots
        ]

    def _measure(self, fragment: Fragment, function: FunctionFragment) -> None:
        self._chars += len(fragment.id or "") + len(function.name or "") + len(function.arguments or "")
        if fragment.extra_content is not None:
            self._chars += len(json.dumps(fragment.extra_content))
        if self._chars > MAX_CALL_CHARS:
            raise LimitExceeded(TOO_LONG_CALLS)

    def _find(self, fragment: Fragment, function: FunctionFragment) -> _Slot | None:
        """Finds the call that the fragment continues; None if it begins one."""
        if fragment.index is None:
            last = self._slots[-1] if self._slots else None
            goes_on = last is not None and (fragment.id == last.id if fragment.id else not function.name)
            return last if goes_on else None
        slot = self._by_index.get(fragment.index)
        if slot is None or (fragment.id and slot.id and fragment.id != slot.id):
            return None
        # Without ids, a whole call after a whole call under the same index is recognised only by its shape.
        if not fragment.id and function.name and function.arguments and _is_whole("".join(slot.arguments)):
            return None
        return slot

    def _begin(self, index: int | None) -> _Slot:
        if len(self._slots) == MAX_CALLS:
            raise LimitExceeded(TOO_MANY_CALLS)
        slot = _Slot()
        self._slots.append(slot)
        if index is not None:
            self._by_index[index] = slot
        return slot


def decode_arguments(arguments: str) -> Any:
    """Decodes the arguments of a call. If they are not JSON, they stay a string, so that the gate can refuse them."""
    arguments = repair(arguments)
    try:
        return msgspec.json.decode(arguments.strip() or NO_ARGUMENTS)
    except (msgspec.DecodeError, RecursionError):
        return _decode_halves(arguments)


def _decode_halves(arguments: str) -> Any:
    """Decodes arguments that msgspec refuses, perhaps only because they contain half of a surrogate pair."""
    try:
        return repair_json(json.loads(arguments, parse_constant=_refuse_constant))
    except (ValueError, RecursionError):
        return arguments


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _is_whole(arguments: str) -> bool:
    return arguments.rstrip().endswith("}") and isinstance(decode_arguments(arguments), dict)
