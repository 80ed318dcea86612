"""The unmodified google-genai SDK talks to the BidiGenerateContent socket: text, tools, resumption, refusals."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import websockets
from google import genai
from google.genai import errors, types
from google.genai.live import AsyncSession

from tests.fakes.chat_server import Answer, ScriptedChatServer, words
from tests.fakes.tls_proxy import TlsProxy, tls_proxy
from tests.wire.chat_client import calling
from tests.wire.served import UNLIMITED, Served, add_token, serve
from tests.wire.test_confirmation import DONE, QUESTION, WISH, write_garden

pytestmark = pytest.mark.real_time

MODEL: Final = "gemini-3.8-live"
PATH: Final = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
SUM: Final = "what is 2 plus 3"
SUM_IS: Final = "2 plus 3 is 5."
LIGHT: Final = {
    "name": "set_light",
    "description": "Switches a light.",
    "parameters": {"type": "OBJECT", "properties": {"is_on": {"type": "BOOLEAN"}}, "required": ["is_on"]},
}


def client_of(proxy: TlsProxy, key: str = "local", **options: Any) -> genai.Client:
    return genai.Client(
        api_key=key,
        http_options=types.HttpOptions(base_url=proxy.url, async_client_args={"ssl": proxy.trusts}, **options),
    )


@asynccontextmanager
async def talk(client: genai.Client, **config: Any) -> AsyncIterator[AsyncSession]:
    asked = types.LiveConnectConfig(**{"response_modalities": ["TEXT"], **config})
    async with client.aio.live.connect(model=MODEL, config=asked) as session:
        assert session.setup_complete is not None
        yield session


async def say(session: AsyncSession, text: str) -> list[types.LiveServerMessage]:
    """Says something, and returns all messages of its turn."""
    await session.send_client_content(turns=typed(text))
    return [message async for message in session.receive()]


def typed(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


def text_of(messages: list[types.LiveServerMessage]) -> str:
    contents = [message.server_content for message in messages if message.server_content is not None]
    turns = [content.model_turn for content in contents if content.model_turn is not None]
    return "".join(part.text or "" for turn in turns for part in turn.parts or ())


def handles_of(messages: list[types.LiveServerMessage]) -> list[str | None]:
    updates = [message.session_resumption_update for message in messages]
    return [update.new_handle for update in updates if update is not None and update.resumable]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gemini")
    write_garden(folder)
    return folder


@pytest.fixture(scope="module")
def token(folder: Path) -> str:
    return add_token(folder, "ann")


@pytest.fixture(scope="module")
def served(folder: Path, token: str) -> Iterator[Served]:
    """The offline assistant, without a voice."""
    with serve(folder, limits=UNLIMITED) as served:
        yield served


@pytest.fixture
async def proxy(served: Served, folder: Path) -> AsyncIterator[TlsProxy]:
    async with tls_proxy(served.port, folder / "tls") as proxy:
        yield proxy


@pytest.fixture
def client(proxy: TlsProxy) -> genai.Client:
    return client_of(proxy)


class Upstream:
    """A server whose text model answers as a test tells it."""

    def __init__(self, model: ScriptedChatServer, client: genai.Client) -> None:
        self.model = model
        self.client = client


@pytest.fixture
async def upstream(tmp_path: Path, folder: Path) -> AsyncIterator[Upstream]:
    async with ScriptedChatServer() as model:
        settings = {"text": f"openai:{model.url}#m", "local_first": False}
        with serve(tmp_path, limits=UNLIMITED, model=settings) as served:
            async with tls_proxy(served.port, folder / "tls") as proxy:
                yield Upstream(model, client_of(proxy))


# Text.


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize("version", ["v1", "v1beta", "v1alpha"])
async def test_typed_text_is_answered(proxy: TlsProxy, slash: str, version: str) -> None:
    client = client_of(TlsProxy(proxy.url + slash, proxy.trusts), api_version=version)
    async with talk(client) as session:
        messages = await say(session, SUM)
        assert text_of(messages) == SUM_IS
        contents = [message.server_content for message in messages if message.server_content is not None]
        ends = [(content.generation_complete, content.turn_complete) for content in contents][-2:]
        assert ends == [(True, None), (None, True)]
        assert text_of(await say(session, "what is 3 plus 4")) == "3 plus 4 is 7."


async def test_realtime_text_is_answered(client: genai.Client) -> None:
    async with talk(client) as session:
        await session.send_realtime_input(text=SUM)
        assert text_of([message async for message in session.receive()]) == SUM_IS


async def test_earlier_turns_and_instructions_are_in_the_prompt(upstream: Upstream) -> None:
    upstream.model.will_answer(words("Blue."))
    async with talk(upstream.client, system_instruction="Answer in one word.") as session:
        earlier: list[types.Content | types.ContentDict] = [
            typed("My colour is blue."),
            types.Content(role="model", parts=[types.Part(text="Noted.")]),
        ]
        await session.send_client_content(turns=earlier, turn_complete=False)
        assert text_of(await say(session, "Which colour?")) == "Blue. "
    [request] = upstream.model.asked
    assert request.messages[0]["content"].rstrip().endswith("Answer in one word.")
    assert [message["content"] for message in request.messages[1:]] == ["My colour is blue.", "Noted.", "Which colour?"]


async def test_initial_history_is_not_answered(upstream: Upstream) -> None:
    upstream.model.will_answer(words("Blue."))
    async with talk(upstream.client, history_config={"initial_history_in_client_content": True}) as session:
        earlier = typed("My colour is blue.")
        await session.send_client_content(turns=earlier, turn_complete=True)
        await session.send_realtime_input(text="Which colour?")
        assert text_of([message async for message in session.receive()]) == "Blue. "
    [request] = upstream.model.asked
    assert [message["content"] for message in request.messages[1:]] == ["My colour is blue.", "Which colour?"]


async def test_blank_text_asks_for_an_answer_to_the_initial_history(upstream: Upstream) -> None:
    upstream.model.will_answer(words("Hello."))
    async with talk(upstream.client, history_config={"initial_history_in_client_content": True}) as session:
        await session.send_client_content(turns=typed("Say hello."), turn_complete=True)
        await session.send_realtime_input(text=" ")
        assert text_of([message async for message in session.receive()]) == "Hello. "
    [request] = upstream.model.asked
    assert [message["content"] for message in request.messages[1:]] == ["Say hello."]


async def test_a_turn_without_text_asks_for_an_answer_to_what_was_said(upstream: Upstream) -> None:
    upstream.model.will_answer(words("Hello."))
    async with talk(upstream.client) as session:
        await session.send_client_content(turns=typed("Hi."), turn_complete=False)
        await session.send_client_content(turn_complete=True)
        assert text_of([message async for message in session.receive()]) == "Hello. "


async def test_a_failed_answer_is_told_and_the_session_goes_on(upstream: Upstream) -> None:
    upstream.model.will_answer(Answer(status=401), words("Now."))
    async with talk(upstream.client) as session:
        assert "Check OPENAI_API_KEY" in text_of(await say(session, "hi"))
        assert text_of(await say(session, "again")) == "Now. "


async def test_a_yes_approves_what_the_server_has_asked(client: genai.Client, folder: Path) -> None:
    async with talk(client) as session:
        assert text_of(await say(session, WISH)) == QUESTION
        assert not (folder / "tools" / "water_plants" / "watered").exists()
        assert text_of(await say(session, "yes")) == DONE
    assert (folder / "tools" / "water_plants" / "watered").read_text() == "garden\n"


# Tools.


async def next_call(session: AsyncSession) -> types.FunctionCall:
    async for message in session.receive():
        if message.tool_call is not None:
            [call] = message.tool_call.function_calls or []
            return call
    raise AssertionError("the turn ended without a call")


async def test_a_client_runs_its_own_function(upstream: Upstream) -> None:
    upstream.model.will_answer(calling(("set_light", {"is_on": True})), words("It is on."))
    async with talk(upstream.client, tools=[{"function_declarations": [LIGHT]}]) as session:
        await session.send_client_content(turns=typed("On!"))
        call = await next_call(session)
        assert (call.name, call.args) == ("set_light", {"is_on": True})
        result = types.FunctionResponse(id=call.id, name=call.name, response={"output": {"lit": True}})
        await session.send_tool_response(function_responses=result)
        assert text_of([message async for message in session.receive()]) == "It is on. "
    first, second = upstream.model.asked
    offered = {tool["function"]["name"]: tool["function"] for tool in first.body["tools"]}
    assert offered["set_light"]["parameters"]["properties"] == {"is_on": {"type": "boolean"}}
    assert json.loads(second.messages[-1]["content"]) == {"lit": True}


async def test_two_calls_at_once_are_answered_in_any_order(upstream: Upstream) -> None:
    upstream.model.will_answer(
        calling(("set_light", {"is_on": True}), ("set_light", {"is_on": False})), words("Blinked.")
    )
    async with talk(upstream.client, tools=[{"function_declarations": [LIGHT]}]) as session:
        await session.send_client_content(turns=typed("Blink!"))
        calls = [await next_call(session), await next_call(session)]
        assert {str(call.args) for call in calls} == {"{'is_on': True}", "{'is_on': False}"}
        for call in reversed(calls):
            result = types.FunctionResponse(id=call.id, name=call.name, response={"error": "broken"})
            await session.send_tool_response(function_responses=[result])
        assert text_of([message async for message in session.receive()]) == "Blinked. "
    assert all("broken" in message["content"] for message in upstream.model.asked[1].messages[-2:])


async def test_a_result_of_no_call_is_ignored(client: genai.Client) -> None:
    async with talk(client, tools=[{"function_declarations": [LIGHT]}]) as session:
        stray = types.FunctionResponse(id="function-call-1", name="set_light", response={"output": 1})
        await session.send_tool_response(function_responses=stray)
        assert text_of(await say(session, SUM)) == SUM_IS


async def test_the_context_can_be_changed_during_the_session(upstream: Upstream) -> None:
    upstream.model.will_answer(words("One."), words("Two."))
    async with talk(upstream.client, system_instruction="First.") as session:
        await say(session, "hi")
        tool = types.Tool.model_validate({"function_declarations": [LIGHT]})
        await session.send_context_update(system_instruction="Second.", tools=[tool])
        await say(session, "hi again")
    first, second = upstream.model.asked
    assert first.messages[0]["content"].rstrip().endswith("First.")
    assert second.messages[0]["content"].rstrip().endswith("Second.")
    assert "set_light" in [tool["function"]["name"] for tool in second.body["tools"]]


# Resumption.


async def test_a_session_is_resumed_with_its_handle(upstream: Upstream) -> None:
    upstream.model.will_answer(words("Noted."), words("Ann."))
    async with talk(upstream.client, session_resumption={}) as session:
        handles = handles_of(await say(session, "I am Ann."))
    assert handles
    async with talk(upstream.client, session_resumption={"handle": handles[-1]}) as session:
        messages = await say(session, "Who am I?")
        assert text_of(messages) == "Ann. "
        assert handles_of(messages)
    assert [message["content"] for message in upstream.model.asked[1].messages[1:]] == [
        "I am Ann.",
        "Noted. ",
        "Who am I?",
    ]


async def test_no_handle_is_sent_unless_asked_for(client: genai.Client) -> None:
    async with talk(client) as session:
        assert handles_of(await say(session, SUM)) == []


@pytest.mark.parametrize("handle", ["apr_" + "x" * 43, "Cihoandle0"])
async def test_an_unknown_handle_is_refused_as_google_does(client: genai.Client, handle: str) -> None:
    with pytest.raises(errors.APIError, match="BidiGenerateContent session not found") as caught:
        async with talk(client, session_resumption={"handle": handle}):
            pass
    assert caught.value.code == 1008


async def test_a_handle_of_another_user_is_refused(proxy: TlsProxy, token: str) -> None:
    async with talk(client_of(proxy, token), session_resumption={}) as session:
        handle = handles_of(await say(session, SUM))[-1]
    with pytest.raises(errors.APIError, match="session not found"):
        async with talk(client_of(proxy), session_resumption={"handle": handle}):
            pass


async def test_a_server_that_stops_says_so_before(tmp_path: Path, folder: Path) -> None:
    with serve(tmp_path, limits=UNLIMITED) as served:
        async with (
            tls_proxy(served.port, folder / "tls") as proxy,
            talk(client_of(proxy), session_resumption={}) as session,
        ):
            await say(session, SUM)
            served.process.send_signal(signal.SIGTERM)
            async for message in session.receive():
                if message.go_away is not None:
                    break
            assert message.go_away is not None
            assert float(str(message.go_away.time_left).removesuffix("s")) > 0


# Keys.


async def connect(served: Served, path: str = PATH, **headers: str) -> int:
    """Returns the status of an upgrade."""
    try:
        async with websockets.connect(f"ws://127.0.0.1:{served.port}{path}", additional_headers=headers, proxy=None):
            return 101
    except websockets.InvalidStatus as error:
        return int(json.loads(error.response.body)["error"]["code"])


async def test_a_token_is_accepted_wherever_google_accepts_a_key(locked: Served, tokens: dict[str, str]) -> None:
    key = tokens["ann"]
    assert await connect(locked, **{"x-goog-api-key": key}) == 101
    assert await connect(locked, f"{PATH}?key={key}") == 101
    assert await connect(locked, f"{PATH}Constrained", authorization=f"Token auth_tokens/{key}") == 101
    assert await connect(locked, authorization=f"Bearer {key}") == 101
    assert key not in locked.log


async def test_a_wrong_or_missing_key_is_refused_at_the_upgrade(locked: Served) -> None:
    assert await connect(locked) == 401
    assert await connect(locked, **{"x-goog-api-key": "AIzaWrong"}) == 401


# Refusals.


@asynccontextmanager
async def raw(served: Served) -> AsyncIterator[websockets.ClientConnection]:
    async with websockets.connect(f"ws://127.0.0.1:{served.port}{PATH}", proxy=None) as socket:
        yield socket


async def closed_with(served: Served, *frames: str | Mapping[str, Any]) -> tuple[int, str]:
    """Sends frames, and returns the code and reason with which the server closes."""
    async with raw(served) as socket:
        for frame in frames:
            await socket.send(frame if isinstance(frame, str) else json.dumps(frame))
        await asyncio.wait_for(socket.wait_closed(), 10)
    assert socket.close_code is not None
    return socket.close_code, socket.close_reason or ""


TEXT: Final = {"responseModalities": ["TEXT"]}
SETUP: Final = {"setup": {"model": "models/m", "generationConfig": TEXT}}


def with_function(name: str) -> dict[str, Any]:
    return {"setup": {**SETUP["setup"], "tools": [{"functionDeclarations": [{"name": name}]}]}}


BAD_FRAMES: Final[Mapping[str, tuple[tuple[str | Mapping[str, Any], ...], int, str]]] = {
    "no JSON": (("{",), 1007, "Invalid JSON payload received."),
    "a list": (("[]",), 1007, "Invalid value at 'the message': Expected `object`, got `array`."),
    "an unknown message": (({"hello": {}},), 1007, 'Unknown name "hello": Cannot find field.'),
    "an unknown field": (
        ({"setup": {"model": "m", "colour": 1}},),
        1007,
        "Invalid JSON payload received. Unknown name \"colour\" at 'setup': Cannot find field.",
    ),
    "an unknown field deep inside": (
        ({"setup": {"model": "m", "generation_config": {"speech_config": {"voice": {}}}}},),
        1007,
        "Unknown name \"voice\" at 'setup.generation_config.speech_config'",
    ),
    "no model": (({"setup": {}},), 1007, "missing required field `model`"),
    "no setup": (({"clientContent": {"turnComplete": True}},), 1007, "setup must be the first message"),
    "two setups": ((SETUP, SETUP), 1007, "setup must be the first message and only the first."),
    "no voice": (({"setup": {"model": "m"}},), 1008, "This server has no voice. Set response_modalities to TEXT."),
    "two modalities": (
        ({"setup": {"model": "m", "generationConfig": {"responseModalities": ["TEXT", "AUDIO"]}}},),
        1007,
        "response_modalities must be one of AUDIO and TEXT",
    ),
    "a tool of Google": (
        ({"setup": {"model": "m", "generationConfig": TEXT, "tools": [{"googleSearch": {}}]}},),
        1008,
        "google_search is not available here.",
    ),
    "a function with a bad name": (
        (with_function("a b"),),
        1007,
        "is not a tool name",
    ),
    "a function of the server": (
        (
            {
                "setup": {
                    "model": "m",
                    "generationConfig": TEXT,
                    "tools": [{"functionDeclarations": [{"name": "water_plants"}]}],
                }
            },
        ),
        1007,
        "The server has a tool called water_plants itself",
    ),
    "a result without an id": (
        (SETUP, {"toolResponse": {"functionResponses": [{"name": "f", "response": {}}]}}),
        1007,
        "must have the `id`",
    ),
    "audio without a voice": (
        (SETUP, {"realtimeInput": {"audio": {"data": "AAAA", "mimeType": "audio/pcm"}}}),
        1008,
        "it cannot hear",
    ),
    "video": ((SETUP, {"realtimeInput": {"video": {"data": "AAAA", "mimeType": "image/jpeg"}}}), 1007, "not video"),
    "activity with automatic detection": ((SETUP, {"realtimeInput": {"activityStart": {}}}), 1007, "Explicit activity"),
    "a picture in a turn": (
        (SETUP, {"clientContent": {"turns": [{"parts": [{"inlineData": {"data": "", "mimeType": "image/png"}}]}]}}),
        1007,
        "text only",
    ),
    "a long text": ((SETUP, {"realtimeInput": {"text": "x" * 8_001}}), 1007, "at most 8000 characters"),
}


@pytest.mark.parametrize("name", BAD_FRAMES)
async def test_a_bad_message_closes_with_the_reason(served: Served, name: str) -> None:
    frames, code, says = BAD_FRAMES[name]
    closed = await closed_with(served, *frames)
    assert closed[0] == code
    assert says in closed[1]


async def test_fields_may_be_written_in_either_case(served: Served) -> None:
    async with raw(served) as socket:
        await socket.send(
            json.dumps({"setup": {"model": "models/m", "generation_config": {"response_modalities": ["TEXT"]}}})
        )
        assert "setupComplete" in json.loads(await socket.recv())
        content = {"turns": [{"role": "user", "parts": [{"text": SUM}]}], "turn_complete": True}
        await socket.send(json.dumps({"client_content": content}).encode())
        answer = json.loads(await socket.recv())
    assert answer["serverContent"]["modelTurn"]["parts"] == [{"text": SUM_IS}]


async def test_the_log_has_no_failure_after_all_of_this(served: Served) -> None:
    assert served.failures == []
    assert SUM not in served.log
