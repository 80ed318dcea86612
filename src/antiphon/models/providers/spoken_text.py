"""Takes the thoughts out of the text of a message, as it streams. Pure.

Reasoning models mark their thoughts with tags. Servers that know a model's tags send thoughts in a field of their own,
and the others leave them in the text, where they would be shown and spoken.

A thought begins where a line begins, outside of a block of code: an answer that mentions `<think>` within a sentence or
in an example keeps it. A thought that never ends takes the rest of the message with it, except for a tool call that it
ends with: some models call a tool without ending their thought. If a template has written the opening tag before the
model begins, the thoughts cannot be told from the answer: only their closing tag is removed, and
`has_unmarked_thoughts` is set.
"""

from typing import Final

from antiphon.security.surrogates import StreamRepairer

TAGS: Final = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "<|START_THINKING|>": "<|END_THINKING|>",
}
"""The opening and the closing tags: of Qwen, DeepSeek and most others; of models that were told to think; of Gemma,
Seed, Magistral and Command."""
_CLOSING: Final = tuple(TAGS.values())
_FENCE: Final = "```"
_TOOL_CALL: Final = "<tool_call>"
_MAX_CALL_CHARS: Final = 20_000
"""The longest tool call at the end of a thought."""
_SPACE: Final = " \t\r\n"


class SpokenText:
    """The text of one message: pieces in, what may be shown and spoken out. It also joins characters sent in halves."""

    def __init__(self) -> None:
        self.has_unmarked_thoughts = False
        self._repairer = StreamRepairer()
        self._rest = ""
        """The beginning of what may become a tag, or of a thought's closing tag."""
        self._closing: str | None = None
        """The tag that ends the thought under way."""
        self._begins_line = True
        self._is_code = False
        self._skips_space = False

    def push(self, piece: str) -> str:
        self._rest += self._repairer.push(piece)
        return self._take()

    def finish(self) -> str:
        """Returns what is left at the end of the message."""
        self._rest += self._repairer.finish()
        text = self._take()
        rest, self._rest = self._rest, ""
        return text if self._closing and not rest.startswith(_TOOL_CALL) else text + rest

    def _take(self) -> str:
        taken = list[str]()
        while self._rest:
            if self._closing is not None:
                if not self._skip_thought(self._closing):
                    break
            elif self._begins_line:
                space = len(self._rest) - len(self._rest.lstrip(_SPACE))
                if not self._skips_space:
                    taken.append(self._rest[:space])
                self._rest = self._rest[space:]
                if not self._begin_line():
                    break
            else:
                line, end, self._rest = self._rest.partition("\n")
                taken.append(line + end)
                self._begins_line = bool(end)
        return "".join(taken)

    def _skip_thought(self, closing: str) -> bool:
        """Returns whether the thought has ended."""
        thought, end, after = self._rest.partition(closing)
        if end:
            self._rest, self._closing, self._skips_space = after, None, True
            return True
        call_at = thought.rfind(_TOOL_CALL)
        has_call = call_at >= 0 and len(thought) - call_at <= _MAX_CALL_CHARS
        self._rest = thought[call_at if has_call else -max(len(closing), len(_TOOL_CALL)) + 1 :]
        return False

    def _begin_line(self) -> bool:
        """Decides what a line begins with. Returns False if more of it must come first."""
        rest = self._rest
        if not rest:
            return False
        known = (_FENCE,) if self._is_code else (*TAGS, *_CLOSING, _FENCE)
        found = next((mark for mark in known if rest.startswith(mark)), None)
        if found is None and any(mark.startswith(rest) for mark in known):
            return False
        if found in TAGS:
            self._closing = TAGS[found]
        elif found == _FENCE:
            self._is_code = not self._is_code
        elif found is not None:
            self.has_unmarked_thoughts = True
        if found is not None and found != _FENCE:
            self._rest = rest[len(found) :]
            self._skips_space = True
            return True
        self._begins_line = self._skips_space = False
        return True
