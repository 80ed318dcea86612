"""How a process learns at once that another one has changed something."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from enum import StrEnum
from typing import Final, Protocol

from antiphon.storage.base import StorageError
from antiphon.telemetry.log import get_logger

log = get_logger(__name__)


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

    def subscribe(self, *topics: Topic) -> asyncio.Event:
        """Returns an event that is set after each change of one of these kinds. `wait_for_change` waits for it."""
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

    def subscribe(self, *topics: Topic) -> asyncio.Event:
        event = asyncio.Event()
        for topic in topics:
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


async def wait_for_change(event: asyncio.Event, timeout_s: float) -> None:
    """Waits until something has changed, or until it is time to look all the same."""
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
    event.clear()


async def repeat(work: Callable[[], Awaitable[None]], pause: Callable[[], Awaitable[None]], failure: str) -> None:
    """Does the work after each pause, until it is cancelled. A failure is logged under this name, and the work goes on;
    an outage of the database is logged once."""
    is_down = False
    while True:
        await pause()
        try:
            await work()
            is_down = False
        except StorageError as error:
            if not is_down:
                log.warning(failure, error=str(error))
            is_down = True
        except Exception:
            log.exception(failure)
