"""How a realtime session is set up, and how it ends."""

import asyncio
import base64
import json
from array import array
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import pytest

from antiphon.audio.resample import resample
from antiphon.models.base import FailureKind, ModelError
from antiphon.models.live import Closed, CloseKind, GoAway, TurnComplete, UpstreamError
from antiphon.models.providers.openai_realtime import (
    CONNECT_WITHIN_S,
    MAX_EVENT_BYTES,
    MAX_UNREADABLE,
    OpenAIRealtime,
    azure_endpoint,
    openai_endpoint,
    realtime_factory,
)
from antiphon.models.providers.realtime_profiles import (
    RealtimeOptions,
    TurnDetection,
    profile_for,
    session_settings,
    traits_of,
)
from antiphon.models.providers.upstream import WRITE_S
from antiphon.transcript import AssistantMessage, CallMade, ToolMessage, UserMessage
from tests.fakes.realtime_server import RealtimeServer, Refused, ServedSession
from tests.fakes.realtime_talk import KEY, LOUD, NOW_S, context_of, endpoint_of, realtime_talk

TOOL = {"type": "function", "name": "get_time", "description": "Tells the time.", "parameters": {"type": "object"}}


def header(server: RealtimeServer, name: str) -> str | None:
    return server.requests[-1].headers.get(name)


# Addresses and keys.


async def test_openai_is_asked_for_the_model_with_the_key_as_a_bearer_token() -> None:
    server = RealtimeServer()
    async with realtime_talk(server):
        assert server.requests[-1].path == "/v1/realtime?model=gpt-realtime-2"
        assert header(server, "Authorization") == f"Bearer {KEY}"
        assert header(server, "OpenAI-Beta") is None


async def test_azure_is_asked_for_the_deployment_with_the_key_in_its_own_header() -> None:
    server = RealtimeServer()
    async with realtime_talk(server, endpoint=azure_endpoint("my-deployment", server.origin, KEY)):
        assert server.requests[-1].path == "/openai/v1/realtime?model=my-deployment"
        assert header(server, "api-key") == KEY
        assert header(server, "Authorization") is None


@pytest.mark.parametrize("url", ["{}", "{}/", "{}/openai/v1", "{}/openai/v1/"])
async def test_the_address_of_an_azure_resource_may_have_its_path(url: str) -> None:
    server = RealtimeServer()
    async with realtime_talk(server, endpoint=azure_endpoint("mine", url.format(server.origin), KEY)):
        assert server.requests[-1].path == "/openai/v1/realtime?model=mine"


async def test_a_server_without_a_key_gets_no_authorization() -> None:
    server = RealtimeServer()
    async with realtime_talk(server, endpoint=openai_endpoint("local", server.url, None)):
        assert header(server, "Authorization") is None


async def test_another_server_does_not_learn_the_openai_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-ada")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-ada")
    server = RealtimeServer()
    async with realtime_talk(server):
        assert header(server, "OpenAI-Organization") is None
        assert header(server, "OpenAI-Project") is None


async def test_a_proxy_is_not_used_for_a_server_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    server = RealtimeServer()
    async with realtime_talk(server):
        assert len(server.requests) == 1


# The settings of the session.


async def test_the_session_is_set_up_before_connect_returns() -> None:
    server = RealtimeServer()
    endpoint = endpoint_of(server)
    model = OpenAIRealtime(endpoint)
    model.set_voice("cedar", 1.2)
    async with server:
        await model.connect(context_of(tools=[TOOL]))
        assert server.session.settings == {
            "type": "realtime",
            "instructions": "Be kind.",
            "output_modalities": ["audio"],
            "audio": {
                "input": {
                    "format": {"type": "audio/pcm", "rate": 24_000},
                    "transcription": {"model": "gpt-transcribe"},
                    "turn_detection": {"type": "server_vad", "create_response": True, "interrupt_response": True},
                },
                "output": {"format": {"type": "audio/pcm", "rate": 24_000}, "voice": "cedar", "speed": 1.2},
            },
            "tools": [TOOL],
            "tool_choice": "auto",
            "parallel_tool_calls": True,
        }
        await model.close()


