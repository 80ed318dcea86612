"""How long to wait before the next try: longer each time, and for each client a little different."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

STEADY_S: Final = 10.0
"""A connection that held this long was a good one, so the next loss starts from the shortest wait again."""


@dataclass(frozen=True, slots=True)
class Backoff:
    first_s: float = 0.5
    longest_s: float = 30.0
    jitter: Callable[[], float] = random.random
    """From 0 to 1: the clients of a server that restarts must not all come back in the same moment."""

    def delay_s(self, attempt: int) -> float:
        """Before the `attempt`th try, which counts from 1: between the half and the whole of what doubles each time."""
        # A doubling beyond the 32nd changes nothing but the size of the number.
        whole_s = min(self.longest_s, self.first_s * 2.0 ** min(attempt - 1, 32))
        return whole_s * (0.5 + 0.5 * self.jitter())
