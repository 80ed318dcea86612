"""The unmodified openai SDK talks to `/v1/chat/completions` and `/v1/models`."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx2
import openai
import pytest
from openai import AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from antiphon.security.quota import Kind, Limit, Rate
from tests.fakes.chat_server import Answer, ChatServer, End, call_delta, delta, event, refusal, stream, tokens, words
from tests.fakes.toolbox import document, write_tool
from tests.wire.served import UNLIMITED, Served, add_token, make_known, serve
from tests.wire.test_confirmation import DECLINED, DONE, QUESTION, WISH, write_garden

pytestmark = pytest.mark.real_time

Messages = list[Any]

LIGHT: Final = {
    "type": "function",
    "function": {
        "name": "set_light",
        "description": "Switches a light of the client.",
        "parameters": {"type": "object", "properties": {"is_on": {"type": "boolean"}}, "required": ["is_on"]},
    },
}
SUM: Final = "what is 2 plus 3"
SUM_IS: Final = "2 plus 3 is 5."

BELL: Final = """\
from pathlib import Path

from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok


async def execute(args: Args, context: Context) -> ToolResult:
    with (Path(__file__).parent / "rung").open("a") as lines:
        lines.write("ding\\n")
    return ok({"rung": True}, spoken="The bell has rung.")
