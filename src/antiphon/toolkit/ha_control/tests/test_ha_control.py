"""The policy of the tool. What it does is tested with a home in tests/unit/services/home."""

from pathlib import Path
from typing import Any

import pytest

from antiphon.authoring.testing import load_module

handler = load_module(Path(__file__).parents[1])


def make_args(action: str, **args: Any) -> dict[str, Any]:
    return {"action": action, "security": False, **args}


@pytest.mark.parametrize(
    ("action", "args"),
    [
        ("lock", {"entity": "anything"}),
        ("unlock", {"area": "hall"}),
        ("arm", {"entity": "house"}),
        ("disarm", {"entity": "house"}),
        ("open", {"entity": "Garage"}),
        ("close", {"entity": "the back-gate"}),
        ("open", {"entity": "cover.garage_door"}),
        ("on", {"entity": "movie scene"}),
        ("on", {"entity": "switch.alarm_siren"}),
        ("on", {"area": "garage"}),
        ("open", {"ids": ["cover.garage_door"]}),
        ("open", {"entity": "bertha", "security": True}),
    ],
)
def test_words_about_the_security_of_a_house_need_a_yes(action: str, args: dict[str, Any]) -> None:
    assert handler.needs_confirmation(make_args(action, **args), False)


@pytest.mark.parametrize(
    ("action", "args"),
    [
        ("on", {"entity": "kitchen light"}),
        ("on", {"entity": "garage light"}),
        ("off", {"entity": "lights", "area": "garage"}),
        ("open", {"entity": "blinds"}),
        ("set", {"entity": "thermostat"}),
        ("off", {"entity": "everything", "area": "kitchen"}),
    ],
)
def test_everyday_changes_need_no_yes_unless_strangers_had_a_say(action: str, args: dict[str, Any]) -> None:
    assert not handler.needs_confirmation(make_args(action, **args), False)
    assert handler.needs_confirmation(make_args(action, **args), True)
