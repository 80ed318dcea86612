from pathlib import Path
from typing import Any

import pytest
import yaml

from antiphon.sentences.matching import Matcher
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.templates import parse
from antiphon.toolkit.calendar_create_event import handler

SENTENCES = yaml.safe_load((Path(handler.__file__).parent / "sentences.yaml").read_text())


def hear(said: str) -> dict[str, Any] | None:
    match = Matcher(parse("it", SENTENCES).templates).match(Phrase(said), {"it"})
    return match.args if match else None


@pytest.mark.parametrize(
    ("said", "title", "attendees", "start", "end"),
    [
        (
            "schedule a meeting with ann@example.org tomorrow at three for an hour",
            "Meeting",
            ["ann@example.org"],
            "tomorrow at three",
            "an hour after tomorrow at three",
        ),
        (
            "book a meeting with Bob@example.com on january 5th at 10 am",
            "Meeting",
            ["Bob@example.com"],
            "january 5th at 10 am",
            "1 hour after january 5th at 10 am",
        ),
        (
            "set up a call at four on friday",
            "Meeting",
            ["me"],
            "friday at four",
            "1 hour after friday at four",
        ),
        (
            "create an event called team lunch with ann@example.org next tuesday at noon for two hours",
            "team lunch",
            ["ann@example.org"],
            "next tuesday at noon",
            "two hours after next tuesday at noon",
        ),
        (
            "put dentist on my calendar friday at ten for half an hour",
            "dentist",
            ["me"],
            "friday at ten",
            "half an hour after friday at ten",
        ),
        (
            "add lunch with mom to my calendar for tomorrow at noon",
            "lunch with mom",
            ["me"],
            "tomorrow at noon",
            "1 hour after tomorrow at noon",
        ),
    ],
)
def test_people_ask_for_events_in_many_ways(said: str, title: str, attendees: list[str], start: str, end: str) -> None:
    assert hear(said) == {"title": title, "attendees": attendees, "start_time": start, "end_time": end}


@pytest.mark.parametrize(
    "said", ["schedule a meeting", "schedule a meeting with ann@example.org", "put it on my calendar"]
)
def test_a_request_without_a_time_is_not_completed_by_guessing(said: str) -> None:
    assert hear(said) is None
