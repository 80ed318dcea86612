"""Requests to an image service, and the download of an image from an address that it names.

The service is asked as text models are: through the proxies of the environment, and for longer than any other service
may take. It needs the package `httpx2`, which is imported only where images are configured.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import msgspec

from antiphon.models.providers.failures import ConnectionLost, Refusal, TimedOut
from antiphon.models.providers.references import Endpoint
from antiphon.models.providers.streams import BROKEN, MAX_REFUSAL_BYTES, is_compressed
from antiphon.services.http.client import WebClient
from antiphon.services.http.network import Network, authority
from antiphon.services.images.formats import MAX_IMAGE_BYTES, NotAnImage, TooLarge

CONNECT_TIMEOUT_S: Final = 5.0
MAX_ANSWER_BYTES: Final = MAX_IMAGE_BYTES * 4 // 3 + 256 * 1024
"""The largest answer: an image of the largest size in base64, and what is said beside it."""
HTTPS_PORT: Final = 443


class ImageHttp:
    """Holds connections: close it."""

    def __init__(
        self, endpoint: Endpoint, headers: Mapping[str, str], *, silence_s: float, network: Network | None = None
    ) -> None:
        """`headers` go to the service only, never to another address that it names. `silence_s` is the longest time
        without a byte."""
        self._host = urlsplit(endpoint.url).hostname
        self._headers = headers
        self._silence_s = silence_s
        self._network = network or Network()
        self._client = httpx2.AsyncClient(
            # A proxy must not be used for loopback addresses: it would resolve them to its own machine.
            trust_env=not endpoint.is_loopback,
            # The key and the prompt must not be sent to any other server.
            follow_redirects=False,
            headers={"Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(silence_s, connect=CONNECT_TIMEOUT_S),
        )

    async def aclose(self) -> None:
        await self._client.aclose()

    async def post(self, url: str, body: Mapping[str, Any]) -> bytes:
        """Returns the body of a successful answer.

        Raises `Refusal`, `TimedOut`, `ConnectionLost`, `TooLarge` or `ValueError`.
        """
        try:
            async with self._client.stream("POST", url, json=body, headers=dict(self._headers)) as response:
                if not response.is_success:
                    raise Refusal(response.status_code, await _read_refusal(response), response.headers)
                return await _read(response, MAX_ANSWER_BYTES)
        except httpx2.TimeoutException as error:
            raise TimedOut from error
        except BROKEN as error:
            raise ConnectionLost(has_connected=not isinstance(error, httpx2.ConnectError)) from error

    async def download(self, url: str) -> bytes:
        """Gets an image from an address that the service has given: its own host, or a public one over HTTPS.

        Raises `WebError`, `Refusal` or `ValueError`, and `NotAnImage` for an address that is neither.
        """
        server = authority(url)
        # The operator has named this host, so it may be in a private network.
        trusted = frozenset({server} if server[0] == self._host else ())
        if not trusted and not (urlsplit(url).scheme == "https" and server[1] == HTTPS_PORT):
            raise NotAnImage
        client = WebClient(self._network, trusted)
        try:
            answer = await client.request("GET", url, max_bytes=MAX_IMAGE_BYTES, timeout_s=self._silence_s)
        finally:
            await client.aclose()
        if not answer.is_success:
            raise Refusal(answer.status, answer.text, answer.headers)
        return answer.content


async def _read(response: httpx2.Response, most: int) -> bytes:
    if is_compressed(response):
        raise ValueError("the answer is compressed, although that was not requested")
    pieces, size = [], 0
    async for piece in response.aiter_bytes():
        size += len(piece)
        if size > most:
            raise TooLarge
        pieces.append(piece)
    return b"".join(pieces)


async def _read_refusal(response: httpx2.Response) -> object:
    try:
        body = await _read(response, MAX_REFUSAL_BYTES)
    except (TooLarge, ValueError):
        return ""
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body.decode("utf-8", "replace")
