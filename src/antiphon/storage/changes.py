"""How a process learns at once that another one has changed something."""

import asyncio
from collections import defaultdict
from collections.abc import Collection
from enum import StrEnum
from typing import Final, Protocol


class Topic(StrEnum):
    """What may have changed."""

    COMMANDS = "commands"
    """Commands for sessions, or their results."""
    CONVERSATIONS = "conversations"
    REMINDERS = "reminders"
    PEOPLE = "people"
    """Access tokens and blocks."""


ALL_TOPICS: Final = frozenset(Topic)


class Changes(Protocol):
    """Wakes those who wait for a change, in every process that has the database open.

    It is only a hint and may be lost, so whoever waits must also look from time to time.
    """

    def subscribe(self, topic: Topic) -> asyncio.Event:
        """Returns an event that is set after each change. Whoever waits for it clears it."""
        ...

    def unsubscribe(self, event: asyncio.Event) -> None:
        """The event is not set any more."""
        ...

    def announce(self, topic: Topic) -> None:
        """Wakes the others. To be called after the change was committed. It returns at once and never fails."""
        ...

    async def aclose(self) -> None:
        """Sends what was announced."""
        ...


class LocalChanges:
    """Wakes those in this process only. Others notice a change when they look."""

    def __init__(self) -> None:
        self._events: defaultdict[Topic, list[asyncio.Event]] = defaultdict(list)

    def subscribe(self, topic: Topic) -> asyncio.Event:
        event = asyncio.Event()
        self._events[topic].append(event)
        return event

    def unsubscribe(self, event: asyncio.Event) -> None:
        for events in self._events.values():
            if event in events:
                events.remove(event)

    def announce(self, topic: Topic) -> None:
        self.wake([topic])

    def wake(self, topics: Collection[Topic]) -> None:
        for topic in topics:
            for event in self._events[topic]:
                event.set()

    async def aclose(self) -> None:
        pass
