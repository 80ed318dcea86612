"""Frames of every kind that is no message, and sound."""

import base64
import io
import json
import struct
import wave

import pytest

from antiphon.protocol import limits
from antiphon.protocol.client_messages import AudioFrame
from antiphon.protocol.codec import decode, decode_audio, encode_audio, encode_microphone, wav_base64
from antiphon.protocol.errors import ErrorCode, ProtocolError
from antiphon.protocol.server_messages import SpeechFrame
from antiphon.sound_format import write_wav

PCM = struct.pack("<4h", 0, 1, -1, 32767)
DEEP = 20_000


def refused(frame: str | bytes) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        decode(frame)
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "hello",
        '{"type": "ping", "t": 1',
        '{"type": "ping", "t": 1} {}',
        "{'type': 'ping'}",
        '{"type": "ping", "t": NaN}',
        '{"type": "ping", "t": 1, "x": Infinity}',
        '{"type": "ping", "t": "wrong", "x": -Infinity}',
        '{"type": "text_message", "text": "\\ud83d"}',
        '{"type": "text_message", "text": "\\ude00 and more"}',
        '{"type": "ping", "t": 1, "\\ud83d": 1}',
        '{"type": "text_message", "text": "\ud83d"}',
        '{"type": "text_message", "text": "a\nb"}',
        "\ufeff{}",
        '{"type": "ping", "t": 1, "x": ' + "[" * DEEP + "]" * DEEP + "}",
        '{"type": "ping", "t": ' + '{"a":' * 10_000,
    ],
    ids=lambda text: ascii(text)[:40],
)
def test_text_that_is_not_json_is_bad_json(text: str) -> None:
    assert refused(text).code is ErrorCode.BAD_JSON


@pytest.mark.parametrize(
    "text",
    ["[]", "5", '"ping"', "null", "true", '[{"type": "ping", "t": 1}]', "[" * DEEP],
    ids=lambda text: text[:40],
)
def test_a_message_must_be_an_object(text: str) -> None:
    assert refused(text).code is ErrorCode.BAD_MESSAGE


@pytest.mark.parametrize(
    "text",
    ["{}", '{"t": 1}', '{"type": null}', '{"type": 5}', '{"type": ["ping"]}', '{"type": 1e400}', '{"type": "state"}'],
)
def test_a_message_must_have_a_known_type(text: str) -> None:
    assert refused(text).code is ErrorCode.UNKNOWN_TYPE


def test_the_refusal_of_an_unknown_type_lists_the_known_ones() -> None:
    assert str(refused('{"type": "start_listning"}')).startswith('There is no message "start_listning". Known: hello, ')


def test_a_duplicate_type_is_a_bad_message() -> None:
    assert refused('{"type": "ping", "t": 1, "type": "hello"}').code is ErrorCode.BAD_MESSAGE


@pytest.mark.parametrize(
    "message", [{"type": "x" * 60_000}, {"type": "hello", "mode": "x" * 60_000}], ids=["type", "value"]
)
def test_an_error_does_not_repeat_a_long_text(message: dict[str, str]) -> None:
    assert len(str(refused(json.dumps(message)))) < 500


@pytest.mark.parametrize("number", ["9" * 5_000, "1e400", "-" + "9" * 5_000])
def test_a_number_out_of_bounds_is_a_bad_message(number: str) -> None:
    assert refused('{"type": "ping", "t": ' + number + "}").code is ErrorCode.BAD_MESSAGE


@pytest.mark.parametrize("frame", [" " * (limits.MAX_FRAME_BYTES + 1), bytes(limits.MAX_FRAME_BYTES + 1)], ids=type)
def test_a_frame_over_the_limit_is_too_large(frame: str | bytes) -> None:
    assert refused(frame).code is ErrorCode.TOO_LARGE


def test_the_largest_audio_frame_is_not_too_large() -> None:
    assert decode(bytes(limits.MAX_FRAME_BYTES - 1)) == AudioFrame(False, bytes(limits.MAX_FRAME_BYTES - 2))


@pytest.mark.parametrize("frame", [b"", b"\x00", b"\x00\x01", b"\x01" + PCM[:-1]], ids=["empty", "bare", "half", "odd"])
def test_audio_is_whole_samples(frame: bytes) -> None:
    assert refused(frame).code is ErrorCode.BAD_AUDIO


@pytest.mark.parametrize(("flags", "playing"), [(0x00, False), (0x01, True), (0xFE, False), (0xFF, True)])
def test_only_the_lowest_flag_counts(flags: int, playing: bool) -> None:
    assert decode(bytes([flags]) + PCM) == AudioFrame(playing, PCM)


@pytest.mark.parametrize("playing", [False, True])
def test_microphone_audio_is_decoded_unchanged(playing: bool) -> None:
    assert decode(encode_microphone(PCM, playing=playing)) == AudioFrame(playing, PCM)


def test_a_speech_frame_is_laid_out_as_documented() -> None:
    assert encode_audio(1, 2, 0x01020304, b"\x07\x08") == bytes.fromhex("01 00000001 00000002 01020304 0708")


def test_a_speech_frame_is_understood_by_the_client() -> None:
    assert decode_audio(encode_audio(7, 2, 0, PCM)) == SpeechFrame(7, 2, 0, PCM)


@pytest.mark.parametrize(
    "frame",
    [b"", encode_audio(1, 1, 1, b""), encode_audio(1, 1, 1, b"abc"), b"\x02" + encode_audio(1, 1, 1, PCM)[1:]],
    ids=["empty", "no sample", "odd", "unknown kind"],
)
def test_a_client_refuses_frames_that_are_not_speech(frame: bytes) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_audio(frame)
    assert caught.value.code is ErrorCode.BAD_AUDIO


@pytest.mark.parametrize("pcm", [b"", PCM, PCM * 5_000], ids=len)
def test_a_wav_is_readable_by_other_libraries(pcm: bytes) -> None:
    with wave.open(io.BytesIO(write_wav(pcm, limits.SPEECH_HZ))) as file:
        assert file.getparams()[:4] == (1, 2, limits.SPEECH_HZ, len(pcm) // 2)
        assert file.readframes(file.getnframes()) == pcm


def test_a_wav_has_the_usual_44_bytes_before_its_samples() -> None:
    made = write_wav(PCM, limits.SPEECH_HZ)
    assert made[44:] == PCM
    assert struct.unpack_from("<I", made, 4) == (len(made) - 8,)


def test_an_audio_message_holds_the_wav_in_base64() -> None:
    assert base64.b64decode(wav_base64(PCM, 8_000), validate=True) == write_wav(PCM, 8_000)
