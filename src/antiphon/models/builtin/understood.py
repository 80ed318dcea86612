"""What a text was understood as: calls to run, something to ask or to say."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from antiphon.models.builtin.collecting import ReadBack, Wanted
from antiphon.models.builtin.recall import Recall


class Tier(StrEnum):
    """How a text was understood, for the metrics."""

    GRAMMAR = "grammar"
    MEANING = "meaning"
    KNOWLEDGE = "knowledge"
    CONVERSATION = "conversation"
    """It is about the conversation itself, or small talk."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call that the words ask for, and how to phrase its result if the sentence defines that."""

    tool_id: str
    args: Mapping[str, Any]
    say: str | None


@dataclass(frozen=True, slots=True)
class Run:
    calls: tuple[PlannedCall, ...]
    query: str | None = None
    """What to look for in the knowledge base first, if the calls are a guess at the words of a question."""
    tier: Tier = Tier.GRAMMAR


@dataclass(frozen=True, slots=True)
class Ask:
    """A guess at a call with side effects: it runs only after a yes."""

    question: str
    call: PlannedCall


@dataclass(frozen=True, slots=True)
class Need:
    """A call that lacks an argument. The answer to the question completes it."""

    call: PlannedCall
    argument: str
    question: str
    asked: Wanted | ReadBack | None = None
    """Where the value stands, if it is collected: digits and the like are read back."""


@dataclass(frozen=True, slots=True)
class Say:
    text: str


@dataclass(frozen=True, slots=True)
class Unknown(Say):
    """A request that no tool is for. The text says so, and suggests others."""

    query: str | None
    """What to look for in the knowledge base, if the request is a question."""


@dataclass(frozen=True, slots=True)
class Remember:
    """A question about the conversation itself."""

    recall: Recall


Understood = Run | Ask | Need | Say | Remember
