"""The image service of a process: what makes images, where they are kept, and what writes prompts."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from antiphon.clock import Clock, SystemClock
from antiphon.config import Settings
from antiphon.models.base import ModelError, TextModel
from antiphon.models.builtin import BuiltinModel
from antiphon.models.providers import explain_missing_package
from antiphon.models.providers.failures import Refusal, TimedOut
from antiphon.models.providers.references import Endpoint, ModelReference, Provider, parse_images
from antiphon.services.images.archive import ImageArchive, address_of
from antiphon.services.images.drafting import PromptWriter
from antiphon.services.images.failures import FAILURES, explain, not_configured, unusable
from antiphon.storage.base import StorageError
from antiphon.storage.images import ImageStore
from antiphon.telemetry.log import get_logger
from antiphon.tools.capabilities.images import MadeImage, Shape
from antiphon.tools.context import SessionView, ToolView
from antiphon.tools.errors import ErrorType, ToolError

if TYPE_CHECKING:
    from antiphon.services.http.network import Network

MAKE_S: Final = 150.0
"""How long an image may take. OpenAI's best quality takes two minutes. The tool's own time-out is longer."""
DRAFT_S: Final = 3.0
"""How long the text model may take to write prompts: twice the tool's latency budget, as for any tool in text."""

log = get_logger(__name__)


class ImageModel(Protocol):
    async def make(self, prompt: str, shape: Shape | None) -> bytes:
        """Returns the content of one image file. Raises one of `FAILURES`."""
        ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Configured:
    """The service of the settings."""

    reference: ModelReference
    endpoint: Endpoint
    model: ImageModel

    @property
    def name(self) -> str:
        """The name that clients may know."""
        return self.reference.public_name


class ImageService:
    def __init__(
        self,
        archive: ImageArchive,
        clock: Clock,
        configured: Configured | Callable[[], ToolError],
        *,
        make_s: float = MAKE_S,
    ) -> None:
        """`configured` makes the error of each call if images cannot be made."""
        self.archive = archive
        self._clock = clock
        self._configured = configured
        self._make_s = make_s
        self._writer: PromptWriter | None = None

    def use_text_model(self, model: TextModel) -> None:
        """Has prompts written by the best text model of the server, unless that is the offline assistant."""
        self._writer = None if isinstance(model, BuiltinModel) else PromptWriter(model)

    def offer(self, session: SessionView, tool: ToolView) -> "UserImages":
        return UserImages(self, session.user)

    async def generate(self, prompt: str, shape: Shape | None, user: str) -> MadeImage:
        """Raises `ToolError`."""
        configured = self._configured
        if not isinstance(configured, Configured):
            raise configured()
        name = configured.name
        content = await self._make(configured, prompt, shape)
        try:
            record = await self.archive.add(content, user=user, prompt=prompt, model=name, at_ms=self._clock.now_ms())
        except FAILURES as error:
            raise self._failed(configured, error) from error
        except StorageError as error:
            log.error("image_not_stored", error=str(error))
            raise ToolError(
                ErrorType.TRANSIENT,
                "The picture was made, but I couldn't save it, so I can't show it.",
                suggestion="The database of the server cannot be used. Tell the user.",
            ) from error
        return MadeImage(url=address_of(record), media_type=record.media_type, size_bytes=len(content), model=name)

    async def draft(self, idea: str, style: str | None, count: int) -> Sequence[str]:
        if self._writer is None:
            return ()
        try:
            async with asyncio.timeout(DRAFT_S):
                return await self._writer.write(idea, style, count)
        except (ModelError, TimeoutError, ValueError) as error:
            log.info("image_prompts_not_written", error=type(error).__name__)
            return ()

    async def _make(self, configured: Configured, prompt: str, shape: Shape | None) -> bytes:
        try:
            async with asyncio.timeout(self._make_s):
                return await configured.model.make(prompt, shape)
        except TimeoutError as error:
            raise self._failed(configured, TimedOut()) from error
        except FAILURES as error:
            raise self._failed(configured, error) from error

    def _failed(self, configured: Configured, error: Exception) -> ToolError:
        """Explains a failure, and logs it without the service's words, which may repeat the prompt."""
        explained = explain(error, configured.name, configured.endpoint)
        status = error.status if isinstance(error, Refusal) else None
        log.warning(
            "image_failed", model=configured.name, type=str(explained.type), kind=type(error).__name__, status=status
        )
        return explained


@dataclass(frozen=True, slots=True)
class UserImages:
    """The capability `images`, for one user."""

    service: ImageService
    user: str

    async def generate(self, prompt: str, shape: Shape | None) -> MadeImage:
        return await self.service.generate(prompt, shape, self.user)

    async def draft(self, idea: str, style: str | None, count: int) -> Sequence[str]:
        return await self.service.draft(idea, style, count)


@asynccontextmanager
async def open_images(
    settings: Settings, store: ImageStore, network: "Network | None" = None
) -> AsyncIterator[ImageService]:
    """Raises `ModelReferenceError` for a setting that does not name a model. Nothing is connected yet."""
    reference = parse_images(settings.images.model)
    async with AsyncExitStack() as stack:
        archive = ImageArchive(store)
        if settings.keeps_data:
            await archive.import_files(settings.data_dir / "images")
        configured: Configured | Callable[[], ToolError] = not_configured
        if reference is not None:
            try:
                configured = _configure(reference, network)
            except ModelError as error:
                log.warning("images_not_available", error=str(error))
                configured = partial(unusable, error)
            else:
                stack.push_async_callback(configured.model.aclose)
        yield ImageService(archive, SystemClock(), configured)


def _configure(reference: ModelReference, network: "Network | None") -> Configured:
    """Raises `ModelError` if the key or a package is missing."""
    endpoint = reference.endpoint(os.environ)
    with explain_missing_package(reference, package="httpx2", extra="openai"):
        from antiphon.services.images.gemini_images import GeminiImages
        from antiphon.services.images.openai_images import OpenAIImages
    kind = GeminiImages if reference.provider is Provider.GEMINI else OpenAIImages
    return Configured(reference, endpoint, kind(reference, endpoint, silence_s=MAKE_S, network=network))