def settings_with(options: RealtimeOptions, model: str = "gpt-realtime-2", voice: str | None = None) -> dict[str, Any]:
    return session_settings(model, options, context_of(), voice, 1.0)


def test_turns_may_be_detected_by_their_meaning() -> None:
    settings = settings_with(RealtimeOptions(turn_detection=TurnDetection.SEMANTIC_VAD))
    assert settings["audio"]["input"]["turn_detection"]["type"] == "semantic_vad"


def test_without_a_model_for_transcripts_there_are_none() -> None:
    assert settings_with(RealtimeOptions(transcription=None))["audio"]["input"]["transcription"] is None


def test_only_models_that_reason_are_told_how_much() -> None:
    options = RealtimeOptions(reasoning_effort="low")
    assert settings_with(options, "gpt-realtime-2.1-mini")["reasoning"] == {"effort": "low"}
    assert "reasoning" not in settings_with(options, "gpt-realtime-1.5")
    assert "parallel_tool_calls" not in settings_with(options, "gpt-realtime-1.5")


@pytest.mark.parametrize(
    ("model", "reasons"),
    [
        ("gpt-realtime-2.1", True),
        ("gpt-realtime-2", True),
        ("prod-gpt-realtime-2-eu", True),
        ("gpt-realtime-1.5", False),
        ("gpt-realtime", False),
        ("gpt-realtime-2025-08-28", False),
        ("gpt-realtime-mini", False),
        ("something-else", False),
    ],
)
def test_models_are_known_by_their_names(model: str, reasons: bool) -> None:
    assert traits_of(model).reasons is reasons


@pytest.mark.parametrize(
    ("chosen", "sent"), [("cedar", "cedar"), ("piper-amy", "marin"), (None, "marin"), ("voice_1", {"id": "voice_1"})]
)
def test_a_voice_that_the_api_does_not_have_is_replaced(chosen: str | None, sent: Any) -> None:
    assert settings_with(RealtimeOptions(), voice=chosen)["audio"]["output"]["voice"] == sent


def test_the_profile_is_the_same_for_every_model_that_is_not_known() -> None:
    profile = profile_for("gpt-realtime-9")
    assert (profile.name, profile.output_hz, profile.max_session_s) == ("openai-realtime:gpt-realtime-9", 24_000, 3600)
    assert profile.keeps_context
    assert not profile.resumes


async def test_a_factory_makes_models_of_its_endpoint() -> None:
    async with RealtimeServer() as server:
        factory = realtime_factory(azure_endpoint("mine", server.origin, KEY), RealtimeOptions(transcription=None))
        model = factory.make()
        await model.connect(context_of())
        assert model.profile == factory.profile
        assert factory.profile.name == "azure-realtime:mine"
        assert not factory.profile.needs_network
        assert server.session.settings["audio"]["input"]["transcription"] is None
        await model.close()


async def test_the_speed_changes_between_answers_and_the_voice_before_the_first() -> None:
    server = RealtimeServer()
    async with realtime_talk(server) as talk:
        talk.model.set_voice("echo", 0.1)
        await talk.listener.ask("hello")
        assert server.session.settings["audio"]["output"]["voice"] == "echo"
        assert server.session.settings["audio"]["output"]["speed"] == 0.25
        talk.listener.respond("hello again")
        await asyncio.sleep(0.15)
        talk.model.set_voice("sage", 1.4)
        await talk.listener.settle()
        assert server.session.settings["audio"]["output"]["voice"] == "echo"
        assert server.session.settings["audio"]["output"]["speed"] == 1.4
        assert server.errors == []


# The conversation so far.


