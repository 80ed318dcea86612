"""Answers that refuse a request, and the line in the log about each."""

import math
import re
from collections import Counter
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType
from starlette.responses import Response

from antiphon.clock import Clock, SystemClock
from antiphon.errors import AntiphonError
from antiphon.security.quota import Account, Kind, Limit, Quota, Rate
from antiphon.telemetry.log import get_logger

STOPPING: Final = "The server is about to stop. Try again in a moment."


RETRY_AFTER_S: Final = 5.0
"""How long a client is asked to wait when the server is unavailable."""


class RefusalCode(StrEnum):
    BAD_REQUEST = "bad_request"
    """The JSON, a field or a parameter is wrong; the message says which. Nothing was done."""
    UNAUTHENTICATED = "unauthenticated"
    """A valid token is required, as `Authorization: Bearer …`."""
    BLOCKED = "blocked"
    """This user is blocked for now."""
    FORBIDDEN = "forbidden"
    """This user may not do that."""
    NOT_FOUND = "not_found"
    """It does not exist, or it belongs to another user."""
    ELSEWHERE = "elsewhere"
    """It exists, but on another server; the message says which."""
    WRONG_HOST = "wrong_host"
    """This server does not answer to the name in the Host header."""
    WRONG_ORIGIN = "wrong_origin"
    """Pages of this origin may not use this server."""
    METHOD_NOT_ALLOWED = "method_not_allowed"
    """This route has other methods, which `Allow` lists."""
    CONFIRMATION_GONE = "confirmation_gone"
    """The confirmation is unknown, used or expired. Nothing was done."""
    BUSY = "busy"
    """This conversation is busy with another answer. Try again when that is complete."""
    TOO_LARGE = "too_large"
    """The body is longer than the limit."""
    TOO_FAST = "too_fast"
    """Too many requests or too many wrong tokens. `Retry-After` says how long to wait."""
    INTERNAL = "internal"
    """An error in the server."""
    MODEL_FAILED = "model_failed"
    """The model cannot be reached, or it refused the request."""
    UNAVAILABLE = "unavailable"
    """The database cannot be reached, or the server is about to stop. Try again."""
    DEADLINE = "deadline"
    """The answer took too long and was cancelled."""


STATUSES: Final = {
    RefusalCode.BAD_REQUEST: 400,
    RefusalCode.UNAUTHENTICATED: 401,
    RefusalCode.BLOCKED: 403,
    RefusalCode.FORBIDDEN: 403,
    RefusalCode.WRONG_ORIGIN: 403,
    RefusalCode.NOT_FOUND: 404,
    RefusalCode.CONFIRMATION_GONE: 404,
    RefusalCode.METHOD_NOT_ALLOWED: 405,
    RefusalCode.BUSY: 409,
    RefusalCode.TOO_LARGE: 413,
    RefusalCode.ELSEWHERE: 421,
    RefusalCode.WRONG_HOST: 421,
    RefusalCode.TOO_FAST: 429,
    RefusalCode.INTERNAL: 500,
    RefusalCode.MODEL_FAILED: 502,
    RefusalCode.UNAVAILABLE: 503,
    RefusalCode.DEADLINE: 504,
}


class Block(Struct, frozen=True):
    """This user is blocked."""

    until: int
    """Unix time in milliseconds."""
    duration_seconds: float
    message: str


class Fault(Struct, frozen=True):
    code: RefusalCode
    message: str
    """A sentence to show to people."""


class Refused(Struct, frozen=True):
    """The body of every response that is not a success."""

    error: Fault
    timeout: Block | UnsetType = UNSET
    """With the code "blocked"."""
    conversation_id: str | UnsetType = msgspec.field(default=UNSET, name="conversationId")
    """The conversation that the message was stored in, if it was."""


class Refusal(AntiphonError):
    """Raised by a route, and sent to the client as its response."""

    def __init__(
        self, code: RefusalCode, message: str, *, retry_after_s: float | None = None, timeout: Block | None = None
    ) -> None:
        super().__init__(message)
        self.reason = code
        self.retry_after_s = retry_after_s
        self.timeout = timeout
        self.conversation_id: str | None = None

    @property
    def body(self) -> Refused:
        return Refused(Fault(self.reason, str(self)), self.timeout or UNSET, self.conversation_id or UNSET)

    def response(self) -> Response:
        headers = {} if self.retry_after_s is None else {"Retry-After": str(math.ceil(self.retry_after_s))}
        if self.reason is RefusalCode.UNAUTHENTICATED:
            headers["WWW-Authenticate"] = "Bearer"
        return reply(self.body, STATUSES[self.reason], headers)


def unavailable(message: str) -> Refusal:
    return Refusal(RefusalCode.UNAVAILABLE, message, retry_after_s=RETRY_AFTER_S)


def reply(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(body), status, headers, "application/json")


LINES: Final = Limit(session=Rate(per_s=0.5, burst=100), address=Rate(per_s=0.05, burst=10))
"""The limits for the lines about one address, and about all of them together, which count as one session. A flood that
lasts a day writes about 10 MB."""
MAX_CHARS: Final = 200
"""How much is logged of a value that the client chose, such as a path."""

_NAMED: Final = re.compile(r"^(.*?(?:/images|/api(?:/v1)?/kb))/.*", re.DOTALL)
"""Paths whose last part is not logged: whoever knows the name of an image may see it, and the id of a record is made of
its title."""

log = get_logger(__name__)


class RefusalReason(StrEnum):
    """Why a caller was turned away before anything was done, as the metrics have it."""

    MISSING_TOKEN = "missing_token"
    WRONG_TOKEN = "wrong_token"
    WRONG_TOKENS = "too_many_wrong_tokens"
    BLOCKED = "blocked"
    WRONG_ORIGIN = "wrong_origin"
    WRONG_HOST = "wrong_host"
    TOO_LARGE = "too_large"


AUTH_REASONS: Final = (
    RefusalReason.MISSING_TOKEN,
    RefusalReason.WRONG_TOKEN,
    RefusalReason.WRONG_TOKENS,
    RefusalReason.BLOCKED,
)
"""The reasons that are about the caller. All others are about the request."""

RefusalCounts = Counter[RefusalReason]


class RefusalLog:
    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._quota = Quota({Kind.LOG_LINE: LINES})
        self._left_out = 0

    def write(self, reason: str, *, address: str | None, route: str, **more: Any) -> None:
        """Writes one line, unless there were too many. `route` is a path without its query, which may hold a secret."""
        account = Account(session="all", address=address)
        if self._quota.take(Kind.LOG_LINE, account, 1, self._clock.monotonic()) > 0:
            self._left_out += 1
            return
        if self._left_out:
            more["lines_left_out"], self._left_out = self._left_out, 0
        shown = {name: value[:MAX_CHARS] if isinstance(value, str) else value for name, value in more.items()}
        log.warning(
            "request_refused", reason=reason, address=address, route=_NAMED.sub(r"\1/…", route)[:MAX_CHARS], **shown
        )
