"""Questions that no tool is for are looked up in the knowledge base, by a call like any other."""

import re
from collections.abc import Sequence
from typing import Final

from antiphon.tools.call import ToolCall
from antiphon.transcript import ToolMessage

TOOL: Final = "kb_search"
WORLD: Final = "quick_answer"
"""The tool for questions about the world."""
RESULTS: Final = 3
MAX_CHARS: Final = 200
"""The longest query that the tool takes."""
_BEFORE: Final = (
    r"\W*(?:(?:please|hey|hi|hello|ok|okay|so|well|and|now|then|antiphon|(?:can|could|will|would) you(?: please)?|"
    r"(?:do you|i (?:want|need|would like) to) know|tell me)\W+)*"
)
_POLITE: Final = re.compile(_BEFORE, re.IGNORECASE)
_QUESTION: Final = re.compile(
    _BEFORE
    + r"(?:(?:until|till|since|on|at|in|for|from|by|to|with|of|under)\s+(?=(?:what|which|whom|whose|when|where)\b))?"
    r"(?:what|who|whom|whose|when|where|which|why|how|is|are|was|were|do|does|did|may|must|should|has|have|can|"
    r"could|will|would|tell me|explain|describe|define|find|look up|search|about)\b\W+\w",
    re.IGNORECASE,
)


def find_question(text: str) -> str | None:
    """Returns the text if it asks something or wants something to be looked up, else None."""
    text = text.strip()
    if len(text) > MAX_CHARS:
        return None
    return text if _QUESTION.match(text) is not None or text.endswith("?") else None


_PERSONAL: Final = re.compile(
    r"\b(?:i|me|my|mine|we|us|our|you|your|yours|this|these|here|today|tonight|tomorrow|now|latest|currently|near|nearby)\b",
    re.IGNORECASE,
)
_FACT: Final = re.compile(
    _BEFORE + r"(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|does|did|has|define|describe|explain"
    r"|(?:tell me|give me|find|look up)\b.{0,40}\b(?:about|definition|meaning|information)\b)\b",
    re.IGNORECASE,
)


def asks_about_world(text: str) -> bool:
    """Whether the text has the form of a question about neither the user nor the assistant, nor the day."""
    return _FACT.match(text) is not None and _PERSONAL.search(_POLITE.sub("", text)) is None


def call(question: str) -> ToolCall:
    """Makes the call. No text of the records is asked for, since only the sentence that answers is said."""
    return ToolCall(None, TOOL, {"query": question, "top_k": RESULTS, "include_snippets": False})


def is_in_vain(results: Sequence[ToolMessage]) -> bool:
    """Whether these are the results of a look-up alone, and it has found no sentence that answers."""
    return len(results) == 1 and results[0].name == TOOL and not _answers(results[0])


def _answers(message: ToolMessage) -> bool:
    match message.content:
        case {"answer": {"text": str()}}:
            return message.ok
    return False