async def test_the_conversation_is_given_as_items_with_calls_and_results() -> None:
    server = RealtimeServer()
    history = (
        ToolMessage("lost", "get_weather", {"temp": 3}),
        UserMessage("What time is it?"),
        AssistantMessage(
            "Let me see.", (CallMade("function-call-12345678901234567890123", "get_time", {"tz": "UTC"}),)
        ),
        ToolMessage("function-call-12345678901234567890123", "get_time", "noon"),
        AssistantMessage("It's noon."),
    )
    async with realtime_talk(server, *history) as talk:
        await talk.listener.ask("thanks")
        items = [event["item"] for event in server.events("conversation.item.create")]
        text = {"type": "output_text", "text": "It's noon."}
        assert [item["type"] for item in items[:2]] == ["function_call", "function_call_output"]
        assert items[2]["content"] == [{"type": "input_text", "text": "What time is it?"}]
        assert items[4]["arguments"] == '{"tz":"UTC"}'
        assert items[5] == {"type": "function_call_output", "call_id": items[4]["call_id"], "output": "noon"}
        assert items[6] == {"type": "message", "role": "assistant", "content": [text]}
        assert server.errors == []


async def test_a_long_conversation_is_given_without_waiting_for_it() -> None:
    server = RealtimeServer()
    history = [UserMessage("word " * 200) for _ in range(1_000)]
    async with realtime_talk(server, *history) as talk:
        await talk.listener.ask("thanks")
        assert len(server.prompts[-1]) == 1_001
        assert talk.listener.text


# Audio.


async def test_microphone_audio_is_sent_at_the_rate_of_the_api() -> None:
    server = RealtimeServer()
    async with realtime_talk(server) as talk:
        talk.hear(200)
        talk.model.end_audio("turn")
        await talk.listener.settle()
        sent = b"".join(base64.b64decode(event["audio"]) for event in server.events("input_audio_buffer.append"))
        # Dithering makes pieces differ from the whole by a little.
        whole = array("h", resample(10 * LOUD, 16_000, 24_000))
        assert max(abs(a - b) for a, b in zip(array("h", sent), whole, strict=True)) <= 3


# A session that cannot be opened.


async def refusal(server: RealtimeServer) -> UpstreamError:
    async with server:
        model = OpenAIRealtime(endpoint_of(server))
        with pytest.raises(ModelError) as caught:
            await model.connect(context_of())
        await model.close()
    error = caught.value
    assert isinstance(error, UpstreamError)
    assert KEY not in str(error)
    return error


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (
            HTTPStatus.UNAUTHORIZED,
            f"Incorrect key {KEY}",
            CloseKind.CONFIGURATION,
            "refused the API key. Check OPENAI_",
        ),
        (HTTPStatus.NOT_FOUND, "no such path", CloseKind.CONFIGURATION, "was not found at http://127.0.0.1"),
        (HTTPStatus.BAD_REQUEST, "bad", CloseKind.CONFIGURATION, "refused the connection (HTTP 400)"),
        (HTTPStatus.TOO_MANY_REQUESTS, "slow down", CloseKind.QUOTA, "accepts no more sessions for now"),
        (HTTPStatus.SERVICE_UNAVAILABLE, "down", CloseKind.TRANSIENT, "not available at the moment (HTTP 503)"),
    ],
)
async def test_a_refused_connection_is_explained(status: HTTPStatus, body: str, kind: CloseKind, words: str) -> None:
    error = await refusal(RealtimeServer(refuses_upgrade=(status, body)))
    assert error.close_kind is kind
    assert words in str(error)


def ends_with(code: int, reason: str, error: Refused | None = None) -> "Callable[[ServedSession], Any]":
    async def greets(session: ServedSession) -> None:
        if error is not None:
            await session.refuse(error)
        await session.close(code, reason)

    return greets


WRONG_KEY = Refused("invalid_api_key", f"Incorrect API key provided: {KEY}.")
NO_QUOTA = Refused("insufficient_quota", "You exceeded your current quota.")


