"""Images of Gemini's image models, over `generateContent`. The Gemini API no longer offers Imagen."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from antiphon.models.providers.references import GEMINI_HOST, Endpoint, ModelReference
from antiphon.services.http.network import Network
from antiphon.services.images.failures import Declined
from antiphon.services.images.formats import NotAnImage
from antiphon.services.images.http import ImageHttp
from antiphon.services.images.openai_images import decode
from antiphon.tools.capabilities.images import Shape

VERSION: Final = "v1beta"
"""Not the SDK's own `v1`: image models are found here first."""
RATIOS: Final[Mapping[Shape, str]] = {Shape.SQUARE: "1:1", Shape.LANDSCAPE: "3:2", Shape.PORTRAIT: "2:3"}
DECLINING: Final = frozenset(
    (
        *("SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION"),
        *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
    )
)
"""Reasons for which an answer ends without an image, although another prompt could have one."""


class _InlineData(Struct, rename="camel"):
    data: str


class _Part(Struct, rename="camel"):
    inline_data: _InlineData | None = None
    thought: bool = False


class _Content(Struct):
    parts: list[_Part] = []


class _Candidate(Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None


class _Feedback(Struct, rename="camel"):
    block_reason: str | None = None


class _Answer(Struct, rename="camel"):
    candidates: list[_Candidate] = []
    prompt_feedback: _Feedback | None = None


class GeminiImages:
    """Holds connections: close it."""

    def __init__(
        self, reference: ModelReference, endpoint: Endpoint, *, silence_s: float, network: Network | None = None
    ) -> None:
        # The endpoint of a text model is the one that imitates OpenAI.
        host = reference.url or GEMINI_HOST
        self._url = f"{host}/{VERSION}/models/{reference.model}:generateContent"
        key = endpoint.api_key
        headers = {"x-goog-api-key": key} if key else {}
        self._http = ImageHttp(endpoint, headers, silence_s=silence_s, network=network)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def make(self, prompt: str, shape: Shape | None) -> bytes:
        config: dict[str, Any] = {"responseModalities": ["IMAGE"]}
        if shape is not None:
            config["imageConfig"] = {"aspectRatio": RATIOS[shape]}
        contents = [{"role": "user", "parts": [{"text": prompt}]}]
        answer = await self._http.post(self._url, {"contents": contents, "generationConfig": config})
        # In a thread, since decoding 20 MB takes 0.1 s.
        return await asyncio.to_thread(_find_image, answer)


def _find_image(answer: bytes) -> bytes:
    """Raises `Declined`, `NotAnImage` or `ValueError`."""
    found = msgspec.json.decode(answer, type=_Answer)
    for candidate in found.candidates:
        for part in candidate.content.parts if candidate.content is not None else ():
            # A model that thinks may also show its sketches.
            if part.inline_data is not None and not part.thought:
                return decode(part.inline_data.data)
    blocked = found.prompt_feedback is not None and found.prompt_feedback.block_reason is not None
    if blocked or any(candidate.finish_reason in DECLINING for candidate in found.candidates):
        raise Declined
    raise NotAnImage
