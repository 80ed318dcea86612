"""Tells by its form what a sentence does: it asks, orders, tells, or says what is not to be done.

What a sentence is about does not show that: "remind him tomorrow" and "tomorrow I'll remind him" mean nearly the same.
"""

import re
from dataclasses import dataclass
from typing import Final

from antiphon.models.completeness import is_unfinished

_QUESTION: Final = re.compile(
    r"(?:what|who|whom|whose|when|where|which|why|how|is|are|was|were|does|did|has|have|should|do (?:i|you|we|they)|"
    r"(?:would|could|can|will|may|might) (?:an?|the|it|that|this|there|he|she|they|my)|isn['’]?t|aren['’]?t)\b",
    re.IGNORECASE,
)
_COMMAND: Final = re.compile(
    r"(?:add|put|set|create|make|schedule|book|arrange|plan|note|mark|remind me(?! (?:again )?(?:what|which|how|"
    r"who))|remember|notify|wake|clear|cancel|"
    r"delete|remove|erase|drop|scrap|wipe|turn|switch|shut|lock|unlock|dim|brighten|lower|raise|open|close)\b",
    re.IGNORECASE,
)
"""How a request begins that wants something to be changed."""
_REMARK: Final = re.compile(
    r"(?:i|we|he|she|they|it|that|this|there|my|the|our|his|her|their|somebody|someone|everybody)\b", re.IGNORECASE
)
"""How a sentence begins that tells something more often than it asks for something."""
_ASKS: Final = re.compile(r"\b(?:what|when|where|which|how|tell|need|want|would like|could use)\b|\?", re.IGNORECASE)
"""What shows that it asks for something all the same."""
_SUPPOSITION: Final = re.compile(
    r"(?:if|maybe|perhaps|suppose|imagine|let['’]s say|(?:we|you|they|he|she) (?:really )?(?:should|could|might|"
    r"may|ought)|"
    r"i (?:really )?(?:should|could(?! (?:do with|use))|might|may|was|wish|wanted|used|think|thought|wonder|"
    r"guess|suppose|"
    r"bet|hope|doubt))\b",
    re.IGNORECASE,
)
"""How a sentence begins that only thinks about something."""
_INTENTION: Final = re.compile(
    r"\b(?:i|we|he|she|they|you)(?:['’]ll| will|(?:['’]m|['’]re|['’]s| am| are| is) (?:going to|gonna))\s+"
    r"(?!need|want|have|like|forget|be\b|take the|do the)\w",
    re.IGNORECASE,
)
"""What somebody is going to do themselves: "tomorrow I'll remind him"."""
_DECLINED: Final = re.compile(
    r"\W*(?:please\s+)?(?:you (?:don['’]?t|do not) (?:need|have) to|no need to|(?:please )?(?:don['’]?t|do not) bother|"
    r"i (?:don['’]?t|do not) (?:want|need) (?:you to|to know|to hear)|"
    r"(?:don['’]?t|do not) (?:tell|show|read|set|add|start|put|turn|switch|open|close|lock|unlock|play|search|book|"
    r"schedule|create|make|write|send|wake)\b)",
    re.IGNORECASE,
)
"""How a sentence begins that asks for something not to be done."""
_FORBIDS: Final = re.compile(r"(?:do not|never)\b(?! (?:let|forget|you)\b)", re.IGNORECASE)
_PAST: Final = re.compile(r"\b(?:was|were|had|used to|yesterday|last (?:night|week|month|year|time))\b", re.IGNORECASE)
_WANTS: Final = re.compile(
    r"\b(?:take|turn|put|switch|get|make|set|open|close|shut|lower|raise|lock|can|could|please|let|give|needs?|needed)\b",
    re.I,
)
"""What a remark about a device has if it asks for something: "the fan can go off"."""
_CAN_END: Final = re.compile(r"\b(?:on|off|up|down|out|over|that|it|this|them|there)\W*\Z", re.IGNORECASE)
"""Words that often stand at the end of a sentence, although others may follow."""


@dataclass(frozen=True, slots=True)
class Form:
    is_question: bool
    is_command: bool
    """Whether it begins like a request to change something."""
    is_remark: bool
    """Whether it tells something, and asks for nothing."""
    is_thought: bool
    """Whether it supposes something, or tells what somebody is going to do."""

    @property
    def writes(self) -> bool | None:
        """Whether it can ask for tools that write, and for these alone; None if it can ask for any.

        "How do I lock the door" does not ask to lock it, nor does "add a meeting" ask which meetings there are.
        """
        return False if self.is_question or self.is_thought else True if self.is_command else None


def read_form(text: str, request: str) -> Form:
    """Reads the form of a text. `request` is the text without polite words."""
    return Form(
        is_question=is_question(request),
        is_command=_COMMAND.match(request) is not None,
        is_remark=_REMARK.match(request) is not None and _ASKS.search(text) is None,
        is_thought=_SUPPOSITION.match(request) is not None or _INTENTION.search(text) is not None,
    )


def is_question(text: str) -> bool:
    return _QUESTION.match(text) is not None


def is_declined(text: str) -> bool:
    """Whether it asks for something not to be done."""
    return _DECLINED.match(text) is not None


def is_cut_off(text: str) -> bool:
    """Whether another word must follow."""
    return is_unfinished(text) and _CAN_END.search(text) is None


def forbids(text: str) -> bool:
    return _FORBIDS.match(text) is not None


def tells_the_past(text: str) -> bool:
    return _PAST.search(text) is not None


def wants_something(text: str) -> bool:
    """Whether a remark asks for something all the same: "the fan can go off"."""
    return _WANTS.search(text) is not None
