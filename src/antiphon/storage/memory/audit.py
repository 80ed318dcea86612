"""The audit."""

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final

from antiphon.storage.base import AuditLine

AUDIT_LINES_KEPT: Final = 100_000


class MemoryAuditStore:
    def __init__(self, lines_kept: int = AUDIT_LINES_KEPT) -> None:
        self._lines: deque[tuple[int, AuditLine]] = deque(maxlen=lines_kept)
        self._last = 0

    async def append(self, lines: Sequence[AuditLine]) -> None:
        self._lines.extend(enumerate(lines, self._last + 1))
        self._last += len(lines)

    async def read(self, since_ms: int = 0, *, after: int = 0, limit: int = 1000) -> Sequence[tuple[int, AuditLine]]:
        wanted = ((number, line) for number, line in self._lines if number > after and line.ts_ms >= since_ms)
        return list(islice(wanted, limit))

    async def delete_before(self, at_ms: int) -> int:
        kept = [numbered for numbered in self._lines if numbered[1].ts_ms >= at_ms]
        deleted = len(self._lines) - len(kept)
        self._lines = deque(kept, self._lines.maxlen)
        return deleted
