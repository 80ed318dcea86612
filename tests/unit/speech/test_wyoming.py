"""Misbehaving servers, which must do our client no harm. The contract tests cover well-behaved ones."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from wyoming.asr import Transcript
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.event import Event, Eventable, async_read_event, async_write_event
from wyoming.info import AsrProgram, Attribution, Info, TtsProgram, TtsVoice

from antiphon.speech.base import SpeechBusy, SpeechError, Voice
from antiphon.speech.engines.wyoming import OWN_VOICE, WyomingRecognizer, WyomingSynthesizer

pytestmark = pytest.mark.real_time

SPEECH = bytes(32_000)


@dataclass
class Peer:
    """The server's end of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    heard: list[Event] = field(default_factory=list)

    async def hear(self, kind: str) -> Event:
        """The next event of this type. All events are recorded."""
        while True:
            event = await async_read_event(self.reader)
            assert event is not None
            self.heard.append(event)
            if event.type == kind:
                return event

    async def say(self, *messages: Eventable) -> None:
        for message in messages:
            await async_write_event(message.event(), self.writer)

    async def wait_until_left(self) -> None:
        while await self.reader.read(65_536):
            pass


@asynccontextmanager
async def serve(script: Callable[[Peer], Awaitable[None]]) -> AsyncIterator[int]:
    """A server that does as the script says, and then hangs up; gives its port."""
    tasks: list[asyncio.Task[None]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        try:
            with suppress(asyncio.CancelledError, ConnectionError):
                await script(Peer(reader, writer))
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks)


def saying(*messages: Eventable) -> Callable[[Peer], Awaitable[None]]:
    async def script(peer: Peer) -> None:
        await peer.say(*messages)
        await peer.wait_until_left()

    return script


def writing(data: bytes) -> Callable[[Peer], Awaitable[None]]:
    async def script(peer: Peer) -> None:
        peer.writer.write(data)
        await peer.wait_until_left()

    return script


def tts(*voices: TtsVoice) -> Info:
    program = TtsProgram("piper", Attribution("x", ""), True, None, None, list(voices))
    return Info(tts=[program])


def tts_voice(name: str, *languages: str, installed: bool = True) -> TtsVoice:
    return TtsVoice(name, Attribution("x", ""), installed, f"Voice {name}", None, list(languages))


def sound(rate: int, *chunks: bytes) -> Sequence[Eventable]:
    return AudioStart(rate, 2, 1), *(AudioChunk(rate, 2, 1, chunk) for chunk in chunks), AudioStop()


async def hear_all(synthesizer: WyomingSynthesizer, text: str = "Hello.", **how: Any) -> bytes:
    return b"".join([each.pcm async for each in synthesizer.speak(text, **how)])


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


# Recognising


async def test_audio_is_sent_whole_between_a_start_and_a_stop() -> None:
    peers: list[Peer] = []

    async def script(peer: Peer) -> None:
        peers.append(peer)
        await peer.hear("audio-stop")
        await peer.say(Transcript("  hello there \n"))

    speech = bytes(range(256)) * 500
    async with serve(script) as port:
        assert await WyomingRecognizer("127.0.0.1", port).recognize(speech) == "hello there"
    (peer,) = peers
    kinds = [event.type for event in peer.heard]
    assert kinds == ["transcribe", "audio-start", *["audio-chunk"] * (len(kinds) - 3), "audio-stop"]
    assert b"".join(event.payload or b"" for event in peer.heard) == speech
    assert all(event.data["rate"] == 16_000 for event in peer.heard[1:-1])


async def test_unknown_events_of_a_newer_server_are_skipped() -> None:
    async def script(peer: Peer) -> None:
        await peer.hear("audio-stop")
        await async_write_event(Event("transcript-chunk", {"text": "hel"}), peer.writer)
        await async_write_event(Event("news", {"x": 1}, b"payload"), peer.writer)
        await peer.say(Transcript("hello"))

    async with serve(script) as port:
        assert await WyomingRecognizer("127.0.0.1", port).recognize(SPEECH) == "hello"


async def test_nothing_is_sent_when_there_is_no_audio() -> None:
    assert await WyomingRecognizer("127.0.0.1", free_port()).recognize(b"") == ""


async def test_an_unreachable_server_is_reported_with_its_address() -> None:
    port = free_port()
    with pytest.raises(SpeechError, match=rf"^wyoming:tcp://127.0.0.1:{port} cannot be reached\. Check"):
        await WyomingRecognizer("127.0.0.1", port).recognize(SPEECH)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 300, "a..b"])
async def test_an_unknown_host_is_reported(host: str) -> None:
    with pytest.raises(SpeechError, match="cannot be reached"):
        await WyomingRecognizer(host, 10300).recognize(SPEECH)


async def test_a_silent_server_times_out() -> None:
    async with serve(lambda peer: peer.wait_until_left()) as port:
        with pytest.raises(SpeechError, match=r"did not answer within 0\.1 s"):
            await WyomingRecognizer("127.0.0.1", port, answer_timeout_s=0.1).recognize(SPEECH)


