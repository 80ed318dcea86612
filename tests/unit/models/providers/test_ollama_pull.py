"""Pulling a model into Ollama."""

import socket
from typing import Any

import pytest

from antiphon.models.base import ModelError
from antiphon.models.providers.ollama_pull import MAX_STEPS, pull_model
from antiphon.models.providers.references import ModelReference, Provider
from antiphon.weights.puller import Progress
from tests.fakes.chat_server import Answer, ChatServer, End, Request, refusal
from tests.fakes.ollama_server import LIBRARY, Rules, ndjson

pytestmark = pytest.mark.real_time


async def pull(rules: Any, name: str = "qwen3") -> list[Progress]:
    steps: list[Progress] = []
    async with ChatServer(rules) as server:
        url = server.url.removesuffix("/v1")
        await pull_model(ModelReference(Provider.OLLAMA, name, url), {}, steps.append)
    return steps


async def test_a_pulled_model_is_installed() -> None:
    rules = Rules(lambda _: ndjson())
    await pull(rules.answer)
    assert "qwen3:latest" in rules.models


async def test_progress_is_reported_in_bytes() -> None:
    size = LIBRARY["qwen3:latest"]
    steps = await pull(Rules(lambda _: ndjson()).answer)
    assert [(step.done_bytes, step.total_bytes) for step in steps if "8934d96d3f08" in step.what] == [
        (0, size),
        (size // 2, size),
        (size, size),
    ]
    assert list(dict.fromkeys(step.what for step in steps)) == [
        "pulling manifest",
        "pulling 8934d96d3f08",
        "verifying sha256 digest",
        "writing manifest",
    ]


async def test_a_model_that_does_not_exist_is_reported() -> None:
    with pytest.raises(ModelError, match="there is no model qwen33 to pull"):
        await pull(Rules(lambda _: ndjson()).answer, "qwen33")


def answering(answer: Answer) -> Any:
    def answer_every(_: Request) -> Answer:
        return answer

    return answer_every


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (ndjson({"status": "pulling manifest"}), "stopped pulling qwen3 before its end. Run the command again"),
        (ndjson({"status": "pulling manifest"}, end=End.CUT), "broke off"),
        (ndjson({"error": "max retries exceeded"}), "could not pull qwen3: max retries exceeded"),
        (refusal(500, {"error": "no space left on device"}), "no space left on device"),
        (ndjson(b"<html>\n"), "right address"),
        (ndjson(*({"status": f"step {n}"} for n in range(MAX_STEPS + 1))), "more than 500 steps"),
    ],
)
async def test_a_failed_pull_is_reported_in_a_sentence(answer: Answer, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        await pull(answering(answer))


async def test_a_server_that_is_not_running_is_reported() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ModelError, match=f"Failed to connect to Ollama at {url}"):
            await pull_model(ModelReference(Provider.OLLAMA, "qwen3", url), {})


async def test_a_step_is_safe_to_print() -> None:
    (step,) = await pull(answering(ndjson({"status": "\x1b[2Jhi" + "x" * 200}, {"status": "success"})))
    assert step.what == ("[2Jhi" + "x" * 200)[:80]
