"""Time as an argument: code that needs the time takes a `Clock`."""

import time
from datetime import datetime, tzinfo
from typing import Protocol


class Clock(Protocol):
    def now(self, zone: tzinfo) -> datetime:
        """Returns the aware date and time in a zone."""
        ...

    def now_ms(self) -> int:
        """Returns Unix time in milliseconds, for times that are stored or compared between machines."""
        ...

    def monotonic(self) -> float:
        """Returns monotonic seconds, for measuring durations."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self, zone: tzinfo) -> datetime:
        return datetime.now(zone)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    # The built-in itself, since the gate reads it twice per call.
    monotonic = staticmethod(time.perf_counter)
