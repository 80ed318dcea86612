"""What Gemini Live clients send: names in either case, base64 of either alphabet, and schemas of Google's kind."""

import json
from typing import Any

import pytest

from antiphon.gateway.gemini_input import read_audio, read_setup, read_turns
from antiphon.gateway.gemini_messages import Blob, Content, GeminiError, closing, decode, to_json_schema
from antiphon.transcript import AssistantMessage, CallMade, ToolMessage, UserMessage

FULL_SETUP = {
    "model": "models/gemini-2.5-flash-native-audio-preview-12-2025",
    "generationConfig": {
        "responseModalities": ["AUDIO"],
        "temperature": 0.7,
        "maxOutputTokens": 512,
        "speechConfig": {
            "voice_config": {"prebuilt_voice_config": {"voice_name": "Kore"}},
            "language_code": "en-US",
        },
        "thinkingConfig": {"include_thoughts": False, "thinking_budget": 0},
        "enableAffectiveDialog": True,
    },
    "systemInstruction": {"parts": [{"text": "You are helpful."}], "role": "user"},
    "tools": [
        {
            "functionDeclarations": [
                {
                    "description": "w",
                    "name": "get_weather",
                    "parameters_json_schema": {"type": "object", "properties": {"city_name": {"type": "string"}}},
                    "behavior": "NON_BLOCKING",
                },
                {
                    "description": "l",
                    "name": "set_light",
                    "parameters": {"properties": {"is_on": {"default": False, "type": "BOOLEAN"}}, "type": "OBJECT"},
                },
            ]
        }
    ],
    "sessionResumption": {"handle": "h"},
    "inputAudioTranscription": {},
    "outputAudioTranscription": {},
    "realtimeInputConfig": {
        "automatic_activity_detection": {"disabled": False, "prefix_padding_ms": 20, "silence_duration_ms": 500},
        "activity_handling": "NO_INTERRUPTION",
        "turn_coverage": "TURN_INCLUDES_ONLY_ACTIVITY",
    },
    "contextWindowCompression": {"trigger_tokens": 25600, "sliding_window": {"target_tokens": 12800}},
    "proactivity": {"proactive_audio": True},
    "historyConfig": {"initial_history_in_client_content": True},
}
"""What Google's SDK sends if everything is set."""


def setup(**changes: Any) -> bytes:
    return json.dumps({"setup": {**FULL_SETUP, **changes}}).encode()


def test_a_setup_with_everything_is_read() -> None:
    message = decode(setup())
    assert message.setup is not None
    settings = read_setup(message.setup, has_voice=True)
    assert (settings.speaks, settings.voice, settings.instructions) == (True, "Kore", "You are helpful.")
    assert (settings.is_resumable, settings.handle, settings.interrupts) == (True, "h", False)
    assert (settings.wants_input_text, settings.wants_output_text, settings.begins_with_history) == (True, True, True)
    weather, light = settings.tools
    assert weather.parameters == {"type": "object", "properties": {"city_name": {"type": "string"}}}
    assert light.parameters == {"type": "object", "properties": {"is_on": {"default": False, "type": "boolean"}}}


def test_the_names_in_the_clients_own_json_are_left_alone() -> None:
    results = [{"id": "1", "response": {"snake_case": {"inner_name": 1}}}]
    message = decode(json.dumps({"tool_response": {"function_responses": results}}))
    assert message.tool_response is not None
    assert message.tool_response.function_responses[0].output == {"snake_case": {"inner_name": 1}}


@pytest.mark.parametrize("data", ["-__-", "+//+", "-__-=="])
def test_base64_of_either_alphabet_is_read(data: str) -> None:
    assert Blob(data=data).content == b"\xfb\xff\xfe"


@pytest.mark.parametrize("data", ["ä", "A", "AA A"])
def test_wrong_base64_is_refused(data: str) -> None:
    with pytest.raises(GeminiError, match="Base64 decoding failed"):
        _ = Blob(data=data).content


@pytest.mark.parametrize(
    ("mime_type", "hz"),
    [
        ("audio/pcm", 16_000),
        ("audio/pcm;rate=24000", 24_000),
        ("audio/pcm; rate=8000", 8_000),
        ("audio/L16;rate=44100", 44_100),
    ],
)
def test_the_rate_of_audio_is_read(mime_type: str, hz: int) -> None:
    assert read_audio(Blob(data="AAAA", mime_type=mime_type)) == (b"\0\0\0", hz)


@pytest.mark.parametrize("mime_type", ["", "audio/wav", "audio/pcm;rate=1", "audio/pcm;rate=999999", "image/png"])
def test_other_audio_is_refused(mime_type: str) -> None:
    with pytest.raises(GeminiError):
        read_audio(Blob(data="AAAA", mime_type=mime_type))


@pytest.mark.parametrize(
    "frame",
    [
        b"\xff",
        "[" * 5_000,
        '{"setup": null, "x": 1}',
        '{"clientContent": {"turns": 1}}',
        "1",
        '{"setup": {"model": 1}}',
    ],
)
def test_what_is_no_message_is_refused(frame: str | bytes) -> None:
    with pytest.raises(GeminiError) as caught:
        decode(frame)
    assert caught.value.close.code == 1007


def test_a_reason_fits_into_a_close_frame() -> None:
    assert len(closing(1007, "ä" * 200).reason.encode()) <= 123


def test_googles_schemas_become_json_schemas() -> None:
    given = {
        "type": "OBJECT",
        "properties": {
            "when": {"type": "STRING", "nullable": True, "format": "date-time"},
            "type": {"type": "STRING", "enum": ["a", "b"]},
            "tags": {"type": "ARRAY", "items": {"type": "STRING"}, "minItems": "1", "maxItems": 3},
            "either": {"anyOf": [{"type": "INTEGER"}, {"type": "NULL"}]},
        },
        "propertyOrdering": ["when"],
        "required": ["when"],
    }
    assert to_json_schema(given) == {
        "type": "object",
        "properties": {
            "when": {"type": ["string", "null"], "format": "date-time"},
            "type": {"type": "string", "enum": ["a", "b"]},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
            "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["when"],
    }


def test_turns_with_calls_and_results_become_messages() -> None:
    turns = [
        {"role": "user", "parts": [{"text": "Turn "}, {"text": "it on."}]},
        {
            "role": "model",
            "parts": [{"text": "hm", "thought": True}, {"functionCall": {"name": "f", "args": {"x": 1}}}],
        },
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "ok"}}}]},
        {"role": "model", "parts": [{"text": "Done."}]},
    ]
    message = decode(json.dumps({"clientContent": {"turns": turns}}))
    assert message.client_content is not None
    assert read_turns(message.client_content.turns or ()) == [
        UserMessage("Turn it on."),
        AssistantMessage("", (CallMade("call_0", "f", {"x": 1}),)),
        ToolMessage("call_0", "f", "ok"),
        AssistantMessage("Done."),
    ]


def test_a_turn_without_parts_says_nothing() -> None:
    assert read_turns([Content(role="user")]) == []
