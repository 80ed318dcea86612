"""The formats of written calls, and whether a message can be one, judged by its beginning. Pure."""

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

HEAD_CHARS: Final = 400
"""How much of a message decides whether it can be a call."""
MAX_NAME_CHARS: Final = 64

TAGS: Final[Mapping[str, str]] = {
    "<tool_call>": "</tool_call>",
    "<tool_calls>": "</tool_calls>",
    "<tools>": "</tools>",
    "<function_call>": "</function_call>",
    "<functioncall>": "</functioncall>",
    "<|tool_call|>": "<|/tool_call|>",
    "<|tool_call_start|>": "<|tool_call_end|>",
    "<|START_ACTION|>": "<|END_ACTION|>",
    "<|python_tag|>": "<|eom_id|>",
    "[TOOL_CALLS]": "[/TOOL_CALLS]",
    "functools": "",
}
FUNCTION: Final = "<function="
FENCE: Final = "```"
FENCE_LANGUAGES: Final = frozenset(
    {"", "json", "jsonc", "json5", "xml", "python", "tool_call", "tool_calls", "tool_code", "tool_use", "function_call"}
)
NAME_KEYS: Final = ("name", "tool", "tool_name", "function", "function_name", "action")
ARGUMENT_KEYS: Final = ("arguments", "parameters", "args", "params", "input", "tool_input", "action_input")
WRAPPER_KEYS: Final = ("tool_calls", "tool_call", "function_call")
CALL_TYPES: Final = frozenset({"function", "tool_call", "tool_use", "function_call"})
_WORD: Final = re.compile(r"[\w.-]*")

Tools = Mapping[str, Mapping[str, Any]]
"""The schemas of the arguments of the tools that may be called, by name."""


class Verdict(Enum):
    """What the beginning of a message tells."""

    TEXT = "text"
    UNDECIDED = "undecided"
    MAYBE_CALL = "maybe call"
    """It begins like a call; the whole message decides."""


class _NeedMore(Exception):
    """The text ended before it was decided."""


def judge(head: str, tools: Tools) -> Verdict:
    """Judges a message by its beginning. More text never turns `TEXT` into anything else."""
    head = head.lstrip()[:HEAD_CHARS]
    try:
        return Verdict.MAYBE_CALL if _begins_call(_Scanner(head, tools)) else Verdict.TEXT
    except _NeedMore:
        return Verdict.UNDECIDED if len(head) < HEAD_CHARS else Verdict.TEXT


class _Scanner:
    """Reads the beginning of a text, and raises `_NeedMore` where the text ends too early to tell."""

    def __init__(self, text: str, tools: Tools) -> None:
        self._text = text
        self._at = 0
        self._tools = tools

    def take(self, *literals: str) -> bool:
        rest = self._text[self._at :]
        for literal in literals:
            if rest.startswith(literal):
                self._at += len(literal)
                return True
        if any(literal.startswith(rest) for literal in literals):
            raise _NeedMore
        return False

    def next_is(self, chars: str) -> bool:
        if self._at == len(self._text):
            raise _NeedMore
        return self._text[self._at] in chars

    def skip_space(self) -> None:
        while self.next_is(" \t\r\n"):
            self._at += 1

    def take_word(self) -> str:
        end = word_end(self._text, self._at)
        if end == len(self._text):
            raise _NeedMore
        word, self._at = self._text[self._at : end], end
        return word

    def take_tool(self) -> bool:
        """Takes the name of a tool."""
        end = word_end(self._text, self._at)
        word = self._text[self._at : end]
        if end == len(self._text) and any(name.startswith(word) for name in self._tools):
            raise _NeedMore
        self._at = end
        return word in self._tools

    def take_string(self) -> str | None:
        """Takes a short string in quotes; None if there is none."""
        if not self.next_is("\"'"):
            return None
        start = self._at + 1
        end = self._text.find(self._text[self._at], start)
        length = (end if end >= 0 else len(self._text)) - start
        if length > MAX_NAME_CHARS:
            return None
        if end < 0:
            raise _NeedMore
        self._at = end + 1
        return self._text[start:end]

    def takes_named_tool(self) -> bool:
        string = self.take_string()
        return string is not None and string in self._tools


def _begins_call(scan: _Scanner) -> bool:
    if scan.take(FENCE):
        if scan.take_word() not in FENCE_LANGUAGES:
            return False
        scan.skip_space()
    if scan.take(FUNCTION):
        return True
    if scan.take(*TAGS):
        scan.skip_space()
        while scan.take(*TAGS):
            scan.skip_space()
        # A tag that a sentence begins with is text.
        return scan.next_is("{[`") or scan.take(FUNCTION) or scan.take_tool()
    if scan.take("["):
        scan.skip_space()
    if scan.take("{"):
        return _begins_object(scan)
    return scan.take_tool() and scan.take("(")


def _begins_object(scan: _Scanner) -> bool:
    scan.skip_space()
    key = scan.take_string()
    if key not in (*NAME_KEYS, "type"):
        return key in (*WRAPPER_KEYS, *ARGUMENT_KEYS, "id")
    scan.skip_space()
    if not scan.take(":"):
        return False
    scan.skip_space()
    if key == "type":
        return scan.take_string() in CALL_TYPES
    return scan.next_is("{") or scan.takes_named_tool()


def word_end(text: str, start: int) -> int:
    """Returns where a word ends, such as the name of a tool."""
    match = _WORD.match(text, start)
    return match.end() if match else start
