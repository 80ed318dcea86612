"""How a session of Gemini Live is opened: what is sent, verbatim, and why it may be refused."""

import asyncio
import ssl
from collections.abc import Mapping
from typing import Any

import pytest

from antiphon.models.base import FailureKind, ModelError
from antiphon.models.live import CloseKind, OutputText, UpstreamError
from antiphon.models.providers.gemini_connect import GeminiClient
from antiphon.models.providers.gemini_content import BEGINS, CONTINUES, MAX_HISTORY_CHARS
from antiphon.models.providers.gemini_live import GeminiLive, gemini_factory
from antiphon.models.providers.gemini_profiles import gemini_profile, profile_for
from antiphon.transcript import AssistantMessage, CallMade, ToolMessage, UserMessage
from tests.fakes.gemini_server import (
    KEY,
    SETUP_COMPLETE,
    Client,
    GeminiServer,
    Part,
    gemini_client,
    listener,
)
from tests.fakes.gemini_talk import (
    COMPLETE,
    GEMINI_25,
    GEMINI_31,
    GEMINI_38,
    GEMINI_THINKING,
    GENERATED,
    INTERRUPTED,
    a_context,
    calls,
    hears,
    speaks,
    talking,
)

TOOL = {
    "name": "get_time",
    "description": "Tells the time.",
    "parameters": {
        "type": "OBJECT",
        "properties": {"place": {"type": "STRING", "minLength": 1, "nullable": True}},
        "required": ["place"],
    },
}
DECLARED = {
    "description": "Tells the time.",
    "name": "get_time",
    "parameters": {
        "properties": {"place": {"min_length": 1, "nullable": True, "type": "STRING"}},
        "required": ["place"],
        "type": "OBJECT",
    },
}
TALKED = (UserMessage("I am Ada."), AssistantMessage("Hello Ada."))


def user(*texts: str) -> dict[str, Any]:
    return {"parts": [{"text": text} for text in texts], "role": "user"}


def model(*texts: str) -> dict[str, Any]:
    return {"parts": [{"text": text} for text in texts], "role": "model"}


# The setup.


async def test_the_setup_has_all_that_a_session_needs() -> None:
    async with talking(context=a_context(tools=[TOOL]), voice="kore") as talk:
        assert talk.client.raw == [
            {
                "setup": {
                    "model": "models/gemini-3.8-live",
                    "generationConfig": {
                        "responseModalities": ["AUDIO"],
                        "speechConfig": {"voice_config": {"prebuilt_voice_config": {"voice_name": "Kore"}}},
                    },
                    "systemInstruction": {"parts": [{"text": "You are kind."}], "role": "user"},
                    "tools": [{"functionDeclarations": [{**DECLARED, "behavior": "NON_BLOCKING"}]}],
                    "sessionResumption": {},
                    "inputAudioTranscription": {},
                    "outputAudioTranscription": {},
                    "contextWindowCompression": {"sliding_window": {}},
                }
            }
        ]


@pytest.mark.parametrize(
    ("name", "generation", "behavior", "history"),
    [
        (GEMINI_38, {}, {"behavior": "NON_BLOCKING"}, True),
        (GEMINI_THINKING, {"thinkingConfig": {"thinking_level": "LOW"}}, {}, True),
        (GEMINI_31, {}, {}, True),
        (GEMINI_25, {}, {"behavior": "NON_BLOCKING"}, False),
        ("gemini-9-live-of-the-future", {}, {}, True),
    ],
)
async def test_each_model_gets_what_it_takes(
    name: str, generation: Mapping[str, Any], behavior: Mapping[str, str], history: bool
) -> None:
    async with talking(name, context=a_context(*TALKED, tools=[TOOL])) as talk:
        setup = talk.client.raw[0]["setup"]
        assert setup["model"] == f"models/{name}"
        assert setup["generationConfig"] == {"responseModalities": ["AUDIO"], **generation}
        assert setup["tools"] == [{"functionDeclarations": [{**DECLARED, **behavior}]}]
        assert setup.get("historyConfig") == ({"initial_history_in_client_content": True} if history else None)


async def test_the_key_and_the_version_are_those_of_the_documentation() -> None:
    async with GeminiServer() as server:
        live = GeminiLive(gemini_client(GEMINI_38))
        await live.connect(a_context())
        await live.close()
    assert server.keys == [KEY]
    assert server.paths == ["/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"]


async def test_a_handle_resumes_the_session_without_the_history() -> None:
    async with talking(context=a_context(*TALKED), resume="handle-7") as talk:
        (setup,) = talk.client.raw
        assert setup["setup"]["sessionResumption"] == {"handle": "handle-7"}
        assert "historyConfig" not in setup["setup"]


async def test_an_unknown_voice_is_not_sent() -> None:
    async with talking(voice="nobody") as talk:
        assert "speechConfig" not in talk.client.raw[0]["setup"]["generationConfig"]


