"""Counts tokens without downloading a vocabulary, to tell whether a conversation fits in a model's context.

`rs-bpe` brings the vocabularies of OpenAI in its wheel. It takes up 50 MB, and 70 MB of memory once it is loaded, so it
comes with the extras for OpenAI's models, and is loaded only when a conversation is so long that it must be counted.
Without it, tokens are estimated by the scripts of the text. Other vendors' vocabularies give other counts, more for
scripts that are rare in them: leave room.
"""

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from antiphon.security.surrogates import repair
from antiphon.transcript import AssistantMessage, Message, ToolMessage

MESSAGE_TOKENS: Final = 6
"""What a message costs beside its words: its role, and the marks around it."""

_PIECES: Final = re.compile(r"[A-Za-z]+|[0-9]+|[!-/:-@\[-`{-~]+|[^\x00-\x7f]+")
_LETTERS_PER_TOKEN: Final = 6
_DIGITS_PER_TOKEN: Final = 3
_MARKS_PER_TOKEN: Final = 2
_TENTHS_PER_CHARACTER: Final = (
    (0x0250, 5),  # Latin with marks
    (0x1200, 4),  # Greek, Cyrillic, Hebrew, Arabic, the scripts of India, Thai, Georgian
    (0x1E00, 20),  # Ethiopic and other rare scripts
    (0x2000, 5),  # more Latin with marks, for Vietnamese
    (0x2E80, 10),  # punctuation and symbols
    (0xA000, 8),  # Chinese and Japanese
    (0xAC00, 20),
    (0xD7B0, 8),  # Korean
    (0x110000, 20),  # emoji and everything else
)
"""Tenths of a token per character, by the end of a range of code points. Calibrated on o200k, on the cautious side."""


def count_tokens(text: str) -> int:
    """Counts the tokens of a text by the vocabulary `o200k`, or estimates them."""
    count = _load_vocabulary()
    return estimate_tokens(text) if count is None else count(repair(text))


def count_message(message: Message) -> int:
    """Counts the tokens of a message with its calls, or with the result of its call."""
    return MESSAGE_TOKENS + count_tokens(_written(message))


def most_tokens(message: Message) -> int:
    """Returns a number that `count_message` does not exceed, quickly: a token is at least one byte."""
    return MESSAGE_TOKENS + len(_written(message).encode("utf-8", "surrogatepass"))


def estimate_tokens(text: str) -> int:
    """Estimates the tokens of a text by its scripts."""
    tokens, tenths = 0, 0
    for match in _PIECES.finditer(text):
        piece = match[0]
        if not piece.isascii():
            tenths += sum(map(_tenths, piece))
        elif piece.isalpha():
            tokens += -(-len(piece) // _LETTERS_PER_TOKEN)
        elif piece.isdigit():
            tokens += -(-len(piece) // _DIGITS_PER_TOKEN)
        else:
            tokens += -(-len(piece) // _MARKS_PER_TOKEN)
    return tokens + -(-tenths // 10)


@cache
def _tenths(character: str) -> int:
    return next(tenths for end, tenths in _TENTHS_PER_CHARACTER if ord(character) < end)


@cache
def _load_vocabulary() -> Callable[[str], int] | None:
    """Returns the counter of `rs-bpe`; None if it is not installed. Loading takes 60 ms."""
    try:
        from rs_bpe.bpe import openai  # type: ignore[import-not-found]
    except ImportError:
        return None
    count: Callable[[str], int] = openai.o200k_base().count
    return count


def _written(message: Message) -> str:
    """Returns about the text that a model is given of a message."""
    match message:
        case ToolMessage(name=name, content=content):
            return f"{name} {_as_json(content)}"
        case AssistantMessage(text=text, calls=calls):
            return " ".join([text, *(f"{call.name} {_as_json(call.args)}" for call in calls)])
    return message.text


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
