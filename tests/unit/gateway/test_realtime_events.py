"""What is said about a client's event that is wrong."""

import json
from typing import Any

import pytest

from antiphon.gateway.realtime_events import AudioAppend, RealtimeError, decode, event_id_of


def session(**fields: Any) -> str:
    return json.dumps({"type": "session.update", "session": {"type": "realtime", **fields}})


@pytest.mark.parametrize(
    ("frame", "code", "param"),
    [
        ("{", "invalid_json", None),
        ("[]", "invalid_type", None),
        ("{}", "missing_required_parameter", "type"),
        ('{"type": "nope"}', "invalid_value", "type"),
        ('{"type": "session.update"}', "missing_required_parameter", "session"),
        ('{"type": "session.update", "session": {}}', "missing_required_parameter", "session.type"),
        (session(voice="alloy"), "unknown_parameter", "session.voice"),
        (session(audio={"input": {"turn_detection": {"type": "x"}}}), "invalid_value", None),
        (session(output_modalities=["video"]), "invalid_value", "session.output_modalities[0]"),
        (session(instructions="x" * 20_000), "invalid_value", "session.instructions"),
        (session(audio={"output": {"speed": 9}}), "invalid_value", "session.audio.output.speed"),
        ('{"type": "input_audio_buffer.append", "audio": "!"}', "invalid_value", "audio"),
        ('{"type": "input_audio_buffer.append"}', "missing_required_parameter", "audio"),
        ('{"type": "response.cancel", "extra": 1}', "unknown_parameter", "extra"),
    ],
)
def test_a_wrong_event_is_explained_by_a_code_and_the_parameter(frame: str, code: str, param: str | None) -> None:
    with pytest.raises(RealtimeError) as refused:
        decode(frame)
    assert refused.value.error_code == code
    assert param is None or refused.value.param == param
    assert str(refused.value).endswith(".")


def test_the_id_of_a_wrong_event_is_known() -> None:
    assert event_id_of('{"type": "nope", "event_id": "mine"}') == "mine"
    assert event_id_of('{"event_id": 7}') is None
    assert event_id_of("{") is None


def test_audio_is_decoded() -> None:
    assert decode('{"type": "input_audio_buffer.append", "audio": "AAEC"}') == AudioAppend(audio=b"\x00\x01\x02")


def test_a_deeply_nested_event_is_refused() -> None:
    with pytest.raises(RealtimeError, match="not JSON"):
        decode('{"type": "response.create", "response": {"reasoning": ' + "[" * 100_000)
