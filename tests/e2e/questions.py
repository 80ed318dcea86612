"""Questions whose answers can be checked against the tool's result and against the facts."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from time import time
from typing import Any, Final

import psutil

from antiphon.client.speaking import Exchange

Check = Callable[[Any, str], bool]
"""Judges the tool's data and the text of the answer."""


@dataclass(frozen=True)
class Question:
    text: str
    tool: str
    is_right: Check

    def is_answered_by(self, exchange: Exchange) -> bool:
        """Whether the right tool was called, its result is true, and the answer says it."""
        if [call.name for call in exchange.tools] != [self.tool] or not exchange.results[0].ok:
            return False
        return self.is_right(exchange.results[0].result, exchange.response)


def _today() -> date:
    return datetime.now().astimezone().date()


def _is_now(data: Any, answer: str) -> bool:
    there = datetime.fromisoformat(data["iso"])
    hour = f"{there:%I}".lstrip("0") + (f":{there:%M}" if there.minute else "")
    # A provider's model is given the data only, which has 24 hours.
    is_told = any(told in answer for told in (f"{hour} {there:%p}", f"{there:%H:%M}"))
    return is_told and abs(there.timestamp() - time()) < 60


def _is_number(expected: int) -> Check:
    return lambda data, answer: data["result"] == expected and answer.rstrip(". ").endswith(f" {expected}")


def _is_day(days: int) -> Check:
    def check(data: Any, answer: str) -> bool:
        day = _today() + timedelta(days)
        return data["date"] == day.isoformat() and f"{day:%A, %B} {day.day}" in answer

    return check


def _is_until_christmas(data: Any, answer: str) -> bool:
    today = _today()
    christmas = date(today.year + (today > date(today.year, 12, 25)), 12, 25)
    days = (christmas - today).days
    return data["days"] == days and (days < 2 or f" {days} days" in answer)


def _is_weekday(data: Any, answer: str) -> bool:
    day = date.fromisoformat(data["date"])
    return (day.month, day.day) == (7, 4) and f"{day:%A}" == data["weekday"] and data["weekday"] in answer


def _is_uptime(data: Any, answer: str) -> bool:
    return abs(time() - psutil.boot_time() - data["uptime_seconds"]) < 60 and data["uptime"] in answer


TOKYO: Final = Question(
    "What time is it in Tokyo?", "get_current_time", lambda data, answer: "Tokyo" in answer and _is_now(data, answer)
)
PRODUCT: Final = Question("What is seventeen times six?", "calculate", _is_number(102))
JOKE: Final = Question("Tell me a joke.", "tell_joke", lambda data, answer: data["joke"] == answer.strip())
CHRISTMAS: Final = Question("How many days until Christmas?", "time_until", _is_until_christmas)
WEEKDAY: Final = Question("What day of the week is July the fourth?", "get_day_of_week", _is_weekday)
PERCENT: Final = Question("What is fifteen percent of eighty?", "calculate", _is_number(12))
TODAY: Final = Question("What is today's date?", "get_current_date", _is_day(0))
LATER: Final = Question("What is the date in three weeks?", "calculate_date", _is_day(21))
UPTIME: Final = Question("How long has this computer been running?", "get_uptime", _is_uptime)
ROOT: Final = Question("What is the square root of sixteen?", "calculate", _is_number(4))

QUESTIONS: Final = (TOKYO, PRODUCT, JOKE, CHRISTMAS, WEEKDAY, PERCENT, TODAY, LATER, UPTIME, ROOT)
