"""The model behind a `GeminiServer`: it hears, calls tools, speaks and keeps a conversation, as Gemini Live does.

It has voice activity detection of a kind: what is not silence is speech, and half a second of silence ends a turn.
"""

import asyncio
import json
import re
from array import array
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Literal

from antiphon.models.providers import gemini_content as told
from antiphon.models.providers.gemini_profiles import OUTPUT_HZ
from antiphon.tools.call import ToolCall
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage
from tests.fakes.gemini_server import SETUP_COMPLETE, Client, GeminiServer, encode
from tests.fakes.vendor_answers import Call, Output, Reply, Say

PACE_S: Final = 0.1
"""Between two pieces of an answer."""
WORD_MS: Final = 300
SILENCE_MS: Final = 500
BARGE_MS: Final = 200
SPEECH_LEVEL: Final = 500
INPUT_BYTES_PER_MS: Final = 32
_NOTE: Final = re.compile(re.escape(told.NOTE).replace(r"\{text\}", "(.*)"), re.DOTALL)
_RESULT: Final = re.compile(re.escape(told.RESULT).replace(r"\{result\}", "(.*)"), re.DOTALL)
_HEARD: Final = re.compile(re.escape(told.HEARD).replace(r"\{heard\}", "(.*)"), re.DOTALL)
_SAY: Final = re.compile(re.escape(told.SAY).replace(r"\{words\}", "(.*)"), re.DOTALL)

Transcribes = Literal["before", "late", "after", "never"]


def speech(seconds: float = 1.0) -> bytes:
    """What a microphone picks up of somebody who speaks."""
    return array("h", [4_000, -4_000] * int(8_000 * seconds)).tobytes()


