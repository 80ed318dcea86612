"""Image services for tests: the service of a process, in front of a server on loopback."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from antiphon.config import Images, Settings
from antiphon.services.http.network import Network
from antiphon.services.images import ImageService, open_images
from antiphon.storage.images import ImageRecord
from antiphon.storage.memory import MemoryDatabase
from antiphon.tools.capabilities.images import MadeImage, Shape
from antiphon.tools.errors import ToolError
from tests.fakes.chat_server import Answer, ChatServer, Request
from tests.fakes.image_api import GEMINI_MODEL, OPENAI_MODEL
from tests.fakes.local_http import without_tls

Answers = Iterable[Answer] | Callable[[Request], Answer]


def settings_for(folder: Path, model: str) -> Settings:
    return Settings(project_dir=folder, data_dir=folder, images=Images(model=model))


@asynccontextmanager
async def openai_service(
    folder: Path, answers: Answers, model: str = OPENAI_MODEL, network: Network | None = None
) -> AsyncIterator[tuple[ImageService, ChatServer]]:
    async with (
        ChatServer(answers) as server,
        open_images(
            settings_for(folder, f"openai:{server.url}#{model}"), MemoryDatabase().images, network or without_tls()
        ) as service,
    ):
        yield service, server


@asynccontextmanager
async def gemini_service(folder: Path, answers: Answers) -> AsyncIterator[tuple[ImageService, ChatServer]]:
    async with (
        ChatServer(answers) as server,
        open_images(
            settings_for(folder, f"gemini:{server.url.removesuffix('/v1')}#{GEMINI_MODEL}"), MemoryDatabase().images
        ) as service,
    ):
        yield service, server


async def make(service: ImageService, prompt: str = "a lighthouse", shape: Shape | None = None) -> MadeImage:
    return await service.generate(prompt, shape, "ann")


async def failure_of(service: ImageService, prompt: str = "a lighthouse") -> ToolError:
    with pytest.raises(ToolError) as raised:
        await make(service, prompt)
    return raised.value


async def stored(service: ImageService) -> Sequence[ImageRecord]:
    return await service.archive.store.list("ann")
