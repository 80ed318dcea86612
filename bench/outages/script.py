"""The conversation that every contender has with the simulator: the questions, and what goes wrong at each of them."""

from collections.abc import Sequence
from random import Random
from typing import Any, Final

from msgspec import Struct

from bench.speech.clips import FLITE

Fault = dict[str, Any]
"""A fault as the control port of the simulator takes it."""

GREETING: Final = "Welcome to the pizza line."
TOOL_S: Final = 1.5
"""How long the tool takes, so that a connection can end while it runs."""
COOL_DOWN_S: Final = 30

COFFEE: Final = (
    "Coffee was first grown in the hills of Ethiopia. Traders carried it across the sea to Yemen. "
    "Two hundred years later there were coffee houses in every large city of Europe. "
    "Today farmers in seventy countries grow it."
)
MOON: Final = (
    "The moon travels around the earth once a month. It has no air and no weather. "
    "Twelve people have walked on its surface and brought back many rocks. "
    "Every year it moves a little further away from us."
)
RIVERS: Final = (
    "The longest river in the world is the Nile. It begins near the middle of Africa. "
    "It flows north through eleven countries and a wide desert. "
    "At the end it reaches the sea in Egypt."
)
BRIDGES: Final = (
    "The oldest bridges were made of wood and rope. The Romans built theirs from stone. "
    "Later engineers used iron and then steel. "
    "The longest bridge of today carries a railway across a plain in China."
)

LONG: Final = {
    "Tell me about the history of the moon.": MOON,
    "Tell me about coffee.": COFFEE,
    "Tell me about old bridges.": BRIDGES,
    "Tell me about the longest river.": RIVERS,
}
"""Questions with long answers."""


class Step(Struct, frozen=True):
    """A question, what must be heard as the answer, and the faults that are armed before it."""

    name: str
    question: str
    answer: str
    faults: Sequence[Fault] = ()
    topping: str = ""
    """What the tool is called with, if the question calls it."""
    voice: str = ""


def order(topping: str) -> tuple[str, str]:
    """Returns a question that calls the tool, and its answer."""
    return f"Please order a pizza with {topping}.", f"I have ordered a pizza with {topping}."


def now(**action: Any) -> Fault:
    return {"when": "now", "do": action}


CLOSE: Final = {"close": {"code": 1011, "reason": "Internal error encountered."}}
EARLY: Final = {"audio_chunk": 3}
"""In the first sentence, more than five seconds before the model has finished a long answer."""
MID_ANSWER: Final = {"audio_chunk": 8}
"""About three seconds into the answer."""
STEPS: Final = (
    Step("no fault", "What is the capital of France?", "The capital of France is Paris."),
    Step("no fault, with a tool", *order("mushrooms"), topping="mushrooms"),
    Step(
        "stalled for 1 s in mid-answer",
        "Tell me about the longest river.",
        RIVERS,
        [{"when": MID_ANSWER, "do": {"stall": {"seconds": 1}}}],
    ),
    Step(
        "goAway between turns, 5 s left",
        "Tell me about the history of the moon.",
        MOON,
        [now(go_away={"seconds_left": 5})],
    ),
    Step(
        "goAway in mid-answer, 5 s left",
        "Tell me about coffee.",
        COFFEE,
        [{"when": EARLY, "do": {"go_away": {"seconds_left": 5}}}],
    ),
    Step(
        "goAway, then nothing and no close",
        "What is the capital of Italy?",
        "The capital of Italy is Rome.",
        [now(go_away={"seconds_left": 5, "then": "silence"})],
    ),
    # Pipecat gives up after three closes, unless a connection has lasted for ten seconds in between.
    Step("no fault", "What is the capital of Germany?", "The capital of Germany is Berlin."),
    Step("closed (1011) in mid-answer", "Tell me about old bridges.", BRIDGES, [{"when": MID_ANSWER, "do": CLOSE}]),
    Step(
        "closed while the tool runs",
        *order("olives"),
        [{"when": {"server_message": "tool_call"}, "do": CLOSE}],
        topping="olives",
    ),
    Step(
        "closed, then the call again",
        *order("onions"),
        [{"when": "resumed", "do": "duplicate_tool_call"}, {"when": {"server_message": "answer_end"}, "do": CLOSE}],
        topping="onions",
    ),
    Step(
        "closed, then 429 at the upgrade",
        "What is the capital of Spain?",
        "The capital of Spain is Madrid.",
        [{"when": "connect", "do": {"refuse": {"status": 429, "retry_after_s": COOL_DOWN_S}}}, now(**CLOSE)],
    ),
    # LiveKit's adapter does not use a model for ten seconds after a failure, and both of its models fail here.
    Step("no fault", "What is the capital of Japan?", "The capital of Japan is Tokyo."),
    Step(
        "closed, then a dead handle",
        "What was my first order?",
        "Your first order was a pizza with mushrooms.",
        [{"when": "resume", "do": {"reject_handle": {"problem": "expired"}}}, now(**CLOSE)],
    ),
    Step("no fault, about what was said", "What was my last order?", "Your last order was a pizza with onions."),
)


def cast(seed: int) -> list[Step]:
    """Returns the conversation with a voice for each question."""
    chance = Random(seed)
    return [Step(**{**_fields(step), "voice": chance.choice(FLITE)}) for step in STEPS]


def _fields(step: Step) -> dict[str, Any]:
    return {name: getattr(step, name) for name in step.__struct_fields__}
