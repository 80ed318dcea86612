"""Fetches public web addresses."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from antiphon.tools.errors import ErrorType, ToolError

MAX_BYTES: Final = 1_000_000
TIMEOUT_S: Final = 8.0


class Fetched(Struct, frozen=True):
    """What came from an address."""

    url: str
    """Where it came from, after redirects."""
    status: int
    headers: Mapping[str, str]
    """The names are in lower case."""
    content: bytes
    """Decompressed."""

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """The content as text, in the encoding that the server names; UTF-8 otherwise. Errors are replaced."""
        _, _, charset = self.headers.get("content-type", "").partition("charset=")
        try:
            return self.content.decode(charset.partition(";")[0].strip(" \"'") or "utf-8", "replace")
        except LookupError:
            return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """Raises `ToolError` TRANSIENT if the content is not JSON."""
        try:
            return msgspec.json.decode(self.content)
        except (msgspec.DecodeError, RecursionError):
            message = "The website sent something that I can't read."
            raise ToolError(ErrorType.TRANSIENT, message, retryable=True) from None


class Fetch(Protocol):
    """Fetches public web addresses.

    Only http and https, only public hosts, on the ports of web pages; redirects are checked in the same way. What comes
    back is untrusted: in the same turn, actions that write need the user's approval.

    They raise `ToolError`: VALIDATION for an address that is not fetched, NOT_FOUND for 404, AUTH for 401 and 403,
    RATE_LIMIT for 429, TRANSIENT if the host cannot be reached, is too slow or fails, and PERMANENT for the rest.
    """

    async def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        max_bytes: int = MAX_BYTES,
        timeout_s: float = TIMEOUT_S,
        max_age_s: float = 0.0,
    ) -> Fetched:
        """Follows redirects. With `max_age_s`, a copy of at most that age is good enough."""
        ...

    async def post(
        self,
        url: str,
        *,
        json: Any,
        headers: Mapping[str, str] | None = None,
        max_bytes: int = MAX_BYTES,
        timeout_s: float = TIMEOUT_S,
    ) -> Fetched:
        """Does not follow redirects."""
        ...