async def test_a_tool_that_cannot_be_declared_is_named() -> None:
    async with GeminiServer():
        live = GeminiLive(gemini_client(GEMINI_38))
        with pytest.raises(UpstreamError, match="tool odd_one") as refused:
            await live.connect(a_context(tools=[{"name": "odd_one", "parameters": {"type": "OBJECT", "oneOf": []}}]))
        assert refused.value.close_kind is CloseKind.CONFIGURATION
        await live.close()


async def test_the_environment_does_not_lead_to_another_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_API_KEY", "another-key")
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "v1")
    gemini_client.cache_clear()
    try:
        await test_the_key_and_the_version_are_those_of_the_documentation()
    finally:
        gemini_client.cache_clear()


async def test_a_proxy_of_the_environment_is_not_used_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("https_proxy", "wss_proxy", "all_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    async with talking() as talk:
        assert talk.client.setup["model"] == "models/gemini-3.8-live"


async def test_a_server_that_answers_no_pings_is_not_given_up() -> None:
    async with talking() as talk:
        transport = talk.client.socket.transport
        transport.pause_reading()
        await asyncio.sleep(300)
        transport.resume_reading()
        talk.model.respond("t", "hello")
        assert len(await talk.sent()) == 1
        assert talk.events == []


# The history.


async def test_history_is_told_in_turns() -> None:
    async with talking(context=a_context(*TALKED)) as talk:
        assert talk.client.raw[1] == {
            "client_content": {"turns": [user("I am Ada."), model("Hello Ada.")], "turnComplete": True}
        }


async def test_a_model_that_declares_no_history_gets_one_that_ends_with_the_user() -> None:
    async with talking(GEMINI_25, context=a_context(*TALKED)) as talk:
        assert talk.client.raw[1] == {
            "client_content": {
                "turns": [user("I am Ada."), model("Hello Ada."), user(CONTINUES)],
                "turnComplete": False,
            }
        }


async def test_a_history_that_begins_with_the_assistant_is_introduced() -> None:
    async with talking(context=a_context(AssistantMessage("Good morning."))) as talk:
        assert talk.client.raw[1]["client_content"]["turns"] == [user(BEGINS), model("Good morning.")]


async def test_calls_of_the_past_are_told_as_notes() -> None:
    made = CallMade("call-1", "get_time", {"place": "Oslo"})
    history = (
        UserMessage("What time is it?"),
        AssistantMessage("One moment.", (made,)),
        ToolMessage("call-1", "get_time", {"time": "noon"}),
        AssistantMessage("It's noon."),
    )
    async with talking(context=a_context(*history)) as talk:
        question, aside, note, answer = talk.client.raw[1]["client_content"]["turns"]
        assert (question, aside, answer) == (user("What time is it?"), model("One moment."), model("It's noon."))
        assert note["role"] == "user"
        assert '{"tool": "get_time", "args": {"place": "Oslo"}, "result": {"time": "noon"}}' in note["parts"][0]["text"]


async def test_only_the_newest_part_of_a_long_history_is_told() -> None:
    history = (UserMessage("old"), AssistantMessage("x" * MAX_HISTORY_CHARS), UserMessage("new"))
    async with talking(context=a_context(*history)) as talk:
        assert talk.client.raw[1]["client_content"]["turns"] == [user("new")]


# Refusals.


async def be_silent_after_setup(client: Client) -> None:
    await client.send(SETUP_COMPLETE)
    await client.socket.wait_closed()


async def fail_to_connect(server: GeminiServer, name: str = GEMINI_38, resume: str | None = None) -> UpstreamError:
    async with server:
        live = GeminiLive(gemini_client(name))
        with pytest.raises(UpstreamError) as refused:
            await live.connect(a_context(), resume)
        await live.close()
        return refused.value


@pytest.mark.parametrize(
    ("status", "body", "kind", "failure", "says"),
    [
        (401, "", CloseKind.CONFIGURATION, FailureKind.REFUSED, "refused the API key. Check GEMINI_API_KEY."),
        (403, {"error": {"message": f"{KEY}?"}}, CloseKind.CONFIGURATION, FailureKind.REFUSED, "Check GEMINI_API_KEY."),
        (
            400,
            [{"error": {"message": "API key not valid. Please pass a valid API key."}}],
            CloseKind.CONFIGURATION,
            FailureKind.REFUSED,
            "refused the API key",
        ),
        (404, "", CloseKind.CONFIGURATION, FailureKind.REFUSED, "was not found at https://127.0.0.1"),
        (
            429,
            {"error": {"message": "Too many sessions."}},
            CloseKind.QUOTA,
            FailureKind.RATE_LIMITED,
            "accepts no more sessions for now: Too many sessions.",
        ),
        (503, "<html>", CloseKind.TRANSIENT, FailureKind.SERVER_ERROR, "is not available at the moment (HTTP 503)."),
        (418, "", CloseKind.CONFIGURATION, FailureKind.REFUSED, "refused the connection (HTTP 418)"),
    ],
)
async def test_a_refused_upgrade_is_explained(
    status: int, body: Any, kind: CloseKind, failure: FailureKind, says: str
) -> None:
    error = await fail_to_connect(GeminiServer(refuses=(status, body, {})))
    assert (error.close_kind, error.kind, error.status) == (kind, failure, status)
    assert says in str(error)
    assert KEY not in str(error)
    assert error.retryable is (kind is not CloseKind.CONFIGURATION)


async def test_a_refusal_may_say_when_to_try_again() -> None:
    error = await fail_to_connect(GeminiServer(refuses=(429, "", {"Retry-After": "30"})))
    assert (error.rate_limited, error.retry_after_s) == (True, 30.0)


def closing(code: int, reason: str) -> GeminiServer:
    async def close(client: Client) -> None:
        await client.receive()
        await client.close(code, reason)

    return GeminiServer(close)


async def test_an_unknown_model_is_explained() -> None:
    reason = "models/gemini-3.8-life is not found for API version v1beta, or is not supported for bidiGenerateContent."
    error = await fail_to_connect(closing(1008, reason))
    assert error.close_kind is CloseKind.CONFIGURATION
    assert str(error) == (
        "There is no model gemini-live:gemini-3.8-live at this server, or it has no live mode. Check model.voice."
    )


async def test_a_server_that_never_completes_the_setup_is_given_up() -> None:
    async def listen(client: Client) -> None:
        await client.receive()
        await client.socket.wait_closed()

    error = await fail_to_connect(GeminiServer(listen))
    assert (error.close_kind, error.kind) == (CloseKind.TRANSIENT, FailureKind.TIMEOUT)
    assert "did not answer within 8 seconds" in str(error)


async def test_an_error_in_place_of_the_setup_is_explained_by_the_close_that_follows() -> None:
    async def fail(client: Client) -> None:
        await client.receive()
        await client.send({"error": {"code": 429, "message": "Resource has been exhausted"}})
        await client.close(1011, "Resource has been exhausted (e.g. check quota).")

    assert (await fail_to_connect(GeminiServer(fail))).close_kind is CloseKind.QUOTA


@pytest.mark.parametrize("answer", ['{"error": {"code": 500}}', '{"serverContent": {"turnComplete": true}}', "{}"])
async def test_another_answer_to_the_setup_is_an_error(answer: str) -> None:
    async def fail(client: Client) -> None:
        await client.receive()
        await client.send(answer)
        await client.socket.wait_closed()

    error = await fail_to_connect(GeminiServer(fail))
    assert (error.close_kind, error.kind) == (CloseKind.TRANSIENT, FailureKind.INVALID_RESPONSE)
    assert "answered the setup with an error" in str(error)


@pytest.mark.parametrize("answer", ["no JSON", "[]", '{"setupComplete": 7}', "[" * 100_000])
async def test_an_unreadable_answer_to_the_setup_is_an_error(answer: str) -> None:
    async def fail(client: Client) -> None:
        await client.receive()
        await client.send(answer)
        await client.socket.wait_closed()

    assert (await fail_to_connect(GeminiServer(fail))).close_kind is CloseKind.TRANSIENT


@pytest.mark.parametrize(
    ("code", "reason"), [(1008, "BidiGenerateContent session not found"), (1007, "Invalid session handle")]
)
async def test_a_dead_handle_is_told_from_other_refusals(code: int, reason: str) -> None:
    async def know_no_handle(client: Client) -> None:
        await client.receive()
        await client.close(code, reason)

    error = await fail_to_connect(GeminiServer(know_no_handle), resume="expired")
    assert error.close_kind is CloseKind.DEAD_HANDLE
    assert "no longer knows the session" in str(error)


@pytest.mark.parametrize("refusals", [1, 2])
async def test_a_session_is_resumed_once_the_server_has_noticed_that_the_connection_before_is_gone(
    refusals: int,
) -> None:
    handles = []

    async def notice_late(client: Client) -> None:
        await client.receive()
        handles.append(client.setup["sessionResumption"]["handle"])
        if len(handles) <= refusals:
            await client.close(1011, "Internal error encountered.")
        await be_silent_after_setup(client)

    if refusals == 1:
        async with talking(part=notice_late, resume="handle-7"):
            assert handles == ["handle-7"] * 2
    else:
        error = await fail_to_connect(GeminiServer(notice_late), resume="handle-7")
        assert (error.close_kind, handles) == (CloseKind.TRANSIENT, ["handle-7"] * 2)


async def test_no_network_is_explained() -> None:
    live = GeminiLive(GeminiClient(GEMINI_38, "https://127.0.0.1:9", KEY))
    with pytest.raises(UpstreamError, match="cannot be reached") as refused:
        await live.connect(a_context())
    assert (refused.value.close_kind, refused.value.kind) == (CloseKind.TRANSIENT, FailureKind.UNREACHABLE)


@pytest.mark.real_time
async def test_an_unknown_host_is_explained() -> None:
    live = GeminiLive(GeminiClient(GEMINI_38, "https://no-such-host.invalid", KEY))
    with pytest.raises(UpstreamError, match=r"was not found\. Check the network") as refused:
        await live.connect(a_context())
    assert refused.value.close_kind is CloseKind.TRANSIENT


async def test_an_untrusted_certificate_is_explained() -> None:
    async with GeminiServer():
        live = GeminiLive(GeminiClient(GEMINI_38, f"https://127.0.0.1:{listener().getsockname()[1]}", KEY))
        with pytest.raises(UpstreamError, match=r"is not trusted .* set SSL_CERT_FILE") as refused:
            await live.connect(a_context())
        assert refused.value.close_kind is CloseKind.CONFIGURATION


async def test_a_server_without_tls_is_explained() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    live = GeminiLive(GeminiClient(GEMINI_38, f"https://127.0.0.1:{port}", KEY))
    with pytest.raises(UpstreamError, match="does not speak TLS") as refused:
        await live.connect(a_context())
    assert isinstance(refused.value.__cause__, ssl.SSLError)
    server.close()
    await server.wait_closed()


async def test_a_cancelled_connect_leaves_nothing_behind() -> None:
    async def listen(client: Client) -> None:
        await client.receive()
        await client.socket.wait_closed()

    async with GeminiServer(listen) as server:
        live = GeminiLive(gemini_client(GEMINI_38))
        connecting = asyncio.create_task(live.connect(a_context()))
        await server.connected()
        connecting.cancel()
        await asyncio.wait([connecting])
        assert connecting.cancelled()
        await live.close()


async def test_a_closed_model_cannot_be_connected() -> None:
    live = GeminiLive(gemini_client(GEMINI_38))
    await live.close()
    with pytest.raises(ModelError, match="is closed"):
        await live.connect(a_context())


# Profiles.


def test_a_factory_tells_what_its_models_can_do() -> None:
    factory = gemini_factory("models/gemini-3.8-live", None, "key")
    assert factory.profile == profile_for("gemini-3.8-live")
    assert factory.profile.name == "gemini-live:gemini-3.8-live"
    assert factory.make().profile is factory.profile
    assert (factory.profile.output_hz, factory.profile.resumes, factory.profile.keeps_context) == (24_000, True, True)


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("models/gemini-3.8-live", GEMINI_38),
        ("gemini-3.8-live-002", GEMINI_38),
        ("gemini-2.5-flash-native-audio-latest", GEMINI_25),
        ("gemini-4-live", "another-unknown-name"),
    ],
)
def test_a_name_is_recognised_by_its_beginning(name: str, like: str) -> None:
    assert gemini_profile(name) is gemini_profile(like) or gemini_profile(name) == gemini_profile(like)