@pytest.mark.parametrize(
    ("greets", "kind", "words"),
    [
        (
            ends_with(3000, "invalid_request_error.invalid_api_key", WRONG_KEY),
            CloseKind.CONFIGURATION,
            "Check OPENAI_API",
        ),
        (ends_with(3000, "invalid_request_error.invalid_api_key"), CloseKind.CONFIGURATION, "refused the API key"),
        (ends_with(4004, "invalid_request_error.model_not_found"), CloseKind.CONFIGURATION, "was not found at"),
        (ends_with(4000, "invalid_request_error.other"), CloseKind.CONFIGURATION, "refused the settings"),
        (ends_with(1011, "", NO_QUOTA), CloseKind.QUOTA, "accepts no more requests for now: You exceeded"),
        (ends_with(1013, "Too many requests"), CloseKind.QUOTA, "accepts no more requests"),
        (ends_with(1011, "The server had an error"), CloseKind.TRANSIENT, "has ended (1011)"),
    ],
)
async def test_a_session_that_is_refused_after_the_connection_is_explained(
    greets: "Callable[[ServedSession], Any]", kind: CloseKind, words: str
) -> None:
    error = await refusal(RealtimeServer(greets=greets))
    assert words in str(error)
    assert error.close_kind is kind


async def test_settings_that_are_refused_are_an_error_of_the_configuration() -> None:
    server = RealtimeServer()
    async with server:
        model = OpenAIRealtime(endpoint_of(server), RealtimeOptions(voice="nobody"))
        with pytest.raises(UpstreamError, match="refused the settings of the session: Invalid voice") as caught:
            await model.connect(context_of())
        assert caught.value.close_kind is CloseKind.CONFIGURATION
        await model.close()


async def test_a_server_that_never_opens_a_session_is_given_up() -> None:
    async def says_nothing(session: ServedSession) -> None:
        await asyncio.sleep(10 * CONNECT_WITHIN_S)

    error = await refusal(RealtimeServer(greets=says_nothing))
    assert "did not open a session in time" in str(error)
    assert error.kind is FailureKind.TIMEOUT


async def test_a_server_that_speaks_another_protocol_is_explained() -> None:
    async def babbles(session: ServedSession) -> None:
        await session.send_raw("<html>")

    error = await refusal(RealtimeServer(greets=babbles))
    assert "did not answer as a realtime server" in str(error)
    assert error.close_kind is CloseKind.CONFIGURATION


async def test_a_server_that_is_not_there_is_explained() -> None:
    server = RealtimeServer()
    async with server:
        endpoint = endpoint_of(server)
    with pytest.raises(UpstreamError, match="cannot be reached, or broke off") as caught:
        await OpenAIRealtime(endpoint).connect(context_of())
    assert caught.value.close_kind is CloseKind.TRANSIENT
    assert caught.value.kind is FailureKind.UNREACHABLE


async def test_connecting_may_be_cancelled() -> None:
    async def says_nothing(session: ServedSession) -> None:
        await asyncio.sleep(100)

    async with RealtimeServer(greets=says_nothing) as server:
        model = OpenAIRealtime(endpoint_of(server))
        connecting = asyncio.create_task(model.connect(context_of()))
        await asyncio.sleep(1)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await model.close()


# The end of a session.


@pytest.mark.parametrize("expires_in_s", [None, 3_600.0, -50.0, 1e9])
async def test_the_end_after_an_hour_is_announced_five_minutes_before(expires_in_s: float | None) -> None:
    server = RealtimeServer(expires_in_s=expires_in_s, now_s=NOW_S)
    async with realtime_talk(server) as talk:
        await asyncio.sleep(3_290)
        assert talk.events == []
        await asyncio.sleep(20)
        assert talk.events == [GoAway(300_000)]


async def test_the_server_says_when_the_session_expires() -> None:
    server = RealtimeServer(expires_in_s=900, now_s=NOW_S)
    async with realtime_talk(server) as talk:
        await asyncio.sleep(610)
        assert talk.events == [GoAway(300_000)]


