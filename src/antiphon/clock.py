"""Time as an argument: whoever needs the time is given a `Clock`."""

import time
from datetime import datetime, tzinfo
from typing import Protocol


class Clock(Protocol):
    def now(self, zone: tzinfo) -> datetime:
        """The time of day in a zone, aware."""
        ...

    def now_ms(self) -> int:
        """Unix time in milliseconds, for what is stored and compared between machines."""
        ...

    def monotonic(self) -> float:
        """Seconds that only ever grow, for measuring how long something took."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self, zone: tzinfo) -> datetime:
        return datetime.now(zone)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    # The bare built-in: the gate reads it twice a call.
    monotonic = staticmethod(time.perf_counter)
