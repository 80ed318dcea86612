"""Common mistakes of developers new to the HTTP API, and the errors that explain them."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest

from tests.wire.served import Served, serve

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("refusals")) as served:
        yield served


@pytest.fixture
async def client(served: Served) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=served.http, timeout=20) as client:
        yield client


@pytest.mark.parametrize("spelling", ["conversationId", "conversation_id"])
async def test_a_conversation_continues_with_the_returned_id(client: httpx2.AsyncClient, spelling: str) -> None:
    first = (await client.post("/api/chat", json={"message": "What is 2 plus 3?"})).json()
    again = {"message": "What is 3 plus 4?", spelling: first["conversationId"]}
    second = (await client.post("/api/chat", json=again)).json()
    assert second["conversationId"] == first["conversationId"]
    stored = (await client.get(f"/api/conversations/{first['conversationId']}")).json()
    said = [turn["message"]["text"] for turn in stored["turns"] if turn["message"]["role"] == "user"]
    assert said == ["What is 2 plus 3?", "What is 3 plus 4?"]


async def test_both_spellings_may_be_sent_if_they_match(client: httpx2.AsyncClient) -> None:
    first = (await client.post("/api/chat", json={"message": "What is 2 plus 3?"})).json()
    id = first["conversationId"]
    both: dict[str, Any] = {"message": "What is 3 plus 4?", "conversationId": id}
    for other in (id, None):
        answer = await client.post("/api/chat", json={**both, "conversation_id": other})
        assert (answer.status_code, answer.json()["conversationId"]) == (200, id)
    refused = await client.post("/api/chat", json={**both, "conversation_id": "another"})
    assert refused.status_code == 400
    assert "`conversation_id` and `conversationId` differ" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"mesage": "hi"}, "Unknown field `mesage`. Did you mean `message`?"),
        ({"message": "hi", "conversationID": "x"}, "Unknown field `conversationID`. Did you mean `conversation_id`?"),
        (
            {"message": "hi", "confirm": {"confirmationToken": "x", "approved": True}},
            "Unknown field `confirmationToken` in `confirm`. Did you mean `confirmation_token`?",
        ),
        (
            {"prompt": "hi"},
            "Unknown field `prompt`. Known fields: `message`, `conversation_id`, `confirm`, `capabilities`.",
        ),
    ],
)
async def test_the_refusal_of_an_unknown_field_names_the_nearest(
    client: httpx2.AsyncClient, body: Any, says: str
) -> None:
    refused = await client.post("/api/chat", json=body)
    assert (refused.status_code, refused.json()["error"]["message"]) == (400, says)


async def test_the_refusal_of_an_unknown_parameter_names_the_nearest(client: httpx2.AsyncClient) -> None:
    refused = await client.get("/api/conversations?limits=3")
    assert refused.status_code == 400
    assert refused.json()["error"]["message"].endswith("Unknown field `limits`. Did you mean `limit`?")


@pytest.mark.parametrize("path", ["/api/chats", "/nothing", "/api/conversations/x/y"])
async def test_an_unknown_path_is_refused_in_json(client: httpx2.AsyncClient, path: str) -> None:
    refused = await client.get(path)
    assert (refused.status_code, refused.headers["content-type"]) == (404, "application/json")
    assert refused.json()["error"]["code"] == "not_found"
    assert path in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/api/chat", "POST"),
        ("PUT", "/api/conversations", "DELETE, GET, HEAD"),
        ("POST", "/", "GET, HEAD"),
    ],
)
async def test_a_wrong_method_is_refused_in_json_with_the_allowed_ones(
    client: httpx2.AsyncClient, method: str, path: str, allowed: str
) -> None:
    refused = await client.request(method, path)
    assert (refused.status_code, refused.headers["content-type"]) == (405, "application/json")
    assert refused.json()["error"]["code"] == "method_not_allowed"
    assert refused.headers["allow"] == allowed
