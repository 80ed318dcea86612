"""What a model is asked in a test, and the one tool that it is given."""

from collections.abc import Mapping
from typing import Any, Final

BE_BRIEF: Final = "You are a helpful assistant. Answer in one short sentence."
USE_TOOLS: Final = "You are a helpful assistant. You do not know the time: use the tool whenever you are asked for it."
HELLO: Final = "Hello! Who are you, and what are you good at?"
SPOKEN_QUESTION: Final = "What is the capital of France?"
ASK_TIME: Final = "What time is it in Tokyo?"

CLOCK_NAME: Final = "get_current_time"
PLACE: Final = "timezone"
CLOCK: Final[Mapping[str, Any]] = {
    "name": CLOCK_NAME,
    "description": "Tells the current time of day in a place.",
    "parameters": {
        "type": "object",
        "required": [PLACE],
        "properties": {PLACE: {"type": "string", "description": "A city or an IANA zone name."}},
    },
}
"""It is simple enough to be the same in the schema formats of all providers."""
CLOCK_RESULT: Final[Mapping[str, Any]] = {"time": "21:47", PLACE: "Asia/Tokyo"}


def is_clock_call(name: str, args: Any) -> bool:
    """Whether it is the call that the question about the time needs."""
    place = args.get(PLACE, "") if isinstance(args, dict) else ""
    return name == CLOCK_NAME and "tokyo" in str(place).lower()


def tells_result(text: str) -> bool:
    """Whether the minutes of the result are in the answer, in digits or in words."""
    return "47" in text or "forty-seven" in text.lower() or "forty seven" in text.lower()
