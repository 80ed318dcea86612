"""The answers that the fake servers of vendors are told to give, and the conversation as their models understand it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage

VERBATIM: Final = "\n\n"
"""The instructions of a response that must have given words are followed by an empty line and the words."""

Event = dict[str, Any]


@dataclass(frozen=True)
class Say:
    """A message of the answer."""

    text: str


@dataclass(frozen=True)
class Call:
    """A function call of the answer."""

    name: str
    args: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = "call_0123456789"


@dataclass(frozen=True)
class End:
    """How the response ends, if it does not complete."""

    status: Literal["failed", "incomplete", "cancelled"]
    details: Mapping[str, Any]


@dataclass(frozen=True)
class Stall:
    """Nothing more of the response comes until it is cancelled."""


Output = Say | Call | End | Stall
Reply = Callable[[Sequence[Message], Event], Sequence[Output]]
"""Chooses the answer to a conversation. The second argument is the body of `response.create`, which only OpenAI has."""


def greet(messages: Sequence[Message], asked: Event) -> Sequence[Output]:
    return [Say("Hello there, my friend.")]


def message_of(item: Event) -> Message | None:
    """The item as the model understands it; None for the system's, and for answers of which nothing is left."""
    match item:
        case {"type": "function_call", "name": name, "call_id": id, "arguments": arguments}:
            args = json.loads(arguments) if item["status"] == "completed" else arguments
            return AssistantMessage("", (CallMade(id, name, args),))
        case {"type": "function_call_output", "call_id": id, "output": output}:
            return ToolMessage(id, "", output)
        case {"role": "user", "heard": words}:
            return UserMessage(words)
        case {"role": "user", "content": [{"text": text}]}:
            return UserMessage(text)
        case {"role": "assistant", "words": words}:
            return AssistantMessage(" ".join(words)) if words else None
        case {"role": "assistant", "content": [{"text": text}]}:
            return AssistantMessage(text)
        case _:
            return None
