"""Whatever clients of other protocols send, it is read or refused with a reason, and never fails otherwise."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon.gateway.api_errors import ApiError
from antiphon.gateway.chat_request import read_chat_request
from antiphon.gateway.gemini_input import read_audio, read_setup, read_turns
from antiphon.gateway.gemini_messages import GeminiError, closing, decode, to_json_schema
from antiphon.gateway.transcription import decode_file

# A busy machine is no reason to fail.
fuzz = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
NAMES = st.sampled_from(
    [
        *("role", "content", "type", "text", "tool_calls", "tool_call_id", "id", "function", "name", "arguments"),
        *("user", "assistant", "tool", "system", "model", "parts", "turns", "inlineData", "mime_type", "data"),
        *("functionCall", "function_response", "args", "response", "properties", "items", "anyOf", "nullable"),
    ]
) | st.text(max_size=8)
JSON = st.recursive(
    SCALARS | st.sampled_from(["user", "assistant", "tool", "model", "text", "function", "OBJECT", "AAAA"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=25,
)


def refusal_of(read: Callable[[], object]) -> ApiError | GeminiError | None:
    """Returns the error with which something is refused. Any other error is raised."""
    try:
        read()
    except (ApiError, GeminiError) as error:
        return error
    return None


@fuzz
@given(st.lists(st.dictionaries(NAMES, JSON, max_size=5), max_size=5), st.dictionaries(NAMES, JSON, max_size=3))
def test_a_chat_request_is_read_or_refused(messages: list[Any], more: dict[str, Any]) -> None:
    body = json.dumps({"model": "antiphon", "messages": messages, **more}).encode()
    error = refusal_of(lambda: read_chat_request(body))
    if isinstance(error, ApiError):
        assert error.status == 400
        assert error.response().body
    else:
        request = read_chat_request(body)
        assert request.messages
        assert request.turn_key != request.previous_turn_key


@fuzz
@given(st.binary(max_size=200))
def test_bytes_are_no_chat_request(body: bytes) -> None:
    with pytest.raises(ApiError):
        read_chat_request(body)


@fuzz
@given(
    st.sampled_from(["setup", "clientContent", "client_content", "realtimeInput", "toolResponse", "contextUpdate"]),
    st.dictionaries(NAMES, JSON, max_size=5),
)
def test_a_message_of_gemini_is_read_or_refused(kind: str, fields: dict[str, Any]) -> None:
    frame = json.dumps({kind: {"model": "models/m", **fields} if kind == "setup" else fields})
    error = refusal_of(lambda: read_all(frame))
    if isinstance(error, GeminiError):
        assert error.close.code in (1007, 1008)
        assert len(error.close.reason.encode()) <= 123


def read_all(frame: str) -> None:
    message = decode(frame)
    if message.setup is not None:
        read_setup(message.setup, has_voice=True)
    if message.client_content is not None:
        read_turns(message.client_content.turns or ())
    if message.realtime_input is not None and message.realtime_input.audio is not None:
        read_audio(message.realtime_input.audio)


@fuzz
@given(st.binary(max_size=100) | st.text(max_size=100))
def test_any_frame_of_gemini_is_read_or_refused(frame: bytes | str) -> None:
    error = refusal_of(lambda: decode(frame))
    assert error is None or (isinstance(error, GeminiError) and error.close.code == 1007)


@fuzz
@given(st.dictionaries(NAMES, JSON, max_size=6))
def test_any_schema_of_google_is_converted(schema: dict[str, Any]) -> None:
    assert isinstance(to_json_schema(schema), dict)


@fuzz
@given(st.text())
def test_a_close_reason_always_fits(reason: str) -> None:
    assert len(closing(1007, reason.encode("utf-8", "replace").decode()).reason.encode()) <= 123


@fuzz
@given(st.binary(max_size=400), st.booleans())
def test_any_file_is_read_or_refused(data: bytes, has_header: bool) -> None:
    file = b"RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00" + data if has_header else data
    error = refusal_of(lambda: decode_file(file))
    assert error is None or (isinstance(error, ApiError) and error.status in (400, 413))
