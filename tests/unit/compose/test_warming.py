"""A model's server reads the prompt before the first user waits for it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from antiphon.compose.app import load_tools
from antiphon.compose.warming import CHECK_EVERY_S, WARM_UP, Warmer
from antiphon.config import Server, Settings
from antiphon.models.base import FailureKind, ModelError, Prompt, TextModel, warm
from antiphon.models.bounded import BoundedModel
from antiphon.models.builtin import BuiltinModel
from antiphon.models.health import ModelHealth
from antiphon.models.local_first import LocalFirstModel
from antiphon.models.providers.openai_compatible import OpenAICompatibleModel
from antiphon.models.providers.references import parse
from antiphon.models.shared_prefix import SharedPrefixModel
from antiphon.prompts.composer import CALL_NOTE, Composer
from antiphon.tools.registry import Registry
from antiphon.tools.spec import Mode
from antiphon.transcript import UserMessage
from tests.fakes.chat_server import HANG_UP, serve_model, words
from tests.fakes.ollama_server import chat, line, serve_ollama
from tests.fakes.scripted import ScriptedModel
from tests.fakes.talking_tools import Box, talking_tools
from tests.fakes.toolbox import write_tool

PROMPT = Prompt(f"Be kind.\n\n{CALL_NOTE}", (UserMessage(WARM_UP),), (), Mode.VOICE, CALL_NOTE)


class WarmModel(ScriptedModel):
    """A model that can be warmed, and notes how often it was."""

    def __init__(self, error: ModelError | None = None) -> None:
        super().__init__([])
        self.warmed: list[Prompt] = []
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self._error = error

    async def warm(self, prompt: Prompt) -> bool:
        self.warmed.append(prompt)
        await self.may_go_on.wait()
        if self._error is not None:
            raise self._error
        return True


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path, tmp_path, server=Server(environment="development"))


@pytest.fixture
def registry(settings: Settings) -> Registry:
    return load_tools(settings)


async def test_a_locked_registry_is_warmed_once(registry: Registry) -> None:
    model, health = WarmModel(), ModelHealth()
    registry.lock()
    with capture_logs() as logs:
        await Warmer(model, health, Composer(), registry).run()
    [prompt] = model.warmed
    assert prompt.system.startswith("You are Antiphon")
    assert len(prompt.tools) == len(registry.snapshot().allowed(Mode.TEXT))
    assert [line["event"] for line in logs] == ["model_warmed"]


async def test_changed_tools_are_read_again(settings: Settings, registry: Registry) -> None:
    model = WarmModel()
    running = asyncio.create_task(Warmer(model, ModelHealth(), Composer(), registry).run())
    await asyncio.sleep(10 * CHECK_EVERY_S)
    assert len(model.warmed) == 1
    write_tool(settings.data_dir / "tools", "greet")
    load_tools(settings)
    registry.reload()
    await asyncio.sleep(2 * CHECK_EVERY_S)
    assert len(model.warmed) == 2
    running.cancel()
    await asyncio.wait([running])


async def test_the_health_tells_that_the_model_is_warming(registry: Registry) -> None:
    model, health = WarmModel(), ModelHealth()
    model.may_go_on.clear()
    warming = asyncio.create_task(Warmer(model, health, Composer(), registry).warm(registry.snapshot()))
    await asyncio.sleep(0)
    assert health.is_warming
    model.may_go_on.set()
    await warming
    assert not health.is_warming


async def test_a_failure_is_one_line_in_the_log(registry: Registry) -> None:
    registry.lock()
    health = ModelHealth()
    model = WarmModel(ModelError("m cannot be reached.", kind=FailureKind.UNREACHABLE))
    with capture_logs() as logs:
        await Warmer(model, health, Composer(), registry).run()
    assert [(line["event"], line["kind"]) for line in logs] == [("model_not_warmed", FailureKind.UNREACHABLE)]
    assert health.last_failure is None


async def test_a_model_that_cannot_be_warmed_is_left_alone(registry: Registry) -> None:
    registry.lock()
    with capture_logs() as logs:
        await Warmer(ScriptedModel([]), ModelHealth(), Composer(), registry).run()
    assert logs == []


async def test_wrappers_pass_the_prompt_on_as_they_would_for_an_answer() -> None:
    model = WarmModel()
    wrapped: TextModel = LocalFirstModel(BuiltinModel(Box(talking_tools())), SharedPrefixModel(BoundedModel(model)))
    assert await warm(wrapped, PROMPT)
    [asked] = model.warmed
    assert asked.system == "Be kind."


@pytest.mark.real_time
async def test_a_compatible_server_reads_the_prompt_and_writes_one_token() -> None:
    async with serve_model(lambda request: words("Hello there")) as (server, model):
        assert await model.warm(PROMPT)
    [request] = server.requests
    assert request.body["max_tokens"] == 1
    assert [message["role"] for message in request.messages] == ["system", "user"]


@pytest.mark.real_time
async def test_a_server_that_cannot_be_warmed_says_why() -> None:
    async with serve_model(lambda request: HANG_UP) as (_, model):
        with pytest.raises(ModelError, match="cannot be reached"):
            await model.warm(PROMPT)


@pytest.mark.real_time
async def test_ollama_reads_the_prompt_with_the_options_of_an_answer() -> None:
    async with serve_ollama(lambda request: chat(line("Hello."))) as (server, model):
        assert await warm(model, PROMPT)
        assert [event async for event in model.reply(PROMPT)]
    warming, answering = (request.body["options"] for request in server.requests)
    assert warming == {**answering, "num_predict": 1}


@pytest.fixture
async def paid() -> AsyncIterator[OpenAICompatibleModel]:
    model = OpenAICompatibleModel(parse("openai:https://api.example.com/v1#m"), {"OPENAI_API_KEY": "k"})
    yield model
    await model.aclose()


@pytest.mark.real_time
async def test_a_server_that_costs_money_is_not_warmed(paid: OpenAICompatibleModel) -> None:
    assert not await paid.warm(PROMPT)
