from pathlib import Path
from typing import Any

import pytest
import yaml

from antiphon.sentences.matching import Matcher
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.templates import parse
from antiphon.toolkit.calendar_delete_event import handler

SENTENCES = yaml.safe_load((Path(handler.__file__).parent / "sentences.yaml").read_text())


def hear(said: str) -> dict[str, Any] | None:
    match = Matcher(parse("it", SENTENCES).templates).match(Phrase(said), {"it"})
    return match.args if match else None


@pytest.mark.parametrize(
    ("said", "event"),
    [
        ("cancel the meeting with ann tomorrow", "with ann tomorrow"),
        ("cancel my appointment on friday", "on friday"),
        ("delete my dentist appointment", "dentist"),
        ("delete the standup meeting on friday", "standup friday"),
        ("call off the budget meeting tomorrow", "budget tomorrow"),
        ("remove gym from my calendar", "gym"),
    ],
)
def test_people_name_events_in_many_ways(said: str, event: str) -> None:
    assert hear(said) == {"event": event}


def test_all_of_a_series_must_be_asked_for() -> None:
    assert hear("cancel all my yoga appointments") == {"event": "yoga", "whole_series": True}
