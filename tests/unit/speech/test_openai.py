"""Misbehaving servers and refusals. The contract tests cover well-behaved servers."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from antiphon.security.addresses import OPENAI_URL
from antiphon.speech.base import SpeechBusy, SpeechError
from antiphon.speech.engines.openai import MAX_TEXT_CHARS, OPENAI_VOICES, OpenAIRecognizer, OpenAISynthesizer

pytestmark = pytest.mark.real_time

SPEECH = bytes(32_000)
KEY = "sk-s3cret"


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    pieces: tuple[bytes, ...] = ()
    status: int = 200
    kind: str = "application/json"
    is_cut: bool = False
    """Breaks off after the pieces."""
    is_stalled: bool = False
    """Says no more after the pieces."""


HANG_UP = Answer(status=0)


def told(text: Any, status: int = 200) -> Answer:
    return Answer((json.dumps(text).encode(),), status)


def sound(*pieces: bytes, **how: Any) -> Answer:
    return Answer(pieces, kind="audio/pcm", **how)


@dataclass
class Server:
    answers: list[Answer]
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while await self._exchange(reader, writer):
                pass
        writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers["content-length"]))
        self.requests.append(Request(first.split(" ")[1], headers, body))
        self.asked.set()
        answer = self.answers.pop(0)
        if answer is HANG_UP:
            return False
        head = f"HTTP/1.1 {answer.status} Said\r\ncontent-type: {answer.kind}\r\ntransfer-encoding: chunked\r\n\r\n"
        writer.write(head.encode())
        for piece in answer.pieces:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(0.01)
        if answer.is_stalled:
            await reader.read()
            self.left.set()
        if answer.is_cut or answer.is_stalled:
            return False
        writer.write(b"0\r\n\r\n")
        return True


@asynccontextmanager
async def serve(*answers: Answer) -> AsyncIterator[Server]:
    script = Server(list(answers))
    tasks: list[asyncio.Task[None]] = []

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.create_task(script.serve(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    script.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield script
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def recognize(server: Server, pcm: bytes = SPEECH, key: str | None = KEY, **how: Any) -> str:
    recognizer = OpenAIRecognizer(server.url, "m", key, **how)
    try:
        return await recognizer.recognize(pcm)
    finally:
        await recognizer.aclose()


async def speak(server: Server, text: str = "Hello.", *, usual: str | None = None, **how: Any) -> bytes:
    synthesizer = OpenAISynthesizer(server.url, "m", KEY, usual, answer_timeout_s=how.pop("answer_timeout_s", 5.0))
    try:
        return b"".join([each.pcm async for each in synthesizer.speak(text, **how)])
    finally:
        await synthesizer.aclose()


# Recognising


async def test_audio_is_sent_as_a_wav_file_with_the_model_and_the_key() -> None:
    async with serve(told({"text": " Hello. "})) as server:
        assert await recognize(server) == "Hello."
    (request,) = server.requests
    assert request.path == "/v1/audio/transcriptions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert b"RIFF" in request.body
    assert b'name="model"' in request.body


async def test_a_self_hosted_server_gets_no_key_where_there_is_none() -> None:
    async with serve(told({"text": "Hello."})) as server:
        await recognize(server, key=None)
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize("pcm", [b"", b"\0", bytes(3_000)])
async def test_audio_too_short_for_a_word_is_not_sent(pcm: bytes) -> None:
    async with serve() as server:
        assert await recognize(server, pcm) == ""
    assert server.requests == []


REFUSALS = [
    (told({"error": {"message": f"Incorrect API key: {KEY}"}}, 401), r"refused the API key\. Check OPENAI_API_KEY"),
    (told({"error": {"message": "no"}}, 403), "refused the API key"),
    (told({"error": {"message": "The model m does not exist"}}, 404), "was not found at .*/v1: The model m does not"),
    (told({"detail": "Not Found"}, 404), "was not found at .*/v1: Not Found"),
    (told({"error": "slow\ndown"}, 429), "accepts no more requests for now: slow down"),
    (told({"error": {"message": f"bad {KEY} file"}}, 400), r"refused the request \(HTTP 400\): bad … file"),
    (told("out of memory", 500), r"had an internal error \(HTTP 500\): out of memory"),
    (Answer((b"<html>Bad gateway</html>",), 502, "text/html"), r"had an internal error \(HTTP 502\)\.$"),
    (Answer((b"",), 503), r"had an internal error \(HTTP 503\)\.$"),
]


@pytest.mark.parametrize(("answer", "says"), REFUSALS)
async def test_a_refusal_is_reported_in_a_sentence_without_the_key(answer: Answer, says: str) -> None:
    async with serve(answer, answer) as server:
        with pytest.raises(SpeechError, match=says) as heard:
            await recognize(server)
        with pytest.raises(SpeechError, match=says) as spoken:
            await speak(server)
    for refused in (heard, spoken):
        assert KEY not in str(refused.value)
        assert "\n" not in str(refused.value)
        assert str(refused.value).startswith(f"openai:{server.url}#m ")


async def test_a_rate_limit_is_distinguished_from_a_failure() -> None:
    async with serve(told({"error": "slow down"}, 429)) as server:
        with pytest.raises(SpeechBusy):
            await recognize(server)


async def test_a_server_that_needs_a_key_is_reported() -> None:
    async with serve(told({}, 401)) as server:
        with pytest.raises(SpeechError, match="requires an API key"):
            await recognize(server, key=None)


@pytest.mark.parametrize(
    "answer",
    [
        told({"no": "text"}),
        told({"text": 5}),
        told([1]),
        told(None),
        Answer((b"<html>Welcome</html>",), kind="text/html"),
        Answer((b"{nope",)),
        Answer(),
    ],
)
async def test_a_response_that_is_not_a_transcript_is_reported(answer: Answer) -> None:
    async with serve(answer) as server:
        with pytest.raises(SpeechError, match="the right address"):
            await recognize(server)


async def test_a_kept_connection_that_has_died_is_replaced() -> None:
    async with serve(HANG_UP, told({"text": "Hello."})) as server:
        assert await recognize(server) == "Hello."


async def test_an_unreachable_server_is_reported_with_its_address() -> None:
    async with serve() as server:
        pass
    with pytest.raises(SpeechError, match=f"cannot be reached.* {server.url}"):
        await recognize(server)


async def test_a_silent_server_times_out() -> None:
    async with serve(Answer(is_stalled=True)) as server:
        with pytest.raises(SpeechError, match="did not answer in time"):
            await recognize(server, answer_timeout_s=0.1)


async def test_a_cancelled_request_disconnects_from_the_server() -> None:
    async with serve(Answer(is_stalled=True)) as server:
        asking = asyncio.create_task(recognize(server))
        await asyncio.wait_for(server.asked.wait(), 5)
        asking.cancel()
        await asyncio.wait_for(server.left.wait(), 5)
        with pytest.raises(asyncio.CancelledError):
            await asking


# Speaking


@pytest.mark.parametrize(
    ("how", "voice", "speed"),
    [
        ({}, "alloy", None),
        ({"voice": "nova"}, "nova", None),
        ({"voice": "nobody"}, "alloy", None),
        ({"usual": "af_heart"}, "af_heart", None),
        ({"usual": "af_heart", "voice": "nobody"}, "af_heart", None),
        ({"speed": 1.5}, "alloy", 1.5),
        ({"speed": 9.0}, "alloy", 4.0),
        ({"speed": 0.0}, "alloy", 0.25),
    ],
)
async def test_speech_is_requested_as_pcm_with_a_voice_and_a_speed(
    how: dict[str, Any], voice: str, speed: float | None
) -> None:
    async with serve(sound(bytes(100))) as server:
        await speak(server, **how)
    (request,) = server.requests
    assert request.path == "/v1/audio/speech"
    asked = {"model": "m", "input": "Hello.", "voice": voice, "response_format": "pcm"}
    assert json.loads(request.body) == (asked if speed is None else asked | {"speed": speed})


async def test_the_chosen_voice_comes_first_and_openai_s_follow() -> None:
    synthesizer = OpenAISynthesizer(OPENAI_URL, "tts", KEY, "nova")
    await synthesizer.aclose()
    assert [voice.id for voice in synthesizer.voices] == ["nova", *(name for name in OPENAI_VOICES if name != "nova")]
    assert synthesizer.name == "openai:tts"


async def test_samples_are_whole_however_the_bytes_arrive() -> None:
    async with serve(sound(b"\1", b"\2\3\4\5", b"\6", b"\7")) as server:
        synthesizer = OpenAISynthesizer(server.url, "m", KEY)
        pieces = [each.pcm async for each in synthesizer.speak("Hello.")]
        await synthesizer.aclose()
    assert b"".join(pieces) == bytes([1, 2, 3, 4, 5, 6])
    assert all(len(piece) % 2 == 0 for piece in pieces)


@pytest.mark.parametrize("text", ["", " \n", "…"])
async def test_a_silent_text_is_not_sent(text: str) -> None:
    async with serve() as server:
        assert await speak(server, text) == b""
    assert server.requests == []


async def test_half_a_character_does_not_stop_the_rest() -> None:
    async with serve(sound(bytes(10))) as server:
        assert await speak(server, "Hello \ud83d there.") == bytes(10)


@pytest.mark.parametrize("text", ["This is a sentence. " * 700, "word " * 2_500, "x" * 10_000])
async def test_a_long_text_is_spoken_completely_in_accepted_portions(text: str) -> None:
    async with serve(*[sound(bytes(10))] * 4) as server:
        await speak(server, text)
    portions = [json.loads(request.body)["input"] for request in server.requests]
    assert max(map(len, portions)) <= MAX_TEXT_CHARS
    assert "".join("".join(portions).split()) == "".join(text.split())


async def test_a_long_text_is_split_between_sentences() -> None:
    async with serve(*[sound(bytes(10))] * 4) as server:
        await speak(server, "This is a sentence. " * 700)
    assert all(json.loads(request.body)["input"].rstrip().endswith(".") for request in server.requests)


@pytest.mark.parametrize(
    "answer",
    [
        sound(b"RIFF\0\0\0\0WAVE"),
        sound(b"ID3\4"),
        Answer((b"\xff\xfb",), kind="audio/mpeg"),
        told({"audio": "…"}),
        Answer((b"<html></html>",), kind="text/html"),
    ],
)
async def test_a_response_that_is_not_pcm_is_not_played(answer: Answer) -> None:
    async with serve(answer) as server:
        with pytest.raises(SpeechError, match="the right address"):
            await speak(server)


async def test_a_server_that_breaks_off_is_reported_after_its_audio() -> None:
    async with serve(sound(bytes(100), is_cut=True)) as server:
        synthesizer = OpenAISynthesizer(server.url, "m", KEY)
        sounds = synthesizer.speak("Hello.")
        assert (await anext(sounds)).pcm == bytes(100)
        with pytest.raises(SpeechError, match="broke off"):
            await anext(sounds)
        await synthesizer.aclose()


async def test_a_server_that_stalls_in_mid_sentence_times_out() -> None:
    async with serve(sound(bytes(100), is_stalled=True)) as server:
        with pytest.raises(SpeechError, match="did not answer in time"):
            await speak(server, answer_timeout_s=0.1)


async def test_a_reader_that_stops_disconnects_from_the_server() -> None:
    async with serve(sound(bytes(100), is_stalled=True)) as server:
        synthesizer = OpenAISynthesizer(server.url, "m", KEY)
        sounds = synthesizer.speak("Hello.")
        await anext(sounds)
        await sounds.aclose()  # type: ignore[attr-defined]
        await asyncio.wait_for(server.left.wait(), 5)
        await synthesizer.aclose()
