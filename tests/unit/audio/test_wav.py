import io
import struct
import wave
from pathlib import Path

import numpy as np
import pytest

from antiphon.audio import AudioError
from antiphon.audio.wav import read_wav
from antiphon.sound_format import write_wav

HZ = 11_025
RAMP = np.linspace(-0.9, 0.9, 200)
PCM = np.rint(RAMP * 32_768).astype("<i2").tobytes()


def make(form: bytes, data: bytes, between: bytes = b"") -> bytes:
    body = b"fmt " + struct.pack("<I", len(form)) + form + between + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WAVE" + body


def describe(tag: int, bits: int, channels: int = 1, hz: int = HZ) -> bytes:
    block = channels * bits // 8
    return struct.pack("<HHIIHH", tag, channels, hz, hz * block, block, bits)


def as_24_bits() -> bytes:
    return b"".join(int(value).to_bytes(3, "little", signed=True) for value in np.rint(RAMP * 2**23))


FILES = {
    "8 bits": make(describe(1, 8), np.rint(RAMP * 128 + 128).astype(np.uint8).tobytes()),
    "16 bits": make(describe(1, 16), PCM),
    "24 bits": make(describe(1, 24), as_24_bits()),
    "32 bits": make(describe(1, 32), np.rint(RAMP * 2**31).astype("<i4").tobytes()),
    "floats": make(describe(3, 32), RAMP.astype("<f4").tobytes()),
    "extensible": make(
        describe(0xFFFE, 16) + struct.pack("<HHIH", 22, 16, 4, 1) + bytes.fromhex("000000001000800000aa00389b71"), PCM
    ),
    "more chunks": make(describe(1, 16), PCM, between=b"LIST" + struct.pack("<I", 3) + b"abc\0"),
    "stereo": make(describe(1, 16, channels=2), np.repeat(np.frombuffer(PCM, "<i2"), 2).tobytes()),
}


@pytest.mark.parametrize("kind", FILES)
def test_every_common_kind_of_file_is_read(kind: str) -> None:
    pcm, hz = read_wav(FILES[kind])
    assert hz == HZ
    step = 1 / 128 if kind == "8 bits" else 1e-4
    assert np.frombuffer(pcm, np.int16) / 32_768 == pytest.approx(RAMP, abs=step)


def test_both_channels_of_a_stereo_file_are_mixed() -> None:
    left_only = np.stack([np.full(50, 8_000), np.zeros(50)], axis=1).astype("<i2").tobytes()
    pcm, _ = read_wav(make(describe(1, 16, channels=2), left_only))
    assert set(np.frombuffer(pcm, np.int16).tolist()) == {4_000}


def test_a_file_is_read_from_its_path(tmp_path: Path) -> None:
    path = tmp_path / "speech.wav"
    path.write_bytes(FILES["16 bits"])
    assert read_wav(path) == (PCM, HZ)


def test_a_written_file_is_read_back() -> None:
    assert read_wav(write_wav(PCM, HZ)) == (PCM, HZ)


def test_others_can_read_a_written_file() -> None:
    with wave.open(io.BytesIO(write_wav(PCM, HZ))) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, HZ)
        assert file.readframes(1_000) == PCM


@pytest.mark.parametrize("missing", [1, 2, 101])
def test_a_truncated_file_is_read_as_far_as_it_goes(missing: int) -> None:
    pcm, _ = read_wav(FILES["16 bits"][:-missing])
    assert PCM.startswith(pcm)
    assert len(PCM) - len(pcm) <= missing + 1


def test_a_nan_sample_is_read_as_silence() -> None:
    pcm, _ = read_wav(make(describe(3, 32), np.array([np.nan], "<f4").tobytes()))
    assert pcm == b"\0\0"


@pytest.mark.parametrize(
    ("file", "complaint"),
    [
        (b"", "not a WAV file"),
        (b"ID3\4" + bytes(100), "not a WAV file"),
        (b"RIFF\0\0\0\0AVI " + bytes(100), "not a WAV file"),
        (b"RIFF\4\0\0\0WAVE", "damaged"),
        (make(describe(1, 16), b"")[:-8], "damaged"),
        (make(b"\1\0", PCM), "damaged"),
        (make(describe(1, 16, channels=0), PCM), "0 channels"),
        (make(describe(1, 16, hz=0), PCM), "0 Hz"),
        (make(describe(6, 8), PCM), "16-bit PCM"),
        (make(describe(1, 12), PCM), "16-bit PCM"),
        (make(describe(1, 0), PCM), "16-bit PCM"),
        (make(describe(3, 64), PCM), "16-bit PCM"),
    ],
)
def test_an_unreadable_file_is_refused_with_a_reason(file: bytes, complaint: str) -> None:
    with pytest.raises(AudioError, match=complaint):
        read_wav(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(AudioError, match=r"nothing\.wav cannot be read: No such file"):
        read_wav(tmp_path / "nothing.wav")
