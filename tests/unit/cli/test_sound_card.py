"""The machine's sound card, over a PortAudio that a test plays."""

import sys
from types import ModuleType

import numpy as np
import pytest

from antiphon.cli.sound_card import Device, SoundCardError, SystemSoundCard, load_portaudio
from tests.unit.cli.fake_portaudio import MICROPHONE, SPEAKERS, FakePortAudio, device


def tone(seconds: float, hz: int) -> bytes:
    """440 Hz at half of full scale."""
    at = np.arange(round(seconds * hz)) / hz
    return (16_000 * np.sin(2 * np.pi * 440 * at)).astype(np.int16).tobytes()


def is_tone(pcm: bytes, hz: int) -> bool:
    samples = np.frombuffer(pcm, np.int16)
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(samples.size)))
    return bool(abs(spectrum.argmax() * hz / samples.size - 440) < 10)


def test_recorded_audio_is_passed_on_unchanged() -> None:
    portaudio, heard = FakePortAudio(MICROPHONE, SPEAKERS), bytearray()
    with SystemSoundCard(portaudio).open(heard.extend, bytes):
        portaudio.streams["input"].hear(tone(0.02, 16_000))
    assert bytes(heard) == tone(0.02, 16_000)
    assert portaudio.streams["input"].rest["blocksize"] == 320


def test_audio_to_play_is_requested() -> None:
    portaudio, speech = FakePortAudio(MICROPHONE, SPEAKERS), bytearray(tone(1, 22_050))

    def play(size_bytes: int) -> bytes:
        taken = bytes(speech[:size_bytes])
        del speech[:size_bytes]
        return taken

    with SystemSoundCard(portaudio).open(lambda pcm: None, play):
        played = b"".join(portaudio.streams["output"].play(500) for _ in range(10))
    assert played == tone(1, 22_050)[:10_000]


def test_devices_with_a_single_rate_run_at_that_rate() -> None:
    portaudio, heard = FakePortAudio(MICROPHONE, SPEAKERS, knows_rates=False), bytearray()
    speech = bytearray(tone(3, 22_050))

    def play(size_bytes: int) -> bytes:
        taken = bytes(speech[:size_bytes])
        del speech[:size_bytes]
        return taken

    with SystemSoundCard(portaudio).open(heard.extend, play):
        portaudio.streams["input"].hear(tone(1, 48_000))
        played = portaudio.streams["output"].play(48_000)
    assert [portaudio.streams[kind].hz for kind in ("input", "output")] == [48_000, 48_000]
    assert len(heard) == pytest.approx(32_000, abs=3_200)
    assert is_tone(bytes(heard), 16_000)
    assert is_tone(played, 48_000)


def test_closing_closes_both_streams() -> None:
    portaudio = FakePortAudio(MICROPHONE, SPEAKERS)
    with pytest.raises(KeyboardInterrupt), SystemSoundCard(portaudio).open(lambda pcm: None, bytes):
        raise KeyboardInterrupt
    assert not any(stream.is_open for stream in portaudio.streams.values())


def test_a_recording_has_the_requested_duration() -> None:
    portaudio = FakePortAudio(MICROPHONE)

    def sleep(seconds: float) -> None:
        portaudio.streams["input"].hear(tone(seconds, 16_000))

    assert SystemSoundCard(portaudio, sleep).record(3) == tone(3, 16_000)


def test_input_devices_are_listed() -> None:
    portaudio = FakePortAudio(MICROPHONE, SPEAKERS, device("Webcam", 2, inputs=2))
    assert SystemSoundCard(portaudio).inputs() == [
        Device("Desk microphone", 48_000, is_default=True),
        Device("Webcam", 44_100, is_default=False),
    ]


def test_a_machine_without_devices_has_none() -> None:
    assert SystemSoundCard(FakePortAudio()).inputs() == []


@pytest.mark.parametrize(
    ("portaudio", "told"),
    [(FakePortAudio(SPEAKERS), "no microphone"), (FakePortAudio(MICROPHONE), "no loudspeaker")],
)
def test_a_missing_device_is_reported(portaudio: FakePortAudio, told: str) -> None:
    card = SystemSoundCard(portaudio)
    with pytest.raises(SoundCardError, match=told):
        card.check()
    with pytest.raises(SoundCardError, match="doctor --mic"), card.open(lambda pcm: None, bytes):
        pass
    assert not any(stream.is_open for stream in portaudio.streams.values())


def test_a_missing_package_is_reported_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    with pytest.raises(SoundCardError, match=r"pip install 'antiphon\[mic\]'"):
        load_portaudio()


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("raise OSError('PortAudio library not found')", "apt install libportaudio2"),
        ("raise RuntimeError('Error initializing PortAudio')", "no sound system .* Error initializing"),
    ],
)
def test_a_package_without_portaudio_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, source: str, told: str
) -> None:
    folder = tmp_path_factory.mktemp("packages")
    (folder / "sounddevice.py").write_text(source)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    with pytest.raises(SoundCardError, match=told):
        load_portaudio()


def test_the_package_is_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("sounddevice")
    monkeypatch.setitem(sys.modules, "sounddevice", module)
    assert load_portaudio() is module
