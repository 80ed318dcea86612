"""A web service with a base address, which is asked for JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from antiphon.services.http.client import WebClient
from antiphon.services.http.failures import WebError, decode, explain, explain_status
from antiphon.tools.capabilities.fetch import MAX_BYTES, TIMEOUT_S, Fetched

T = TypeVar("T")
Params = Mapping[str, str | int]
"""The query of an address."""


@dataclass(frozen=True, slots=True)
class Site:
    """Everything that can go wrong is a `ToolError`."""

    name: str
    """What the assistant calls it: "the weather service"."""
    url: str
    client: WebClient
    headers: Mapping[str, str] = field(default_factory=dict)
    is_own: bool = False
    """Whether the operator runs it. Then a lost internet connection is not the reason if it cannot be reached."""

    async def get_json(self, path: str, params: Params | None, kind: type[T], *, max_bytes: int = MAX_BYTES) -> T:
        query = f"?{urlencode(params)}" if params else ""
        return self.decode((await self._request("GET", f"{path}{query}", max_bytes=max_bytes)).content, kind)

    async def post(self, path: str, body: Any, *, timeout_s: float = TIMEOUT_S, max_bytes: int = MAX_BYTES) -> Fetched:
        return await self._request("POST", path, msgspec.json.encode(body), timeout_s=timeout_s, max_bytes=max_bytes)

    def decode(self, content: bytes, kind: type[T]) -> T:
        return decode(content, kind, self.name)

    async def _request(
        self, method: str, path: str, content: bytes | None = None, *, max_bytes: int, timeout_s: float = TIMEOUT_S
    ) -> Fetched:
        json = {} if content is None else {"content-type": "application/json"}
        try:
            answer = await self.client.request(
                method,
                f"{self.url.rstrip('/')}{path}",
                content,
                headers={**json, **self.headers},
                timeout_s=timeout_s,
                max_bytes=max_bytes,
            )
        except WebError as error:
            raise explain(error, self.name, writes=method != "GET", over_internet=not self.is_own) from error
        if not answer.is_success:
            raise explain_status(answer, self.name)
        return answer
