import asyncio
import json
import struct
from typing import Any

import pytest
from wyoming.audio import AudioChunk
from wyoming.event import Event

from antiphon.speech.wyoming_wire import (
    MAX_DATA_BYTES,
    MAX_PAYLOAD_BYTES,
    PIECE_BYTES,
    AudioConverter,
    AudioFormat,
    MalformedEvent,
    chunks,
    read_event,
    read_format,
)


async def read(sent: bytes) -> Event | None:
    reader = asyncio.StreamReader(limit=MAX_DATA_BYTES)
    reader.feed_data(sent)
    reader.feed_eof()
    return await read_event(reader)


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b"\n"


async def test_an_event_has_a_type_data_and_a_payload() -> None:
    event = await read(line(type="audio-chunk", data={"rate": 1}, data_length=11, payload_length=3) + b'{"width":2}abc')
    assert event == Event("audio-chunk", {"rate": 1, "width": 2}, b"abc")


async def test_an_event_may_have_nothing_but_a_type() -> None:
    assert await read(line(type="describe", version="1.0", anything=[1])) == Event("describe", {}, None)


async def test_the_end_of_the_stream_gives_no_event() -> None:
    assert await read(b"") is None


@pytest.mark.parametrize(
    "sent",
    [
        b"\n",
        b"HTTP/1.1 400 Bad Request\r\n",
        b"\xff\xfe\n",
        b"null\n",
        b"[1]\n",
        b"{}\n",
        line(type=5),
        line(type="x", data=[1]),
        line(type="x", data_length="3") + b"{}",
        line(type="x", data_length=-1),
        line(type="x", data_length=2) + b"[]",
        line(type="x", data_length=5) + b"{nope",
        line(type="x", data_length=50) + b"{}",
        line(type="x", payload_length=50) + b"cut",
        line(type="x", data_length=MAX_DATA_BYTES + 1),
        line(type="x", payload_length=MAX_PAYLOAD_BYTES + 1),
        b'{"type": ' + b"[" * 100_000 + b"\n",
        b"x" * (MAX_DATA_BYTES + 2) + b"\n",
        b'{"type": "x"',
    ],
)
async def test_garbage_is_distinguished_from_the_end(sent: bytes) -> None:
    with pytest.raises(MalformedEvent):
        await read(sent)


async def test_an_oversized_event_is_refused_before_it_is_sent() -> None:
    reader = asyncio.StreamReader(limit=MAX_DATA_BYTES)
    reader.feed_data(line(type="x", payload_length=10**12))
    with pytest.raises(MalformedEvent):
        await read_event(reader)


def test_a_format_is_read_from_the_event() -> None:
    assert read_format(AudioChunk(16_000, 2, 1, b"").event()) == AudioFormat(16_000, 2, 1)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"rate": 16_000, "width": 2},
        {"rate": "16000", "width": 2, "channels": 1},
        {"rate": 0, "width": 2, "channels": 1},
        {"rate": 10**9, "width": 2, "channels": 1},
        {"rate": 16_000, "width": 5, "channels": 1},
        {"rate": 16_000, "width": 2, "channels": 0},
    ],
)
def test_an_unsupported_format_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(MalformedEvent):
        read_format(Event("audio-start", data))


# A half, a quarter below nothing, and nothing, in each width.
SAMPLES = [16_384, -8_192, 0]
WIDTHS = {
    1: bytes([192, 96, 128]),
    2: struct.pack("<3h", *SAMPLES),
    3: b"".join((each << 8).to_bytes(3, "little", signed=True) for each in SAMPLES),
    4: struct.pack("<3i", *(each << 16 for each in SAMPLES)),
}


@pytest.mark.parametrize("width", WIDTHS)
def test_samples_of_any_width_become_16_bits(width: int) -> None:
    intake = AudioConverter(AudioFormat(16_000, width, 1), 16_000)
    assert struct.unpack("<3h", intake.push(WIDTHS[width], last=True)) == tuple(SAMPLES)


def test_channels_are_mixed() -> None:
    intake = AudioConverter(AudioFormat(16_000, 2, 2), 16_000)
    assert struct.unpack("<2h", intake.push(struct.pack("<4h", 100, 300, -50, 50), last=True)) == (200, 0)


def test_a_frame_may_be_split_anywhere() -> None:
    frames = struct.pack("<8h", *range(0, 800, 100))
    intake = AudioConverter(AudioFormat(16_000, 2, 2), 16_000)
    joined = b"".join(intake.push(frames[n : n + 1]) for n in range(len(frames))) + intake.push(b"", last=True)
    assert joined == AudioConverter(AudioFormat(16_000, 2, 2), 16_000).push(frames, last=True)


def test_half_a_frame_at_the_end_is_left_out() -> None:
    assert AudioConverter(AudioFormat(16_000, 2, 2), 16_000).push(b"\x01\x00\x01\x00\x05", last=True) == b"\x01\x00"


@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100, 48_000])
def test_resampling_keeps_the_duration(rate: int) -> None:
    intake = AudioConverter(AudioFormat(rate, 2, 1), 16_000)
    assert len(intake.push(bytes(2 * rate), last=True)) == pytest.approx(32_000, abs=4)


def test_audio_is_split_into_chunks_that_are_quickly_processed() -> None:
    sound = bytes(range(256)) * 600
    assert b"".join(chunks(sound)) == sound
    assert max(map(len, chunks(sound))) == PIECE_BYTES
    assert list(chunks(None)) == list(chunks(b"")) == []
