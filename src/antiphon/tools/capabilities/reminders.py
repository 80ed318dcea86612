"""The reminders, timers and alarms of a session's user."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct

from antiphon.words.repeats import Repeat
from antiphon.words.schedules import name_timer, speak_left, speak_moment
from antiphon.words.speech import speak_time
from antiphon.words.tasks import speak_task


class Kind(StrEnum):
    REMINDER = "reminder"
    TIMER = "timer"
    ALARM = "alarm"


class Reminder(Struct, frozen=True):
    id: str
    kind: Kind
    message: str
    """What the user wants to be told, in the user's words; empty for a timer or an alarm without a label."""
    due: datetime
    """The next time it rings, in the user's zone."""
    created: datetime
    repeat: Repeat | None = None

    @property
    def name(self) -> str:
        """What it is called when it is told to the user: "pasta timer", "7 AM alarm", "reminder to stand up"."""
        match self.kind:
            case Kind.TIMER:
                return name_timer(self.message, self.due.astimezone(UTC) - self.created.astimezone(UTC))
            case Kind.ALARM:
                return f"{self.message or speak_time(self.due)} alarm"
            case Kind.REMINDER:
                return f"reminder {speak_task(self.message)}"

    def describe(self, now: datetime) -> str:
        """Tells it with its time: "a pasta timer with 3 minutes left", "a reminder to stand up at 9 AM"."""
        told = self._tell(now)
        return f"{'an' if told[0] in 'aeiou8' else 'a'} {told}"

    def _tell(self, now: datetime) -> str:
        if self.kind is Kind.TIMER:
            return f"{self.name} with {speak_left(self.remaining(now))} left"
        if self.kind is Kind.ALARM:
            return f"{self.message} alarm {self.speak_when(now)}".strip()
        return f"{self.name} {self.speak_when(now)}"

    def speak_when(self, now: datetime) -> str:
        """Tells when it rings: "at 3 PM", "every weekday at 9 AM"."""
        return self.repeat.speak() if self.repeat is not None else f"at {speak_moment(self.due, now)}"

    def remaining(self, now: datetime) -> timedelta:
        return max(timedelta(0), self.due.astimezone(UTC) - now.astimezone(UTC))

    def data(self, now: datetime) -> dict[str, Any]:
        """What the caller of a tool gets."""
        return {
            "id": self.id,
            "kind": self.kind.value,
            "message": self.message,
            "due": self.due.isoformat(timespec="seconds"),
            "repeat": None if self.repeat is None else self.repeat.speak(),
            "remaining_s": round(self.remaining(now).total_seconds()),
        }


class DueReminder(Struct, frozen=True):
    """A reminder that rings, as a client is told of it."""

    id: str
    """It is different each time that a reminder rings."""
    kind: Kind
    message: str
    """The text to show, said to the user."""
    due: int
    """Unix time in milliseconds."""
    missed: bool
    """Whether the time had passed when the client could be told."""


class Reminders(Protocol):
    """The reminders, timers and alarms of a session's user."""

    async def add(self, kind: Kind, message: str, due: datetime, repeat: Repeat | None = None) -> Reminder:
        """Stores it. It rings, also after a restart. Raises `ToolError` CONFLICT if there are too many already."""
        ...

    async def list(self) -> Sequence[Reminder]:
        """Returns those that are still to ring, the next one first."""
        ...

    async def cancel(self, ids: Collection[str]) -> Sequence[Reminder]:
        """Deletes them, and returns those that existed."""
        ...

    async def last_ring(self, within: timedelta) -> Reminder | None:
        """Returns what rang last, if that is not longer ago."""
        ...
