"""The unmodified google-genai SDK speaks with the server's own voice over the BidiGenerateContent socket."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from google import genai
from google.genai import types
from google.genai.live import AsyncSession
from openai import AsyncOpenAI

from antiphon.audio.resample import resample
from antiphon.sound_format import write_wav
from tests.fakes.spoken import to_words
from tests.fakes.tls_proxy import tls_proxy
from tests.wire.served import UNLIMITED, Served, serve
from tests.wire.test_gateway_gemini import client_of, text_of, typed

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(120)]

RATE: Final = 24_000
QUESTION: Final = "What is twelve plus thirty?"
ANSWER: Final = "42"
LONG: Final = "Please tell me a long story about the sea."
CONFIG: Final[dict[str, Any]] = {
    "response_modalities": ["AUDIO"],
    "input_audio_transcription": {},
    "output_audio_transcription": {},
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("voice")
    with serve(folder, limits=UNLIMITED, models_dir=models_dir, model={"voice": "cascade"}) as served:
        yield served


@pytest.fixture(scope="module")
def question(served: Served) -> bytes:
    """The question as PCM at 24 kHz, spoken by the server itself."""

    async def speak() -> bytes:
        async with AsyncOpenAI(base_url=f"{served.http}/v1", api_key="sk-local", max_retries=0) as openai:
            spoken = await openai.audio.speech.create(
                model="tts-1", voice="alloy", input=QUESTION, response_format="pcm"
            )
            return spoken.content

    return asyncio.run(speak())


@pytest.fixture
async def client(served: Served, tmp_path: Path) -> AsyncIterator[genai.Client]:
    async with tls_proxy(served.port, tmp_path / "tls") as proxy:
        yield client_of(proxy)


async def send_audio(session: AsyncSession, pcm: bytes, hz: int) -> None:
    """Sends audio in pieces of 100 ms."""
    step = hz // 10 * 2
    for at in range(0, len(pcm), step):
        blob = types.Blob(data=pcm[at : at + step], mime_type=f"audio/pcm;rate={hz}")
        await session.send_realtime_input(audio=blob)


def silence(seconds: float, hz: int) -> bytes:
    return bytes(int(seconds * hz) * 2)


async def turn_of(session: AsyncSession) -> list[types.LiveServerMessage]:
    return [message async for message in session.receive()]


def contents(messages: list[types.LiveServerMessage]) -> list[types.LiveServerContent]:
    return [message.server_content for message in messages if message.server_content is not None]


def heard(messages: list[types.LiveServerMessage]) -> str:
    transcripts = [content.input_transcription for content in contents(messages)]
    return "".join(each.text or "" for each in transcripts if each is not None)


def words_of(messages: list[types.LiveServerMessage]) -> str:
    transcripts = [content.output_transcription for content in contents(messages)]
    return "".join(each.text or "" for each in transcripts if each is not None)


def speech_of(messages: list[types.LiveServerMessage]) -> bytes:
    blobs = [
        part.inline_data
        for content in contents(messages)
        for part in (content.model_turn.parts or () if content.model_turn is not None else ())
        if part.inline_data is not None
    ]
    assert all(blob.mime_type == f"audio/pcm;rate={RATE}" for blob in blobs)
    return b"".join(blob.data or b"" for blob in blobs)


async def transcribe(served: Served, pcm: bytes) -> str:
    async with AsyncOpenAI(base_url=f"{served.http}/v1", api_key="sk-local", max_retries=0) as openai:
        file = ("answer.wav", write_wav(pcm, RATE))
        return (await openai.audio.transcriptions.create(model="whisper-1", file=file)).text


@pytest.mark.parametrize("hz", [16_000, 24_000, 48_000])
async def test_a_spoken_question_is_answered_in_speech(
    served: Served, client: genai.Client, question: bytes, hz: int
) -> None:
    async with client.aio.live.connect(model="m", config=types.LiveConnectConfig(**CONFIG)) as session:
        await send_audio(session, silence(0.4, hz) + resample(question, RATE, hz) + silence(1.5, hz), hz)
        messages = await turn_of(session)
    assert "12" in to_words(heard(messages))
    assert ANSWER in words_of(messages)
    assert ANSWER in to_words(await transcribe(served, speech_of(messages)))
    ends = [(content.generation_complete, content.turn_complete) for content in contents(messages)][-2:]
    assert ends == [(True, None), (None, True)]


async def test_a_turn_is_over_when_its_speech_has_been_played(client: genai.Client) -> None:
    clock = asyncio.get_running_loop().time
    async with client.aio.live.connect(model="m", config=types.LiveConnectConfig(**CONFIG)) as session:
        await session.send_client_content(turns=typed("what is 12 plus 30"))
        began = None
        spoken = b""
        async for message in session.receive():
            piece = speech_of([message])
            if piece and began is None:
                began = clock()
            spoken += piece
        assert began is not None
        assert clock() - began >= len(spoken) / 2 / RATE - 0.3


async def test_the_client_may_mark_speech_itself(served: Served, client: genai.Client, question: bytes) -> None:
    config = {**CONFIG, "realtime_input_config": {"automatic_activity_detection": {"disabled": True}}}
    async with client.aio.live.connect(model="m", config=types.LiveConnectConfig(**config)) as session:
        for _ in range(2):
            await session.send_realtime_input(activity_start=types.ActivityStart())
            await send_audio(session, question, RATE)
            await session.send_realtime_input(activity_end=types.ActivityEnd())
            messages = await turn_of(session)
            assert "12" in to_words(heard(messages))
            assert ANSWER in words_of(messages)


async def test_the_end_of_the_stream_ends_the_turn(client: genai.Client, question: bytes) -> None:
    async with client.aio.live.connect(model="m", config=types.LiveConnectConfig(**CONFIG)) as session:
        await send_audio(session, silence(0.4, RATE) + question, RATE)
        await session.send_realtime_input(audio_stream_end=True)
        assert ANSWER in words_of(await turn_of(session))
        await send_audio(session, silence(0.4, RATE) + question + silence(1.5, RATE), RATE)
        assert ANSWER in words_of(await turn_of(session))


async def test_speech_over_an_answer_interrupts_it(client: genai.Client, question: bytes) -> None:
    async with client.aio.live.connect(model="m", config=types.LiveConnectConfig(**CONFIG)) as session:
        await session.send_client_content(turns=typed("tell me what you can do"))
        async for message in session.receive():
            if speech_of([message]):
                break
        speaking = asyncio.create_task(speak_in_real_time(session, silence(0.2, RATE) + question + silence(2, RATE)))
        interrupted = await turn_of(session)
        assert any(content.interrupted for content in contents(interrupted))
        assert ANSWER in words_of(await turn_of(session))
        await speaking


async def speak_in_real_time(session: AsyncSession, pcm: bytes) -> None:
    step = RATE // 10 * 2
    for at in range(0, len(pcm), step):
        await send_audio(session, pcm[at : at + step], RATE)
        await asyncio.sleep(0.1)


async def test_speech_can_be_answered_in_text(client: genai.Client, question: bytes) -> None:
    config = types.LiveConnectConfig(response_modalities=[types.Modality.TEXT])
    async with client.aio.live.connect(model="m", config=config) as session:
        await send_audio(session, silence(0.4, RATE) + question + silence(1.5, RATE), RATE)
        messages = await turn_of(session)
    assert ANSWER in text_of(messages)
    assert speech_of(messages) == b""
    assert heard(messages) == ""


async def test_a_resumed_session_still_speaks(client: genai.Client) -> None:
    handle = None
    config = {**CONFIG, "session_resumption": {}}
    async with client.aio.live.connect(model="m", config=types.LiveConnectConfig(**config)) as session:
        await session.send_client_content(turns=typed("what is 12 plus 30"))
        async for message in session.receive():
            if message.session_resumption_update is not None:
                handle = message.session_resumption_update.new_handle
    config = {**CONFIG, "session_resumption": {"handle": handle}}
    async with client.aio.live.connect(model="m", config=types.LiveConnectConfig(**config)) as session:
        await session.send_client_content(turns=typed("what is 12 plus 30"))
        messages = await turn_of(session)
    assert ANSWER in words_of(messages)
    assert speech_of(messages)


async def test_the_log_has_no_failure_after_all_of_this(served: Served) -> None:
    assert served.failures == []
