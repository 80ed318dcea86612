"""The unmodified openai SDK speaks and transcribes with the server's own engines."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import httpx2
import numpy as np
import openai
import pytest
from openai import AsyncOpenAI

from antiphon.audio.resample import resample
from antiphon.audio.wav import read_wav
from antiphon.security.quota import Kind, Limit, Rate
from antiphon.sound_format import write_wav
from tests.fakes.spoken import error_rate, make_sentences
from tests.wire.served import UNLIMITED, Served, serve

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(120)]

RATE: Final = 24_000
MAX_ERRORS: Final = 0.2
"""The share of words that may be wrong after both directions: the voice mumbles, and the recogniser mishears."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Served]:
    """A server with its real voice."""
    folder = tmp_path_factory.mktemp("voice")
    with serve(folder, limits=UNLIMITED, models_dir=models_dir, model={"voice": "cascade"}) as served:
        yield served


def client_of(served: Served) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{served.http}/v1", api_key="sk-local", max_retries=0)


@pytest.fixture
async def client(served: Served) -> AsyncIterator[AsyncOpenAI]:
    async with client_of(served) as client:
        yield client


@pytest.fixture(scope="module")
def said() -> list[str]:
    return make_sentences(random.SystemRandom().randrange(1_000_000))


@pytest.fixture(scope="module")
def recordings(served: Served, said: list[str]) -> list[bytes]:
    """The sentences, each as a WAV file."""

    async def speak() -> list[bytes]:
        async with client_of(served) as client:
            spoken = [
                await client.audio.speech.create(model="tts-1", voice="alloy", input=text, response_format="wav")
                for text in said
            ]
            return [each.content for each in spoken]

    return asyncio.run(speak())


async def test_spoken_sentences_are_understood(client: AsyncOpenAI, said: list[str], recordings: list[bytes]) -> None:
    heard = []
    for recording in recordings:
        pcm, hz = read_wav(recording)
        assert hz == RATE
        assert 0.5 < len(pcm) / 2 / hz < 15
        transcript = await client.audio.transcriptions.create(model="whisper-1", file=("speech.wav", recording))
        heard.append(transcript.text)
    assert error_rate(zip(said, heard, strict=True)) <= MAX_ERRORS, (said, heard)


async def test_a_long_recording_is_transcribed_in_segments(
    client: AsyncOpenAI, said: list[str], recordings: list[bytes]
) -> None:
    pause = bytes(RATE * 2)
    pcm = b"".join(read_wav(each)[0] + pause for each in recordings)
    transcript = await client.audio.transcriptions.create(
        model="antiphon", file=("long.wav", write_wav(pcm, RATE)), response_format="verbose_json"
    )
    assert transcript.duration == pytest.approx(len(pcm) / 2 / RATE, abs=0.05)
    assert transcript.segments is not None
    assert len(transcript.segments) >= 2
    starts = [segment.start for segment in transcript.segments]
    assert starts == sorted(starts)
    assert transcript.text == " ".join(segment.text for segment in transcript.segments)
    assert error_rate([(" ".join(said), transcript.text)]) <= MAX_ERRORS


@pytest.mark.parametrize("hz", [8_000, 22_050, 48_000])
async def test_files_of_any_rate_are_read_and_stereo_is_mixed(
    client: AsyncOpenAI, said: list[str], recordings: list[bytes], hz: int
) -> None:
    longest = max(range(len(said)), key=lambda n: len(said[n]))
    mono = np.frombuffer(resample(read_wav(recordings[longest])[0], RATE, hz), np.int16)
    stereo = bytearray(write_wav(np.repeat(mono, 2).tobytes(), hz))
    stereo[22:24], stereo[32:34] = (2).to_bytes(2, "little"), (4).to_bytes(2, "little")
    text = await client.audio.transcriptions.create(
        model="whisper-1", file=("speech.wav", bytes(stereo)), response_format="text"
    )
    assert error_rate([(said[longest], str(text))]) <= 0.5


async def test_pcm_is_streamed_at_24_khz(client: AsyncOpenAI, said: list[str]) -> None:
    text = " ".join(said)
    async with client.audio.speech.with_streaming_response.create(
        model="tts-1", voice="alloy", input=text, response_format="pcm"
    ) as streamed:
        pieces = [piece async for piece in streamed.iter_bytes()]
    assert len(pieces) > 1
    pcm = b"".join(pieces)
    assert len(pcm) % 2 == 0
    whole = await client.audio.speech.create(model="tts-1", voice="alloy", input=text)
    again, hz = read_wav(whole.content)
    assert (hz, whole.response.headers["content-type"]) == (RATE, "audio/wav")
    assert len(again) / len(pcm) == pytest.approx(1, abs=0.2)


async def test_twice_the_speed_takes_half_the_time(client: AsyncOpenAI, said: list[str]) -> None:
    text = " ".join(said)
    slow, fast = [
        len((await client.audio.speech.create(model="tts-1", voice="alloy", input=text, speed=speed)).content)
        for speed in (1.0, 2.0)
    ]
    assert slow / fast == pytest.approx(2, abs=0.4)


async def test_silence_has_an_empty_transcript(client: AsyncOpenAI) -> None:
    silence = write_wav(bytes(16_000), 8_000)
    transcript = await client.audio.transcriptions.create(model="whisper-1", file=("silence.wav", silence))
    assert transcript.text == ""


