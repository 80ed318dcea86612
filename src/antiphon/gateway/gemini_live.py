"""Gemini Live's BidiGenerateContent socket. Each connection is one of our sessions, or resumes one."""

import asyncio
import re
from typing import Any, Final

import msgspec
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket

from antiphon.gateway import gemini_messages as gm
from antiphon.gateway.deps import GatewayDeps, address_of
from antiphon.gateway.gemini_conversation import NOT_FOUND, GeminiConversation
from antiphon.gateway.gemini_input import read_setup
from antiphon.gateway.session import GatewaySession, Opening
from antiphon.gateway.socket import SocketSender, admit, converse
from antiphon.protocol.limits import HELLO_LIMIT_S
from antiphon.security.admission import AdmissionRefused, Caller, RefusalKind
from antiphon.security.surrogates import repair_json
from antiphon.storage.base import StoreUnavailable
from antiphon.telemetry.log import get_logger
from antiphon.tools.errors import ClientToolError
from antiphon.tools.spec import Mode

PATH: Final = "/ws/google.ai.generativelanguage.{version}.GenerativeService."
METHODS: Final = ("BidiGenerateContent", "BidiGenerateContentConstrained")
"""The second is what Google's SDK uses with a short-lived token."""
TOKEN_PREFIX: Final = "auth_tokens/"

STATUSES: Final = {
    RefusalKind.UNAUTHENTICATED: (401, "UNAUTHENTICATED"),
    RefusalKind.BLOCKED: (403, "PERMISSION_DENIED"),
    RefusalKind.WRONG_TOKENS: (429, "RESOURCE_EXHAUSTED"),
    RefusalKind.FULL: (429, "RESOURCE_EXHAUSTED"),
}
"""The code and status of each refusal in the vendor's words."""

_AUTHORIZATION: Final = re.compile(r"(?:bearer|token) +(\S+) *", re.IGNORECASE)

log = get_logger(__name__)


def error_body(refused: AdmissionRefused) -> dict[str, Any]:
    """Words a refusal as Google does."""
    code, status = STATUSES[refused.kind]
    return {"error": {"code": code, "message": str(refused), "status": status}}


def api_key(socket: WebSocket) -> str | None:
    """Returns the key of a client: in Google's header, in the URL, or as a token."""
    found = _AUTHORIZATION.fullmatch(socket.headers.get("authorization", ""))
    key = socket.headers.get("x-goog-api-key") or (found[1] if found else None) or socket.query_params.get("key")
    return key.removeprefix(TOKEN_PREFIX) if key else None


class _Connection:
    """One client from the upgrade to the end."""

    def __init__(self, deps: GatewayDeps, socket: WebSocket, caller: Caller) -> None:
        self._deps = deps
        self._socket = socket
        self._caller = caller
        self._sender = SocketSender(socket)
        self._conversation: GeminiConversation | None = None

    async def run(self) -> None:
        await self._socket.accept()
        deadline = asyncio.get_running_loop().call_later(HELLO_LIMIT_S, self._refuse_silence)
        try:
            await converse(self._socket, self._sender, self._take)
        finally:
            deadline.cancel()
            if self._conversation is not None:
                self._conversation.end()

    def _refuse_silence(self) -> None:
        if self._conversation is None:
            self._sender.close(gm.closing(gm.POLICY, f"No setup came within {HELLO_LIMIT_S} seconds."))

    async def _take(self, frame: str | bytes) -> None:
        try:
            message = gm.decode(frame)
            if self._conversation is not None:
                self._conversation.take(message)
            elif message.setup is not None:
                await self._begin(message.setup)
            else:
                raise gm.GeminiError("setup must be the first message and only the first.")
        except gm.GeminiError as error:
            self._sender.close(error.close)
        except StoreUnavailable as error:
            log.error("socket_refused", error=str(error))
            self._sender.close(gm.closing(gm.FAILED, "The service is currently unavailable."))
        except Exception:
            log.exception("gemini_message_failed")
            self._sender.close(gm.closing(gm.FAILED, "Internal error encountered."))

    async def _begin(self, setup: gm.Setup) -> None:
        settings = read_setup(setup, has_voice=self._deps.hub.has_voice)
        conversation = GeminiConversation(self._deps, settings, send=self._send, close=self._sender.close)
        try:
            opening = Opening(
                mode=Mode.VOICE if settings.speaks else Mode.TEXT,
                resume=settings.handle,
                application=conversation.application,
                tools=conversation.make_tools(),
                client="gemini-live",
            )
            address = address_of(self._socket)
            conversation.session = await GatewaySession.open(
                self._deps, self._caller, opening, conversation, address=address
            )
        except ClientToolError as error:
            raise gm.GeminiError(str(error)) from None
        if conversation.was_rejected:
            conversation.session.close(for_good=True)
            raise gm.GeminiError(NOT_FOUND, gm.POLICY)
        self._conversation = conversation
        conversation.begin()

    def _send(self, message: dict[str, Any]) -> None:
        try:
            frame = msgspec.json.encode(message)
        except UnicodeEncodeError:
            # Half of a surrogate pair, from a model or a tool.
            frame = msgspec.json.encode(repair_json(message))
        self._sender.send(frame.decode())


def gemini_routes(deps: GatewayDeps) -> list[BaseRoute]:
    async def endpoint(socket: WebSocket) -> None:
        caller = await admit(socket, deps, api_key(socket), error_body)
        if caller is not None:
            await _Connection(deps, socket, caller).run()

    # Google's SDK joins a base address that ends in a slash and a path that begins with one.
    return [WebSocketRoute(slash + PATH + method, endpoint) for slash in ("", "/") for method in METHODS]
