"""What the offline assistant says: the results of tools, and a few sentences of its own."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from zlib import crc32

from antiphon.sentences.matching import SLOT
from antiphon.tools.errors import ErrorType
from antiphon.tools.spec import Mode
from antiphon.transcript import ToolMessage

LEFT_ALONE: Final = "All right, I'll leave it."
NOTHING_ASKED: Final = "I haven't asked you anything that waits for a yes or a no."
TOO_LONG: Final = "That is more than I can take in at once. Please say it in fewer words."

CONNECT_A_MODEL: Final = "To answer anything, connect a model: set model.text in antiphon.toml."

SUGGESTIONS: Final = {Mode.TEXT: 3, Mode.VOICE: 1}
"""How many sentences are suggested in the place of an answer. Nobody wants to listen to three."""
EXAMPLES_FOR_HELP: Final = 6
MAX_ITEMS_SAID: Final = 5
MAX_CHARS_SAID: Final = 200

_SMALL_TALK: Final = (
    (
        re.compile(r"(?:hello|hi|hey|good (?:morning|afternoon|evening))(?: there| again| antiphon)?"),
        "Hello! What can I do for you?",
    ),
    (re.compile(r"(?:many )?(?:thank you|thanks)(?: a lot| so much| very much| again)?"), "You're welcome."),
    (re.compile(r"(?:good ?bye|bye|good night|see you)(?: then| later| for now)?"), "Goodbye!"),
)
_HELP: Final = re.compile(r"help(?: me)?|what (?:can|do|could) (?:you|i) (?:do|say|ask|ask you|help me with)(?: here)?")


def small_talk(words: str) -> str | None:
    """The answer to a greeting, to thanks and to a farewell. `words` is in lower case and without punctuation."""
    return next((answer for pattern, answer in _SMALL_TALK if pattern.fullmatch(words)), None)


def asks_for_help(words: str) -> bool:
    return _HELP.fullmatch(words) is not None


def did_you_mean(text: str) -> str:
    return f"Did you mean “{text}”?"


def unknown(suggestions: Sequence[str], mode: Mode) -> str:
    """Says honestly that it was not understood, and what would help."""
    shown = _quoted(suggestions)
    if mode is Mode.VOICE:
        return (
            f"I don't know that without a language model, but you could say {shown}." if shown else "I don't know that."
        )
    return " ".join(["I don't know how to do that.", *([f"You could say {shown}."] if shown else []), CONNECT_A_MODEL])


def offers(text: str, examples: Sequence[str]) -> str:
    shown = _quoted(some(examples, EXAMPLES_FOR_HELP, text))
    return f"You could say {shown}." if shown else "I have no tools here, so there is nothing that I can do yet."


def only_in(modes: Iterable[str]) -> str:
    return f"I can do that only in {listed([str(mode) for mode in modes], 'or')} mode."


def some(examples: Sequence[str], count: int, text: str) -> list[str]:
    """So many of the examples, which differ from text to text."""
    # By the text, not by chance: the same words get the same answer, on any machine.
    start = crc32(text.encode())
    step = max(1, len(examples) // max(1, count))
    chosen = [examples[(start + step * n) % len(examples)] for n in range(min(count, len(examples)))]
    return list(dict.fromkeys(chosen))


def _quoted(sentences: Sequence[str]) -> str:
    return listed([f"“{sentence}”" for sentence in sentences], "or")


def listed(items: Sequence[str], word: str) -> str:
    return " ".join([", ".join(items[:-1]), word, items[-1]]) if len(items) > 1 else "".join(items)


def result(message: ToolMessage, say: str | None) -> str:
    """A result in words: as the sentence's `say` has it, else as the tool has it, else plainly."""
    if not message.ok:
        return _failure(message)
    return (say and _filled(say, message.content)) or message.spoken or _plain(message.content)


def is_question(message: ToolMessage) -> bool:
    """Whether a call waits for the user's yes."""
    match message.content:
        case {"error": {"type": ErrorType.CONFIRMATION_REQUIRED}}:
            return not message.ok
    return False


def _failure(message: ToolMessage) -> str:
    match message.content:
        case {"error": {"type": ErrorType.CONFIRMATION_REQUIRED, "preview": str(preview)}}:
            shown = _sentence(preview)
            return shown if shown.endswith("?") else f"{shown} Shall I?"
        case {"error": {"message": str(told)}}:
            return message.spoken or _sentence(told)
    return message.spoken or "That didn't work, and I don't know why."


def _filled(say: str, data: Any) -> str | None:
    keys = SLOT.findall(say)
    if not isinstance(data, Mapping) or any(data.get(key) is None for key in keys):
        return None if keys else say
    return SLOT.sub(lambda match: _value(data[match[1]]), say)


def _plain(data: Any) -> str:
    match data:
        case None:
            return "Done."
        case []:
            return "There is nothing."
        case list() if len(data) <= MAX_ITEMS_SAID and all(map(_is_short, data)):
            return _sentence(listed(list(map(_value, data)), "and"))
        case list():
            return f"There {'is one result' if len(data) == 1 else f'are {len(data)} results'}."
        case dict():
            short = {key: value for key, value in data.items() if value is not None and _is_short(value)}
            if 0 < len(short) <= MAX_ITEMS_SAID:
                return " ".join(_sentence(f"{key.replace('_', ' ')}: {_value(v)}") for key, v in short.items())
        case _ if _is_short(data):
            return _sentence(_value(data))
    return "It worked, but I have no short way to say the result."


def _is_short(value: Any) -> bool:
    return isinstance(value, bool | int | float) or (isinstance(value, str) and 0 < len(value) <= MAX_CHARS_SAID)


def _value(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.10g}"
        case list():
            return listed([_value(item) for item in value], "and")
    return str(value)


def _sentence(text: str) -> str:
    text = text.strip()
    return (text[:1].upper() + text[1:]) + ("" if text.endswith((".", "!", "?", "…")) else ".")
