"""A fault injector in front of small endpoints, driven without a network: `SimulatedClient` is the client's side."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from antiphon.sim.faults import FaultBook
from antiphon.sim.injector import FaultInjector
from antiphon.sim.message_log import MessageLog
from antiphon.sim.script import parse_script
from antiphon.sim.vendors.base import Options, Vendor
from antiphon.sim.vendors.gemini import GeminiLive
from antiphon.sim.vendors.openai import OpenAIRealtime

AUDIO = base64.b64encode(b"\1\0" * 100).decode()
GEMINI_PATH = "//ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
SETUP = {"setup": {"model": "models/gemini-3.8-live", "sessionResumption": {}}}


class GeminiEndpoint:
    """Answers "…" with five chunks of audio, "call" with a tool call, and issues a handle after each turn."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        self.scopes: list[Scope] = []
        self._handles = 0
        self._calls = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)

        async def say(message: Any) -> None:
            await send({"type": "websocket.send", "text": json.dumps(message)})

        while True:
            event = await receive()
            if event["type"] == "websocket.connect":
                await send({"type": "websocket.accept"})
            elif event["type"] == "websocket.disconnect":
                return
            else:
                message = json.loads(event["text"])
                self.received.append(message)
                for answer in self._answers(message):
                    await say(answer)

    def _answers(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        if "setup" in message:
            return [{"setupComplete": {}}]
        if "call" in json.dumps(message.get("realtimeInput") or message.get("realtime_input") or ""):
            self._calls += 1
            call = {"name": "get_current_time", "args": {}, "id": f"call-{self._calls}"}
            return [{"toolCall": {"functionCalls": [call]}}]
        part = {"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": AUDIO}}
        self._handles += 1
        return [
            *([{"serverContent": {"modelTurn": {"parts": [part]}}}] * 5),
            {"serverContent": {"generationComplete": True}},
            {"serverContent": {"turnComplete": True}},
            {"sessionResumptionUpdate": {"newHandle": f"handle-{self._handles}", "resumable": True}},
        ]


class OpenAIEndpoint:
    """Answers `response.create` with a spoken response, or with a function call if the last item asks for one."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        self.scopes: list[Scope] = []
        self._responses = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)

        async def say(type_: str, **fields: Any) -> None:
            message = {"type": type_, "event_id": "event_1", **fields}
            await send({"type": "websocket.send", "text": json.dumps(message)})

        await receive()
        await send({"type": "websocket.accept"})
        await say("session.created", session={"id": "sess_1"})
        while (event := await receive())["type"] != "websocket.disconnect":
            message = json.loads(event["text"])
            self.received.append(message)
            if message["type"] == "response.create":
                self._responses += 1
                wants_call = "call" in json.dumps(self.received[-2:-1])
                await (self._call if wants_call else self._speak)(say, f"resp_{self._responses}")

    async def _speak(self, say: Any, response_id: str) -> None:
        await say("response.created", response={"id": response_id, "status": "in_progress", "output": []})
        for _ in range(5):
            await say("response.output_audio.delta", response_id=response_id, output_index=0, delta=AUDIO)
        await say("response.done", response={"id": response_id, "status": "completed", "output": []})

    async def _call(self, say: Any, response_id: str) -> None:
        item = {
            "id": f"item_{response_id}",
            "type": "function_call",
            "status": "completed",
            "name": "get_current_time",
            "call_id": f"call_{response_id}",
            "arguments": "{}",
        }
        at = {"response_id": response_id, "output_index": 0}
        await say("response.created", response={"id": response_id, "status": "in_progress", "output": []})
        await say("response.output_item.added", **at, item={**item, "status": "in_progress"})
        await say("response.function_call_arguments.done", **at, call_id=item["call_id"], arguments="{}")
        await say("response.output_item.done", **at, item=item)
        await say("response.done", response={"id": response_id, "status": "completed", "output": [item]})


@dataclass
class FakeWire:
    """Remembers what it was asked to do; a reset ends the client's connection."""

    client: "SimulatedClient | None" = None
    pong_delays_s: list[float | None] = field(default_factory=list)
    half: bytes | None = None
    was_reset: asyncio.Event = field(default_factory=asyncio.Event)

    def delay_pongs(self, seconds: float | None) -> None:
        self.pong_delays_s.append(seconds)

    async def send_half(self, data: bytes, *, is_binary: bool = False) -> None:
        self.half = data

    async def reset(self) -> None:
        self.was_reset.set()
        assert self.client is not None
        self.client.disconnect()


