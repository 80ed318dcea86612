"""Free time is what the merged busy times leave over."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True, slots=True)
class Slot:
    start: datetime
    end: datetime

    @property
    def minutes(self) -> int:
        # In UTC, since Python subtracts two times of one zone by wall clock, without the hour of a DST change.
        return int((self.end.astimezone(UTC) - self.start.astimezone(UTC)).total_seconds() // 60)


def find_gaps(busy: Iterable[Slot], whole: Slot, shortest: timedelta) -> list[Slot]:
    """Returns the parts of the whole that no busy time covers, if they are long enough. Busy times may overlap."""
    gaps = []
    at = whole.start
    for each in sorted(busy, key=lambda slot: slot.start.astimezone(UTC)):
        if each.start.astimezone(UTC) > at.astimezone(UTC):
            gaps.append(Slot(at, min(each.start, whole.end, key=_in_utc)))
        at = max(at, each.end, key=_in_utc)
    gaps.append(Slot(at, whole.end))
    return [gap for gap in gaps if gap.end.astimezone(UTC) - gap.start.astimezone(UTC) >= shortest]


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)
