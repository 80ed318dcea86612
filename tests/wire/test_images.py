"""Pictures through a whole server: asked for, made by a service on loopback, shown, kept and deleted."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from tests.fakes.chat_server import Answer, ChatServer, Request, call_delta, stream, words
from tests.fakes.image_api import PNG, openai_answer, openai_refusal
from tests.wire.caller import Caller, Message, call
from tests.wire.served import Served, make_known, serve

pytestmark = pytest.mark.real_time

TEXT: Final = {"mode": "text"}
WISH: Final = "draw me a picture of a lighthouse at dusk"
MADE: Final = "Here is your picture."


@asynccontextmanager
async def studio(
    folder: Path, answer: Callable[[Request], Answer] = lambda _: openai_answer(), **sections: Any
) -> AsyncIterator[tuple[Served, ChatServer]]:
    """A server whose images are made by a service that answers like this."""
    async with ChatServer(answer) as service:
        with serve(folder, images={"model": f"openai:{service.url}#flux"}, **sections) as served:
            yield served, service


async def fetch(served: Served, path: str, method: str = "GET", **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient(base_url=served.http) as client:
        return await client.request(method, path, headers=headers)


async def test_a_picture_that_is_asked_for_without_a_model_is_made_shown_and_served(tmp_path: Path) -> None:
    async with studio(tmp_path) as (served, service):
        async with call(served.url, TEXT) as caller:
            assert await caller.ask(WISH) == MADE
        [shown] = caller.every("image")
        [result] = caller.every("tool_result")
        answer = await fetch(served, shown["url"])
        head = await fetch(served, shown["url"], "HEAD")
    assert service.requests[0].body["prompt"] == shown["caption"] == "a lighthouse at dusk"
    assert result["ok"]
    assert result["result"]["url"] == shown["url"]
    assert (answer.status_code, answer.content) == (200, PNG)
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "immutable" in answer.headers["cache-control"]
    assert "sandbox" in answer.headers["content-security-policy"]
    assert (head.status_code, head.content) == (200, b"")


async def test_only_the_exact_address_leads_to_a_picture(tmp_path: Path) -> None:
    async with studio(tmp_path) as (served, _):
        async with call(served.url, TEXT) as caller:
            await caller.ask(WISH)
        url = caller.every("image")[0]["url"]
        wrong = [
            url[:-5] + "A.png",
            url.replace(".png", ".json"),
            url.replace(".png", ""),
            "/images/",
            "/images/../antiphon.db",
            "/images/..%2Fantiphon.db",
            "/images/%2e%2e%2fantiphon.db",
        ]
        statuses = {path: (await fetch(served, path)).status_code for path in wrong}
        posted = await fetch(served, url, "POST")
        other_host = await fetch(served, url, Host="evil.example")
        other_page = await fetch(served, url, Origin="https://evil.example")
    assert set(statuses.values()) == {404}, statuses
    assert (posted.status_code, other_host.status_code, other_page.status_code) == (405, 421, 403)


async def test_a_page_shows_a_picture_without_a_token_although_the_rest_needs_one(tmp_path: Path) -> None:
    token = await make_known(tmp_path, "ann")
    async with studio(tmp_path, server={"auth": "required"}) as (served, _):
        async with call(served.url, {**TEXT, "token": token}) as caller:
            await caller.ask(WISH)
        picture = await fetch(served, caller.every("image")[0]["url"])
        records = await fetch(served, "/api/conversations")
    assert (picture.status_code, records.status_code) == (200, 401)


async def test_a_picture_that_the_client_missed_is_sent_again_and_stays_in_the_history(tmp_path: Path) -> None:
    async with studio(tmp_path) as (served, _):
        async with call(served.url, TEXT) as caller:
            await caller.ask(WISH)
            [shown] = caller.every("image")
            handle = caller.session["resume"]
            await caller.socket.close(1001)
        async with call(served.url, {"resume": handle, "last_n": shown["n"] - 1}) as again:
            assert await again.is_answered()
            [replayed] = again.every("image")
        async with call(served.url, {**TEXT, "conversation_id": again.session["conversation_id"]}) as later:
            history = await later.until("history")
    assert (replayed["url"], replayed["n"]) == (shown["url"], shown["n"])
    made = [entry for turn in history["turns"] for entry in turn.get("calls", ())]
    assert [each["result"]["url"] for each in made] == [shown["url"]]


@pytest.mark.parametrize(("reply", "count"), [("yes", 1), ("no", 0)])
async def test_a_sensitive_picture_is_made_only_after_a_yes(tmp_path: Path, reply: str, count: int) -> None:
    async with studio(tmp_path) as (served, service), call(served.url, TEXT) as caller:
        question = await caller.ask("draw me a naked statue in a museum")
        assert question == "Shall I make a picture of “a naked statue in a museum”?"
        assert service.requests == []
        await caller.ask(reply)
    assert len(service.requests) == len(caller.every("image")) == count


async def test_a_picture_that_nobody_asked_for_needs_a_yes(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        if request.path.endswith("/images/generations"):
            return openai_answer()
        if request.body["messages"][-1]["role"] == "tool":
            return words("May I?")
        call = {"index": 0, "id": "call_0123456789", "type": "function"}
        args = '{"prompt": "a whale"}'
        return stream(
            call_delta({**call, "function": {"name": "image_generate", "arguments": args}}), finish="tool_calls"
        )

    async with (
        ChatServer(answer, hides_warm_ups=True) as service,
    ):
        models = {"text": f"openai:{service.url}#m"}
        with serve(tmp_path, model=models, images={"model": f"openai:{service.url}#flux"}) as served:
            async with call(served.url, TEXT) as caller:
                await caller.ask("how big is a whale")
                [waiting] = caller.every("tool_result")
                await caller.ask("show me an image of one then")
    assert waiting["result"]["error"]["type"] == "CONFIRMATION_REQUIRED"
    assert waiting["result"]["error"]["outcome"] == "waiting_for_approval"
    assert len(caller.every("image")) == 1


async def test_a_service_that_fails_leaves_a_kind_sentence_and_no_picture(tmp_path: Path) -> None:
    refused = openai_refusal(400, "Your request was rejected by the safety system.", "moderation_blocked")
    async with studio(tmp_path, lambda _: refused) as (served, _), call(served.url, TEXT) as caller:
        said = await caller.ask(WISH)
    assert said == "The image service declined to make that picture, because of its rules about content."
    assert caller.every("image") == []
    assert "lighthouse" not in served.log


async def test_without_a_service_the_user_is_told_so_and_prompts_can_be_drafted(tmp_path: Path) -> None:
    with serve(tmp_path) as served:
        async with call(served.url, TEXT) as caller:
            assert await caller.ask(WISH) == "I can't make pictures yet: no image service is set up on this server."
            drafted = await caller.ask("give me prompt ideas for a lighthouse at dusk")
    assert drafted.startswith("Here are 3 prompts to choose from")


async def test_pictures_go_with_their_conversation_and_others_stay(tmp_path: Path) -> None:
    async with studio(tmp_path) as (served, _):
        urls = []
        for _ in range(2):
            async with call(served.url, TEXT) as caller:
                await caller.ask(WISH)
            urls.append(caller.every("image")[0]["url"])
        listed = (await fetch(served, "/api/conversations")).json()["conversations"]
        newest = listed[0]["id"]
        deleted = await fetch(served, f"/api/conversations/{newest}", "DELETE")
        statuses = [(await fetch(served, url)).status_code for url in urls]
    assert deleted.status_code == 204
    assert statuses == [200, 404]


async def test_the_text_model_drafts_prompts_and_the_rules_do_if_it_fails(tmp_path: Path) -> None:
    prompts = ["A lighthouse in oil paint.", "A lighthouse as a linocut.", "A lighthouse in soft pencil."]
    answers = [words(str(prompts).replace("'", '"')), words("No.")]
    async with ChatServer(lambda _: answers.pop(0), hides_warm_ups=True) as model:
        with serve(tmp_path, model={"text": f"openai:{model.url}#m"}) as served:
            async with call(served.url, TEXT) as caller:
                for _ in range(2):
                    await caller.ask("give me prompt ideas for a lighthouse")
    results = [each["result"] for each in caller.every("tool_result")]
    assert [each["written_by"] for each in results] == ["model", "rules"]
    assert [each["prompt"] for each in results[0]["variants"]] == prompts


def calls_of(messages: list[Message]) -> list[Any]:
    return [message["name"] for message in messages if message["type"] == "tool_call"]


@pytest.mark.parametrize(
    ("said", "tool", "args"),
    [
        ("draw me a picture of a lighthouse at dusk", "image_generate", {"prompt": "a lighthouse at dusk"}),
        ("please draw me a sleeping cat", "image_generate", {"prompt": "a sleeping cat"}),
        ("generate an image of two boats", "image_generate", {"prompt": "two boats"}),
        ("could you make a picture of the sea", "image_generate", {"prompt": "the sea"}),
        ("i would like a picture of an old mill", "image_generate", {"prompt": "an old mill"}),
        ("paint me a watercolor of a red barn", "image_generate", {"prompt": "a watercolor of a red barn"}),
        ("create a wide image of a desert", "image_generate", {"prompt": "a desert", "size": "landscape"}),
        ("give me prompt ideas for a stormy sea", "image_draft_prompt", {"idea": "a stormy sea"}),
        ("write a picture prompt for my garden", "image_draft_prompt", {"idea": "my garden"}),
        ("give me five image prompts for a fox", "image_draft_prompt", {"idea": "a fox", "variants": 5}),
        ("suggest some prompts about autumn", "image_draft_prompt", {"idea": "autumn"}),
    ],
)
async def test_the_ways_in_which_people_ask(talker: Caller, said: str, tool: str, args: dict[str, Any]) -> None:
    mark = len(talker.received)
    await talker.ask(said)
    [made] = [message for message in talker.received[mark:] if message["type"] == "tool_call"]
    assert (made["name"], made["args"]) == (tool, args)


@pytest.fixture
async def talker(text_server: Served) -> AsyncIterator[Caller]:
    async with call(text_server.url, TEXT) as caller:
        yield caller


@pytest.fixture(scope="module")
def text_server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with serve(tmp_path_factory.mktemp("text")) as served:
        yield served