"""


def client_of(served: Served, key: str = "sk-local", **options: Any) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{served.http}/v1", api_key=key, max_retries=0, **options)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def write_bell(folder: Path) -> Path:
    """A tool of the server that does something each time it runs, without asking."""
    return write_tool(
        folder / "tools",
        "ring_bell",
        category="action",
        sideEffects="writes",
        idempotent=False,
        parameters={"type": "object", "additionalProperties": False, "properties": {}},
        files={"handler.py": BELL, "doc.md": document("ring_bell", "{}")},
    )


def calling(*calls: tuple[str, Mapping[str, Any]], prefix: str = "upstream-call") -> Answer:
    """A message of the model behind the server with these calls."""
    made = [
        {
            "index": n,
            "id": f"{prefix}-{n}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(args)},
        }
        for n, (name, args) in enumerate(calls)
    ]
    return stream(call_delta(*made, role="assistant"), delta("tool_calls"))


async def ask(client: AsyncOpenAI, messages: Messages, **options: Any) -> ChatCompletion:
    answer = await client.chat.completions.create(model="antiphon", messages=messages, **options)
    assert isinstance(answer, ChatCompletion)
    return answer


async def say(client: AsyncOpenAI, messages: Messages, **options: Any) -> str:
    """Asks, adds the answer to the messages as a client does, and returns it."""
    answer = (await ask(client, messages, **options)).choices[0]
    assert answer.finish_reason == "stop"
    text = answer.message.content or ""
    messages.append(assistant(text))
    return text


async def chunks_of(client: AsyncOpenAI, messages: Messages, **options: Any) -> list[ChatCompletionChunk]:
    streamed = await client.chat.completions.create(model="antiphon", messages=messages, stream=True, **options)
    assert isinstance(streamed, AsyncStream)
    return [chunk async for chunk in streamed]


def text_of(chunks: Sequence[ChatCompletionChunk]) -> str:
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


@pytest.fixture(scope="module")
def garden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_garden(tmp_path_factory.mktemp("garden"))


@pytest.fixture(scope="module")
def tokens_of_users(garden: Path) -> dict[str, str]:
    return {name: add_token(garden.parents[1], name) for name in ("ann", "bob")}


@pytest.fixture(scope="module")
def served(garden: Path, tokens_of_users: dict[str, str]) -> Iterator[Served]:
    """The offline assistant, with a tool that asks before it runs."""
    with serve(garden.parents[1], limits=UNLIMITED) as served:
        yield served


@pytest.fixture
async def client(served: Served) -> AsyncIterator[AsyncOpenAI]:
    async with client_of(served) as client:
        yield client


class Upstream:
    """A server whose text model answers as a test tells it."""

    def __init__(self, served: Served, model: ChatServer, client: AsyncOpenAI, folder: Path) -> None:
        self.served = served
        self.model = model
        self.client = client
        self.folder = folder


@pytest.fixture
async def upstream(tmp_path: Path) -> AsyncIterator[Upstream]:
    script: list[Answer] = []
    async with ChatServer(lambda request: script.pop(0), hides_warm_ups=True) as model:
        model.script = script  # type: ignore[attr-defined]
        write_bell(tmp_path)
        write_garden(tmp_path)
        with serve(tmp_path, limits=UNLIMITED, model={"text": f"openai:{model.url}#m"}) as served:
            async with client_of(served) as client:
                yield Upstream(served, model, client, tmp_path)


def will_answer(upstream: Upstream, *answers: Answer) -> None:
    upstream.model.script.extend(answers)  # type: ignore[attr-defined]


def rung(upstream: Upstream) -> int:
    path = upstream.folder / "tools" / "ring_bell" / "rung"
    return len(path.read_text().splitlines()) if path.exists() else 0


# Plain answers.


async def test_a_question_is_answered_with_the_servers_tools(client: AsyncOpenAI) -> None:
    answer = await ask(client, [user(SUM)])
    assert (answer.object, answer.model) == ("chat.completion", "antiphon")
    [choice] = answer.choices
    assert (choice.message.role, choice.message.content, choice.finish_reason) == ("assistant", SUM_IS, "stop")
    assert choice.message.tool_calls is None


async def test_a_streamed_answer_has_a_role_first_and_its_reason_last(client: AsyncOpenAI) -> None:
    chunks = await chunks_of(client, [user(SUM)])
    assert text_of(chunks) == SUM_IS
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert len({chunk.id for chunk in chunks}) == 1


async def test_the_stream_is_events_that_end_with_done(served: Served) -> None:
    body = {"model": "antiphon", "messages": [user(SUM)], "stream": True}
    async with httpx2.AsyncClient() as client:
        response = await client.post(f"{served.http}/v1/chat/completions", json=body)
    assert response.headers["content-type"].startswith("text/event-stream")
    events = response.text.removesuffix("\n\n").split("\n\n")
    assert events[-1] == "data: [DONE]"
    assert all(json.loads(each.removeprefix("data: "))["object"] == "chat.completion.chunk" for each in events[:-1])


async def test_the_model_gets_the_history_and_the_clients_instructions_and_tools(upstream: Upstream) -> None:
    will_answer(upstream, words("It is off."))
    history: Messages = [
        {"role": "system", "content": "Speak like a pirate."},
        {"role": "developer", "content": [{"type": "text", "text": "Be short."}]},
        user("Turn it off."),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "set_light", "arguments": '{"is_on": false}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "done"},
        assistant("Off."),
        user("Is it off?"),
    ]
    assert await say(upstream.client, history, tools=[LIGHT], temperature=0.1, max_tokens=50) == "It is off. "
    [request] = upstream.model.requests
    system, *rest = request.messages
    assert "Speak like a pirate.\n\nBe short." in system["content"]
    assert [message["role"] for message in rest] == ["user", "assistant", "tool", "assistant", "user"]
    assert rest[1]["tool_calls"][0]["function"]["name"] == "set_light"
    assert (rest[2]["tool_call_id"], rest[2]["content"]) == ("call_1", "done")
    offered = [tool["function"]["name"] for tool in request.body["tools"]]
    assert offered[-1] == "set_light"
    assert "ring_bell" in offered


async def test_no_tool_is_offered_with_the_choice_none(upstream: Upstream) -> None:
    will_answer(upstream, words("Hello."))
    await say(upstream.client, [user("hello")], tools=[LIGHT], tool_choice="none")
    assert not upstream.model.requests[0].body.get("tools")


async def test_tokens_of_all_messages_of_an_answer_are_added_up(upstream: Upstream) -> None:
    ring = calling(("ring_bell", {}))
    will_answer(upstream, Answer((*ring.pieces[:-1], event(tokens(100, 5)), ring.pieces[-1])))
    will_answer(upstream, stream(delta(content="Done."), delta("stop"), tokens(120, 2)))
    answer = await ask(upstream.client, [user("ring")])
    assert answer.usage is not None
    used = answer.usage
    assert (used.prompt_tokens, used.completion_tokens, used.total_tokens) == (220, 7, 227)


@pytest.mark.parametrize("is_wanted", [True, False])
async def test_a_stream_tells_its_tokens_only_if_asked(upstream: Upstream, is_wanted: bool) -> None:
    will_answer(upstream, stream(delta(content="Hi."), delta("stop"), tokens(7, 2)))
    options = {"stream_options": {"include_usage": True}} if is_wanted else {}
    chunks = await chunks_of(upstream.client, [user("hi")], **options)
    told = [chunk.usage.total_tokens for chunk in chunks if chunk.usage is not None]
    assert told == ([9] if is_wanted else [])
    assert all(chunk.choices for chunk in chunks if chunk.usage is None)


# The client's tools.


async def test_a_client_runs_its_own_tool_and_gets_the_answer(upstream: Upstream) -> None:
    will_answer(upstream, calling(("set_light", {"is_on": True})), words("It is on."))
    messages: Messages = [user("Turn the light on.")]
    first = (await ask(upstream.client, messages, tools=[LIGHT])).choices[0]
    assert first.finish_reason == "tool_calls"
    assert first.message.tool_calls is not None
    [made] = first.message.tool_calls
    assert made.type == "function"
    assert (made.function.name, json.loads(made.function.arguments)) == ("set_light", {"is_on": True})
    messages.append(first.message.model_dump(exclude_none=True))
    messages.append({"role": "tool", "tool_call_id": made.id, "content": '{"is_on": true}'})
    assert await say(upstream.client, messages, tools=[LIGHT]) == "It is on. "
    assert upstream.model.requests[1].messages[-1]["content"] == '{"is_on":true}'


async def test_streamed_calls_have_their_names_once_and_their_arguments_after(upstream: Upstream) -> None:
    will_answer(upstream, calling(("set_light", {"is_on": True}), ("set_light", {"is_on": False})))
    chunks = await chunks_of(upstream.client, [user("Blink.")], tools=[LIGHT])
    pieces = [call for chunk in chunks for choice in chunk.choices for call in choice.delta.tool_calls or ()]
    named = [(piece.index, piece.function.name) for piece in pieces if piece.function and piece.function.name]
    assert named == [(0, "set_light"), (1, "set_light")]
    assert len({piece.id for piece in pieces if piece.id}) == 2
    arguments = ["".join(p.function.arguments or "" for p in pieces if p.function and p.index == n) for n in (0, 1)]
    assert [json.loads(each) for each in arguments] == [{"is_on": True}, {"is_on": False}]
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


async def test_the_sdks_own_accumulator_understands_the_stream(upstream: Upstream) -> None:
    will_answer(upstream, calling(("set_light", {"is_on": True})))
    async with upstream.client.chat.completions.stream(
        model="antiphon",
        messages=[{"role": "user", "content": "On."}],
        tools=[LIGHT],  # type: ignore[list-item]
    ) as streamed:
        final = await streamed.get_final_completion()
    [made] = final.choices[0].message.tool_calls or []
    assert (made.function.name, json.loads(made.function.arguments)) == ("set_light", {"is_on": True})


async def test_of_a_message_with_calls_of_both_only_the_clients_are_made(upstream: Upstream) -> None:
    will_answer(upstream, calling(("ring_bell", {}), ("set_light", {"is_on": True})))
    answer = await ask(upstream.client, [user("Ring and turn it on.")], tools=[LIGHT])
    made = [call.function.name for call in answer.choices[0].message.tool_calls or [] if call.type == "function"]
    assert (made, rung(upstream)) == (["set_light"], 0)


async def test_a_call_repeated_after_the_clients_results_is_not_run_again(upstream: Upstream) -> None:
    will_answer(upstream, calling(("ring_bell", {})), calling(("set_light", {"is_on": True})))
    messages: Messages = [user("Ring, then turn it on.")]
    first = (await ask(upstream.client, messages, tools=[LIGHT])).choices[0].message
    [made] = first.tool_calls or []
    messages.append(first.model_dump(exclude_none=True))
    messages.append({"role": "tool", "tool_call_id": made.id, "content": "on"})
    will_answer(upstream, calling(("ring_bell", {}), prefix="another-call"), words("Both done."))
    assert await say(upstream.client, messages, tools=[LIGHT]) == "Both done. "
    assert rung(upstream) == 1


async def test_the_same_words_in_another_conversation_run_a_tool_again(upstream: Upstream) -> None:
    for _ in range(2):
        will_answer(upstream, calling(("ring_bell", {})), words("Ding."))
        await say(upstream.client, [user("Ring.")])
    assert rung(upstream) == 2


async def test_a_tool_with_the_name_of_a_servers_tool_is_refused(client: AsyncOpenAI) -> None:
    clash = {"type": "function", "function": {"name": "water_plants"}}
    with pytest.raises(openai.BadRequestError, match="The server has a tool called water_plants itself"):
        await ask(client, [user("hi")], tools=[clash])


# Confirmation.


def watered(garden: Path) -> int:
    path = garden / "watered"
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.mark.parametrize(("word", "answer", "runs"), [("yes", DONE, 1), ("no", DECLINED, 0)])
async def test_a_yes_or_no_in_the_next_request_decides(
    client: AsyncOpenAI, garden: Path, word: str, answer: str, runs: int
) -> None:
    before, messages = watered(garden), [user(WISH)]
    assert await say(client, messages) == QUESTION
    assert watered(garden) == before
    messages.append(user(word))
    assert await say(client, messages) == answer
    assert watered(garden) == before + runs


async def test_a_yes_works_once(client: AsyncOpenAI, garden: Path) -> None:
    messages = [user(WISH)]
    await say(client, messages)
    before = watered(garden)
    approved = [*messages, user("yes")]
    for _ in range(2):
        await ask(client, approved)
    assert watered(garden) == before + 1


async def test_a_question_that_was_asked_twice_is_answered_by_one_yes(client: AsyncOpenAI, garden: Path) -> None:
    messages = [user(WISH)]
    await ask(client, messages)
    await say(client, messages)
    before = watered(garden)
    for _ in range(2):
        await ask(client, [*messages, user("yes")])
    assert watered(garden) == before + 1


async def test_a_yes_in_another_conversation_decides_nothing(client: AsyncOpenAI, garden: Path) -> None:
    await say(client, [user(WISH)])
    before = watered(garden)
    await ask(client, [user("Shall we?"), assistant(QUESTION), user("yes")])
    await ask(client, [user("yes")])
    assert watered(garden) == before


async def test_a_yes_of_another_user_decides_nothing(
    served: Served, garden: Path, tokens_of_users: dict[str, str]
) -> None:
    messages = [user(WISH)]
    async with client_of(served, tokens_of_users["ann"]) as ann, client_of(served, tokens_of_users["bob"]) as bob:
        await say(ann, messages)
        before = watered(garden)
        await ask(bob, [*messages, user("yes")])
        assert watered(garden) == before
        await ask(ann, [*messages, user("yes")])
        assert watered(garden) == before + 1


async def test_a_model_that_asks_in_other_words_does_not_hide_what_a_yes_would_run(upstream: Upstream) -> None:
    will_answer(upstream, calling(("water_plants", {"place": "garden"})), words("May I?"))
    assert await say(upstream.client, [user("do it")]) == f"May I? \n\n{QUESTION}"


async def test_a_model_that_repeats_a_declined_call_is_refused(upstream: Upstream) -> None:
    water = ("water_plants", {"place": "garden"})
    will_answer(upstream, calling(water), words(QUESTION))
    messages = [user("the garden looks dry")]
    await say(upstream.client, messages)
    messages.append(user("no"))
    will_answer(upstream, calling(water, prefix="another-call"), words("All right."))
    assert await say(upstream.client, messages) == "All right. "
    assert "declined" in upstream.model.requests[-1].messages[-1]["content"]
    assert not (upstream.folder / "tools" / "water_plants" / "watered").exists()


# Models.


async def test_the_models_are_listed_and_shown(client: AsyncOpenAI) -> None:
    listed = [model.id async for model in client.models.list()]
    assert listed == ["antiphon", "builtin"]
    assert (await client.models.retrieve("builtin")).id == "builtin"


async def test_an_unknown_model_is_refused_with_the_names_of_those_there_are(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="`gpt-5` does not exist on this server") as caught:
        await client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "hi"}])
    assert caught.value.code == "model_not_found"
    with pytest.raises(openai.NotFoundError):
        await client.models.retrieve("openai/gpt-5")


# Refusals.


def with_call(id: str = "c1", arguments: str = "{}", answered: bool = True) -> Messages:
    call = {"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}}
    result = [{"role": "tool", "tool_call_id": "c1", "content": "x"}] if answered else []
    return [user("hi"), {"role": "assistant", "tool_calls": [call]}, *result]


GOOD_BODY: Final = {"model": "antiphon", "messages": [user("hi")]}
BAD_BODIES: Final[Mapping[str, tuple[Any, str, str | None]]] = {
    "nothing": ({}, "Missing required parameter: 'messages'.", "messages"),
    "no model": ({"messages": [user("hi")]}, "Missing required parameter: 'model'.", "model"),
    "a list": ([], "Expected `object`", None),
}
"""Each with what the message says and the field that it names."""
BAD_FIELDS: Final[Mapping[str, tuple[dict[str, Any], str, str]]] = {
    "no messages": ({"messages": []}, "length >= 1", "messages"),
    "an unknown field": ({"tempo": 1}, "argument supplied: tempo", "tempo"),
    "an unknown role": ({"messages": [{"role": "robot", "content": "x"}]}, "'robot'", "messages[0].role"),
    "no content": ({"messages": [{"role": "user"}]}, "Missing required parameter", "messages[0].content"),
    "a blank message": ({"messages": [user("  ")]}, "blank", "messages[0].content"),
    "an image": (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]},
        "text only",
        "messages[0].content[0].type",
    ),
    "an answer last": ({"messages": [user("hi"), assistant("ho")]}, "`user` or `tool`", "messages[1].role"),
    "only instructions": ({"messages": [{"role": "system", "content": "x"}]}, "`user` or `tool`", "messages[0].role"),
    "a call without its result": (
        {"messages": [*with_call(answered=False), user("so?")]},
        "missing: c1",
        "messages[2]",
    ),
    "a result without its call": (
        {"messages": [user("hi"), {"role": "tool", "tool_call_id": "c9", "content": "x"}]},
        "must answer a call",
        "messages[1].tool_call_id",
    ),
    "arguments that are no JSON": (
        {"messages": with_call(arguments="{")},
        "must be JSON",
        "messages[1].tool_calls[0].function.arguments",
    ),
    "two answers": ({"n": 2}, "one answer", "n"),
    "a stop word": ({"stop": ["."]}, "`stop`", "stop"),
    "JSON output": ({"response_format": {"type": "json_object"}}, "plain text only", "response_format"),
    "spoken output": ({"modalities": ["text", "audio"]}, "text only", "modalities"),
    "log probabilities": ({"logprobs": True}, "log probabilities", "logprobs"),
    "outdated functions": ({"functions": []}, "outdated", "functions"),
    "a forced call": ({"tool_choice": "required"}, "cannot be forced", "tool_choice"),
    "a tool without a name": ({"tools": [{"type": "function", "function": {}}]}, "Missing", "tools[0].function.name"),
    "a tool with a bad name": (
        {"tools": [{"type": "function", "function": {"name": "a b"}}]},
        "matching regex",
        "tools[0].function.name",
    ),
    "two equal tools": ({"tools": [LIGHT, LIGHT]}, "same name", "tools"),
    "a custom tool": ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "'custom'", "tools[0].type"),
    "options without a stream": ({"stream_options": {"include_usage": True}}, "only allowed with", "stream_options"),
    "a number as the stream": ({"stream": 1}, "Expected `bool", "stream"),
}


@pytest.mark.parametrize("name", [*BAD_BODIES, *BAD_FIELDS])
async def test_a_bad_body_is_refused_with_the_field_that_is_wrong(served: Served, name: str) -> None:
    if name in BAD_BODIES:
        body, says, param = BAD_BODIES[name]
    else:
        fields, says, param = BAD_FIELDS[name]
        body = {**GOOD_BODY, **fields}
    async with httpx2.AsyncClient() as client:
        response = await client.post(f"{served.http}/v1/chat/completions", json=body)
    error = response.json()["error"]
    assert (response.status_code, error["type"], error["param"]) == (400, "invalid_request_error", param), error
    assert says in error["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 5_000, b'{"model": "\\ud800"}', b'{"model": NaN}'])
async def test_a_body_that_is_not_json_is_refused(served: Served, body: bytes) -> None:
    async with httpx2.AsyncClient() as client:
        response = await client.post(f"{served.http}/v1/chat/completions", content=body)
    assert (response.status_code, response.json()["error"]["type"]) == (400, "invalid_request_error")


async def test_a_long_body_is_refused(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.APIStatusError, match="at most 1048576 bytes") as caught:
        await ask(client, [user("x" * (1 << 20))])
    assert caught.value.status_code == 413


async def test_a_token_is_required_where_the_server_requires_one(tmp_path: Path) -> None:
    token = await make_known(tmp_path, "ann")
    with serve(tmp_path, limits=UNLIMITED, server={"auth": "required"}) as served:
        for key in ("sk-wrong", token[:-1] + ("a" if token[-1] != "a" else "b")):
            async with client_of(served, key) as client:
                with pytest.raises(openai.AuthenticationError, match="antiphon token new"):
                    await ask(client, [user(SUM)])
                with pytest.raises(openai.AuthenticationError):
                    await client.models.list()
        async with client_of(served, token) as client:
            assert await say(client, [user(SUM)]) == SUM_IS


async def test_too_many_requests_are_refused_with_the_time_to_wait(tmp_path: Path) -> None:
    limits = {Kind.CONNECTION: Limit(user=Rate(per_s=0.1, burst=1))}
    with serve(tmp_path, limits=limits) as served:
        async with client_of(served) as client:
            await say(client, [user(SUM)])
            with pytest.raises(openai.RateLimitError) as caught:
                await ask(client, [user(SUM)])
    assert 1 <= int(caught.value.response.headers["retry-after"]) <= 10


async def test_a_failure_of_the_model_is_told_before_anything_was_said(upstream: Upstream) -> None:
    will_answer(upstream, refusal(401, {"error": {"message": "no"}}))
    with pytest.raises(openai.InternalServerError) as caught:
        await chunks_of(upstream.client, [user("hi")])
    assert (caught.value.status_code, caught.value.code) == (502, "model_failed")


async def test_a_failure_after_a_tool_has_run_is_not_retried_by_the_sdk(upstream: Upstream) -> None:
    will_answer(upstream, calling(("ring_bell", {})), *[stream(delta(content="So"), done=False, end=End.CUT)] * 4)
    with pytest.raises(openai.InternalServerError):
        await ask(upstream.client.with_options(max_retries=2), [user("ring")])
    assert rung(upstream) == 1
    assert len(upstream.model.requests) == 2


async def test_a_failure_in_mid_stream_is_an_error_of_the_sdk(upstream: Upstream) -> None:
    will_answer(upstream, stream(delta(content="So "), done=False, end=End.CUT))
    said: list[str | None] = []

    def listen() -> None:
        # The SDK's asynchronous stream leaves a generator open after an error.
        with openai.OpenAI(base_url=f"{upstream.served.http}/v1", api_key="sk-local", max_retries=0) as client:
            for chunk in client.chat.completions.create(
                model="antiphon", messages=[{"role": "user", "content": "hi"}], stream=True
            ):
                said.append(chunk.choices[0].delta.content)

    with pytest.raises(openai.APIError, match="broke off"):
        await asyncio.to_thread(listen)
    assert said == ["So "]


@pytest.mark.parametrize("is_streamed", [True, False])
async def test_a_client_that_goes_away_cancels_its_answer(upstream: Upstream, is_streamed: bool) -> None:
    will_answer(upstream, stream(delta(content="So "), done=False, end=End.STALL))
    body = {"model": "antiphon", "messages": [user("hi")], "stream": is_streamed}
    async with httpx2.AsyncClient() as client:
        asking = asyncio.create_task(client.post(f"{upstream.served.http}/v1/chat/completions", json=body))
        await asyncio.wait_for(upstream.model.stalled.wait(), 10)
        asking.cancel()
        await asyncio.wait([asking])
    await asyncio.wait_for(upstream.model.left.wait(), 10)
    assert upstream.served.failures == []


async def test_nothing_of_a_conversation_is_stored_or_logged(served: Served, client: AsyncOpenAI) -> None:
    await say(client, [{"role": "system", "content": "Secret instructions."}, user("what is 4123 plus 1")])
    async with httpx2.AsyncClient() as http:
        stored = (await http.get(f"{served.http}/api/conversations")).json()
    assert stored["conversations"] == []
    assert "4123" not in served.log
    assert served.failures == []
