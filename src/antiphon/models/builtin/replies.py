"""What the offline assistant says: the results of tools, and a few replies of its own."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from zlib import crc32

from antiphon.sentences.matching import SLOT
from antiphon.tools.errors import ErrorType
from antiphon.tools.spec import Mode
from antiphon.transcript import ToolMessage

LEFT_ALONE: Final = "All right, I won't do that."
NO_LONGER_OPEN: Final = "I can't take a yes for that any more, so I haven't done anything. Please ask me again."
NOTHING_ASKED: Final = "I haven't asked you a yes-or-no question."
OKAY: Final = "Okay."
WHAT_INSTEAD: Final = "Sorry. What did you mean?"
UNSURE: Final = "I'm not sure what you mean. Please say it in one short sentence."
WHICH_EVENT: Final = "Which one? Please say what it is called."
CANNOT_UNDO: Final = "I can't undo that, I'm afraid."
TOO_QUICK: Final = "I was too quick."
CANNOT_CHANGE: Final = "I can't change that any more."
NOTHING_TO_TELL: Final = "That worked, but there is nothing to tell."
TOO_LONG: Final = "That's too long for me. Please say it in fewer words."

CONNECT_A_MODEL: Final = "To answer anything, connect a model: set model.text in antiphon.toml."

SUGGESTIONS: Final = {Mode.TEXT: 3, Mode.VOICE: 1}
"""How many sentences are suggested instead of an answer. Listening to three would take too long."""
SUGGESTED_WORDS: Final = {Mode.TEXT: None, Mode.VOICE: 6}
"""How long a suggested sentence may be. With six words, the whole answer takes two and a half seconds."""
EXAMPLES_FOR_HELP: Final = 3
MAX_ITEMS_SAID: Final = 5
MAX_CHARS_SAID: Final = 200


def did_you_mean(text: str) -> str:
    return f"Did you mean “{text}”?"


def the_same_with(text: str) -> str:
    return f"Shall I do the same with “{text}”?"


def unknown(suggestions: Sequence[str], mode: Mode, *, is_question: bool) -> str:
    """Says that the request was not understood, and what to say instead."""
    lack = "I don't know that" if is_question else "I don't know how to do that"
    shown = _quoted(suggestions)
    if mode is Mode.VOICE:
        lack = "I don't know that" if is_question else "I can't do that"
        # Longer answers are tiring to hear: this takes about two seconds.
        return f"{lack}. Try {shown}." if shown else f"{lack}."
    return " ".join([f"{lack}.", *([f"You could say {shown}."] if shown else []), CONNECT_A_MODEL])


def offers(text: str, examples: Sequence[str]) -> str:
    shown = _quoted(some(examples, EXAMPLES_FOR_HELP, text))
    return f"Quite a few things. For example, say {shown}." if shown else "There is nothing I can do yet."


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


def result(message: ToolMessage, say: str | None, *, is_write: bool = False) -> str:
    """Puts a result into words: by the sentence's `say`, else the tool's own words, else generically.

    `is_write` says whether the tool does something: only then a result without data means that something was done.
    """
    if not message.ok:
        return _failure(message)
    if say and (filled := _filled(say, message.content)):
        return filled
    if message.spoken:
        return message.spoken
    return NOTHING_TO_TELL if message.content is None and not is_write else _plain(message.content)


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
