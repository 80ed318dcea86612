"""A conversation between `GeminiLive` and a server whose messages the test writes itself."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from antiphon.models.live import LiveContext, LiveEvent
from antiphon.models.providers.gemini_live import GeminiLive
from antiphon.tools.spec import Mode
from antiphon.transcript import Message, Transcript
from tests.fakes.gemini_server import Client, GeminiServer, Part, be_silent, encode, gemini_client

GEMINI_38: Final = "gemini-3.8-live"
GEMINI_THINKING: Final = "gemini-3.8-live-extended-thinking"
GEMINI_31: Final = "gemini-3.1-flash-live-preview"
GEMINI_25: Final = "gemini-2.5-flash-native-audio-preview-12-2025"
ARRIVAL_S: Final = 0.02
PCM: Final = b"\x01\x00" * 24_000
"""A second of an answer."""


def content(**fields: Any) -> dict[str, Any]:
    return {"serverContent": fields}


def audio(pcm: bytes = PCM) -> dict[str, Any]:
    """The field of a message that carries audio."""
    return {"parts": [{"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": encode(pcm)}}]}


def speaks(words: str) -> dict[str, Any]:
    """Words with their audio."""
    return content(modelTurn=audio(), outputTranscription={"text": words})


def hears(words: str, **fields: Any) -> dict[str, Any]:
    return content(inputTranscription={"text": words, **fields})


def calls(*ids: str | None, name: str = "get_time") -> dict[str, Any]:
    made = [{"name": name, "args": {"place": place}, **({"id": id} if id else {})} for place, id in enumerate(ids)]
    return {"toolCall": {"functionCalls": made}}


GENERATED: Final = content(generationComplete=True)
COMPLETE: Final = content(turnComplete=True)
IDLE: Final = content(turnComplete=True, interactionStatus="IDLE")
INTERRUPTED: Final = content(interrupted=True)


def turn_of(*texts: str, complete: bool = True) -> dict[str, Any]:
    """A message of the client with one turn of the user."""
    turn = {"parts": [{"text": text} for text in texts], "role": "user"}
    return {"clientContent": {"turns": [turn], "turnComplete": complete}}


def a_context(*history: Message, system: str = "You are kind.", tools: Sequence[Mapping[str, Any]] = ()) -> LiveContext:
    return LiveContext(system, Transcript(), history, tools, Mode.VOICE)


class Talk:
    def __init__(self, model: GeminiLive, client: Client) -> None:
        self.model = model
        self.client = client
        self.events: list[LiveEvent] = []
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for event in self.model.events():
            self.events.append(event)

    async def says(self, *messages: Mapping[str, Any] | str) -> None:
        """The server sends these messages, and they arrive."""
        for message in messages:
            await self.client.send(message)
        await asyncio.sleep(ARRIVAL_S)

    async def sent(self, seconds: float = ARRIVAL_S) -> list[dict[str, Any]]:
        """What the server has received since the last time."""
        await asyncio.sleep(seconds)
        received, self.client.received[:] = list(self.client.received), []
        return received

    def take(self) -> list[LiveEvent]:
        """The events since the last time."""
        events, self.events[:] = list(self.events), []
        return events

    @property
    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


@asynccontextmanager
async def talking(
    name: str = GEMINI_38,
    *,
    part: Part = be_silent,
    context: LiveContext | None = None,
    resume: str | None = None,
    voice: str | None = None,
) -> AsyncIterator[Talk]:
    """Connects, and closes at the end."""
    async with GeminiServer(part) as server:
        model = GeminiLive(gemini_client(name))
        model.set_voice(voice, 1.0)
        await model.connect(context or a_context(), resume)
        talk = Talk(model, server.client)
        await asyncio.sleep(ARRIVAL_S)
        try:
            yield talk
        finally:
            await model.close()
            await talk.reading
