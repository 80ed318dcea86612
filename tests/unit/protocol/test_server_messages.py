"""What a client that was written from the first version of the wire relies on, and what was added beside it."""

import json
from typing import Any

import pytest

from antiphon.protocol.client_messages import Mode, Role
from antiphon.protocol.codec import decode_server, encode
from antiphon.protocol.errors import ErrorCode, ProtocolError
from antiphon.protocol.server_messages import (
    SERVER_MESSAGES,
    Audio,
    ConfirmationRequest,
    ConfirmationResolved,
    EndVoiceSession,
    Energy,
    EnergyLevels,
    EnergyReason,
    Error,
    Flyout,
    FlyoutType,
    GenerationComplete,
    GoAway,
    History,
    HistoryTurn,
    Hold,
    Image,
    Notice,
    NoticeKind,
    Outcome,
    Pong,
    Queued,
    QueuedText,
    Recording,
    RecordingChoice,
    Reminder,
    Response,
    ResponseChunk,
    Resume,
    ServerMessage,
    Session,
    SettingsUpdated,
    State,
    StateChanged,
    Timeout,
    ToolCall,
    ToolResult,
    Transcript,
    TurnMetrics,
    VoiceSessionStart,
)

FIRST_VERSION: list[tuple[ServerMessage, dict[str, Any]]] = [
    (StateChanged(State.LISTENING), {"type": "state", "state": "listening"}),
    (Transcript("What's the time?", True), {"type": "transcript", "text": "What's the time?", "is_final": True}),
    (ResponseChunk("It's", True), {"type": "response_chunk", "text": "It's", "is_first": True}),
    (Response("It's noon."), {"type": "response", "text": "It's noon."}),
    (Audio("UklGRg=="), {"type": "audio", "data": "UklGRg=="}),
    (ToolCall("get_time", {"zone": "UTC"}), {"type": "tool_call", "name": "get_time", "args": {"zone": "UTC"}}),
    (ToolResult("get_time", {"hour": 12}), {"type": "tool_result", "name": "get_time", "result": {"hour": 12}}),
    (
        Flyout(FlyoutType.BROWSER, "https://example.com"),
        {"type": "flyout", "flyout_type": "browser", "content": "https://example.com"},
    ),
    (Error("The model is away."), {"type": "error", "message": "The model is away."}),
]

ADDED: list[tuple[ServerMessage, str, set[str]]] = [
    (
        Session("s", "c", "h", False, Mode.VOICE, "1.0.abc", 7200, EnergyLevels(3, 2)),
        "session",
        {"session_id", "conversation_id", "resume", "resumed", "mode", "tools_version", "energy", "expires_in_s"},
    ),
    (GoAway(5000, "restart", "h"), "go_away", {"time_left_ms", "reason", "resume"}),
    (GenerationComplete(1), "generation_complete", {"turn"}),
    (Hold(1), "hold", {"turn"}),
    (Resume(1), "resume", {"turn"}),
    (VoiceSessionStart("s", None), "voice_session_start", {"session_id", "pending_request"}),
    (EndVoiceSession("user_request", None), "end_voice_session", {"reason", "final_message"}),
    (Timeout(1, 30, "Bye."), "timeout", {"until", "duration_seconds", "message"}),
    (
        ConfirmationRequest("t", "tool", {"a": 1}, "It does this.", 1),
        "confirmation_request",
        {"confirmation_token", "tool", "args", "preview", "expires_at", "id", "title"},
    ),
    (ConfirmationResolved("t", Outcome.DENIED), "confirmation_resolved", {"confirmation_token", "outcome"}),
    (
        Energy(Mode.VOICE, 2, 3, 3, EnergyReason.RATE_LIMIT_EXCEEDED, "m", True, False),
        "energy",
        {"mode", "level", "max", "previous", "reason", "model", "resumable", "requires_fallback", "again_in_s"},
    ),
    (Notice(NoticeKind.INFO, "Reconnected."), "notice", {"kind", "text", "code", "duration_ms"}),
    (
        TurnMetrics(1),
        "turn_metrics",
        {"turn", "end_of_turn_ms", "stt_ms", "first_token_ms", "first_audio_ms", "total_ms"},
    ),
    (History("c", (HistoryTurn(Role.USER, "Hi."),)), "history", {"conversation_id", "turns"}),
    (Reminder("r", "Tea.", 1), "reminder", {"id", "message", "due", "kind", "missed"}),
    (Image("https://example.com/a.png"), "image", {"url", "caption"}),
    (
        SettingsUpdated("dark", 100, 80, None, True, True),
        "settings_updated",
        {"theme", "voice_speed", "volume", "voice", "greeting", "captions"},
    ),
    (Pong(1), "pong", {"t"}),
    (Recording(RecordingChoice.ON, active=True), "recording", {"choice", "active"}),
    (Queued((QueuedText("q1", "And tomorrow?"),)), "queued", {"messages"}),
]

ALL: list[ServerMessage] = [each[0] for each in FIRST_VERSION] + [each[0] for each in ADDED]


@pytest.mark.parametrize(("message", "promised"), FIRST_VERSION, ids=lambda value: type(value).__name__)
def test_the_fields_of_the_first_version_are_present(message: ServerMessage, promised: dict[str, Any]) -> None:
    sent = json.loads(encode(message, 1))
    assert {name: sent.get(name) for name in promised} == promised


@pytest.mark.parametrize(("message", "promised"), FIRST_VERSION, ids=lambda value: type(value).__name__)
def test_the_python_client_understands_a_server_of_the_first_version(
    message: ServerMessage, promised: dict[str, Any]
) -> None:
    assert decode_server(json.dumps(promised)) == message


@pytest.mark.parametrize(
    ("message", "type", "fields"), ADDED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_an_added_message_has_all_its_fields(message: ServerMessage, type: str, fields: set[str]) -> None:
    sent = json.loads(encode(message, 1))
    assert sent["type"] == type
    assert sent.keys() == {"type", "n"} | fields


def test_every_message_is_among_the_examples() -> None:
    assert {type(message) for message in ALL} == set(SERVER_MESSAGES)


@pytest.mark.parametrize("message", ALL, ids=lambda message: type(message).__name__)
def test_a_message_carries_its_number(message: ServerMessage) -> None:
    assert json.loads(encode(message, 17))["n"] == 17


def test_encoding_does_not_change_the_message() -> None:
    message = Response("Yes.")
    encode(message, 17)
    assert message.n == 0


def test_a_number_that_json_cannot_represent_becomes_null() -> None:
    assert json.loads(encode(ToolResult("calculate", {"value": float("nan")}), 1))["result"] == {"value": None}


def test_a_number_of_any_length_is_encoded() -> None:
    assert json.loads(encode(ToolResult("calculate", 2**4096), 1))["result"] == 2**4096


def test_adjacent_surrogate_halves_are_joined() -> None:
    assert json.loads(encode(ResponseChunk("\ud83d\ude00", True), 1))["text"] == "😀"


def test_a_lone_surrogate_half_is_replaced() -> None:
    sent = json.loads(encode(ToolResult("get", [{"\ud83d": "a\ude00b"}], id="i"), 3))
    assert sent["result"] == [{"�": "a�b"}]
    assert sent["n"] == 3


def test_a_client_recognizes_an_unknown_message_of_a_newer_server() -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_server('{"type": "hologram", "n": 4}')
    assert caught.value.code is ErrorCode.UNKNOWN_TYPE


def test_a_client_ignores_the_fields_of_a_newer_server() -> None:
    assert decode_server('{"type": "response", "text": "Yes.", "mood": "good", "n": 4}') == Response("Yes.", n=4)
