"""One operation of the HTTP interface, as the table of operations describes it."""

from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from antiphon.security.admission import Caller
from antiphon.server.deps import HttpDeps
from antiphon.server.refusals import RefusalCode

Handle = Callable[[HttpDeps, Request, Caller], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Operation:
    method: str
    path: str
    summary: str
    _: KW_ONLY
    handle: Handle | None
    """None for the chat, which keeps state between requests."""
    answer: Any
    """A struct, or the media type of a response that is not JSON; None for a response without a body."""
    status: int = 200
    """The HTTP status of a success with a body."""
    query: type | None = None
    body: type | None = None
    """What the body of a request must be; None if it has none."""
    refusals: tuple[RefusalCode, ...] = ()
    """Refusals besides those that any operation may have."""
    also: str | None = None
    """Another media type of the response."""
    public: bool = False
    is_admin: bool = False
    """Whether it needs an admin token, also where no other operation needs a token."""