# Refusals.

BAD_SPEECH: Final[Mapping[str, tuple[dict[str, Any], str, str]]] = {
    "no text": ({"input": "…"}, "nothing to speak", "input"),
    "a long text": ({"input": "x" * 4_097}, "length <= 4096", "input"),
    "MP3": ({"response_format": "mp3"}, "`wav` and `pcm`", "response_format"),
    "events": ({"stream_format": "sse"}, "not events", "stream_format"),
    "an unknown voice": ({"voice": "hart"}, "Use one of: heart", "voice"),
    "no voice": ({"voice": None}, "Expected `str", "voice"),
    "a wrong speed": ({"speed": 9}, "<= 4.0", "speed"),
    "an unknown field": ({"pitch": 1}, "argument supplied: pitch", "pitch"),
}


@pytest.mark.parametrize("name", BAD_SPEECH)
async def test_a_bad_request_for_speech_is_refused(served: Served, name: str) -> None:
    fields, says, param = BAD_SPEECH[name]
    body = {"model": "tts-1", "voice": "alloy", "input": "Hello.", **fields}
    async with httpx2.AsyncClient() as client:
        response = await client.post(f"{served.http}/v1/audio/speech", json=body)
    error = response.json()["error"]
    assert (response.status_code, error["param"]) == (400, param), error
    assert says in error["message"]


GOOD_FILE: Final = write_wav(bytes(16_000), 8_000)
BAD_FILES: Final[Mapping[str, tuple[bytes, dict[str, str], int, str]]] = {
    "no sound file": (b"ID3\x04 this is an MP3 file", {}, 400, "This server reads WAV files"),
    "an empty file": (b"", {}, 400, "empty"),
    "a cut header": (GOOD_FILE[:20], {}, 400, "damaged WAV"),
    "a rate of 1 Hz": (write_wav(bytes(1_000), 1), {}, 400, "sample rate is 1 Hz"),
    "eleven minutes": (write_wav(bytes(660 * 4_000 * 2), 4_000), {}, 413, "longer than 600 seconds"),
    "subtitles": (GOOD_FILE, {"response_format": "srt"}, 400, "`response_format` must be one of"),
    "a stream": (GOOD_FILE, {"stream": "true"}, 400, "does not stream"),
    "times of words": (GOOD_FILE, {"timestamp_granularities[]": "word"}, 400, "no times of words"),
}


@pytest.mark.parametrize("name", BAD_FILES)
async def test_a_bad_file_is_refused(served: Served, name: str) -> None:
    file, fields, status, says = BAD_FILES[name]
    async with httpx2.AsyncClient() as client:
        response = await client.post(
            f"{served.http}/v1/audio/transcriptions", data={"model": "whisper-1", **fields}, files={"file": file}
        )
    assert (response.status_code, response.json()["error"]["type"]) == (status, "invalid_request_error")
    assert says in response.json()["error"]["message"]


NO_FILE: Final = b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\nnot a file\r\n--x--\r\n'


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        (b"{}", "application/json"),
        (b"", "multipart/form-data; boundary=x"),
        (b"--y\r\n", "multipart/form-data; boundary=x"),
        (b"nothing", "multipart/form-data"),
        (NO_FILE, "multipart/form-data; boundary=x"),
    ],
)
async def test_a_body_that_is_not_a_form_with_a_file_is_refused(
    served: Served, content: bytes, content_type: str
) -> None:
    async with httpx2.AsyncClient() as client:
        response = await client.post(
            f"{served.http}/v1/audio/transcriptions", content=content, headers={"content-type": content_type}
        )
    assert (response.status_code, response.json()["error"]["type"]) == (400, "invalid_request_error")


async def test_a_file_that_is_too_large_is_refused(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        await client.audio.transcriptions.create(model="whisper-1", file=("x.wav", bytes(26 << 20)))
    assert caught.value.status_code == 413


async def test_the_log_has_no_failure_after_all_of_this(served: Served, said: list[str]) -> None:
    assert served.failures == []
    assert not any(sentence in served.log for sentence in said)


async def test_audio_beyond_the_quota_is_refused_with_the_time_to_wait(tmp_path: Path, models_dir: Path) -> None:
    limits = {Kind.AUDIO_S: Limit(user=Rate(per_s=0.1, burst=2.5))}
    with serve(tmp_path, limits=limits, models_dir=models_dir, model={"voice": "cascade"}) as served:
        async with client_of(served) as client:
            await client.audio.transcriptions.create(model="whisper-1", file=("x.wav", GOOD_FILE))
            with pytest.raises(openai.RateLimitError) as caught:
                await client.audio.speech.create(model="tts-1", voice="alloy", input="This takes two seconds to say.")
    assert 1 <= int(caught.value.response.headers["retry-after"]) <= 30


async def test_a_server_without_a_voice_says_so(tmp_path: Path) -> None:
    with serve(tmp_path) as served:
        async with client_of(served) as client:
            with pytest.raises(openai.NotFoundError, match="cannot speak"):
                await client.audio.speech.create(model="tts-1", voice="alloy", input="Hello.")
            with pytest.raises(openai.NotFoundError, match="cannot transcribe speech"):
                await client.audio.transcriptions.create(model="whisper-1", file=("x.wav", GOOD_FILE))