async def test_a_server_that_does_not_read_times_out() -> None:
    async def script(peer: Peer) -> None:
        await asyncio.sleep(30)

    async with serve(script) as port:
        with pytest.raises(SpeechError, match="did not answer within"):
            await WyomingRecognizer("127.0.0.1", port, answer_timeout_s=0.2).recognize(bytes(20_000_000))


async def test_other_events_do_not_extend_the_deadline() -> None:
    async def script(peer: Peer) -> None:
        while True:
            await peer.say(AudioStop())
            await asyncio.sleep(0.01)

    async with serve(script) as port:
        with pytest.raises(SpeechError, match="did not answer within"):
            await WyomingRecognizer("127.0.0.1", port, answer_timeout_s=0.1).recognize(SPEECH)


async def test_a_server_that_hangs_up_is_reported() -> None:
    async def script(peer: Peer) -> None:
        await peer.hear("audio-stop")

    async with serve(script) as port:
        with pytest.raises(SpeechError, match="closed the connection"):
            await WyomingRecognizer("127.0.0.1", port).recognize(SPEECH)


@pytest.mark.parametrize(
    "garbage",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x00\x01\x02\n",
        b'{"type": "transcript", "data": {}}\n',
        b'{"type": "transcript", "data": {"text": 5}}\n',
        b'{"type": "transcript", "payload_length": 99999999999}\n',
    ],
)
async def test_garbage_is_reported(garbage: bytes) -> None:
    async with serve(writing(garbage)) as port:
        with pytest.raises(SpeechError, match="Is it a Wyoming server"):
            await WyomingRecognizer("127.0.0.1", port).recognize(SPEECH)


async def test_the_message_of_a_refusing_server_is_repeated_on_one_line() -> None:
    async with serve(saying(Error("no\nmodel " + "x" * 1_000))) as port:
        with pytest.raises(SpeechError, match="could not do it: no model xxx") as refused:
            await WyomingRecognizer("127.0.0.1", port).recognize(SPEECH)
    assert len(str(refused.value)) < 400


async def test_a_busy_antiphon_is_distinguished_from_a_failing_one() -> None:
    async with serve(saying(Error("Too many people.", "busy"))) as port:
        with pytest.raises(SpeechBusy):
            await WyomingRecognizer("127.0.0.1", port).recognize(SPEECH)


async def test_a_cancelled_request_disconnects_from_the_server() -> None:
    left = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.hear("audio-stop")
        await peer.wait_until_left()
        left.set()

    async with serve(script) as port:
        asking = asyncio.create_task(WyomingRecognizer("127.0.0.1", port).recognize(SPEECH))
        await asyncio.sleep(0.05)
        asking.cancel()
        await asyncio.wait_for(left.wait(), 5)
        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_a_server_without_a_recognizer_is_refused() -> None:
    async with serve(saying(tts(tts_voice("a", "en")))) as port:
        with pytest.raises(SpeechError, match="does not recognise speech"):
            await WyomingRecognizer("127.0.0.1", port).open()


async def test_a_server_with_a_recognizer_is_opened_without_audio() -> None:
    heard: list[Event] = []

    async def script(peer: Peer) -> None:
        heard.append(await peer.hear("describe"))
        await peer.say(Info(asr=[AsrProgram("w", Attribution("x", ""), True, None, None, [])]))

    async with serve(script) as port:
        await WyomingRecognizer("127.0.0.1", port).open()
    assert [event.type for event in heard] == ["describe"]


# Speaking


async def test_the_servers_voices_are_listed_with_the_chosen_one_first() -> None:
    described = tts(tts_voice("a", "en_US"), tts_voice("b", "de_DE"), tts_voice("c", "fr", installed=False))
    async with serve(saying(described)) as port:
        synthesizer = WyomingSynthesizer("127.0.0.1", port, "b")
        await synthesizer.open()
    assert synthesizer.voices == (Voice("b", "Voice b", "de-DE"), Voice("a", "Voice a", "en-US"))


async def test_without_a_choice_the_servers_first_voice_is_the_default() -> None:
    async with serve(saying(tts(tts_voice("a", "en_US"), tts_voice("b")))) as port:
        synthesizer = WyomingSynthesizer("127.0.0.1", port, "nobody")
        await synthesizer.open()
    assert synthesizer.voices == (OWN_VOICE, Voice("a", "Voice a", "en-US"), Voice("b", "Voice b", "und"))


@pytest.mark.parametrize(("asked", "sent"), [("a", {"name": "a"}), ("b", {"name": "b"}), ("z", None), (None, None)])
async def test_a_voice_is_requested_only_if_the_server_has_it(asked: str | None, sent: Any) -> None:
    requests: list[Event] = []

    async def script(peer: Peer) -> None:
        event = await async_read_event(peer.reader)
        assert event is not None
        if event.type == "describe":
            await peer.say(tts(tts_voice("a", "en"), tts_voice("b", "en")))
        else:
            requests.append(event)
            await peer.say(*sound(22_050, bytes(100)))

    async with serve(script) as port:
        synthesizer = WyomingSynthesizer("127.0.0.1", port)
        await synthesizer.open()
        await hear_all(synthesizer, voice=asked)
    assert [event.data.get("voice") for event in requests] == [sent]


