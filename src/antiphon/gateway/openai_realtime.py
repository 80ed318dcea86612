"""`/v1/realtime`: OpenAI's Realtime API over a WebSocket. Each connection is one of our sessions."""

from typing import Any, Final

import msgspec
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket

from antiphon.gateway.deps import GatewayDeps, address_of
from antiphon.gateway.realtime_conversation import RealtimeConversation, shown_error
from antiphon.gateway.realtime_events import RealtimeError, decode, event_id_of
from antiphon.gateway.realtime_items import new_id
from antiphon.gateway.realtime_settings import AUDIO, TEXT, RealtimeSettings
from antiphon.gateway.session import GatewaySession, Opening
from antiphon.gateway.socket import SocketSender, admit, converse
from antiphon.protocol.closing import INTERNAL, TOO_FAST
from antiphon.security.admission import AdmissionRefused, Caller, RefusalKind
from antiphon.security.quota import Kind
from antiphon.security.surrogates import repair_json
from antiphon.security.tokens import bearer
from antiphon.session.hub import STORE_CLOSE
from antiphon.storage.base import StoreUnavailable
from antiphon.telemetry.log import get_logger
from antiphon.tools.spec import Mode

PATHS: Final = ("/v1/realtime", "/openai/v1/realtime")
"""OpenAI's path, and Azure's."""
SUBPROTOCOL: Final = "realtime"
KEY_SUBPROTOCOL: Final = "openai-insecure-api-key."
"""Browsers cannot set headers, so OpenAI's clients there send the key as a subprotocol."""
MAX_MODEL_CHARS: Final = 128
MAX_REFUSED: Final = 200
"""How many events over the quota are refused before the socket is closed."""

ERROR_TYPES: Final = {
    RefusalKind.UNAUTHENTICATED: ("invalid_request_error", "invalid_api_key"),
    RefusalKind.BLOCKED: ("invalid_request_error", "blocked"),
    RefusalKind.WRONG_TOKENS: ("rate_limit_error", "rate_limit_exceeded"),
    RefusalKind.FULL: ("rate_limit_error", "rate_limit_exceeded"),
}
"""The type and code of each refusal in the vendor's words."""

log = get_logger(__name__)


def error_body(refused: AdmissionRefused) -> dict[str, Any]:
    """Words a refusal as OpenAI does."""
    type, code = ERROR_TYPES[refused.kind]
    return {"error": {"message": str(refused), "type": type, "param": None, "code": code}}


def api_key(socket: WebSocket) -> str | None:
    """Returns the key of a client: OpenAI's header, Azure's header, or a browser's subprotocol."""
    key = bearer(socket.headers.get("authorization")) or socket.headers.get("api-key")
    if key is not None:
        return key
    offered: list[str] = socket.scope.get("subprotocols") or []
    return next((each.removeprefix(KEY_SUBPROTOCOL) for each in offered if each.startswith(KEY_SUBPROTOCOL)), None)


class _Connection:
    """One client from the upgrade to the end."""

    def __init__(self, deps: GatewayDeps, socket: WebSocket) -> None:
        self._deps = deps
        self._socket = socket
        self._sender = SocketSender(socket)
        self._refused = 0
        has_voice = deps.hub.has_voice
        settings = RealtimeSettings(
            model=(socket.query_params.get("model") or deps.model_name)[:MAX_MODEL_CHARS],
            modality=AUDIO if has_voice else TEXT,
        )
        self._conversation = RealtimeConversation(deps, settings, emit=self._emit, close=self._sender.close)

    async def run(self, caller: Caller) -> None:
        offered: list[str] = self._socket.scope.get("subprotocols") or []
        await self._socket.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)
        opening = Opening(mode=Mode.VOICE if self._deps.hub.has_voice else Mode.TEXT, client="openai-realtime")
        conversation = self._conversation
        try:
            conversation.session = await GatewaySession.open(
                self._deps, caller, opening, conversation, address=address_of(self._socket)
            )
        except StoreUnavailable as error:
            log.error("socket_refused", error=str(error))
            await self._socket.close(STORE_CLOSE.code, STORE_CLOSE.reason)
            return
        try:
            conversation.begin()
            await converse(self._socket, self._sender, self._take)
        finally:
            conversation.end()
            # There is no resumption in this protocol: a client that comes back begins a new session.
            conversation.session.close(for_good=True)

    async def _take(self, frame: str | bytes) -> None:
        session = self._conversation.session
        session.note_message()
        try:
            if session.wait_s(Kind.MESSAGE) > 0:
                self._refused += 1
                if self._refused > MAX_REFUSED:
                    self._sender.close(TOO_FAST)
                raise RealtimeError(
                    "Events come too fast. Send them more slowly.", "rate_limit_exceeded", type="rate_limit_error"
                )
            self._conversation.take(decode(frame))
        except RealtimeError as error:
            told = shown_error(error.type, error.error_code, str(error), param=error.param, event_id=event_id_of(frame))
            self._emit("error", error=told)
        except Exception:
            log.exception("realtime_event_failed")
            self._sender.close(INTERNAL)

    def _emit(self, type: str, **fields: Any) -> None:
        event = {"type": type, "event_id": new_id("event"), **fields}
        try:
            frame = msgspec.json.encode(event)
        except UnicodeEncodeError:
            # Half of a surrogate pair, from a model or a tool.
            frame = msgspec.json.encode(repair_json(event))
        self._sender.send(frame.decode())


def realtime_routes(deps: GatewayDeps) -> list[BaseRoute]:
    async def endpoint(socket: WebSocket) -> None:
        caller = await admit(socket, deps, api_key(socket), error_body)
        if caller is not None:
            await _Connection(deps, socket).run(caller)

    return [WebSocketRoute(path, endpoint) for path in PATHS]
