"""Misbehaving clients. The contract tests cover well-behaved ones, with the real engines."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from wyoming.asr import Transcribe
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.event import Event, Eventable, async_read_event, async_write_event
from wyoming.info import Describe, Info
from wyoming.ping import Ping
from wyoming.tts import Synthesize, SynthesizeVoice

from antiphon.speech.base import Sound, SpeechBusy, SpeechError, Urgency, Voice
from antiphon.speech.engines.wyoming import WyomingSynthesizer
from antiphon.speech.references import SpeechReferenceError, parse_uri
from antiphon.speech.wyoming_server import Limits, SpeechServerError, serve_wyoming

pytestmark = pytest.mark.real_time


class FakeRecognizer:
    """Says how much it was given to hear; a word can hold it up, or make it fail."""

    name = "ears"

    def __init__(self, error: Exception | None = None, slow: bool = False) -> None:
        self.error, self.slow = error, slow
        self.began, self.given_up = asyncio.Event(), asyncio.Event()
        self.heard: list[bytes] = []

    async def recognize(self, pcm: bytes, urgency: Urgency = Urgency.NOW) -> str:
        self.heard.append(pcm)
        self.began.set()
        if self.error is not None:
            raise self.error
        try:
            if self.slow:
                await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.given_up.set()
            raise
        return f"{len(pcm)} bytes"

    async def aclose(self) -> None: ...


class FakeSynthesizer:
    name = "mouth"
    output_hz = 22_050
    voices: Sequence[Voice] = (Voice("joe", "Joe", "en-US"), Voice("ann", "Ann", "en-GB"))

    def __init__(self, pieces: int = 2) -> None:
        self.pieces = pieces
        self.asked: list[tuple[str, str | None]] = []
        self.went_on: list[bool] = []
        self.closed = asyncio.Event()

    async def speak(
        self,
        text: str,
        *,
        voice: str | None = None,
        speed: float = 1.0,
        urgency: Urgency = Urgency.NOW,
        goes_on: bool = False,
    ) -> AsyncIterator[Sound]:
        self.asked.append((text, voice))
        self.went_on.append(goes_on)
        try:
            for n in range(self.pieces):
                yield Sound(bytes([n % 256, 0]) * 50_000, None)
        finally:
            self.closed.set()

    async def aclose(self) -> None: ...


class WireClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def say(self, *messages: Eventable) -> None:
        for message in messages:
            await async_write_event(message.event(), self.writer)

    async def hear(self) -> Event:
        event = await asyncio.wait_for(async_read_event(self.reader), 10)
        assert event is not None, "the server hung up"
        return event

    async def is_disconnected(self) -> bool:
        """Whatever is still said before."""
        try:
            await asyncio.wait_for(self.reader.read(), 10)
        except ConnectionError:
            return True
        return self.reader.at_eof()


@asynccontextmanager
async def visit(uri: str) -> AsyncIterator[WireClient]:
    address = parse_uri(uri)
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        yield WireClient(reader, writer)
    finally:
        writer.transport.abort()


@asynccontextmanager
async def offered(
    ears: FakeRecognizer | None = None, mouth: FakeSynthesizer | None = None, **limits: Any
) -> AsyncIterator[tuple[str, WireClient]]:
    async with (
        serve_wyoming("tcp://127.0.0.1:0", ears or FakeRecognizer(), mouth, Limits(**limits)) as uri,
        visit(uri) as visitor,
    ):
        yield uri, visitor


async def is_well(uri: str) -> bool:
    async with visit(uri) as visitor:
        await visitor.say(AudioStart(16_000, 2, 1), AudioChunk(16_000, 2, 1, bytes(320)), AudioStop())
        return (await visitor.hear()).data == {"text": "320 bytes"}


def audio(rate: int, width: int, channels: int, seconds: float) -> list[Eventable]:
    return [
        Transcribe(),
        AudioStart(rate, width, channels),
        AudioChunk(rate, width, channels, bytes(int(rate * seconds) * width * channels)),
        AudioStop(),
    ]


async def test_the_description_names_the_recognizer_and_the_synthesizer() -> None:
    async with offered(mouth=FakeSynthesizer()) as (_, visitor):
        await visitor.say(Describe())
        info = Info.from_event(await visitor.hear())
    assert [model.name for program in info.asr for model in program.models] == ["ears"]
    assert [(voice.name, voice.languages) for program in info.tts for voice in program.voices] == [
        ("joe", ["en-US"]),
        ("ann", ["en-GB"]),
    ]
    assert all(program.attribution.name for program in [*info.asr, *info.tts])


async def test_without_a_voice_none_is_described() -> None:
    async with offered() as (_, visitor):
        await visitor.say(Describe())
        assert Info.from_event(await visitor.hear()).tts == []


async def test_a_ping_is_answered() -> None:
    async with offered() as (_, visitor):
        await visitor.say(Ping("are you there?"))
        answer = await visitor.hear()
    assert (answer.type, answer.data) == ("pong", {"text": "are you there?"})


@pytest.mark.parametrize(("rate", "width", "channels"), [(16_000, 2, 1), (48_000, 2, 2), (8_000, 1, 1), (44_100, 4, 2)])
async def test_audio_of_any_format_is_heard_as_16_khz_mono(rate: int, width: int, channels: int) -> None:
    ears = FakeRecognizer()
    async with offered(ears) as (_, visitor):
        await visitor.say(*audio(rate, width, channels, 0.5))
        await visitor.hear()
    assert len(ears.heard[0]) == pytest.approx(16_000, abs=4)


async def test_several_requests_on_one_connection_are_answered_in_order() -> None:
    async with offered(mouth=FakeSynthesizer()) as (_, visitor):
        await visitor.say(*audio(16_000, 2, 1, 0.01), Synthesize("Hello."), *audio(16_000, 2, 1, 0.02))
        texts: list[str] = []
        while len(texts) < 2:
            event = await visitor.hear()
            if event.type == "transcript":
                texts.append(event.data["text"])
    assert texts == ["320 bytes", "640 bytes"]


async def test_a_new_start_discards_the_audio_before_it() -> None:
    async with offered() as (_, visitor):
        await visitor.say(*audio(16_000, 2, 1, 1)[:-1], *audio(16_000, 2, 1, 0.01))
        assert (await visitor.hear()).data["text"] == "320 bytes"


async def test_audio_without_a_start_is_recognized() -> None:
    async with offered() as (_, visitor):
        await visitor.say(AudioChunk(16_000, 2, 1, bytes(320)), AudioStop())
        assert (await visitor.hear()).data["text"] == "320 bytes"


async def test_a_stop_without_audio_gives_an_empty_transcript() -> None:
    ears = FakeRecognizer()
    async with offered(ears) as (_, visitor):
        await visitor.say(AudioStop())
        event = await visitor.hear()
    assert (event.type, event.data["text"]) == ("transcript", "")
    assert ears.heard == []


async def test_speech_is_sent_between_a_start_and_a_stop() -> None:
    mouth = FakeSynthesizer()
    async with offered(mouth=mouth) as (_, visitor):
        await visitor.say(Synthesize("Hello.", SynthesizeVoice("ann")))
        events = [await visitor.hear()]
        while events[-1].type != "audio-stop":
            events.append(await visitor.hear())
    assert events[0].type == "audio-start"
    assert (events[0].data["rate"], events[0].data["width"], events[0].data["channels"]) == (22_050, 2, 1)
    assert b"".join(event.payload or b"" for event in events) == b"\0\0" * 50_000 + b"\1\0" * 50_000
    assert mouth.asked == [("Hello.", "ann")]


@pytest.mark.parametrize("data", [{}, {"text": 5}, {"text": "x" * 100_000}])
async def test_an_unspeakable_text_is_refused_with_an_explanation(data: Any) -> None:
    async with offered(mouth=FakeSynthesizer()) as (uri, visitor):
        await async_write_event(Event("synthesize", data), visitor.writer)
        assert "at most" in (await visitor.hear()).data["text"]
        assert await is_well(uri)


@pytest.mark.parametrize("voice", [5, {"name": 5}, {"language": "en"}, []])
async def test_an_invalid_voice_falls_back_to_the_default(voice: Any) -> None:
    mouth = FakeSynthesizer()
    async with offered(mouth=mouth) as (_, visitor):
        await async_write_event(Event("synthesize", {"text": "Hello.", "voice": voice}), visitor.writer)
        assert (await visitor.hear()).type == "audio-start"
    assert mouth.asked == [("Hello.", None)]


async def test_one_antiphon_tells_another_whether_a_text_continues() -> None:
    mouth = FakeSynthesizer()
    async with offered(mouth=mouth) as (uri, _):
        address = parse_uri(uri)
        remote = WyomingSynthesizer(address.host, address.port)
        for goes_on in (False, True):
            assert [sound async for sound in remote.speak("Hello.", goes_on=goes_on)]
    assert mouth.went_on == [False, True]


@pytest.mark.parametrize("context", [5, [], {"goes_on": "yes"}, {"conversation": "x"}])
async def test_the_context_of_other_clients_is_ignored(context: Any) -> None:
    mouth = FakeSynthesizer()
    async with offered(mouth=mouth) as (_, visitor):
        await async_write_event(Event("synthesize", {"text": "Hello.", "context": context}), visitor.writer)
        assert (await visitor.hear()).type == "audio-start"
    assert mouth.went_on == [False]


async def test_a_server_without_a_voice_refuses_with_an_explanation() -> None:
    async with offered() as (_, visitor):
        await visitor.say(Synthesize("Hello."))
        assert "does not speak" in (await visitor.hear()).data["text"]


@pytest.mark.parametrize("error", [SpeechError("The engine is gone."), SpeechBusy("Too many people.")])
async def test_a_refusal_of_the_engine_is_reported_with_its_code(error: SpeechError) -> None:
    async with offered(FakeRecognizer(error)) as (_, visitor):
        await visitor.say(*audio(16_000, 2, 1, 0.1))
        event = await visitor.hear()
    assert (event.type, event.data) == ("error", {"text": str(error), "code": error.code})


async def test_an_internal_error_is_not_shown_to_clients() -> None:
    async with offered(FakeRecognizer(ValueError("/secret/path"))) as (_, visitor):
        await visitor.say(*audio(16_000, 2, 1, 0.1))
        event = await visitor.hear()
    assert event.data["code"] == "internal"
    assert "secret" not in event.data["text"]


async def test_endless_audio_is_refused_and_not_kept() -> None:
    ears = FakeRecognizer()
    async with offered(ears, audio_s=2) as (uri, visitor):
        await visitor.say(Transcribe(), AudioStart(16_000, 2, 1))
        await visitor.say(*(AudioChunk(16_000, 2, 1, bytes(32_000)) for _ in range(20)))
        await visitor.say(AudioStop())
        assert "longer than 2 s" in (await visitor.hear()).data["text"]
        await visitor.say(*audio(16_000, 2, 1, 0.01))
        assert (await visitor.hear()).data["text"] == "320 bytes"
        assert await is_well(uri)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\n",
        b'{"type": "audio-chunk", "payload_length": 4}\nabcd',
        b'{"type": "audio-chunk", "data": {"rate": 0, "width": 2, "channels": 1}, "payload_length": 4}\nabcd',
        b'{"type": "audio-chunk", "payload_length": 999999999999}\n',
        b'{"type": "audio-chunk", "payload_length": -1}\n',
        b"[" * 3_000_000,
    ],
)
async def test_an_invalid_event_ends_only_its_own_connection(sent: bytes) -> None:
    async with offered() as (uri, visitor):
        visitor.writer.write(sent)
        assert await visitor.is_disconnected()
        assert await is_well(uri)


async def test_an_unknown_event_is_skipped() -> None:
    async with offered() as (_, visitor):
        await async_write_event(Event("detect", {"names": [1]}, b"xx"), visitor.writer)
        await visitor.say(*audio(16_000, 2, 1, 0.01))
        assert (await visitor.hear()).data["text"] == "320 bytes"


async def test_a_client_that_goes_away_stops_the_work_for_it() -> None:
    ears = FakeRecognizer(slow=True)
    async with offered(ears) as (_, visitor):
        await visitor.say(*audio(16_000, 2, 1, 0.1))
        await asyncio.wait_for(ears.began.wait(), 5)
        visitor.writer.transport.abort()
        await asyncio.wait_for(ears.given_up.wait(), 5)


async def test_a_client_that_goes_away_stops_the_speech_for_it() -> None:
    mouth = FakeSynthesizer(pieces=1_000_000)
    async with offered(mouth=mouth) as (_, visitor):
        await visitor.say(Synthesize("Hello."))
        await visitor.hear()
        visitor.writer.transport.abort()
        await asyncio.wait_for(mouth.closed.wait(), 5)


async def test_a_client_that_does_not_read_its_answer_is_disconnected() -> None:
    mouth = FakeSynthesizer(pieces=1_000_000)
    async with offered(mouth=mouth, send_s=0.2) as (uri, visitor):
        await visitor.say(Synthesize("Hello."))
        await asyncio.wait_for(mouth.closed.wait(), 5)
        assert await is_well(uri)


async def test_a_silent_client_is_disconnected() -> None:
    async with offered(idle_s=0.1) as (_, visitor):
        assert await visitor.is_disconnected()


async def test_a_client_beyond_the_limit_is_refused_with_an_explanation() -> None:
    async with offered(clients=1) as (uri, first):
        await first.say(Ping())
        await first.hear()
        async with visit(uri) as second:
            assert (await second.hear()).data["code"] == "busy"
            assert await second.is_disconnected()
        await first.say(Ping())
        assert (await first.hear()).type == "pong"


async def test_closing_the_server_cancels_its_work() -> None:
    ears = FakeRecognizer(slow=True)
    async with offered(ears) as (_, visitor):
        await visitor.say(*audio(16_000, 2, 1, 0.1))
        await asyncio.wait_for(ears.began.wait(), 5)
    assert ears.given_up.is_set()


async def test_a_port_in_use_is_explained() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.listen()
        port = bound.getsockname()[1]
        with pytest.raises(SpeechServerError, match=rf"^port {port} is in use\. Choose another with --uri\.$"):
            async with serve_wyoming(f"tcp://127.0.0.1:{port}", FakeRecognizer(), None):
                pass


@pytest.mark.parametrize("uri", ["tcp://203.0.113.1:0", "tcp://no-such-host.invalid:10300"])
async def test_an_address_of_another_machine_is_explained(uri: str) -> None:
    with pytest.raises(SpeechServerError, match=r"cannot listen at tcp://.*--uri"):
        async with serve_wyoming(uri, FakeRecognizer(), None):
            pass


@pytest.mark.parametrize("uri", ["", "127.0.0.1:10300", "stdio://", "unix:///run/x", "tcp://127.0.0.1"])
async def test_an_invalid_address_is_refused(uri: str) -> None:
    with pytest.raises(SpeechReferenceError):
        async with serve_wyoming(uri, FakeRecognizer(), None):
            pass
