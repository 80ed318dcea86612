"""The fault injector for HTTP: ASGI middleware in front of an app that answers with one JSON object per line."""

import asyncio
import json
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final

from starlette.types import ASGIApp, Receive, Scope, Send

from antiphon.sim import actions
from antiphon.sim.actions import Action, Alteration
from antiphon.sim.faults import FaultBook
from antiphon.sim.message_log import MessageLog
from antiphon.sim.script import Fault, Occasion, ScriptError
from antiphon.sim.vendors import ollama
from antiphon.sim.vendors.base import Message
from antiphon.sim.wire import Wire

STREAMED: Final = frozenset({"/api/chat", "/api/generate"})
"""The requests that faults happen to. Others, such as the list of models, are always answered."""
NDJSON: Final = b"ndjson"


class StreamInjector:
    def __init__(self, app: ASGIApp, *, faults: FaultBook, log: MessageLog, wire_of: Callable[[Scope], Wire]) -> None:
        self.faults = faults
        self.log = log
        self._app = app
        self._wire_of = wire_of
        self._numbers = count(1)
        self._open: dict[int, Stream] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in STREAMED:
            await self._app(scope, receive, send)
            return
        number = next(self._numbers)
        self.log.add(number, "request", path=scope["path"])
        todo = self.faults.connect(number)
        stream = Stream(number, faults=self.faults, log=self.log, send=send, wire=self._wire_of(scope))
        self._open[number] = stream
        try:
            refusal = next((each for each in todo if isinstance(each, actions.Refuse)), None)
            if refusal is not None:
                self.log.add(number, "refused", status=refusal.status)
                await _refuse(refusal, send)
                return
            timer = asyncio.create_task(stream.keep_time())
            try:
                await stream.perform(todo)
                await self._app(scope, _recording(receive, self.log, number), stream.from_app)
            finally:
                timer.cancel()
                await asyncio.wait([timer])
        finally:
            del self._open[number]
            self.faults.disconnect(number)
            self.log.add(number, "end")

    async def add(self, faults: list[Fault]) -> list[int]:
        """Arms faults, and performs those that are due at once on the open requests. Returns the armed ones' ids."""
        for fault in (each for each in faults if each.when.occasion is Occasion.NOW):
            chosen = [each for each in self._open.values() if fault.connection in (None, each.number)]
            if not chosen:
                raise ScriptError("no request is being answered.")
            for stream in chosen:
                await stream.perform(fault.do)
        return self.faults.add(fault for fault in faults if fault.when.occasion is not Occasion.NOW)

    def describe(self) -> dict[str, Any]:
        return {"connections": [each.describe() for each in self._open.values()], "sessions": []}


class Stream:
    """One answer, line by line."""

    def __init__(self, number: int, *, faults: FaultBook, log: MessageLog, send: Send, wire: Wire) -> None:
        self.number = number
        self._faults = faults
        self._log = log
        self._send = send
        self._wire = wire
        self._loop = asyncio.get_running_loop()
        self._began_s = self._loop.time()
        self._may_send = asyncio.Event()
        self._may_send.set()
        self._alterations: list[Alteration] = []
        self._is_stream = False
        self._lines = 0
        self._is_over = False

    def describe(self) -> Message:
        return {"connection": self.number, "lines": self._lines, "is_stalled": not self._may_send.is_set()}

    async def keep_time(self) -> None:
        """Performs the faults that time sets off."""
        for fault_id, at_s in sorted(self._faults.timers(self.number), key=lambda timer: timer[1]):
            await asyncio.sleep(max(self._began_s + at_s - self._loop.time(), 0.0))
            await self.perform(self._faults.take_timer(fault_id))

    async def perform(self, todo: Sequence[Action]) -> None:
        for action in todo:
            self._log.add(self.number, "fault", action=type(action).__name__)
            match action:
                case Alteration():
                    self._alterations.append(action)
                case actions.Stall(seconds=seconds):
                    self._may_send.clear()
                    if seconds is not None:
                        self._loop.call_later(seconds, self._may_send.set)
                case actions.Silence():
                    self._may_send.clear()
                case actions.Reset():
                    self._is_over = True
                    await self._wire.reset()
                case actions.Send(message=message):
                    await self._put_line(message)
                case actions.ErrorLine(message=text):
                    await self._put_line({"error": text})
                    await self._put(b"", more=False)
                    self._is_over = True

    async def from_app(self, event: Any) -> None:
        await self._may_send.wait()
        if self._is_over:
            return
        if event["type"] == "http.response.start":
            self._is_stream = NDJSON in dict(event["headers"]).get(b"content-type", b"")
        elif not self._is_stream:
            self._log.add(self.number, "server", message=_parse(bytes(event.get("body") or b"")))
        if event["type"] == "http.response.start" or not self._is_stream:
            await self._send(event)
            return
        for line in bytes(event.get("body") or b"").splitlines():
            await self._line(line)
        if not event.get("more_body", False) and not self._is_over:
            await self._put(b"", more=False)

    async def _line(self, line: bytes) -> None:
        message = _parse(line)
        if message is None:
            await self._put(line + b"\n")
            return
        self._lines += 1
        todo = self._faults.take(Occasion.SERVER_MESSAGES, self.number, (self._lines,))
        todo += self._faults.take(Occasion.SERVER_MESSAGE, self.number, ollama.line_types(message))
        await self.perform([each for each in todo if isinstance(each, Alteration)])
        await self._put_altered(message)
        await self.perform([each for each in todo if not isinstance(each, Alteration)])
        await self._may_send.wait()

    async def _put_altered(self, message: Message) -> None:
        lines = [message]
        for alteration in list(self._alterations):
            text = json.dumps(lines[0]).encode() if lines else b""
            match alteration:
                case actions.Drop():
                    lines = []
                case actions.Malformed():
                    await self._put(text[: len(text) // 2] + b"\n")
                    lines = []
                case actions.HalfFrame():
                    self._is_over = True
                    await self._wire.send_half(text + b"\n")
                    await self._wire.reset()
                    return
                case _:
                    instead = ollama.alter(alteration, message)
                    if instead is None:
                        continue
                    lines = list(instead)
            self._alterations.remove(alteration)
        for each in lines:
            await self._put_line(each)

    async def _put_line(self, message: Message) -> None:
        self._log.add(self.number, "server", message=message)
        await self._put(json.dumps(message).encode() + b"\n")

    async def _put(self, body: bytes, *, more: bool = True) -> None:
        if not self._is_over:
            await self._send({"type": "http.response.body", "body": body, "more_body": more})


def _recording(receive: Receive, log: MessageLog, number: int) -> Receive:
    """Returns a `receive` that also logs the request's body, which comes in one piece or a few."""
    body = bytearray()

    async def record() -> Any:
        event = await receive()
        if event["type"] == "http.request":
            body.extend(event.get("body") or b"")
            if not event.get("more_body", False):
                log.add(number, "client", message=_parse(bytes(body)))
        return event

    return record


async def _refuse(refusal: actions.Refuse, send: Send) -> None:
    body = ollama.refusal(refusal.status) if refusal.body is None else refusal.body
    headers = [(b"content-type", b"application/json; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    if refusal.retry_after_s is not None:
        headers.append((b"retry-after", str(refusal.retry_after_s).encode()))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body.encode()})


def _parse(line: bytes) -> Message | None:
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None
