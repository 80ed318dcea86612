"""A client of the Realtime endpoint without a socket, on the virtual clock."""

import asyncio
import binascii
import json
from typing import Any

import pytest

from antiphon.gateway.realtime_conversation import RealtimeConversation
from antiphon.gateway.realtime_events import RealtimeError, decode
from antiphon.gateway.realtime_settings import AUDIO, TEXT, RealtimeSettings
from antiphon.gateway.session import GatewaySession, Opening
from antiphon.protocol.closing import Close
from antiphon.tools.spec import Mode
from tests.fakes.calls import Server
from tests.fakes.gateway import ANN, gateway_deps

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Gets the weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


class RealtimeClient:
    """A client, and the events that it was sent."""

    def __init__(self, server: Server) -> None:
        self.events: list[dict[str, Any]] = []
        deps = gateway_deps(server)
        settings = RealtimeSettings(model="m", modality=AUDIO if server.hub.has_voice else TEXT)
        self.conversation = RealtimeConversation(deps, settings, emit=self._emit, close=self._close)

    @classmethod
    async def enter(cls, server: Server, **session: Any) -> "RealtimeClient":
        client = cls(server)
        conversation = client.conversation
        mode = Mode.VOICE if server.hub.has_voice else Mode.TEXT
        conversation.session = await GatewaySession.open(gateway_deps(server), ANN, Opening(mode=mode), conversation)
        conversation.begin()
        if session:
            client.update(**session)
        return client

    def _emit(self, type: str, **fields: Any) -> None:
        self.events.append(json.loads(json.dumps({"type": type, **fields})))

    def _close(self, close: Close) -> None:
        raise AssertionError(f"the endpoint has failed: {close}")

    def send(self, type: str, **fields: Any) -> None:
        self.conversation.take(decode(json.dumps({"type": type, **fields})))

    def update(self, **session: Any) -> None:
        self.send("session.update", session={"type": "realtime", **session})

    def write(self, text: str, role: str = "user") -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        self.send("conversation.item.create", item=item)

    def output(self, call_id: str, output: str) -> None:
        """Gives the output of a call."""
        item = {"type": "function_call_output", "call_id": call_id, "output": output}
        self.send("conversation.item.create", item=item)

    async def ask(self, text: str, seconds: float = 5) -> dict[str, Any]:
        """Types a message, asks for a response and returns it."""
        self.write(text)
        self.send("response.create")
        await asyncio.sleep(seconds)
        return self.last_response

    async def ask_again(self) -> None:
        self.send("response.create")
        await asyncio.sleep(5)

    async def speak(self, seconds: float) -> None:
        for _ in range(round(seconds * 50)):
            self.append(b"\0" * 960)
            await asyncio.sleep(0.02)

    def append(self, pcm: bytes) -> None:
        self.send("input_audio_buffer.append", audio=binascii.b2a_base64(pcm, newline=False).decode())

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    def every(self, type: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == type]

    def last(self, type: str) -> dict[str, Any]:
        return self.every(type)[-1]

    @property
    def last_response(self) -> dict[str, Any]:
        return dict(self.last("response.done")["response"])

    @property
    def transcript(self) -> str:
        """What the last response says."""
        content = self.last_response["output"][-1]["content"][0]
        return str(content.get("transcript", content.get("text"))).strip()

    @property
    def audio_ms(self) -> float:
        deltas = self.every("response.output_audio.delta")
        return sum(len(binascii.a2b_base64(event["delta"])) for event in deltas) / 48


def refusal(action: Any, *args: Any, **kwargs: Any) -> RealtimeError:
    with pytest.raises(RealtimeError) as caught:
        action(*args, **kwargs)
    return caught.value


async def stored(server: Server, client: RealtimeClient) -> list[str]:
    turns = await server.database.conversations.turns(client.conversation.session.conversation_id)
    return [turn.text.strip() for turn in turns]
