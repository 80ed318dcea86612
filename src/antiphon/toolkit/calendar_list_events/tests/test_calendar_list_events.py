from pathlib import Path
from typing import Any

import pytest
import yaml

from antiphon.sentences.matching import Matcher
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.templates import parse
from antiphon.toolkit.calendar_list_events import handler

SENTENCES = yaml.safe_load((Path(handler.__file__).parent / "sentences.yaml").read_text())


def hear(said: str) -> dict[str, Any] | None:
    match = Matcher(parse("it", SENTENCES).templates).match(Phrase(said), {"it"})
    return match.args if match else None


@pytest.mark.parametrize(
    ("said", "range"),
    [
        ("what's on my calendar tomorrow", "tomorrow"),
        ("whats on my schedule for friday", "friday"),
        ("what do I have on my agenda this week", "this week"),
        ("do i have any meetings on friday", "friday"),
        ("do I have an appointment tomorrow", "tomorrow"),
        ("is there anything on my calendar for the weekend", "the weekend"),
        ("do i have anything planned tonight", "tonight"),
        ("which meetings do I have next week", "next week"),
        ("show me my appointments for march", "march"),
        ("read me my agenda for today", "today"),
        ("what does my schedule look like tomorrow", "tomorrow"),
        ("what's on my calendar", None),
        ("show my calendar", None),
        ("list all my events", None),
    ],
)
def test_people_ask_for_their_events_in_many_ways(said: str, range: str | None) -> None:
    assert hear(said) == ({} if range is None else {"range": range})


@pytest.mark.parametrize(
    "said", ["what's my next meeting", "when is my next appointment", "what is coming up on my calendar"]
)
def test_the_next_event_is_looked_for_a_month_ahead(said: str) -> None:
    assert hear(said) == {"range": "the next 31 days"}
