"""The audit."""

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final

from antiphon.storage.base import AuditLine

AUDIT_LINES_KEPT: Final = 100_000


class MemoryAuditStore:
    def __init__(self, lines_kept: int = AUDIT_LINES_KEPT) -> None:
        self._lines: deque[AuditLine] = deque(maxlen=lines_kept)
        self._appended = 0

    async def append(self, lines: Sequence[AuditLine]) -> None:
        self._lines.extend(lines)
        self._appended += len(lines)

    async def read(self, since_ms: int = 0, *, after: int = 0, limit: int = 1000) -> Sequence[tuple[int, AuditLine]]:
        forgotten = self._appended - len(self._lines)
        skipped = max(after - forgotten, 0)
        numbered = enumerate(islice(self._lines, skipped, None), start=forgotten + skipped + 1)
        return list(islice(((number, line) for number, line in numbered if line.ts_ms >= since_ms), limit))