async def test_an_expired_session_has_reached_its_end() -> None:
    server = RealtimeServer()
    async with realtime_talk(server) as talk:
        expired = Refused("session_expired", "Your session hit the maximum duration of 60 minutes.")
        await server.session.refuse(expired)
        await talk.listener.settle()
        assert [type(event) for event in talk.events] == [Closed]
        assert talk.events[0].kind is CloseKind.GO_AWAY  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("code", "reason", "kind", "words"),
    [
        (1000, "", CloseKind.INTENDED, "has ended the session."),
        (1001, "Your session hit the maximum duration of 60 minutes.", CloseKind.GO_AWAY, "has reached its end"),
        (1001, "", CloseKind.GO_AWAY, "has reached its end"),
        (1011, "keepalive ping timeout", CloseKind.TRANSIENT, "has ended (1011): keepalive ping timeout"),
        (1012, "", CloseKind.TRANSIENT, "has ended (1012)"),
        (1008, "You exceeded your current quota", CloseKind.QUOTA, "accepts no more requests for now"),
        (4000, "rate_limit_error.rate_limit_exceeded", CloseKind.QUOTA, "accepts no more requests for now"),
        (3000, "invalid_request_error.invalid_api_key", CloseKind.CONFIGURATION, "Check OPENAI_API_KEY"),
        (4000, "invalid_request_error.unknown", CloseKind.TRANSIENT, "has ended (4000)"),
    ],
)
async def test_every_close_is_classified(code: int, reason: str, kind: CloseKind, words: str) -> None:
    server = RealtimeServer()
    async with realtime_talk(server) as talk:
        await server.session.close(code, reason)
        await talk.listener.settle()
        (closed,) = talk.events
        assert isinstance(closed, Closed)
        assert closed.kind is kind
        assert words in closed.reason
        with pytest.raises(ModelError):
            talk.model.respond("turn", "hello")


async def test_an_error_before_a_close_explains_it() -> None:
    server = RealtimeServer()
    async with realtime_talk(server) as talk:
        await server.session.refuse(NO_QUOTA)
        await server.session.close(1013, "insufficient_quota.insufficient_quota")
        await talk.listener.settle()
        message = "openai-realtime:gpt-realtime-2 accepts no more requests for now: You exceeded your current quota."
        assert talk.events == [Closed(message, CloseKind.QUOTA)]


async def test_a_cut_connection_is_lost() -> None:
    server = RealtimeServer()
    async with realtime_talk(server) as talk:
        talk.listener.respond("hello")
        await asyncio.sleep(0.2)
        server.session.drop()
        await talk.listener.settle()
        closed = talk.events[-1]
        assert closed == Closed("The connection to openai-realtime:gpt-realtime-2 was lost.", CloseKind.TRANSIENT)
        assert TurnComplete not in talk.listener.kinds


# A hostile server.


async def test_messages_that_are_not_events_are_ignored_up_to_a_limit() -> None:
    server = RealtimeServer()
    async with realtime_talk(server) as talk:
        strange: list[Any] = [
            [],
            {"type": 5},
            {"type": "response.done", "response": []},
            {"type": "new.event", "delta": 1},
        ]
        for message in strange:
            await server.session.send_raw(json.dumps(message))
        await talk.listener.ask("hello")
        assert talk.listener.text
        for _ in range(MAX_UNREADABLE):
            await server.session.send_raw("}{")
        await talk.listener.settle()
        assert isinstance(talk.events[-1], Closed)
        assert "sent what I cannot read" in talk.events[-1].reason


async def test_a_server_that_stops_reading_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    server = RealtimeServer()
    async with realtime_talk(server) as talk:

        async def never(data: str) -> None:
            await asyncio.sleep(10 * WRITE_S)

        monkeypatch.setattr(talk.model._connection, "send_raw", never)
        talk.listener.respond("hello")
        await asyncio.sleep(WRITE_S + 1)
        assert [type(event) for event in talk.events] == [Closed]
        assert "takes no more data" in talk.events[0].reason  # type: ignore[union-attr]


async def test_a_message_that_is_too_large_ends_the_connection() -> None:
    server = RealtimeServer()
    async with realtime_talk(server) as talk:
        await server.session.send_raw("x" * (MAX_EVENT_BYTES + 1))
        await talk.listener.settle()
        assert isinstance(talk.events[-1], Closed)
        assert "sent a message that is too large" in talk.events[-1].reason
