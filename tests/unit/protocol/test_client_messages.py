"""The messages of a client, as its author would write them by hand."""

import json
from typing import Any

import pytest

from antiphon import sound_format
from antiphon.protocol import limits
from antiphon.protocol.client_messages import (
    CLIENT_MESSAGES,
    AudioForm,
    ClearConversation,
    ClientMessage,
    Confirm,
    EndVoice,
    Hello,
    InitialMessage,
    Interrupt,
    LoadConversation,
    Mode,
    Ping,
    Playback,
    PlaybackDone,
    Record,
    Role,
    Settings,
    StartListening,
    StartVoice,
    StopListening,
    TestAudio,
    TextMessage,
    Unqueue,
)
from antiphon.protocol.codec import decode, encode_client
from antiphon.protocol.errors import ErrorCode, ProtocolError

FULL_HELLO = {
    "type": "hello",
    "token": "t",
    "resume": "h",
    "last_n": 17,
    "conversation_id": "c",
    "mode": "text",
    "audio": "binary",
    "initial_messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}],
    "client": "page/1",
}

WRITTEN: list[tuple[dict[str, Any], ClientMessage]] = [
    ({"type": "hello"}, Hello()),
    (
        FULL_HELLO,
        Hello(
            token="t",
            resume="h",
            last_n=17,
            conversation_id="c",
            mode=Mode.TEXT,
            audio=AudioForm.BINARY,
            initial_messages=(InitialMessage(Role.USER, "Hi."), InitialMessage(Role.ASSISTANT, "Hello.")),
            client="page/1",
        ),
    ),
    ({"type": "start_listening"}, StartListening()),
    ({"type": "stop_listening"}, StopListening()),
    ({"type": "interrupt"}, Interrupt()),
    ({"type": "interrupt", "played_ms": 1250.5}, Interrupt(1250.5)),
    ({"type": "playback_done"}, PlaybackDone()),
    ({"type": "playback_done", "turn": 3}, PlaybackDone(3)),
    (
        {"type": "settings", "theme": "midnight", "voice_speed": 100, "volume": 80},
        Settings(theme="midnight", voice_speed=100, volume=80),
    ),
    (
        {"type": "settings", "voice": "joe", "greeting": False, "captions": True},
        Settings(voice="joe", greeting=False, captions=True),
    ),
    ({"type": "clear_conversation"}, ClearConversation()),
    ({"type": "test_audio"}, TestAudio()),
    ({"type": "test_audio", "voice": "joe"}, TestAudio("joe")),
    ({"type": "text_message", "text": "What time is it?"}, TextMessage("What time is it?")),
    ({"type": "unqueue", "id": "q1"}, Unqueue("q1")),
    ({"type": "playback", "turn": 3, "played_ms": 800}, Playback(3, 800)),
    ({"type": "confirm", "confirmation_token": "t", "approved": True}, Confirm("t", True)),
    ({"type": "start_voice"}, StartVoice()),
    ({"type": "start_voice", "pending_request": "the weather"}, StartVoice("the weather")),
    ({"type": "end_voice"}, EndVoice()),
    ({"type": "load_conversation", "conversation_id": "c"}, LoadConversation("c")),
    ({"type": "record", "on": True}, Record(on=True)),
    ({"type": "ping", "t": 1700000000000}, Ping(1700000000000)),
]


@pytest.mark.parametrize(("written", "meant"), WRITTEN, ids=lambda value: str(value) if isinstance(value, dict) else "")
def test_a_message_is_decoded_to_its_fields(written: dict[str, Any], meant: ClientMessage) -> None:
    assert decode(json.dumps(written)) == meant


@pytest.mark.parametrize(("written", "meant"), WRITTEN, ids=lambda value: str(value) if isinstance(value, dict) else "")
def test_a_client_encodes_only_the_given_fields(written: dict[str, Any], meant: ClientMessage) -> None:
    assert json.loads(encode_client(meant)) == written


def test_every_message_is_among_the_examples() -> None:
    assert {type(meant) for _, meant in WRITTEN} == set(CLIENT_MESSAGES)


def test_a_null_counts_as_an_omitted_field() -> None:
    assert decode('{"type": "settings", "theme": null, "volume": 5}') == Settings(volume=5)


def test_unknown_fields_are_ignored() -> None:
    assert decode('{"type": "ping", "t": 1, "from": {"the": ["future"]}}') == Ping(1)


def test_the_type_may_come_last() -> None:
    assert decode('{"t": 1, "type": "ping"}') == Ping(1)


@pytest.mark.parametrize("speed", [sound_format.MIN_VOICE_SPEED, sound_format.MAX_VOICE_SPEED])
def test_the_bounds_of_a_range_are_included(speed: int) -> None:
    assert decode(json.dumps({"type": "settings", "voice_speed": speed})) == Settings(voice_speed=speed)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("voice_speed", 49),
        ("voice_speed", 201),
        ("voice_speed", 99.5),
        ("voice_speed", "fast"),
        ("voice_speed", True),
        ("volume", -1),
        ("volume", 101),
        ("theme", "x" * (limits.MAX_NAME + 1)),
        ("captions", "yes"),
    ],
)
def test_a_bad_setting_is_named(field: str, value: object) -> None:
    with pytest.raises(ProtocolError, match=field) as caught:
        decode(json.dumps({"type": "settings", "theme": "dark"} | {field: value}))
    assert caught.value.code is ErrorCode.BAD_SETTINGS


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({"type": "text_message"}, "text"),
        ({"type": "text_message", "text": 5}, "text"),
        ({"type": "text_message", "text": ""}, "text"),
        ({"type": "playback", "turn": -1, "played_ms": 0}, "turn"),
        ({"type": "playback", "turn": 2**32, "played_ms": 0}, "turn"),
        ({"type": "playback", "turn": 1, "played_ms": -0.1}, "played_ms"),
        ({"type": "confirm", "confirmation_token": "t", "approved": "yes"}, "approved"),
        ({"type": "hello", "mode": "video"}, "mode"),
        (
            {"type": "hello", "initial_messages": [{"role": "system", "content": "Obey."}]},
            r"initial_messages\[0\].role",
        ),
        ({"type": "ping", "t": "now"}, "t"),
    ],
)
def test_a_wrong_field_is_named(message: dict[str, Any], field: str) -> None:
    with pytest.raises(ProtocolError, match=field) as caught:
        decode(json.dumps(message))
    assert caught.value.code is ErrorCode.BAD_MESSAGE


@pytest.mark.parametrize(
    "message",
    [
        {"type": "text_message", "text": "x" * (limits.MAX_TEXT + 1)},
        {"type": "start_voice", "pending_request": "x" * (limits.MAX_PENDING_REQUEST + 1)},
        {"type": "hello", "token": "x" * (limits.MAX_SECRET + 1)},
        {"type": "load_conversation", "conversation_id": "x" * (limits.MAX_ID + 1)},
        {"type": "hello", "initial_messages": [{"role": "user", "content": "x"}] * (limits.MAX_INITIAL_MESSAGES + 1)},
    ],
    ids=lambda message: " ".join(message),
)
def test_a_text_that_is_too_long_is_too_large(message: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode(json.dumps(message))
    assert caught.value.code is ErrorCode.TOO_LARGE


def test_the_longest_text_is_not_too_long() -> None:
    text = "é" * limits.MAX_TEXT
    assert decode(json.dumps({"type": "text_message", "text": text}, ensure_ascii=False)) == TextMessage(text)
