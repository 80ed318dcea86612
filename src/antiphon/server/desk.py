"""What every HTTP route stands on: the desk it works at, how it reads a request, and how it answers or refuses."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from antiphon.clock import Clock
from antiphon.errors import AntiphonError
from antiphon.protocol.limits import MAX_FRAME_BYTES
from antiphon.security.quota import Quota
from antiphon.server import unknown_fields
from antiphon.server.door import Caller
from antiphon.session.hub import Hub
from antiphon.speech.base import Voice
from antiphon.storage.conversations import ConversationStore, VoiceCallStore
from antiphon.tools.registry import Registry
from antiphon.tools.spec import Mode

MAX_BODY_BYTES: Final = MAX_FRAME_BYTES
"""A message may be as long over HTTP as over the socket."""

STOPPING: Final = "The server is about to stop. Try again in a moment."
RETRY_AFTER_S: Final = 5.0
"""When a client that was told that the server is unavailable is to come back."""

Value = TypeVar("Value")


class Model(Struct, frozen=True):
    name: str
    mode: Mode
    needs_network: bool
    current: bool = False


class ModelFailure(Struct, frozen=True):
    kind: str
    """What went wrong, such as unreachable, timeout, rate_limited, server_error or cut_off."""
    at: int
    """Unix time in milliseconds."""
    status: int | None = None
    """The HTTP status of the model's server, if it refused."""


class ModelState(Struct, frozen=True):
    """The model for text, and how its last answer went."""

    name: str
    """Without the address of its server."""
    last_failure: ModelFailure | None = None
    """Null if the last answer was whole, or if there was none yet."""


@dataclass(frozen=True, slots=True)
class HttpDesk:
    hub: Hub
    conversations: ConversationStore
    voice_calls: VoiceCallStore
    registry: Registry
    identify: Callable[[Request], Awaitable[Caller | None]]
    """None for a request without a valid token, where one is required."""
    ready: Callable[[], Awaitable[Sequence[str]]]
    """What keeps the server from serving, a sentence each; nothing if it can."""
    clock: Clock
    quota: Quota = field(default_factory=Quota)
    models: Callable[[], Sequence[Model]] = tuple
    voices: Callable[[], Sequence[Voice]] = tuple
    """The voices of the synthesiser, the usual one first; none where nothing speaks."""
    collectors: Sequence[Collector] = ()
    """Of metrics, beside those of the tools and the sessions."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server begins to stop: no new message is taken."""
    must_end: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the time is over in which answers could still be finished."""
    model_state: Callable[[], ModelState | None] = lambda: None


class RefusalCode(StrEnum):
    BAD_REQUEST = "bad_request"
    """The JSON, a field or a parameter is wrong; the message says which. Nothing was done."""
    UNAUTHENTICATED = "unauthenticated"
    """A valid token is required, as `Authorization: Bearer …`."""
    BLOCKED = "blocked"
    """This user is refused until the block is over."""
    NOT_FOUND = "not_found"
    """There is no such thing, or it is another user's."""
    METHOD_NOT_ALLOWED = "method_not_allowed"
    """This route has other methods; `Allow` names them."""
    CONFIRMATION_GONE = "confirmation_gone"
    """The confirmation is unknown, used or expired. Nothing was done."""
    BUSY = "busy"
    """An answer is being made in this conversation; try again when it is there."""
    TOO_LARGE = "too_large"
    """The body is longer than the limit."""
    TOO_FAST = "too_fast"
    """More requests than the pace allows, or too many wrong tokens; `Retry-After` says when to come back."""
    INTERNAL = "internal"
    """A fault of the server."""
    MODEL_FAILED = "model_failed"
    """The model cannot be reached, or refuses."""
    UNAVAILABLE = "unavailable"
    """The store cannot be reached, or the server is about to stop. Try again."""
    DEADLINE = "deadline"
    """The answer took too long and was given up."""


STATUSES: Final = {
    RefusalCode.BAD_REQUEST: 400,
    RefusalCode.UNAUTHENTICATED: 401,
    RefusalCode.BLOCKED: 403,
    RefusalCode.NOT_FOUND: 404,
    RefusalCode.CONFIRMATION_GONE: 404,
    RefusalCode.METHOD_NOT_ALLOWED: 405,
    RefusalCode.BUSY: 409,
    RefusalCode.TOO_LARGE: 413,
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
    """A sentence that can be shown."""


class Refused(Struct, frozen=True):
    """The body of every answer that is no success."""

    error: Fault
    timeout: Block | UnsetType = UNSET
    """With the code "blocked"."""
    conversation_id: str | UnsetType = msgspec.field(default=UNSET, name="conversationId")
    """Where the message was kept, if it was."""


class Refusal(AntiphonError):
    """Raised by a route; the client gets it as its answer."""

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


async def read_body(request: Request, type: type[Value], aliases: Mapping[str, str] | None = None) -> Value:
    """The JSON of a request. An unknown field is an error, since it is most likely a known one misspelt.

    `aliases` are other names of fields that are taken as well.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise Refusal(RefusalCode.TOO_LARGE, f"The body may have at most {MAX_BODY_BYTES} bytes.")
    try:
        return msgspec.convert(_unify(msgspec.json.decode(body), aliases or {}), type)
    except msgspec.ValidationError as error:
        raise Refusal(RefusalCode.BAD_REQUEST, unknown_fields.explain(error, type)) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Refusal(RefusalCode.BAD_REQUEST, f"The body is not JSON: {str(error).rstrip('.')}.") from None


def _unify(value: Any, aliases: Mapping[str, str]) -> Any:
    """An object in which every alias is replaced by the name that it stands for."""
    if not isinstance(value, dict):
        return value
    for alias, name in aliases.items():
        given = value.pop(alias, None)
        if given is not None and value.setdefault(name, given) != given:
            if value[name] is not None:
                raise Refusal(RefusalCode.BAD_REQUEST, f"`{name}` and `{alias}` differ. Send only `{name}`.")
            value[name] = given
    return value


def read_query(request: Request, type: type[Value]) -> Value:
    """The parameters behind the question mark."""
    try:
        return msgspec.convert(dict(request.query_params), type, strict=False)
    except msgspec.ValidationError as error:
        raise Refusal(RefusalCode.BAD_REQUEST, f"Wrong parameter: {unknown_fields.explain(error, type)}") from None
