"""The providers of all scenarios: one process each."""

from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import pytest_asyncio

from tests.scenarios.providers import Providers
from tests.scenarios.stage import ChatModels
from tests.wire.simulators import run_simulator


@pytest.fixture(scope="session")
def running_providers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Providers]:
    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:
        starts = [
            run_simulator("gemini-live", "--tls-dir", "tls", folder=tmp_path_factory.mktemp("gemini")),
            run_simulator("openai-realtime", folder=tmp_path_factory.mktemp("openai")),
        ]
        gemini, openai = pool.map(stack.enter_context, starts)
        providers = Providers(gemini, openai)
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("SSL_CERT_FILE", providers.certificate)
        patch.setenv("GEMINI_API_KEY", "any")
        patch.setenv("OPENAI_API_KEY", "any")
        yield providers


@pytest.fixture
def providers(running_providers: Providers) -> Providers:
    """The providers, without faults and with an empty log."""
    running_providers.reset()
    return running_providers


@pytest_asyncio.fixture
async def chat() -> AsyncIterator[ChatModels]:
    async with ChatModels() as models:
        yield models