async def test_audio_is_passed_on_as_it_arrives() -> None:
    go_on = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.hear("synthesize")
        await peer.say(AudioStart(22_050, 2, 1), AudioChunk(22_050, 2, 1, b"\x01\x00" * 500))
        await go_on.wait()
        await peer.say(AudioChunk(22_050, 2, 1, b"\x02\x00" * 500), AudioStop())

    async with serve(script) as port:
        sounds = WyomingSynthesizer("127.0.0.1", port).speak("Hello.")
        first = await anext(sounds)
        go_on.set()
        rest = [each async for each in sounds]
    assert first.pcm == b"\x01\x00" * 500
    assert first.left_ms is None
    assert b"".join(each.pcm for each in rest) == b"\x02\x00" * 500


@pytest.mark.parametrize("rate", [16_000, 24_000, 48_000])
async def test_audio_at_another_rate_is_resampled_to_ours(rate: int) -> None:
    async with serve(saying(*sound(rate, bytes(rate), bytes(rate)))) as port:
        spoken = await hear_all(WyomingSynthesizer("127.0.0.1", port))
    assert len(spoken) == pytest.approx(2 * WyomingSynthesizer.output_hz, rel=0.01)


async def test_a_server_without_audio_gives_no_audio() -> None:
    async with serve(saying(AudioStop())) as port:
        assert await hear_all(WyomingSynthesizer("127.0.0.1", port)) == b""


@pytest.mark.parametrize("text", ["", " \n", "…"])
async def test_a_silent_text_is_not_sent(text: str) -> None:
    assert await hear_all(WyomingSynthesizer("127.0.0.1", free_port()), text) == b""


async def test_half_a_character_does_not_stop_the_rest() -> None:
    async with serve(saying(*sound(22_050, bytes(100)))) as port:
        assert await hear_all(WyomingSynthesizer("127.0.0.1", port), "Hello \ud83d there.") == bytes(100)


async def test_a_server_that_dies_in_mid_sentence_is_reported_after_its_audio() -> None:
    async def script(peer: Peer) -> None:
        await peer.hear("synthesize")
        await peer.say(AudioStart(22_050, 2, 1), AudioChunk(22_050, 2, 1, bytes(100)))

    async with serve(script) as port:
        sounds = WyomingSynthesizer("127.0.0.1", port).speak("Hello.")
        assert (await anext(sounds)).pcm == bytes(100)
        with pytest.raises(SpeechError, match="closed the connection"):
            await anext(sounds)


async def test_a_server_that_stalls_in_mid_sentence_times_out() -> None:
    async with serve(saying(AudioStart(22_050, 2, 1), AudioChunk(22_050, 2, 1, bytes(100)))) as port:
        with pytest.raises(SpeechError, match="did not answer within"):
            await hear_all(WyomingSynthesizer("127.0.0.1", port, answer_timeout_s=0.1))


@pytest.mark.parametrize(
    "data",
    [
        b'{"type": "audio-start", "data": {}}\n',
        b'{"type": "audio-start", "data": {"rate": 1, "width": 9, "channels": "x"}}\n',
        b'{"type": "audio-chunk"}\n',
        b"garbage\n",
    ],
)
async def test_audio_without_a_format_is_garbage(data: bytes) -> None:
    async with serve(writing(data)) as port:
        with pytest.raises(SpeechError, match="Is it a Wyoming server"):
            await hear_all(WyomingSynthesizer("127.0.0.1", port))


@pytest.mark.parametrize(
    "info",
    [
        {"tts": 5},
        {"tts": [5]},
        {"tts": [{"voices": 5}]},
        {"tts": [{"voices": [{}]}]},
        {"tts": [{"voices": [{"name": 5}]}]},
        {"tts": [{"voices": [{"name": "a", "languages": None}]}]},
        {"asr": [5]},
    ],
)
async def test_an_invalid_description_is_garbage(info: Any) -> None:
    async def script(peer: Peer) -> None:
        await async_write_event(Event("info", info), peer.writer)
        await peer.wait_until_left()

    async with serve(script) as port:
        with pytest.raises(SpeechError, match="Is it a Wyoming server"):
            await WyomingSynthesizer("127.0.0.1", port).open()


async def test_a_server_without_a_synthesizer_is_refused() -> None:
    async with serve(saying(Info())) as port:
        with pytest.raises(SpeechError, match="does not speak"):
            await WyomingSynthesizer("127.0.0.1", port).open()


async def test_a_reader_that_stops_disconnects_from_the_server() -> None:
    left = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.hear("synthesize")
        await peer.say(AudioStart(22_050, 2, 1), AudioChunk(22_050, 2, 1, bytes(100)))
        await peer.wait_until_left()
        left.set()

    async with serve(script) as port:
        sounds = WyomingSynthesizer("127.0.0.1", port).speak("Hello.")
        await anext(sounds)
        await sounds.aclose()  # type: ignore[attr-defined]
        await asyncio.wait_for(left.wait(), 5)
