"""What the offline assistant says: the results of tools, and a few replies of its own."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from zlib import crc32

from antiphon.sentences.matching import SLOT
from antiphon.tools.errors import ErrorType
from antiphon.tools.spec import Mode
from antiphon.transcript import ToolMessage

LEFT_ALONE: Final = "All right, I won't do that."
NOTHING_ASKED: Final = "I haven't asked you a yes-or-no question."
TOO_LONG: Final = "That's too long for me. Please say it in fewer words."

CONNECT_A_MODEL: Final = "To answer anything, connect a model: set model.text in antiphon.toml."

SUGGESTIONS: Final = {Mode.TEXT: 3, Mode.VOICE: 1}
"""How many sentences are suggested instead of an answer. Listening to three would take too long."""
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
    """Returns the reply to a greeting, thanks or a goodbye. `words` is lower case, without punctuation."""
    return next((answer for pattern, answer in _SMALL_TALK if pattern.fullmatch(words)), None)


def asks_for_help(words: str) -> bool:
    return _HELP.fullmatch(words) is not None


def did_you_mean(text: str) -> str:
    return f"Did you mean “{text}”?"


def unknown(suggestions: Sequence[str], mode: Mode) -> str:
    """Says that the request was not understood, and what to say instead."""
    shown = _quoted(suggestions)
    if mode is Mode.VOICE:
        return (
            f"I don't know that without a language model, but you could say {shown}." if shown else "I don't know that."
        )
    return " ".join(["I don't know how to do that.", *([f"You could say {shown}."] if shown else []), CONNECT_A_MODEL])


def offers(text: str, examples: Sequence[str]) -> str:
    shown = _quoted(some(examples, EXAMPLES_FOR_HELP, text))
    return f"You could say {shown}." if shown else "There is nothing I can do yet."


def only_in(modes: Iterable[str]) -> str:
    return f"I can only do that in {listed([str(mode) for mode in modes], 'or')} mode."


def some(examples: Sequence[str], count: int, text: str) -> list[str]:
    """Picks `count` examples, different ones for different texts."""
    # Derived from the text, so that the same words get the same answer on any machine.
    start = crc32(text.encode())
    step = max(1, len(examples) // max(1, count))
    chosen = [examples[(start + step * n) % len(examples)] for n in range(min(count, len(examples)))]
    return list(dict.fromkeys(chosen))


def _quoted(sentences: Sequence[str]) -> str:
    return listed([f"“{sentence}”" for sentence in sentences], "or")


def listed(items: Sequence[str], word: str) -> str:
    return " ".join([", ".join(items[:-1]), word, items[-1]]) if len(items) > 1 else "".join(items)


def result(message: ToolMessage, say: str | None) -> str:
    """Puts a result into words: by the sentence's `say`, else the tool's own words, else generically."""
    if not message.ok:
        return _failure(message)
    return (say and _filled(say, message.content)) or message.spoken or _plain(message.content)


def is_question(message: ToolMessage) -> bool:
    """Whether a call is waiting for confirmation."""
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
            return "There are none."
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
    return "That worked, but the result is too long to say."


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
