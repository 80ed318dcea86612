"""Messages of Gemini Live are read past the SDK's own reader, and come out as it would read them."""

import json
from typing import Any, cast

import pytest
from google import genai
from google.genai.live import AsyncSession
from websockets.asyncio.client import ClientConnection

from antiphon.models.providers.gemini_connect import receive

AUDIO = {"mimeType": "audio/pcm;rate=24000", "data": "-__-"}
USAGE = {"promptTokenCount": 12, "responseTokenCount": 3, "totalTokenCount": 15}

MESSAGES: list[dict[str, Any]] = [
    {"setupComplete": {"sessionId": "abc-123"}},
    {"serverContent": {"modelTurn": {"parts": [{"inlineData": AUDIO}]}}},
    {"serverContent": {"modelTurn": {"parts": [{"inlineData": AUDIO | {"data": "+//+"}}, {"text": "Hello"}]}}},
    {"serverContent": {"modelTurn": {"parts": [{"text": "Hmm.", "thought": True}]}}},
    {"serverContent": {"inputTranscription": {"text": " hello there"}}},
    {"serverContent": {"interrupted": True}},
    {"serverContent": {"generationComplete": True}},
    {"serverContent": {"turnComplete": True, "interactionStatus": "IDLE"}, "usageMetadata": USAGE},
    {"toolCall": {"functionCalls": [{"name": "set_light", "args": {"is_on": None, "aB": [1, {"c_d": 2}]}, "id": "1"}]}},
    {"toolCallCancellation": {"ids": ["1"]}},
    {"sessionResumptionUpdate": {"newHandle": "h", "resumable": True, "lastConsumedClientMessageIndex": "12"}},
    {"sessionResumptionUpdate": {}},
    {"goAway": {"timeLeft": "9.5s"}},
    {"serverContent": {"turnComplete": True, "somethingNew": {"a": 1}}, "somethingElse": True},
]


class Socket:
    """A socket on which this message comes."""

    def __init__(self, message: dict[str, Any]) -> None:
        self._raw = json.dumps(message).encode()

    async def recv(self, *, decode: bool) -> bytes:
        return self._raw


def session_with(message: dict[str, Any]) -> AsyncSession:
    return AsyncSession(genai.Client(api_key="local")._api_client, cast(ClientConnection, Socket(message)))


@pytest.mark.parametrize("message", MESSAGES, ids=str)
async def test_a_message_is_read_as_the_sdk_reads_it(message: dict[str, Any]) -> None:
    session = session_with(message)
    assert await receive(session) == await session._receive()


async def test_an_error_in_place_of_a_message_is_refused_as_the_sdk_refuses_it() -> None:
    with pytest.raises(TypeError):
        await receive(session_with({"error": {"code": 429, "message": "quota"}}))
