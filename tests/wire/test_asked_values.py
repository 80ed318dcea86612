"""A tool of a project asks for a number, an address or a spelled word, and is typed the answer."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.fakes.contacts import saved, write_contacts
from tests.wire.caller import call
from tests.wire.served import Served, serve

pytestmark = pytest.mark.real_time

TEXT = {"mode": "text"}
SAVE = "save a phone number for Tom"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("contacts")
    write_contacts(made)
    return made


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    with serve(folder) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_saved(folder: Path) -> None:
    (folder / "saved.jsonl").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("request_", "question", "answer", "args"),
    [
        (SAVE, "What's the number?", "555 12 34", {"name": "Tom", "phone": "5551234"}),
        (SAVE, "What's the number?", "five five five one two three four", {"name": "Tom", "phone": "5551234"}),
        ("save an address", "What's the address?", "Ann@Example.org", {"email": "Ann@Example.org"}),
        ("save a surname", "How is it spelled?", "McDuff", {"surname": "McDuff"}),
    ],
)
async def test_a_typed_value_is_taken_without_reading_it_back(
    served: Served, folder: Path, request_: str, question: str, answer: str, args: dict[str, str]
) -> None:
    async with call(served.url, TEXT) as caller:
        assert await caller.ask(request_) == question
        assert await caller.ask(answer) == "Saved."
    assert saved(folder) == [args]


async def test_an_answer_that_cannot_be_read_is_asked_for_again_and_then_left(served: Served, folder: Path) -> None:
    async with call(served.url, TEXT) as caller:
        await caller.ask(SAVE)
        assert await caller.ask("bananas") == "Sorry. Please say the number again, digit by digit."
        assert await caller.ask("apples") == "Sorry, I didn't get the number, so I've left it. Please ask me again."
        await caller.ask("5551234")
    assert saved(folder) == []


@pytest.mark.parametrize(("other", "answer"), [("never mind", "All right, I won't do that."), ("flip a coin", "")])
async def test_something_else_leaves_it(served: Served, folder: Path, other: str, answer: str) -> None:
    async with call(served.url, TEXT) as caller:
        await caller.ask(SAVE)
        assert answer in await caller.ask(other)
        await caller.ask("5551234")
        tools = [message["name"] for message in caller.every("tool_call")]
    assert tools == ([] if other == "never mind" else ["flip_coin"])
    assert saved(folder) == []


async def test_over_http_the_answer_completes_the_request(served: Served, folder: Path) -> None:
    async with httpx2.AsyncClient(base_url=served.http) as client:
        first = (await client.post("/api/chat", json={"message": SAVE})).json()
        answer = {"message": "555-1234", "conversationId": first["conversationId"]}
        second = (await client.post("/api/chat", json=answer)).json()
    assert saved(folder) == [{"name": "Tom", "phone": "5551234"}], (first, second)
