"""How `session.update` and `response.create` change the settings of a session."""

from typing import Any

import msgspec
import pytest

from antiphon.gateway.realtime_events import RealtimeError, ResponseSettings, SessionSettings
from antiphon.gateway.realtime_settings import RealtimeSettings

FRESH = RealtimeSettings(model="m")


def update(**fields: Any) -> RealtimeSettings:
    return FRESH.updated(msgspec.convert({"type": "realtime", **fields}, SessionSettings))


def test_what_an_update_does_not_name_stays() -> None:
    changed = update(instructions="Be kind.", audio={"output": {"voice": "marin", "speed": 1.2}})
    assert (changed.instructions, changed.voice, changed.speed) == ("Be kind.", "marin", 1.2)
    again = changed.updated(SessionSettings(type="realtime"))
    assert again == changed


def test_turn_detection_can_be_switched_off_and_on() -> None:
    off = update(audio={"input": {"turn_detection": None}})
    assert off.shown(id="s", expires_at=0)["audio"]["input"]["turn_detection"] is None
    on = update(audio={"input": {"turn_detection": {"type": "semantic_vad", "eagerness": "low"}}})
    shown = on.shown(id="s", expires_at=0)["audio"]["input"]["turn_detection"]
    assert shown == {
        "type": "semantic_vad",
        "eagerness": "low",
        "create_response": True,
        "interrupt_response": True,
    }


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"output_modalities": ["audio", "text"]}, "session.output_modalities"),
        ({"tool_choice": "required"}, "session.tool_choice"),
        ({"tools": [{"type": "mcp", "server_label": "x"}]}, "session.tools[0].type"),
        ({"prompt": {"id": "p"}}, "session.prompt"),
    ],
)
def test_what_cannot_be_done_is_refused(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(RealtimeError) as refused:
        update(**fields)
    assert refused.value.param == param


@pytest.mark.parametrize(
    "fields", [{"conversation": "none"}, {"input": [{"type": "message"}]}, {"prompt": {"id": "p"}}]
)
def test_a_response_outside_of_the_conversation_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(RealtimeError):
        FRESH.for_response(msgspec.convert(fields, ResponseSettings))
