"""What of a file can be said to a server."""

import wave
from pathlib import Path

import pytest

from antiphon.cli.calling import MAX_FILE_S, read_speech
from antiphon.errors import AntiphonError
from antiphon.protocol.limits import MICROPHONE_HZ
from antiphon.sound_format import write_wav

LOUD = (8_000).to_bytes(2, "little")


def test_any_wav_file_is_resampled_to_the_wire_rate(tmp_path: Path) -> None:
    file = tmp_path / "said.wav"
    with wave.open(str(file), "wb") as written:
        written.setnchannels(2)
        written.setsampwidth(2)
        written.setframerate(44_100)
        written.writeframes(LOUD * 2 * 44_100)
    assert len(read_speech(file)) == pytest.approx(2 * MICROPHONE_HZ, abs=10)


def test_a_recording_of_a_minute_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "said.wav"
    file.write_bytes(write_wav(LOUD * 8_000 * MAX_FILE_S, 8_000))
    assert len(read_speech(file)) == 2 * MICROPHONE_HZ * MAX_FILE_S


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "cannot be read: No such file"),
        (b"", "not a WAV file"),
        (b"RIFF\0\0\0\0WAVE", "damaged"),
        (b"ID3 and so on", "not a WAV file"),
        (write_wav(b"", MICROPHONE_HZ), "no sound in it"),
        (write_wav(bytes(2 * MICROPHONE_HZ), MICROPHONE_HZ), "silent"),
        (write_wav(LOUD * 8_000 * (MAX_FILE_S + 1), 8_000), "61 seconds"),
    ],
)
def test_an_unusable_recording_is_reported_with_its_file_name(tmp_path: Path, content: bytes | None, told: str) -> None:
    file = tmp_path / "said.wav"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(AntiphonError, match=told) as refused:
        read_speech(file)
    assert "said.wav" in str(refused.value)


def test_a_folder_is_refused_as_a_recording(tmp_path: Path) -> None:
    with pytest.raises(AntiphonError, match="is a folder"):
        read_speech(tmp_path)
