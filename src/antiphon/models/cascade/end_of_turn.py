"""How likely it is that a turn is over, by its words and its melody, and how much silence is needed to be sure."""

from dataclasses import dataclass
from math import exp, log
from typing import Final

from antiphon.models.completeness import Completeness
from antiphon.models.expectation import Expectation

_WEIGHTS: Final = {
    Completeness.COMPLETE: (2.8, 0.0),
    Completeness.EXTENDABLE: (0.33, 0.3),
    Completeness.UNKNOWN: (1.85, 0.2),
    Completeness.BRIEF: (0.2, 0.0),
    Completeness.PARTIAL: (-3.6, 0.0),
    Completeness.LISTING: (-2.5, 0.0),
    Completeness.HANGING: (-3.4, 0.0),
}
"""For each kind of words, the log-odds that the turn is over, and how much the log-odds of the melody add: a logistic
regression over 132 pauses and 245 ends of 14 Kokoro voices (`bench/turns.py`). Where the melody said nothing or the
opposite it is left out: half of 81 pauses after words that can only go on sounded complete."""
CERTAIN: Final = 0.805
"""A request that could go on is answered at once if the melody's score is 0.974 or more."""
LIKELY: Final = 0.75
"""With these two, 6 % of the pauses of 400 to 800 ms are cut off in the same voices, and 4 % in 14 other voices."""

COLLECTING_MS: Final = {
    Expectation.DIGITS: 1_200,
    Expectation.SPELLING: 1_500,
    Expectation.EMAIL: 1_500,
    Expectation.NAME: 1_000,
    Expectation.LIST: 1_500,
}
"""The least silence that ends the answer to such a question, unless that is a request of its own ("never mind"). People
say numbers in groups, with up to a second in between."""

_REQUESTS: Final = (Completeness.COMPLETE, Completeness.EXTENDABLE)
LISTING_MS: Final = COLLECTING_MS[Expectation.DIGITS]
"""The same after digits or items that nobody asked for."""


@dataclass(frozen=True, slots=True)
class Silences:
    """How much silence ends a turn, in milliseconds."""

    short_ms: int
    """If it is over, as far as words and melody can tell."""
    middle_ms: int
    """If it is likely to be over."""
    long_ms: int
    """If it is likely to go on."""
    unfinished_ms: int
    """If it cannot be over: its last word needs another one."""

    def after(self, completeness: Completeness, melody: float, expects: Expectation = Expectation.NOTHING) -> int:
        """Returns how much silence ends a turn with such words and such a melody, the turn detector's score."""
        if completeness is Completeness.HANGING:
            return self.unfinished_ms
        probability = end_probability(completeness, melody)
        if completeness in _REQUESTS:
            # A request can be answered, however it sounds, and a late piece is joined to it.
            return self._after(max(probability, LIKELY))
        # What nobody foresaw is never certain to be whole, however it sounds.
        silence_ms = self._after(min(probability, LIKELY))
        return max(silence_ms, COLLECTING_MS.get(expects, LISTING_MS if completeness is Completeness.LISTING else 0))

    def _after(self, probability: float) -> int:
        if probability >= CERTAIN:
            return self.short_ms
        return self.middle_ms if probability >= LIKELY else self.long_ms


def needs_melody(completeness: Completeness) -> bool:
    """Whether the melody changes anything after such words."""
    return _WEIGHTS[completeness][1] > 0


def end_probability(completeness: Completeness, melody: float) -> float:
    """Returns the probability that the turn is over."""
    bias, weight = _WEIGHTS[completeness]
    score = min(max(melody, 0.005), 0.995)
    return 1 / (1 + exp(-bias - weight * log(score / (1 - score))))
