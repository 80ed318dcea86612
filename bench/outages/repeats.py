"""How often, and how soon, our own server is back: the same fault again and again, in one call or in several."""

from collections.abc import Sequence
from itertools import cycle, islice
from typing import Final

from msgspec import Struct

from bench.outages.judging import Verdict
from bench.outages.script import CLOSE, COOL_DOWN_S, EARLY, LONG, MID_ANSWER, Fault, Step, now, order
from bench.speech.clips import FLITE

MAX_GAP_S: Final = 0.3
MAX_BACK_S: Final = 1.5
MAX_FALLBACK_S: Final = 3.0
CALLS_PER_RATE_LIMIT: Final = 4
"""A rate limit costs a call, since its models are not used again; so there are fewer of them."""


class Repeat(Struct, frozen=True):
    """A fault that is repeated: the steps of one call, and which of them count."""

    name: str
    steps: Sequence[Step]
    calls: int = 1
    counted_from: int = 0
    p95_s: float | None = None
    """The target."""
    measures_gap: bool = True
    """Whether the longest gap in the answer counts, or the time until it begins."""

    def pick(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        return list(verdicts[self.counted_from :])

    def seconds(self, verdict: Verdict) -> float | None:
        return verdict.longest_gap_s if self.measures_gap else verdict.first_s


def make_repeats(count: int) -> list[Repeat]:
    go_away = {"when": EARLY, "do": {"go_away": {"seconds_left": 5}}}
    close = {"when": MID_ANSWER, "do": CLOSE}
    refused = {"status": 429, "retry_after_s": COOL_DOWN_S}
    rate_limit = [{"when": "connect", "do": {"refuse": refused}, "times": "always"}, now(quota={})]
    question, answer = order("mushrooms")
    limited = [
        Step("no fault", question, answer, topping="mushrooms", voice=FLITE[1]),
        Step(
            "rate limit",
            "What was my first order?",
            "Your first order was a pizza with mushrooms.",
            rate_limit,
            voice=FLITE[1],
        ),
    ]
    few = max(1, count // CALLS_PER_RATE_LIMIT)
    return [
        Repeat("no fault: longest gap", _tell(few, [])),
        Repeat("goAway in mid-answer, 5 s left: longest gap", _tell(count, [go_away]), p95_s=MAX_GAP_S),
        Repeat("closed (1011) in mid-answer: longest gap", _tell(count, [close]), p95_s=MAX_BACK_S),
        Repeat(
            "rate limit, 3 to 1: time to the local voice's answer",
            limited,
            calls=few,
            counted_from=1,
            p95_s=MAX_FALLBACK_S,
            measures_gap=False,
        ),
    ]


def _tell(count: int, faults: Sequence[Fault]) -> list[Step]:
    """Returns questions with long answers, in turn."""
    pairs = islice(zip(cycle(LONG.items()), cycle(FLITE[1:]), strict=False), count)
    return [Step("", question, answer, faults, voice=voice) for (question, answer), voice in pairs]


def percentile(values: Sequence[float], share: float) -> float:
    """Returns the smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]
