"""The unmodified openai SDK talks to `/v1/chat/completions` and `/v1/models`."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import openai
import pytest
from openai import AsyncOpenAI

from tests.fakes.chat_server import Answer, delta, event, stream, tokens, words
from tests.wire.chat_client import (
    LIGHT,
    SUM,
    SUM_IS,
    Messages,
    Upstream,
    ask,
    assistant,
    calling,
    chunks_of,
    client_of,
    rung,
    say,
    serve_upstream,
    text_of,
    user,
)
from tests.wire.served import UNLIMITED, Served, add_token, serve
from tests.wire.test_confirmation import DECLINED, DONE, QUESTION, WISH, write_garden

pytestmark = pytest.mark.real_time


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


@pytest.fixture
async def upstream(tmp_path: Path) -> AsyncIterator[Upstream]:
    async with serve_upstream(tmp_path) as upstream:
        yield upstream


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
    upstream.model.will_answer(words("It is off."))
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
    [request] = upstream.model.asked
    system, *rest = request.messages
    assert "Speak like a pirate.\n\nBe short." in system["content"]
    assert [message["role"] for message in rest] == ["user", "assistant", "tool", "assistant", "user"]
    assert rest[1]["tool_calls"][0]["function"]["name"] == "set_light"
    assert (rest[2]["tool_call_id"], rest[2]["content"]) == ("call_1", "done")
    offered = [tool["function"]["name"] for tool in request.body["tools"]]
    assert offered[-1] == "set_light"
    assert "ring_bell" in offered


async def test_no_tool_is_offered_with_the_choice_none(upstream: Upstream) -> None:
    upstream.model.will_answer(words("Hello."))
    await say(upstream.client, [user("hello")], tools=[LIGHT], tool_choice="none")
    assert not upstream.model.asked[0].body.get("tools")


async def test_tokens_of_all_messages_of_an_answer_are_added_up(upstream: Upstream) -> None:
    ring = calling(("ring_bell", {}))
    upstream.model.will_answer(Answer((*ring.pieces[:-1], event(tokens(100, 5)), ring.pieces[-1])))
    upstream.model.will_answer(stream(delta(content="Done."), delta("stop"), tokens(120, 2)))
    answer = await ask(upstream.client, [user("ring")])
    assert answer.usage is not None
    used = answer.usage
    assert (used.prompt_tokens, used.completion_tokens, used.total_tokens) == (220, 7, 227)


@pytest.mark.parametrize("is_wanted", [True, False])
async def test_a_stream_tells_its_tokens_only_if_asked(upstream: Upstream, is_wanted: bool) -> None:
    upstream.model.will_answer(stream(delta(content="Hi."), delta("stop"), tokens(7, 2)))
    options = {"stream_options": {"include_usage": True}} if is_wanted else {}
    chunks = await chunks_of(upstream.client, [user("hi")], **options)
    told = [chunk.usage.total_tokens for chunk in chunks if chunk.usage is not None]
    assert told == ([9] if is_wanted else [])
    assert all(chunk.choices for chunk in chunks if chunk.usage is None)


# The client's tools.


async def test_a_client_runs_its_own_tool_and_gets_the_answer(upstream: Upstream) -> None:
    upstream.model.will_answer(calling(("set_light", {"is_on": True})), words("It is on."))
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
    assert upstream.model.asked[1].messages[-1]["content"] == '{"is_on":true}'


async def test_streamed_calls_have_their_names_once_and_their_arguments_after(upstream: Upstream) -> None:
    upstream.model.will_answer(calling(("set_light", {"is_on": True}), ("set_light", {"is_on": False})))
    chunks = await chunks_of(upstream.client, [user("Blink.")], tools=[LIGHT])
    pieces = [call for chunk in chunks for choice in chunk.choices for call in choice.delta.tool_calls or ()]
    named = [(piece.index, piece.function.name) for piece in pieces if piece.function and piece.function.name]
    assert named == [(0, "set_light"), (1, "set_light")]
    assert len({piece.id for piece in pieces if piece.id}) == 2
    arguments = ["".join(p.function.arguments or "" for p in pieces if p.function and p.index == n) for n in (0, 1)]
    assert [json.loads(each) for each in arguments] == [{"is_on": True}, {"is_on": False}]
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


async def test_the_sdks_own_accumulator_understands_the_stream(upstream: Upstream) -> None:
    upstream.model.will_answer(calling(("set_light", {"is_on": True})))
    async with upstream.client.chat.completions.stream(
        model="antiphon",
        messages=[{"role": "user", "content": "On."}],
        tools=[LIGHT],  # type: ignore[list-item]
    ) as streamed:
        final = await streamed.get_final_completion()
    [made] = final.choices[0].message.tool_calls or []
    assert (made.function.name, json.loads(made.function.arguments)) == ("set_light", {"is_on": True})


async def test_of_a_message_with_calls_of_both_only_the_clients_are_made(upstream: Upstream) -> None:
    upstream.model.will_answer(calling(("ring_bell", {}), ("set_light", {"is_on": True})))
    answer = await ask(upstream.client, [user("Ring and turn it on.")], tools=[LIGHT])
    made = [call.function.name for call in answer.choices[0].message.tool_calls or [] if call.type == "function"]
    assert (made, rung(upstream)) == (["set_light"], 0)


async def test_a_call_repeated_after_the_clients_results_is_not_run_again(upstream: Upstream) -> None:
    upstream.model.will_answer(calling(("ring_bell", {})), calling(("set_light", {"is_on": True})))
    messages: Messages = [user("Ring, then turn it on.")]
    first = (await ask(upstream.client, messages, tools=[LIGHT])).choices[0].message
    [made] = first.tool_calls or []
    messages.append(first.model_dump(exclude_none=True))
    messages.append({"role": "tool", "tool_call_id": made.id, "content": "on"})
    upstream.model.will_answer(calling(("ring_bell", {}), prefix="another-call"), words("Both done."))
    assert await say(upstream.client, messages, tools=[LIGHT]) == "Both done. "
    assert rung(upstream) == 1


async def test_the_same_words_in_another_conversation_run_a_tool_again(upstream: Upstream) -> None:
    for _ in range(2):
        upstream.model.will_answer(calling(("ring_bell", {})), words("Ding."))
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
    upstream.model.will_answer(calling(("water_plants", {"place": "garden"})), words("May I?"))
    assert await say(upstream.client, [user("do it")]) == f"May I? \n\n{QUESTION}"


async def test_a_model_that_repeats_a_declined_call_is_refused(upstream: Upstream) -> None:
    water = ("water_plants", {"place": "garden"})
    upstream.model.will_answer(calling(water), words(QUESTION))
    messages = [user("the garden looks dry")]
    await say(upstream.client, messages)
    messages.append(user("no"))
    upstream.model.will_answer(calling(water, prefix="another-call"), words("All right."))
    assert await say(upstream.client, messages) == "All right. "
    assert "declined" in upstream.model.asked[-1].messages[-1]["content"]
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
