"""What was used of the limits, in memory."""

import time
from collections import deque
from collections.abc import Callable, Mapping


class MemoryLimitStore:
    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._calls: dict[tuple[str, str], tuple[deque[float], float]] = {}
        """The times of the newest calls, and the length of the window."""
        self._full_at_s: dict[str, float] = {}

    async def admit(self, user: str, tool: str, *, calls: int, window_s: float) -> float:
        now_s = self._monotonic()
        made = self._calls.setdefault((user, tool), (deque(), window_s))[0]
        while made and made[0] <= now_s - window_s:
            made.popleft()
        if len(made) >= calls:
            return made[-calls] + window_s - now_s
        made.append(now_s)
        return 0.0

    async def use(self, uses_s: Mapping[str, float]) -> Mapping[str, float]:
        now_s = self._monotonic()
        for key, amount_s in uses_s.items():
            self._full_at_s[key] = max(self._full_at_s.get(key, now_s), now_s) + amount_s
        return {key: self._full_at_s[key] - now_s for key in uses_s}

    async def sweep(self) -> int:
        now_s = self._monotonic()
        full = [key for key, full_at_s in self._full_at_s.items() if full_at_s <= now_s]
        unused = [key for key, (made, window_s) in self._calls.items() if not made or made[-1] <= now_s - window_s]
        for key in full:
            del self._full_at_s[key]
        for pair in unused:
            del self._calls[pair]
        return len(full) + len(unused)
