"""The fault injector: ASGI middleware with a provider's rules and scripted faults, in front of any WebSocket app."""

import json
from collections.abc import Callable
from itertools import count
from typing import Any, Final

from starlette.types import ASGIApp, Receive, Scope, Send

from antiphon.sim.actions import Refuse
from antiphon.sim.connection import Connection
from antiphon.sim.faults import FaultBook
from antiphon.sim.message_log import MessageLog
from antiphon.sim.script import Fault, Occasion, ScriptError
from antiphon.sim.vendors.base import HttpRefusal, Upgrade, Vendor
from antiphon.sim.wire import Wire

MAX_CONNECTIONS: Final = 1_000


class FaultInjector:
    def __init__(
        self,
        app: ASGIApp,
        vendor: Vendor,
        *,
        faults: FaultBook,
        log: MessageLog,
        wire_of: Callable[[Scope], Wire],
    ) -> None:
        self.vendor = vendor
        self.faults = faults
        self.log = log
        self._app = app
        self._wire_of = wire_of
        self._numbers = count(1)
        self._open: dict[int, Connection] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        number = next(self._numbers)
        self.log.add(number, "connect", path=scope["path"])
        upgrade = Upgrade.of(scope)
        conversation = self.vendor.open(number, upgrade)
        actions = self.faults.connect(number)
        refusal = next((_refusal(each, self.vendor) for each in actions if isinstance(each, Refuse)), None)
        own = conversation.refuse()
        if refusal is None and isinstance(own, HttpRefusal):
            refusal = own
        if refusal is None and len(self._open) >= MAX_CONNECTIONS:
            refusal = HttpRefusal(503, self.vendor.refusal(503))
        try:
            if refusal is not None:
                self.log.add(number, "refused", status=refusal.status)
                await _refuse(refusal, receive, send)
                return
            connection = Connection(
                number,
                conversation,
                faults=self.faults,
                log=self.log,
                receive=receive,
                send=send,
                wire=self._wire_of(scope),
            )
            self._open[number] = connection
            refused = () if isinstance(own, HttpRefusal) else own
            await connection.run(self._app, self.vendor.rewrite(scope), actions, refused)
        finally:
            self._open.pop(number, None)
            conversation.close()
            self.faults.disconnect(number)
            self.log.add(number, "disconnect")

    async def perform_now(self, fault: Fault) -> int:
        """Performs a fault on the open connections, and returns on how many."""
        chosen = [each for each in self._open.values() if fault.connection in (None, each.number)]
        if not chosen:
            which = "no connection" if fault.connection is None else f"connection {fault.connection}"
            raise ScriptError(f"{which} is open." if fault.connection is None else f"{which} is not open.")
        for connection in chosen:
            await connection.perform(fault.do)
        return len(chosen)

    async def add(self, faults: list[Fault]) -> list[int]:
        """Arms faults, and performs those that are due at once. Returns the ids of the armed ones."""
        for fault in faults:
            if fault.when.occasion is Occasion.NOW:
                await self.perform_now(fault)
        return self.faults.add(fault for fault in faults if fault.when.occasion is not Occasion.NOW)

    def describe(self) -> dict[str, Any]:
        """Returns the open connections and the provider's sessions, for the control port."""
        return {
            "connections": [each.describe() for each in self._open.values()],
            "sessions": self.vendor.describe(),
        }


def _refusal(action: Refuse, vendor: Vendor) -> HttpRefusal:
    headers = {} if action.retry_after_s is None else {"retry-after": str(action.retry_after_s)}
    return HttpRefusal(action.status, vendor.refusal(action.status) if action.body is None else action.body, headers)


async def _refuse(refusal: HttpRefusal, receive: Receive, send: Send) -> None:
    await receive()
    headers = {"content-type": _content_type(refusal.body), **refusal.headers}
    await send(
        {
            "type": "websocket.http.response.start",
            "status": refusal.status,
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
    )
    await send({"type": "websocket.http.response.body", "body": refusal.body.encode()})


def _content_type(body: str) -> str:
    try:
        json.loads(body)
    except ValueError:
        return "text/plain; charset=utf-8"
    return "application/json"
