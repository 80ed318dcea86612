"""Summarises a part of a conversation without a model: what the user asked, what tools did, and what is still open.

The summary speaks to the user. It is shown in the call history, and it is given to models.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from antiphon.security.surrogates import repair
from antiphon.tools.errors import ErrorType
from antiphon.transcript import AssistantMessage, Message, ToolMessage, UserMessage
from antiphon.words.reported import (
    end_sentence,
    has_words,
    is_noise,
    is_question,
    quote,
    report,
    shorten,
    split_sentences,
    tell,
)

MAX_CHARS: Final = 600
_SIZES: Final = ((6, 3, 120), (5, 2, 120), (4, 2, 100), (3, 2, 80), (3, 1, 80), (2, 1, 60))
"""How many requests and outcomes are told, and in how many characters each; the first that fits is taken. The last
always fits."""


def extract(messages: Sequence[Message]) -> str:
    """Returns a few sentences of at most `MAX_CHARS`; an empty text if the user said nothing."""
    requests = [repair(message.text) for message in messages if isinstance(message, UserMessage)]
    told = [text for text in requests if not is_noise(text)]
    greetings = [text for text in requests if has_words(text)]
    if not told and not greetings:
        return ""
    outcomes = list(_outcomes(messages))
    summary = ""
    for count, results, chars in _SIZES:
        parts = [
            _tell_requests(told, count, chars) or end_sentence(f"You said {quote(greetings[-1], chars)}"),
            *(end_sentence(shorten(each, chars)) for each in outcomes[-results:]),
            _open_question(messages, chars),
        ]
        summary = " ".join(part for part in parts if part)
        if len(summary) <= MAX_CHARS:
            break
    return summary


def _tell_requests(requests: Sequence[str], count: int, chars: int) -> str:
    """Tells the newest requests: "You asked what time it is in Tokyo and what 15 % of 80 is.\""""
    reports = [each for text in requests[-count:] if (each := report(text, chars)) is not None]
    sentences = tell(reports)
    earlier = len(requests) - count
    if earlier > 0 and sentences:
        first = sentences[0][:1].lower() + sentences[0][1:]
        sentences[0] = f"After {'one other request' if earlier == 1 else f'{earlier} other requests'}, {first}"
    return " ".join(sentences)


def _outcomes(messages: Sequence[Message]) -> Iterator[str]:
    """Yields what came of each tool call, each once: in the tool's words, in the error's, or in the assistant's."""
    seen = set[str]()
    for place, message in enumerate(messages):
        if isinstance(message, ToolMessage) and (words := _outcome(message, messages[place + 1 :])) not in seen:
            seen.add(words)
            if words and not is_noise(words):
                yield words


def _outcome(run: ToolMessage, later: Sequence[Message]) -> str:
    match run.content:
        case {"error": {"type": ErrorType.CONFIRMATION_REQUIRED}} if not run.ok:
            # It has not run. If the question is still open, that is told.
            return ""
        case {"error": {"message": str(reason)}} if not run.ok and not run.spoken:
            return f"This did not work: {_first_sentence(repair(reason))}"
    words = _told_by_tool(run) or _answer(later)
    if run.ok:
        return words or f"I used {_name(run)}"
    return words or f"{_name(run).capitalize()} did not work"


def _told_by_tool(run: ToolMessage) -> str:
    """Returns the first sentence of the tool's own words, or all of them if it is a question: a joke, say."""
    spoken = repair(run.spoken or "")
    first = _first_sentence(spoken)
    return spoken if is_question(first) else first


def _answer(later: Sequence[Message]) -> str:
    """Returns the first sentence of the answer that follows a tool call in the same turn."""
    for message in later:
        match message:
            case UserMessage():
                break
            case AssistantMessage(text=text) if text.strip():
                first = _first_sentence(repair(text))
                return "" if is_question(first) else first
    return ""


def _open_question(messages: Sequence[Message], chars: int) -> str:
    """Tells the last words, if they still need an answer."""
    for message in reversed(messages):
        match message:
            case UserMessage(text=text):
                told = report(repair(text), chars)
                return "" if told is None else "I have not answered that yet."
            case AssistantMessage(text=text) if text.strip():
                last = split_sentences(repair(text))[-1]
                return f"Still open: {quote(last, chars)}" if is_question(last) else ""
            case ToolMessage(content={"error": {"type": ErrorType.CONFIRMATION_REQUIRED, "preview": str(preview)}}):
                return f"Still open: {quote(repair(preview), chars)}"
    return ""


def _first_sentence(text: str) -> str:
    return next(iter(split_sentences(text)), "")


def _name(run: ToolMessage) -> str:
    return run.name.replace("_", " ").strip() or "a tool"