def test_the_key_is_not_shown() -> None:
    assert "secret" not in repr(GeminiClient(GEMINI_38, None, "secret").place)


def resumed_session(*unasked: dict[str, Any], later_s: float = 0.0) -> Part:
    """A session that says something as soon as it is resumed, and answers what it is asked."""

    async def play(client: Client) -> None:
        await client.receive()
        await client.send(SETUP_COMPLETE)
        for message in unasked:
            await client.send(message)
            await asyncio.sleep(later_s)
        await client.receive()
        for message in (INTERRUPTED, COMPLETE) if unasked[-1] is not COMPLETE else ():
            await client.send(message)
        for message in (speaks("Noon."), GENERATED, COMPLETE):
            await client.send(message)
        while True:
            await client.receive()

    return play


@pytest.mark.parametrize(
    "play",
    [
        resumed_session(speaks("Hello again!"), GENERATED, COMPLETE),
        resumed_session(hears("book it"), calls("call-1"), speaks("Done."), COMPLETE),
        resumed_session(speaks("Hello "), speaks("again, "), speaks("my friend!"), later_s=0.08),
    ],
    ids=["a greeting", "an earlier turn", "a greeting under way"],
)
async def test_what_a_resumed_session_says_before_it_was_asked_is_dropped(play: Part) -> None:
    async with talking(part=play, resume="handle-7") as talk:
        talk.model.respond("t1", "what time is it")
        await asyncio.sleep(3)
    said = [event.text for event in talk.events if isinstance(event, OutputText)]
    assert said == ["Noon."]
    assert {getattr(event, "turn", "t1") for event in talk.events} == {"t1"}
