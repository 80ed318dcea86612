"""The interface of the store of what users and addresses have used of their limits, in all processes together.

Times are durations, since the clocks of two machines differ: a store counts on one clock for all of them.
"""

from collections.abc import Mapping
from typing import Protocol


class LimitStore(Protocol):
    async def admit(self, user: str, tool: str, *, calls: int, window_s: float) -> float:
        """Returns 0 if the user may call the tool now, and counts the call. Otherwise the seconds until one may.

        At most `calls` are admitted within any window, however many processes ask at the same time.
        """
        ...

    async def use(self, uses_s: Mapping[str, float]) -> Mapping[str, float]:
        """Takes from buckets, and returns after how many seconds each is full again.

        An amount is the number of seconds that the bucket needs to fill up by it.
        """
        ...

    async def sweep(self) -> int:
        """Deletes what does not limit anybody any more, and returns how many records."""
        ...
