"""Measures how much time the machine's host takes from its cores."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from time import monotonic_ns
from typing import Final

EVERY_S: Final = 0.1
_STAT: Final = Path("/proc/stat")
_STEAL: Final = 8
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


class Host:
    """Watches all cores of this process and of the server. The system counts in hundredths of a second."""

    def __init__(self, cores: Sequence[int]) -> None:
        self._names = {f"cpu{core}" for core in cores}
        self._marks: list[tuple[int, int]] = []
        """Times, each with the total that was taken until then."""

    async def watch(self, seconds: float) -> None:
        end_ns = monotonic_ns() + int(seconds * 1e9)
        while (now_ns := monotonic_ns()) < end_ns:
            self._marks.append((now_ns, self._read()))
            await asyncio.sleep(EVERY_S)

    @property
    def stolen(self) -> float:
        """Returns the share of the cores' time that was taken."""
        if len(self._marks) < 2:
            return 0.0
        (begin_ns, before), (end_ns, after) = self._marks[0], self._marks[-1]
        return (after - before) / _TICKS_PER_S / len(self._names) / ((end_ns - begin_ns) / 1e9)

    def disturbed(self, from_ns: int, to_ns: int) -> bool:
        """Returns whether any time was taken in this interval, to a tenth of a second."""
        inside = [taken for at_ns, taken in self._marks if from_ns - EVERY_S * 1e9 <= at_ns <= to_ns + EVERY_S * 1e9]
        return bool(inside) and inside[-1] > inside[0]

    def _read(self) -> int:
        lines = (line.split() for line in _STAT.read_text().splitlines() if line.startswith("cpu"))
        return sum(int(fields[_STEAL]) for fields in lines if fields[0] in self._names)