class SimulatedClient:
    def __init__(self, wire: FakeWire) -> None:
        self.wire = wire
        wire.client = self
        self._to_server: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._from_server: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._to_server.put_nowait({"type": "websocket.connect"})

    async def receive(self) -> dict[str, Any]:
        return await self._to_server.get()

    async def deliver(self, event: Any) -> None:
        self._from_server.put_nowait(event)
        if event["type"] in ("websocket.close", "websocket.http.response.body"):
            self.disconnect()

    def disconnect(self) -> None:
        self._to_server.put_nowait({"type": "websocket.disconnect", "code": 1005})

    def say(self, message: Any) -> None:
        self._to_server.put_nowait({"type": "websocket.receive", "text": json.dumps(message)})

    def say_raw(self, text: str) -> None:
        self._to_server.put_nowait({"type": "websocket.receive", "text": text})

    async def event(self, timeout_s: float = 10_000) -> dict[str, Any]:
        """Returns the next ASGI event from the server."""
        return await asyncio.wait_for(self._from_server.get(), timeout_s)

    async def heard(self) -> Any:
        """Returns the server's next message."""
        event = await self.event()
        assert event["type"] == "websocket.send", event
        return json.loads(event.get("text") or event["bytes"])

    async def heard_until(self, name: str) -> list[Any]:
        """Returns the server's messages up to the one that has this key, type or field of serverContent."""
        messages = []
        while True:
            message = await self.heard()
            messages.append(message)
            if name in message or name in message.get("serverContent", {}) or message.get("type") == name:
                return messages

    async def closed(self) -> tuple[int, str]:
        """Reads on until the server closes, and returns the code and the reason."""
        while (event := await self.event())["type"] != "websocket.close":
            pass
        return event["code"], event["reason"]

    async def is_quiet(self, seconds: float) -> bool:
        """Whether nothing comes for this long."""
        try:
            await self.event(seconds)
        except TimeoutError:
            return True
        return False


class Simulated:
    """A simulator with its endpoint; `connect` is a client's connection."""

    def __init__(self, endpoint: ASGIApp, vendor: Vendor, script: str) -> None:
        loop = asyncio.get_running_loop()
        self.vendor = vendor
        self.faults = FaultBook()
        self.faults.add(parse_script(script, vendor.vocabulary))
        self.log = MessageLog(loop.time)
        self._wires: dict[int, FakeWire] = {}
        self.injector = FaultInjector(
            endpoint, vendor, faults=self.faults, log=self.log, wire_of=lambda scope: self._wires[scope["client"][1]]
        )

    @asynccontextmanager
    async def connect(
        self, path: str, query: str = "", headers: dict[str, str] | None = None
    ) -> AsyncIterator[SimulatedClient]:
        wire = FakeWire()
        client = SimulatedClient(wire)
        number = len(self._wires) + 1
        self._wires[number] = wire
        scope = {
            "type": "websocket",
            "path": path,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in (headers or {}).items()],
            "client": ("127.0.0.1", number),
        }
        running = asyncio.create_task(self.injector(scope, client.receive, client.deliver))
        try:
            yield client
        finally:
            client.disconnect()
            await running

    @asynccontextmanager
    async def gemini(self, setup: dict[str, Any] | None = None) -> AsyncIterator[SimulatedClient]:
        """Connects, and waits until the session is set up."""
        async with self.connect(GEMINI_PATH) as client:
            assert (await client.event())["type"] == "websocket.accept"
            client.say(setup or SETUP)
            assert await client.heard() == {"setupComplete": {}}
            yield client

    @asynccontextmanager
    async def openai(self) -> AsyncIterator[SimulatedClient]:
        async with self.connect("/v1/realtime", "model=gpt-realtime-2") as client:
            assert (await client.event())["type"] == "websocket.accept"
            assert (await client.heard())["type"] == "session.created"
            yield client


NO_FAULTS = "faults: []"


def simulate_gemini(script: str = NO_FAULTS, **options: Any) -> tuple[Simulated, GeminiEndpoint]:
    endpoint = GeminiEndpoint()
    vendor = GeminiLive(Options(**options), asyncio.get_running_loop().time)
    return Simulated(endpoint, vendor, script), endpoint


def simulate_openai(script: str = NO_FAULTS, **options: Any) -> tuple[Simulated, OpenAIEndpoint]:
    endpoint = OpenAIEndpoint()
    vendor = OpenAIRealtime(Options(**options), asyncio.get_running_loop().time)
    return Simulated(endpoint, vendor, script), endpoint


def text(words: str) -> dict[str, Any]:
    """What a Gemini client sends for typed words."""
    return {"realtime_input": {"text": words}}


def resume(handle: str) -> dict[str, Any]:
    return {"setup": {"model": "models/gemini-3.8-live", "sessionResumption": {"handle": handle}}}
