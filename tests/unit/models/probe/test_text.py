"""What a test of a text model finds out, and what it advises."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from antiphon.compose.app import TOOLKIT
from antiphon.compose.probing import probe_model
from antiphon.config import Settings
from antiphon.models.probe.report import Mark, Report
from antiphon.models.providers.facts import MAX_BYTES, read_facts
from antiphon.models.providers.references import parse
from tests.fakes import tested_model
from tests.fakes.chat_server import HANG_UP, Answer, ChatServer, Request, refusal
from tests.fakes.ollama_server import Installed, Rules, chat, line

pytestmark = pytest.mark.real_time


async def probe(
    folder: Path, behave: Callable[[Request], Answer], *, limit_s: float = 10, name: str = "openai:{url}#m"
) -> Report:
    async with ChatServer(behave) as server:
        reference = name.format(url=server.url, root=server.url.removesuffix("/v1"))
        return await probe_model(Settings(folder, folder), reference, tell=lambda step: None, limit_s=limit_s)


def marks(report: Report) -> dict[str, Mark]:
    return {finding.check: finding.mark for finding in report.findings}


def texts(report: Report) -> dict[str, str]:
    return {finding.check: finding.text for finding in report.findings}


async def test_a_good_model_is_found_good_in_everything(tmp_path: Path) -> None:
    report = await probe(tmp_path, tested_model.good)
    assert report.ok
    assert report.advice == ()
    assert set(marks(report).values()) == {Mark.GOOD}
    assert list(marks(report)) == [
        "answers",
        "listed",
        "context",
        "streams",
        "first word",
        *(["speed"] if "speed" in marks(report) else []),
        "usage",
        "reasoning",
        "tool call",
        "arguments",
        "tool result",
        "parallel calls",
        "prompt with all tools",
        "all tools, first time",
        "all tools, again",
    ]
    assert texts(report)["context"] == "32,768 tokens"


async def test_the_prompt_with_all_tools_is_counted(tmp_path: Path) -> None:
    report = await probe(tmp_path, tested_model.good)
    [size] = [finding for finding in report.findings if finding.check == "prompt with all tools"]
    assert size.value is not None
    in_text = [path for path in TOOLKIT.glob("*/schema.json") if "text" in json.loads(path.read_text())["allowedModes"]]
    assert size.text.endswith(f"for {len(in_text)} tools")
    assert 150 < size.value / len(in_text) < 350


async def test_calls_that_are_written_as_text_are_told_apart(tmp_path: Path) -> None:
    report = await probe(tmp_path, tested_model.writes_calls)
    assert texts(report)["tool call"] == "written as text, which is recognised"
    assert (marks(report)["arguments"], marks(report)["parallel calls"]) == (Mark.GOOD, Mark.GOOD)
    assert any("--enable-auto-tool-choice" in sentence for sentence in report.advice)


async def test_a_model_that_calls_no_tools_is_bad_but_answers(tmp_path: Path) -> None:
    report = await probe(tmp_path, tested_model.never_calls)
    assert report.ok
    assert (marks(report)["tool call"], marks(report)["context"]) == (Mark.BAD, Mark.UNKNOWN)
    assert marks(report)["usage"] is Mark.FAIR
    assert any("does not call tools" in sentence for sentence in report.advice)


async def test_reasoning_is_found_by_the_tokens_that_were_not_shown(tmp_path: Path) -> None:
    report = await probe(tmp_path, tested_model.reasons)
    assert marks(report)["reasoning"] is Mark.FAIR
    assert any("silence in a call" in sentence for sentence in report.advice)


async def test_a_prompt_that_fills_the_context_is_reported(tmp_path: Path) -> None:
    report = await probe(tmp_path, tested_model.reasons)
    assert texts(report)["context"] == "4,096 tokens"
    assert marks(report)["prompt with all tools"] is Mark.BAD
    assert any("model.tools_per_turn" in sentence for sentence in report.advice)


async def test_a_model_that_never_answers_fails_in_time(tmp_path: Path) -> None:
    report = await probe(tmp_path, tested_model.never_answers, limit_s=0.3)
    assert not report.ok
    assert report.findings[-1].check == "answers"
    assert "did not finish an answer within" in report.findings[-1].text


async def test_a_server_that_hangs_up_fails_with_its_sentence(tmp_path: Path) -> None:
    report = await probe(tmp_path, lambda request: HANG_UP)
    assert not report.ok
    assert "cannot be reached" in report.findings[-1].text


async def test_ollama_tells_its_context_and_is_advised_in_its_own_settings(tmp_path: Path) -> None:
    installed = {"m:latest": Installed()}
    rules = Rules(lambda request: chat(line("Hello."), prompt_eval_count=14_000, eval_count=300), models=installed)

    def answer(request: Request) -> Answer:
        if request.path == "/api/show":
            return refusal(200, {"capabilities": ["completion"], "model_info": {"qwen2.context_length": 32_768}})
        return rules.answer(request)

    report = await probe(tmp_path, answer, name="ollama:{root}#m")
    assert texts(report)["context"] == "16,384 tokens"
    assert any("ollama.num_ctx" in sentence for sentence in report.advice)
    assert any("ollama.think" in sentence for sentence in report.advice)


@pytest.mark.parametrize(
    "behave",
    [
        lambda request: HANG_UP,
        lambda request: refusal(500, "oops"),
        lambda request: refusal(200, "[1, 2]"),
        lambda request: refusal(200, '{"data": 7}'),
        lambda request: refusal(200, '{"data": [{"id": "m", "max_model_len": "many", "meta": [1]}]}'),
        lambda request: Answer((b"x" * (1 << 20),) * ((MAX_BYTES >> 20) + 2)),
    ],
)
async def test_a_server_that_tells_nonsense_about_its_models_is_no_error(behave: Callable[[Request], Answer]) -> None:
    async with ChatServer(behave) as server:
        facts = await read_facts(parse(f"openai:{server.url}#m"), {})
    assert facts.context_tokens is None
