"""The capability `fetch`: any public address, for tools."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from antiphon.clock import Clock
from antiphon.services.http.cache import Cache
from antiphon.services.http.client import WebClient
from antiphon.services.http.failures import WebError, explain, explain_status
from antiphon.tools.capabilities.fetch import MAX_BYTES, TIMEOUT_S, Fetched

CACHE_BYTES: Final = 16_000_000
LARGEST_BYTES: Final = 10_000_000
"""The most that a tool can ask for."""


class PublicFetch:
    """Implements `Fetch`. All sessions share it, since it keeps nothing of theirs but copies of public pages."""

    def __init__(self, client: WebClient, clock: Clock) -> None:
        self._client = client
        self._cache: Cache[Fetched] = Cache(clock, max_size=CACHE_BYTES, size_of=lambda fetched: len(fetched.content))

    async def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        max_bytes: int = MAX_BYTES,
        timeout_s: float = TIMEOUT_S,
        max_age_s: float = 0.0,
    ) -> Fetched:
        async def load() -> Fetched:
            return await self._request("GET", url, headers=headers, max_bytes=max_bytes, timeout_s=timeout_s)

        if max_age_s <= 0:
            return await load()
        key = (url, tuple(sorted((headers or {}).items())), max_bytes)
        return await self._cache.get(key, max_age_s, load)

    async def post(
        self,
        url: str,
        *,
        json: Any,
        headers: Mapping[str, str] | None = None,
        max_bytes: int = MAX_BYTES,
        timeout_s: float = TIMEOUT_S,
    ) -> Fetched:
        content, given = msgspec.json.encode(json), {"content-type": "application/json", **(headers or {})}
        return await self._request("POST", url, content, headers=given, max_bytes=max_bytes, timeout_s=timeout_s)

    async def aclose(self) -> None:
        await self._cache.aclose()

    async def _request(
        self,
        method: str,
        url: str,
        content: bytes | None = None,
        *,
        headers: Mapping[str, str] | None,
        max_bytes: int,
        timeout_s: float,
    ) -> Fetched:
        most = min(max_bytes, LARGEST_BYTES)
        try:
            answer = await self._client.request(
                method, url, content, headers=headers, max_bytes=most, timeout_s=timeout_s
            )
        except WebError as error:
            raise explain(error, _host(url), writes=method != "GET", over_internet=True) from error
        if not answer.is_success:
            raise explain_status(answer, _host(answer.url))
        return answer


def _host(url: str) -> str:
    """Returns what to call the server in a sentence."""
    try:
        return urlsplit(url).hostname or "that website"
    except ValueError:
        return "that website"
