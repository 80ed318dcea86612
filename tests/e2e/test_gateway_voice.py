"""OpenAI's own SDK talks to a server with the real recogniser and the real voice."""

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlparse

import pytest
from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection

from antiphon.audio.resample import resample
from antiphon.protocol.limits import MICROPHONE_HZ
from tests.e2e.questions import PRODUCT, ROOT
from tests.e2e.test_voice import WISH, YES
from tests.e2e.voices import JOE, PATIENCE_S, VoiceServer, engines, make_clips
from tests.fakes.spoken import error_rate, for_ears

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(180)]

HZ: Final = 24_000
CHUNK_BYTES: Final = 2 * HZ // 10
SILENCE: Final = bytes(2 * HZ)

Clips = Mapping[tuple[str, str], bytes]


@pytest.fixture(scope="module")
def clips(models_dir: Path) -> Clips:
    return make_clips(models_dir, [(JOE, text) for text in (PRODUCT.text, ROOT.text, WISH, YES)])


class Talk:
    def __init__(self, connection: AsyncRealtimeConnection) -> None:
        self.connection = connection
        self.events: list[Any] = []

    async def until(self, type: str) -> Any:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                self.events.append(event := await self.connection.recv())
                if event.type == type:
                    return event

    async def append(self, clip: bytes) -> None:
        """Sends a clip at twice the pace of speech, and then silence."""
        pcm = resample(clip, MICROPHONE_HZ, HZ) + SILENCE
        for at in range(0, len(pcm), CHUNK_BYTES):
            audio = base64.b64encode(pcm[at : at + CHUNK_BYTES]).decode()
            await self.connection.input_audio_buffer.append(audio=audio)
            await asyncio.sleep(0.05)

    async def ask(self, clip: bytes) -> str:
        """Says something, and returns the words of the answer."""
        sending = asyncio.create_task(self.append(clip))
        response = (await self.until("response.done")).response
        await sending
        assert response.status == "completed", response
        return str(response.output[-1].content[0].transcript)

    @property
    def heard(self) -> list[str]:
        kind = "conversation.item.input_audio_transcription.completed"
        return [event.transcript for event in self.events if event.type == kind]

    @property
    def speech(self) -> bytes:
        return b"".join(base64.b64decode(e.delta) for e in self.events if e.type == "response.output_audio.delta")


@asynccontextmanager
async def talking(server: VoiceServer, **audio_input: Any) -> AsyncIterator[Talk]:
    address = urlparse(server.url).netloc
    async with (
        AsyncOpenAI(api_key="sk-local", base_url=f"http://{address}/v1") as client,
        client.realtime.connect(model="gpt-realtime-2") as connection,
    ):
        talk = Talk(connection)
        await talk.until("session.created")
        wanted: Any = {"input": {"transcription": {"model": "gpt-transcribe"}, **audio_input}}
        await connection.session.update(session={"type": "realtime", "audio": wanted})
        await talk.until("session.updated")
        yield talk


async def test_a_spoken_question_is_understood_and_answered_aloud(
    voice_server: VoiceServer, clips: Clips, models_dir: Path
) -> None:
    async with talking(voice_server) as talk:
        answer = await talk.ask(clips[JOE, PRODUCT.text])
    assert error_rate([(PRODUCT.text, talk.heard[0])]) < 0.3
    assert "102" in answer, talk.heard
    async with engines(models_dir) as (_, recognizer):
        read_back = await recognizer.recognize(for_ears(talk.speech, HZ))
    assert error_rate([(answer, read_back)]) < 0.35
    order = [event.type for event in talk.events if event.type.startswith("input_audio_buffer")]
    assert order == [f"input_audio_buffer.{each}" for each in ("speech_started", "speech_stopped", "committed")]


async def test_a_committed_question_is_answered_when_the_client_asks(voice_server: VoiceServer, clips: Clips) -> None:
    async with talking(voice_server, turn_detection=None) as talk:
        await talk.append(clips[JOE, ROOT.text])
        await talk.connection.input_audio_buffer.commit()
        await talk.until("input_audio_buffer.committed")
        await talk.connection.response.create()
        response = (await talk.until("response.done")).response
    assert response.output[-1].content[0].transcript.rstrip(". ").endswith(" 4")
    assert error_rate([(ROOT.text, talk.heard[0])]) < 0.2
    assert talk.speech


async def test_a_call_that_needs_approval_runs_after_a_spoken_yes(
    voice_server: VoiceServer, clips: Clips, voice_folder: Path
) -> None:
    watered = voice_folder / "tools" / "water_garden" / "watered"
    watered.unlink(missing_ok=True)
    async with talking(voice_server) as talk:
        question = await talk.ask(clips[JOE, WISH])
        assert not watered.exists()
        answer = await talk.ask(clips[JOE, YES])
    assert "water" in question.lower()
    assert answer.strip() == "The garden has been watered."
    assert watered.exists()
