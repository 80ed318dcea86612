"""One client's connection: every message passes here in both directions, and may be changed, held back or lost."""

import asyncio
import json
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from antiphon.sim import actions
from antiphon.sim.actions import Action, Alteration
from antiphon.sim.alterations import Alterations, HalfText, Item, RawText
from antiphon.sim.faults import FaultBook
from antiphon.sim.message_log import MessageLog
from antiphon.sim.script import Occasion
from antiphon.sim.vendors.base import CloseWith, Conversation, Message, Outgoing
from antiphon.sim.wire import Wire

MAX_WAITING: Final = 5_000
"""How many messages may wait for the endpoint, or be held back from the client."""
TIMER_S: Final = 0.001
"""How much too early a timer may be."""
FOR_EVER: Final = float("inf")

_BEFORE_HANDSHAKE: Final = (actions.Stall, actions.Silence, actions.Reset, actions.NoPongs, actions.SlowPongs)
"""The actions that a client's request sets off before the handshake; all others need an open socket."""


class Connection:
    def __init__(
        self,
        number: int,
        conversation: Conversation,
        *,
        faults: FaultBook,
        log: MessageLog,
        receive: Receive,
        send: Send,
        wire: Wire,
    ) -> None:
        self.number = number
        self._conversation = conversation
        self._faults = faults
        self._log = log
        self._receive = receive
        self._send = send
        self._wire = wire
        self._loop = asyncio.get_running_loop()
        self._to_endpoint: asyncio.Queue[dict[str, Any]] = asyncio.Queue(MAX_WAITING)
        self._tasks: set[asyncio.Task[None]] = set()
        self._accepted = asyncio.Event()
        self._ended = asyncio.Event()
        self._opened_s = self._loop.time()
        self._is_closed = False
        self._is_silent = False
        self._stalled_until_s = 0.0
        self._held: deque[Item] = deque()
        self._alterations = Alterations(conversation)
        self._later: list[Outgoing] = []
        """The rest of a second response, which follows the next message."""
        self._client_messages = 0
        self._server_messages = 0
        self._audio_chunks = 0

    def describe(self) -> Message:
        return {
            "connection": self.number,
            "open_s": round(self._loop.time() - self._opened_s, 3),
            "client_messages": self._client_messages,
            "server_messages": self._server_messages,
            "is_silent": self._is_silent,
            "is_stalled": self._is_stalled,
            "is_resumed": self._conversation.is_resumed,
        }

    @property
    def _is_stalled(self) -> bool:
        return self._loop.time() < self._stalled_until_s

    async def run(
        self, app: ASGIApp, scope: Scope, on_connect: Sequence[Action], refused: Sequence[Outgoing] = ()
    ) -> None:
        """Runs the app behind this connection. With `refused`, the provider's refusal is sent instead."""
        self._start(self._read_client())
        try:
            await self.perform([each for each in on_connect if isinstance(each, _BEFORE_HANDSHAKE)])
            await self._wait_for_handshake()
            if self._ended.is_set():
                return
            if refused:
                await self._write({"type": "websocket.accept"})
                await self.transmit(refused)
                await self._ended.wait()
                return
            self._start(self._after_handshake([each for each in on_connect if not isinstance(each, _BEFORE_HANDSHAKE)]))
            await app(scope, self._to_endpoint.get, self._from_endpoint)
            # The endpoint has left, but a silent or stalled socket stays open.
            if not self._is_closed and (self._is_silent or self._held):
                await self._ended.wait()
        finally:
            self._ended.set()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def perform(self, todo: Sequence[Action]) -> None:
        """Performs actions in their order."""
        for action in todo:
            if self._ended.is_set():
                return
            self._log.add(self.number, "fault", action=type(action).__name__, settings=msgspec.to_builtins(action))
            await self._perform(action)

    async def _perform(self, action: Action) -> None:
        match action:
            case Alteration():
                self._alterations.add(action)
            case actions.Close(code=code, reason=reason):
                await self.transmit([CloseWith(code, reason)], even_if_held=True)
            case actions.Stall(seconds=seconds):
                until_s = FOR_EVER if seconds is None else self._loop.time() + seconds
                self._stalled_until_s = max(self._stalled_until_s, until_s)
                if seconds is not None:
                    self._start(self._release(seconds))
            case actions.Silence():
                self._is_silent = True
            case actions.NoPongs():
                self._wire.delay_pongs(None)
            case actions.SlowPongs(seconds=seconds):
                self._wire.delay_pongs(seconds)
            case actions.Reset():
                await self._reset()
            case actions.Send(message=message):
                await self.transmit([message])
            case actions.GoAway(seconds_left=seconds_left, then=then):
                await self.transmit(self._conversation.inject(action))
                if then is actions.Then.SILENCE:
                    self._is_silent = True
                elif then is actions.Then.VANISH:
                    self._start(self._vanish_after(seconds_left))
                elif then is actions.Then.CLOSE:
                    await self.transmit(self._conversation.expire(), even_if_held=True)
                else:
                    self._start(self._expire_after(seconds_left))
            case actions.TwoResponses():
                events = self._conversation.inject(action)
                half = (len(events) + 1) // 2
                self._later += events[half:]
                await self.transmit(events[:half])
            case _:
                await self.transmit(self._conversation.inject(action), even_if_held=isinstance(action, actions.Quota))

    async def transmit(self, items: Sequence[Item], *, even_if_held: bool = False) -> None:
        """Sends to the client, unless the connection is silent or stalled."""
        for item in items:
            if self._is_closed or self._ended.is_set():
                return
            if self._is_silent and not even_if_held:
                self._log.add(self.number, "lost", message=_loggable(item))
            elif (self._is_stalled or self._held) and not even_if_held:
                if len(self._held) < MAX_WAITING:
                    self._held.append(item)
            else:
                await self._put_on_wire(item)

    async def _put_on_wire(self, item: Item) -> None:
        self._log.add(self.number, "server", message=_loggable(item))
        match item:
            case CloseWith(code=code):
                self._is_closed = True
                await self._write({"type": "websocket.close", "code": code, "reason": item.cut_reason})
            case HalfText():
                self._is_closed = True
                await self._wire.send_half(item.encode(), is_binary=self._conversation.sends_binary)
                await self._wire.reset()
            case _:
                text = str(item) if isinstance(item, RawText) else json.dumps(item, ensure_ascii=False)
                frame = {"bytes": text.encode()} if self._conversation.sends_binary else {"text": text}
                await self._write({"type": "websocket.send", **frame})

    async def _write(self, event: Any) -> None:
        try:
            await self._send(event)
        except OSError:
            # The client has left; the reading side is about to notice.
            self._is_closed = True

    async def _release(self, after_s: float) -> None:
        await asyncio.sleep(after_s)
        if self._time_left_s() < TIMER_S:
            self._stalled_until_s = 0.0
        while self._held and not self._is_stalled and not self._is_closed:
            await self._put_on_wire(self._held.popleft())

    async def _expire_after(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self.transmit(self._conversation.expire(), even_if_held=True)

    async def _vanish_after(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._is_silent = True

    async def _reset(self) -> None:
        self._is_closed = True
        await self._wire.reset()

    def _start(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _wait_for_handshake(self) -> None:
        """Holds the handshake while the connection is stalled or silent."""
        while not self._ended.is_set() and (self._is_silent or self._is_stalled):
            left_s = None if self._is_silent or self._stalled_until_s == FOR_EVER else self._time_left_s()
            try:
                await asyncio.wait_for(self._ended.wait(), left_s)
            except TimeoutError:
                continue

    def _time_left_s(self) -> float:
        return max(self._stalled_until_s - self._loop.time(), 0.0)

    async def _after_handshake(self, late: Sequence[Action]) -> None:
        await self._accepted.wait()
        self._opened_s = self._loop.time()
        self._start(self._keep_time())
        if (limits := self._conversation.limits) is not None:
            self._start(self._enforce(limits.connection_s, limits.warning_s))
        await self.perform(late)

    async def _enforce(self, connection_s: float, warning_s: float | None) -> None:
        if warning_s is not None:
            await asyncio.sleep(max(connection_s - warning_s, 0.0))
            await self.transmit(self._conversation.warn(warning_s))
            await asyncio.sleep(min(warning_s, connection_s))
        else:
            await asyncio.sleep(connection_s)
        await self.transmit(self._conversation.expire(), even_if_held=True)

    async def _keep_time(self) -> None:
        """Performs the faults that time sets off, including those that are added meanwhile."""
        done: set[int] = set()
        while True:
            changed = self._faults.changed
            due = {fault_id: at_s for fault_id, at_s in self._faults.timers(self.number) if fault_id not in done}
            if due:
                fault_id = min(due, key=due.__getitem__)
                wait_s: float | None = max(self._opened_s + due[fault_id] - self._loop.time(), 0.0)
            else:
                wait_s = None
            try:
                await asyncio.wait_for(changed.wait(), wait_s)
            except TimeoutError:
                done.add(fault_id)
                await self.perform(self._faults.take_timer(fault_id))

    async def _read_client(self) -> None:
        """Reads at once what the client sends: the end of a connection must not wait until the endpoint asks for it."""
        while True:
            event = await self._receive()
            if event["type"] == "websocket.disconnect":
                self._ended.set()
                await self._to_endpoint.put(dict(event))
                return
            if event["type"] == "websocket.receive":
                await self._from_client(dict(event))
            else:
                await self._to_endpoint.put(dict(event))

    async def _from_client(self, event: dict[str, Any]) -> None:
        message = _parse(event)
        self._client_messages += 1
        if message is None:
            self._log.add(self.number, "client", text=event.get("text") or f"({len(event.get('bytes') or b'')} bytes)")
            if not self._is_silent:
                await self._to_endpoint.put(event)
            return
        self._log.add(self.number, "client", message=message)
        if self._is_silent or self._is_closed:
            return
        try:
            await self._judge(message)
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            # Something in it has the wrong type. The endpoint refuses such messages itself.
            self._log.add(self.number, "unreadable")
            await self._to_endpoint.put(event)

    async def _judge(self, message: Message) -> None:
        """Performs the faults that a client's message sets off, and applies the provider's rules to it."""
        todo = self._faults.take(Occasion.CLIENT_MESSAGES, self.number, (self._client_messages,))
        todo += self._faults.take(Occasion.CLIENT_MESSAGE, self.number, self._conversation.client_types(message))
        if self._conversation.asks_to_resume(message):
            todo += self._faults.take(Occasion.RESUME, self.number)
        rejected = next((each for each in todo if isinstance(each, actions.RejectHandle)), None)
        is_dropped = any(isinstance(each, actions.Drop) for each in todo)
        if rejected is None and not is_dropped:
            verdict = self._conversation.on_client(message)
            await self.transmit(verdict.replies)
            for each in verdict.forward:
                await self._to_endpoint.put({"type": "websocket.receive", "text": json.dumps(each)})
        await self.perform([each for each in todo if not isinstance(each, actions.Drop)])

    async def _from_endpoint(self, event: Any) -> None:
        match event["type"]:
            case "websocket.send":
                message = _parse(event)
                if message is not None:
                    await self._server_message(message)
                elif not self._is_silent:
                    await self._write(event)
            case "websocket.close":
                await self.transmit([CloseWith(event.get("code", 1000), event.get("reason") or "")])
            case "websocket.accept":
                await self._write(event)
                self._accepted.set()
            case _:
                # The endpoint refuses the upgrade.
                self._is_closed = True
                await self._write(event)

    async def _server_message(self, message: Message) -> None:
        for each in self._conversation.on_server(message):
            await self._one_server_message(each)
        for forward in self._conversation.take_forwards():
            await self._to_endpoint.put({"type": "websocket.receive", "text": json.dumps(forward)})

    async def _one_server_message(self, message: Message) -> None:
        types = self._conversation.server_types(message)
        self._server_messages += 1
        todo = self._faults.take(Occasion.SERVER_MESSAGES, self.number, (self._server_messages,))
        todo += self._faults.take(Occasion.SERVER_MESSAGE, self.number, types)
        if "audio" in types:
            self._audio_chunks += 1
            todo += self._faults.take(Occasion.AUDIO_CHUNK, self.number, (self._audio_chunks,))
        if "answer_end" in types:
            self._audio_chunks = 0
        if self._conversation.is_resumed and "setupComplete" in types:
            todo += self._faults.take(Occasion.RESUMED, self.number)
        await self.perform([each for each in todo if isinstance(each, Alteration)])
        await self.transmit(self._alterations.apply(message))
        later, self._later = self._later, []
        await self.transmit(later)
        await self.perform([each for each in todo if not isinstance(each, Alteration)])


def _parse(event: Any) -> Message | None:
    text = event.get("text")
    try:
        parsed = json.loads(event.get("bytes") or b"" if text is None else text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _loggable(item: Item) -> Any:
    if isinstance(item, CloseWith):
        return {"close": item.code, "reason": item.cut_reason}
    return str(item) if isinstance(item, str) else item
