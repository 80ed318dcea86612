"""An assistant for tests that answers by the conversation, behind any kind of model."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import takewhile
from typing import Any, Final

from antiphon.models.base import (
    CallRequested,
    Event,
    MessageComplete,
    Prompt,
    StopReason,
    TextDelta,
    TextProfile,
)
from antiphon.tools.call import ToolCall
from antiphon.transcript import Message, ToolMessage, UserMessage
from tests.fakes.vendor_answers import VERBATIM, Call, Output, Say

RING: Final = "ring the bell"
RING_AND_LOOK: Final = "ring the bell and look outside"
WATER: Final = "water the garden"
YES: Final = "yes please"
NO: Final = "no"
HELLO: Final = "hello"
STORY: Final = "tell me a story"
PHRASES: Final = (RING, RING_AND_LOOK, WATER, YES, NO, HELLO, STORY)
LONG: Final = " ".join(f"Then came the {number}th king, who had a dog." for number in range(4, 24))

CALLS: Final[dict[str, dict[str, dict[str, str]]]] = {
    RING: {"ring_bell": {}},
    RING_AND_LOOK: {"ring_bell": {}, "look_outside": {}},
    WATER: {"water_plants": {"place": "garden"}},
    NO: {"water_plants": {"place": "garden"}},
}
"""The tools that it calls, with their arguments."""
WORDS: Final = {HELLO: "Hello there.", STORY: LONG, YES: "One moment."}
AFTERWARDS: Final = {
    RING: "I have rung it.",
    RING_AND_LOOK: "I have rung it, and it is sunny.",
    WATER: "Shall I water the garden?",
    YES: "The garden is wet now.",
    NO: "Then I leave it.",
}
"""What it says once the results of its calls, or of those that the user let run, are there."""


def reply(messages: Sequence[Message], asked: dict[str, Any]) -> Sequence[Output]:
    if instructions := asked.get("instructions"):
        return [Say(instructions.partition(VERBATIM)[2])]
    since = list(takewhile(lambda message: not isinstance(message, UserMessage), reversed(messages)))
    wish = messages[-len(since) - 1]
    assert isinstance(wish, UserMessage)
    results = sum(isinstance(message, ToolMessage) for message in since)
    # It does not take no for an answer, and tries again.
    if results > (wish.text == NO):
        return [Say(AFTERWARDS[wish.text])]
    # Ids are never used twice in a conversation.
    calls = [Call(name, args, f"call_{name}_{len(messages)}") for name, args in CALLS.get(wish.text, {}).items()]
    return calls or [Say(WORDS[wish.text])]


class GardenerModel:
    """The same assistant as a text model."""

    profile = TextProfile("gardener", needs_network=False)

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        outputs = reply(prompt.messages, {})
        calls = [output for output in outputs if isinstance(output, Call)]
        for output in outputs:
            if isinstance(output, Say):
                for word in output.text.split():
                    await asyncio.sleep(0.01)
                    yield TextDelta(f"{word} ")
        for call in calls:
            yield CallRequested(ToolCall(call.id, call.name, call.args))
        yield MessageComplete(StopReason.CALLS if calls else StopReason.DONE)
