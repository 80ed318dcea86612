"""The model behind everything in a chaos run. Each of its answers has words that no other answer has."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from antiphon.models.base import CallRequested, Event, MessageComplete, Prompt, StopReason, TextDelta, TextProfile
from antiphon.sim.assistant import ToolAssistant
from antiphon.tools.call import ToolCall
from antiphon.transcript import Message, ToolMessage, UserMessage

TOPICS: Final = (
    *("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliett", "kilo", "lima"),
    *(
        "mike",
        "november",
        "oscar",
        "papa",
        "quebec",
        "romeo",
        "sierra",
        "tango",
        "uniform",
        "victor",
        "whiskey",
        "zulu",
    ),
)
"""Each request of a conversation is about another one of these."""
TOLD: Final = 9
"""How many words of its own an answer has."""

PACE_S: Final = 0.06
"""How long a word takes to be written: less than it takes to be spoken."""

BOOK: Final = "book"
"""A tool with a side effect."""
ORDER: Final = "order"
"""A tool with a side effect that the user must approve."""
LOOK_UP: Final = "look_up"
RECALL: Final = "what did I ask you before"

_TOPIC: Final = re.compile("|".join(TOPICS), re.IGNORECASE)
_REQUEST: Final = re.compile(r"(?:please )?(tell me about|book|order|look up) (\w+)[.!?]?", re.IGNORECASE)
_NOTE: Final = re.compile(r'"result": ?\{"topic": ?"(\w+)"')
"""The result of a call that is told in words, because the session that is told did not make the call."""
_CALLS: Final = {"book": BOOK, "order": ORDER, "look up": LOOK_UP}


class ChaosAssistant:
    def __init__(self, name: str, *, needs_network: bool = False) -> None:
        self.profile = TextProfile(name=name, needs_network=needs_network)
        self._rest = ToolAssistant({})

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        last = prompt.messages[-1] if prompt.messages else None
        request = _REQUEST.fullmatch(last.text.strip()) if isinstance(last, UserMessage) else None
        if request is not None and (tool := _CALLS.get(request[1].lower())) is not None:
            yield CallRequested(ToolCall(None, tool, {"text": request[2].lower()}))
            yield MessageComplete(StopReason.CALLS)
            return
        if request is not None:
            answer = tell(request[2].lower())
        elif isinstance(last, UserMessage) and last.text.lower().startswith(RECALL.lower()):
            answer = f"You asked me about {' and '.join(topics_of(prompt.messages[:-1], prompt.system)) or 'nothing'}."
        elif isinstance(last, ToolMessage):
            answer = _tell_result(last)
        elif isinstance(last, UserMessage) and (told := _NOTE.search(last.text)) is not None:
            answer = done(told[1])
        else:
            async for event in self._rest.reply(prompt):
                yield event
            return
        for word in answer.split(" "):
            await asyncio.sleep(PACE_S)
            yield TextDelta(f"{word} ")
        yield MessageComplete(StopReason.DONE)


def tell(topic: str) -> str:
    return f"Here is {topic}. First " + ", then ".join(own_words(topic)) + "."


def own_words(topic: str) -> list[str]:
    """The words that only the answer about this topic has, in order."""
    return [f"{topic}{number + 1}" for number in range(TOLD)]


def topics_of(messages: Sequence[Message], system: str = "") -> list[str]:
    """The topics that a conversation was about, in order."""
    texts = [system, *(each.text for each in messages if isinstance(each, UserMessage))]
    return list(dict.fromkeys(found.lower() for text in texts for found in _TOPIC.findall(text)))


def _tell_result(message: ToolMessage) -> str:
    content: Any = message.content
    topic = content.get("topic") if isinstance(content, dict) else None
    if not message.ok or not isinstance(topic, str):
        return "That was not done. Please confirm it, or ask again."
    return done(topic)


def done(topic: str) -> str:
    return f"Done with {topic}. The numbers are " + ", then ".join(own_words(topic)) + "."
