"""Images over `POST /images/generations`: OpenAI, and the servers that imitate it, such as LocalAI.

OpenAI's own models take an `output_format` and always answer with base64. They refuse the older `response_format`,
which other servers need in order not to answer with an address.
"""

import asyncio
import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from antiphon.models.providers.failures import Refusal
from antiphon.models.providers.references import Endpoint, ModelReference
from antiphon.security.quotes import quote
from antiphon.services.http.network import Network
from antiphon.services.images.formats import NotAnImage
from antiphon.services.images.http import ImageHttp
from antiphon.tools.capabilities.images import Shape

SIZES: Final[Mapping[Shape, str]] = {
    Shape.SQUARE: "1024x1024",
    Shape.LANDSCAPE: "1536x1024",
    Shape.PORTRAIT: "1024x1536",
}
OWN_MODELS: Final = ("gpt-image", "chatgpt-image")
"""How the names of OpenAI's models begin."""
OLD_FORMAT: Final = "response_format"
DATA_URL: Final = "data:"


class _Item(Struct):
    b64_json: str | None = None
    url: str | None = None


class _Answer(Struct):
    data: list[_Item]


class OpenAIImages:
    """Holds connections: close it."""

    def __init__(
        self, reference: ModelReference, endpoint: Endpoint, *, silence_s: float, network: Network | None = None
    ) -> None:
        self._model = reference.model
        self._url = f"{endpoint.url}/images/generations"
        key = endpoint.api_key
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = ImageHttp(endpoint, headers, silence_s=silence_s, network=network)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def make(self, prompt: str, shape: Shape | None) -> bytes:
        body: dict[str, Any] = {"model": self._model, "prompt": prompt, "n": 1}
        body |= {"output_format": "png"} if self._model.startswith(OWN_MODELS) else {OLD_FORMAT: "b64_json"}
        if shape is not None:
            body["size"] = SIZES[shape]
        try:
            answer = await self._http.post(self._url, body)
        except Refusal as refusal:
            # A proxy may give one of OpenAI's models another name.
            if OLD_FORMAT not in body or refusal.status != 400 or OLD_FORMAT not in quote(refusal.body):
                raise
            del body[OLD_FORMAT]
            answer = await self._http.post(self._url, body)
        # In a thread, since decoding 20 MB takes 0.1 s.
        found = await asyncio.to_thread(_find_image, answer)
        return found if isinstance(found, bytes) else await self._http.download(found)


def _find_image(answer: bytes) -> bytes | str:
    """Returns the image, or its address. Raises `NotAnImage` or `ValueError`."""
    items = msgspec.json.decode(answer, type=_Answer).data
    for item in items:
        if item.b64_json:
            return decode(item.b64_json)
        if item.url:
            return decode(item.url) if item.url.startswith(DATA_URL) else item.url
    raise NotAnImage


def decode(text: str) -> bytes:
    """Decodes base64, which may be in a data URL. Raises `NotAnImage`."""
    encoded = text.partition(",")[2] if text.startswith(DATA_URL) else text
    try:
        return base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise NotAnImage from error