class GeminiModel:
    """One connection's model."""

    def __init__(
        self,
        client: Client,
        *,
        reply: Reply,
        hears: Iterable[str],
        transcribes: Transcribes,
        waits_for_tools: bool,
    ) -> None:
        """`hears` are the words of the user's spoken turns, one after the other."""
        self.given: list[Message] = []
        """The conversation as it knew it when it last began or continued an answer."""
        self._client = client
        self._reply = reply
        self._hears = list(hears)
        self._transcribes = transcribes
        self._waits_for_tools = waits_for_tools
        self._conversation: list[Message] = []
        self._pending: list[Message] = []
        """An unfinished `clientContent`."""
        self._open: dict[str, ToolCall] = {}
        self._calls_made = 0
        self._generation: asyncio.Task[None] | None = None
        self._speech_ms = self._silence_ms = 0.0

    async def play(self) -> None:
        try:
            await self._client.receive()
            await self._client.send(SETUP_COMPLETE)
            while True:
                await self._take(await self._client.receive())
        finally:
            await self._stop()

    async def _take(self, message: dict[str, Any]) -> None:
        match message:
            case {"clientContent": content}:
                await self._take_content(content)
            case {"realtimeInput": {"text": text}}:
                await self._interrupt()
                for line in text.split("\n"):
                    self._apply(self._read(line))
                self._start(text)
            case {"realtimeInput": {"audio": audio}}:
                await self._hear(audio["data"])
            case {"realtimeInput": {"audioStreamEnd": True}}:
                if self._speech_ms:
                    self._end_speech()
            case {"toolResponse": {"functionResponses": responses}}:
                await self._take_results(responses)

    async def _take_content(self, content: dict[str, Any]) -> None:
        turns = content.get("turns", [])
        is_history = self._client.declares_history and not self._client.received[:-1]
        if not is_history:
            await self._interrupt()
        for turn in turns:
            for part in turn["parts"]:
                if turn["role"] == "model":
                    self._conversation.append(AssistantMessage(part["text"]))
                else:
                    self._apply(self._read(part["text"]))
        if content.get("turnComplete") and not is_history:
            self._start("\n".join(part["text"] for part in turns[-1]["parts"]))

    def _read(self, text: str) -> list[Any]:
        """What a text of the app or of the user means."""
        if note := _NOTE.fullmatch(text):
            if result := _RESULT.fullmatch(note[1]):
                ran = json.loads(result[1])
                made = CallMade("note", ran["tool"], ran["args"])
                return [AssistantMessage("", (made,)), ToolMessage("note", ran["tool"], ran["result"])]
            if heard := _HEARD.fullmatch(note[1]):
                return [json.loads(heard[1])]
            return []
        return [] if _SAY.fullmatch(text) else [UserMessage(text)]

    def _apply(self, read: Sequence[Any]) -> None:
        for each in read:
            if not isinstance(each, dict):
                self._conversation.append(each)
                continue
            for place in reversed(range(len(self._conversation))):
                message = self._conversation[place]
                if isinstance(message, AssistantMessage) and message.text.strip() == each["answer"].strip():
                    self._conversation[place : place + 1] = [AssistantMessage(each["heard"])] if each["heard"] else []
                    break

    # Hearing.

    async def _hear(self, pcm: bytes) -> None:
        ms = len(pcm) / INPUT_BYTES_PER_MS
        if max(array("h", pcm), default=0) > SPEECH_LEVEL:
            self._speech_ms, self._silence_ms = self._speech_ms + ms, 0
            if self._speech_ms >= BARGE_MS:
                await self._interrupt()
        elif self._speech_ms:
            self._silence_ms += ms
            if self._silence_ms >= SILENCE_MS:
                self._end_speech()

    def _end_speech(self) -> None:
        self._speech_ms = self._silence_ms = 0
        if self._hears:
            heard = self._hears.pop(0)
            self._conversation.append(UserMessage(heard))
            self._start(heard, heard)

    async def _transcribe(self, heard: str | None, when: Transcribes) -> None:
        """Two pieces, as the words come."""
        if heard is not None and self._transcribes == when:
            half = len(heard) // 2
            for piece in (heard[:half], heard[half:]):
                await self._client.say(inputTranscription={"text": piece})

    # Answering.

    def _start(self, text: str, heard: str | None = None) -> None:
        self._generation = asyncio.create_task(self._generate(text, heard))

    async def _generate(self, text: str, heard: str | None) -> None:
        await self._transcribe(heard, "before")
        await asyncio.sleep(PACE_S)
        self.given = list(self._conversation)
        match = _SAY.search(text)
        await self._give([Say(match[1])] if match else self._reply(self._conversation, {}), heard)

    async def _give(self, outputs: Sequence[Output], heard: str | None = None) -> None:
        """Gives an answer: calls, or words."""
        calls = [self._make_call(each) for each in outputs if isinstance(each, Call)]
        for each in outputs:
            if isinstance(each, Say):
                await self._speak(each.text, heard, is_last=not calls)
        if calls:
            made = [{"id": call.id, "name": call.name, "args": call.args} for call in calls]
            await self._client.send({"toolCall": {"functionCalls": made}})
            await self._transcribe(heard, "late")
            if not self._waits_for_tools:
                await self._client.say(turnComplete=True)

    def _make_call(self, wanted: Call) -> ToolCall:
        self._calls_made += 1
        id = wanted.id if self._calls_made == 1 else f"{wanted.id}-{self._calls_made}"
        self._open[id] = call = ToolCall(id, wanted.name, wanted.args)
        return call

    async def _speak(self, text: str, heard: str | None = None, *, is_last: bool = True) -> None:
        self._conversation.append(AssistantMessage(""))
        async for piece in _pieces(text):
            before = self._conversation[-1]
            assert isinstance(before, AssistantMessage)
            self._conversation[-1] = AssistantMessage(before.text + piece)
            audio = {"mimeType": f"audio/pcm;rate={OUTPUT_HZ}", "data": encode(bytes(2 * OUTPUT_HZ * WORD_MS // 1000))}
            parts = [{"text": "Let me think.", "thought": True}, {"inlineData": audio}]
            await self._client.say(modelTurn={"parts": parts}, outputTranscription={"text": piece})
            await self._transcribe(heard, "late")
            heard = heard if self._transcribes != "late" else None
        if not is_last:
            return
        usage = {"promptTokenCount": 12, "responseTokenCount": 3, "totalTokenCount": 15}
        await self._client.send({"serverContent": {"generationComplete": True}, "usageMetadata": usage})
        await asyncio.sleep(3 * PACE_S)
        await self._client.say(turnComplete=True, **self._status("IDLE"))
        await self._transcribe(heard, "after")
        self._generation = None

    def _status(self, status: str) -> dict[str, str]:
        return {"interactionStatus": status} if "extended-thinking" in self._client.setup["model"] else {}

    async def _take_results(self, responses: Sequence[dict[str, Any]]) -> None:
        silent = True
        for each in responses:
            call = self._open.pop(each["id"], None)
            assert call is not None, "a result for a call that is not open"
            self._conversation.append(AssistantMessage("", (CallMade(each["id"], call.name, call.args),)))
            self._conversation.append(ToolMessage(each["id"], call.name, each["response"].get("output")))
            silent = silent and each.get("scheduling") == "SILENT"
        if not silent:
            self._generation = asyncio.create_task(self._continue())

    async def _continue(self) -> None:
        await asyncio.sleep(PACE_S)
        self.given = list(self._conversation)
        await self._give(self._reply(self._conversation, {}))

    async def _interrupt(self) -> None:
        """New input ends the answer under way."""
        was_speaking = self._generation is not None and not self._generation.done()
        await self._stop()
        waited, self._open = list(self._open), {} if self._waits_for_tools else self._open
        if waited and self._waits_for_tools:
            await self._client.send({"toolCallCancellation": {"ids": waited}})
        if was_speaking or (waited and self._waits_for_tools):
            await self._client.say(interrupted=True)
            await self._client.say(turnComplete=True, **self._status("IDLE"))

    async def _stop(self) -> None:
        generation, self._generation = self._generation, None
        if generation is not None:
            generation.cancel()
            with suppress(asyncio.CancelledError):
                await generation


async def _pieces(text: str) -> AsyncIterator[str]:
    for piece in re.findall(r"\S+\s*", text):
        await asyncio.sleep(PACE_S)
        yield piece


class ConversingServer(GeminiServer):
    """A server whose model converses."""

    def __init__(
        self,
        *,
        reply: Reply,
        hears: Iterable[str],
        transcribes: Transcribes,
        waits_for_tools: bool,
    ) -> None:
        super().__init__(self._converse)
        self.model: GeminiModel | None = None
        self._make = partial(
            GeminiModel, reply=reply, hears=hears, transcribes=transcribes, waits_for_tools=waits_for_tools
        )

    async def _converse(self, client: Client) -> None:
        self.model = self._make(client)
        await self.model.play()

    @property
    def given(self) -> Sequence[Message]:
        assert self.model is not None
        return self.model.given
