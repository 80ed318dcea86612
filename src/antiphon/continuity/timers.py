"""The timers of one object, by what they are for."""

import asyncio
from collections.abc import Callable
from enum import StrEnum


class Timer(StrEnum):
    DEADLINE = "deadline"
    """The announced end of a connection."""
    LOOK_AGAIN = "look_again"
    """The next look whether the user has stopped speaking."""
    STALL = "stall"
    """The end of the time in which an answer must go on."""
    DELAY = "delay"
    """The user has waited so long that something is said."""
    GIVE_UP = "give_up"
    """The user has waited so long that the turn is given up."""


class Timers:
    def __init__(self) -> None:
        self._running: dict[Timer, asyncio.TimerHandle] = {}

    def start(self, timer: Timer, seconds: float, act: Callable[[], None]) -> None:
        """Starts a timer, in place of the one of this name if that is running."""
        self.stop(timer)
        self._running[timer] = asyncio.get_running_loop().call_later(seconds, act)

    def stop(self, *timers: Timer) -> None:
        for timer in timers:
            if timer in self._running:
                self._running.pop(timer).cancel()
