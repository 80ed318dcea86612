"""docs/simulators.md names every trigger and action, and its example is a valid script."""

import re
from pathlib import Path

import pytest

from antiphon.sim.actions import GEMINI_ACTIONS, OLLAMA_ACTIONS, OPENAI_ACTIONS
from antiphon.sim.script import Occasion, parse_script
from antiphon.sim.vendors.gemini import GeminiLive

PAGE = (Path(__file__).parents[3] / "docs" / "simulators.md").read_text()
NAMED = set(re.findall(r"[`{](\w+)", PAGE))


@pytest.mark.parametrize("name", sorted({*GEMINI_ACTIONS, *OPENAI_ACTIONS, *OLLAMA_ACTIONS, *map(str, Occasion)}))
def test_every_trigger_and_action_is_documented(name: str) -> None:
    assert name in NAMED


def test_every_field_of_an_action_is_documented() -> None:
    for name, action in {**GEMINI_ACTIONS, **OLLAMA_ACTIONS}.items():
        for field in action.__struct_fields__:
            assert re.search(rf"`{name}: {{[^}}]*\b{field}\b", PAGE), f"{name}: {field}"


def test_the_example_is_a_valid_script() -> None:
    (script,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert len(parse_script(script, GeminiLive.vocabulary)) == 3
