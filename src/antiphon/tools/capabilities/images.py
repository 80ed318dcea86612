"""Makes images."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct


class Shape(StrEnum):
    """The proportions of an image. Each service has its own sizes in pixels for them."""

    SQUARE = "square"
    LANDSCAPE = "landscape"
    PORTRAIT = "portrait"


class MadeImage(Struct, frozen=True):
    """An image that was made and stored."""

    url: str
    """Its path on this server. Whoever knows it can see the image."""
    media_type: str
    size_bytes: int
    model: str
    """The name of the model that made it, without the address of its server."""


class Images(Protocol):
    """Makes images for a session's user."""

    async def generate(self, prompt: str, shape: Shape | None) -> MadeImage:
        """Has an image made and stores it. Without a shape, the service chooses the size.

        Raises `ToolError`: PERMANENT if no service is configured, or if it declines the prompt; AUTH, RATE_LIMIT or
        TRANSIENT if the service cannot be used at the moment.
        """
        ...

    async def draft(self, idea: str, style: str | None, count: int) -> Sequence[str]:
        """Has the text model write prompts for an idea. Empty if there is none, if it fails, or if it is too slow."""
        ...
