"""What the doctor says of the voice."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from antiphon.cli.doctor_voice import check_voice, examine_microphone
from antiphon.cli.findings import Finding
from antiphon.cli.sound_card import SystemSoundCard
from antiphon.config import load
from antiphon.speech.base import Urgency
from antiphon.speech.wyoming_server import serve_wyoming
from antiphon.weights.folder import path_of
from antiphon.weights.manifest import VOICE
from tests.unit.cli.fake_portaudio import MICROPHONE, SPEAKERS, FakePortAudio, device

pytestmark = pytest.mark.real_time

Examine = Callable[..., list[Finding]]


class DeafRecognizer:
    name = "deaf"

    async def recognize(self, pcm: bytes, urgency: Urgency = Urgency.NOW) -> str:
        return ""

    async def aclose(self) -> None:
        pass


@pytest.fixture
def examine(tmp_path: Path) -> Examine:
    """What is found with these variables; the model folder is the test's own."""

    def run(**variables: str) -> list[Finding]:
        env = {f"ANTIPHON_{name}": value for name, value in variables.items()}
        return list(check_voice(load(None, {"ANTIPHON_DATA_DIR": str(tmp_path), **env}, tmp_path)))

    return run


def furnish(folder: Path) -> None:
    """All model files, as far as their sizes tell."""
    for model in VOICE:
        for file in model.files:
            path = path_of(folder / "models", model, file)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as made:
                made.truncate(file.size_bytes)


# Files and packages.


def test_an_installation_without_voice_is_healthy(examine: Examine) -> None:
    [finding] = examine()
    assert finding.ok
    assert "antiphon models pull" in finding.text


def test_a_disabled_voice_is_healthy(examine: Examine) -> None:
    [finding] = examine(MODEL__VOICE="none")
    assert finding.ok
    assert "none" in finding.text


@pytest.mark.parametrize(
    ("variables", "key", "ok", "text"),
    [
        ({"MODEL__VOICE": "gemini-live:gemini-3.8-live"}, "k", True, "hears and speaks"),
        ({"MODEL__VOICE": "gemini-live:gemini-3.8-live"}, "", False, "Set GEMINI_API_KEY"),
        ({"MODEL__VOICE": "gemini-live:gemini-3.8-live", "SPEECH__VOICE": "joe"}, "k", False, 'no voice "joe"'),
        ({"MODEL__VOICE": "azure-realtime:mine"}, "k", False, "does not say where"),
    ],
)
def test_a_live_model_is_checked_without_connecting_it(
    examine: Examine, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], key: str, ok: bool, text: str
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", key)
    finding, fallback = examine(**variables)
    assert finding.ok is ok
    assert text in finding.text
    assert fallback.ok
    assert fallback.text.startswith("voice: no local voice takes over after a rate limit: the model ")


def test_the_local_voice_behind_a_live_model_is_checked(
    examine: Examine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    furnish(tmp_path)
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    # The voice is the live model's.
    findings = examine(MODEL__VOICE="gemini-live:gemini-3.8-live", SPEECH__VOICE="Puck")
    assert [finding.ok for finding in findings] == [True, True]
    assert findings[1].text.startswith("voice: moonshine listens, hibari as heart speaks")


def test_every_voice_model_of_a_ladder_is_checked_once(examine: Examine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_API_KEY", "")
    findings = examine(
        LADDER__VOICE__3="gemini-live:gemini-3.8-live",
        LADDER__VOICE__2="gemini-live:gemini-3.8-live",
        LADDER__VOICE__1="openai-realtime:gpt-realtime-2",
    )
    assert [finding.ok for finding in findings] == [True, False]
    assert "Set OPENAI_API_KEY" in findings[1].text


def test_a_local_voice_that_a_ladder_names_must_be_complete(examine: Examine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    findings = examine(LADDER__VOICE__3="gemini-live:gemini-3.8-live", LADDER__VOICE__1="cascade")
    assert [finding.ok for finding in findings] == [True] + [False] * 3


def test_a_voice_with_all_its_files_is_healthy(examine: Examine, tmp_path: Path) -> None:
    furnish(tmp_path)
    [finding] = examine()
    assert finding == Finding(
        True, f"voice: moonshine listens, hibari as heart speaks (model files: {tmp_path / 'models'})"
    )


def test_a_configured_voice_without_files_is_a_problem(examine: Examine) -> None:
    findings = examine(MODEL__VOICE="cascade")
    assert [finding.ok for finding in findings] == [False] * 3
    assert all("missing" in finding.text for finding in findings)
    assert all("antiphon models pull" in finding.text for finding in findings)


def test_a_truncated_file_is_a_problem(examine: Examine, tmp_path: Path) -> None:
    furnish(tmp_path)
    (tmp_path / "models" / "smart-turn" / "smart-turn-v3.2-cpu.onnx").write_bytes(b"x")
    [finding] = examine()
    assert not finding.ok
    assert "smart-turn is damaged" in finding.text


def test_a_custom_voice_needs_its_folder(examine: Examine, tmp_path: Path) -> None:
    furnish(tmp_path)
    [finding] = examine(SPEECH__TTS="piper", SPEECH__VOICE="amy")
    assert not finding.ok
    assert '"amy"' in finding.text
    (tmp_path / "models" / "amy").mkdir()
    (tmp_path / "models" / "amy" / "amy.onnx").touch()
    assert examine(SPEECH__TTS="piper", SPEECH__VOICE="amy")[0].ok


@pytest.mark.parametrize(
    ("tts", "voice", "told"),
    [
        ("hibari", "amy", 'hibari has no voice "amy" on this machine. It has heart'),
        ("kokoro", "amy", 'kokoro has no voice "amy" on this machine. It has af_alloy'),
        ("kokoro", "af_sky", "the model kokoro is missing"),
        ("piper", "joe", "Run `antiphon models pull joe`."),
    ],
)
def test_what_an_engine_lacks_is_reported(examine: Examine, tmp_path: Path, tts: str, voice: str, told: str) -> None:
    furnish(tmp_path)
    assert any(told in finding.text for finding in examine(SPEECH__TTS=tts, SPEECH__VOICE=voice) if not finding.ok)


def test_an_engine_without_a_configured_voice_speaks_with_its_own(examine: Examine, tmp_path: Path) -> None:
    furnish(tmp_path)
    [finding] = examine(SPEECH__TTS="piper")
    assert "the model joe is missing" in finding.text


def test_a_server_without_speech_output_needs_no_voice(examine: Examine, tmp_path: Path) -> None:
    furnish(tmp_path)
    [finding] = examine(SPEECH__TTS="none")
    assert finding.ok
    assert "nothing speaks" in finding.text


def test_a_missing_package_is_a_problem(examine: Examine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    furnish(tmp_path)
    monkeypatch.setattr("antiphon.cli.doctor_voice.find_spec", lambda name: None if name == "soxr" else object())
    [finding] = examine()
    assert not finding.ok
    assert finding.text == "voice: the package soxr is not installed. Run: pip install 'antiphon[local]'"


# Engines elsewhere.


async def test_a_wyoming_server_is_asked_what_it_can_do(examine: Examine, tmp_path: Path) -> None:
    furnish(tmp_path)
    async with serve_wyoming("tcp://127.0.0.1:0", DeafRecognizer(), None) as uri:
        engine = f"wyoming:{uri}"
        listens, speaks = (
            (await asyncio.to_thread(lambda: examine(SPEECH__STT=engine)))[-1],
            (await asyncio.to_thread(lambda: examine(SPEECH__TTS=engine)))[-1],
        )
    assert listens == Finding(True, f"voice: {engine} answers, and recognises speech")
    assert not speaks.ok
    assert "does not speak" in speaks.text


@pytest.mark.parametrize(
    ("engine", "told"),
    [
        ("wyoming:tcp://127.0.0.1:9", "cannot be reached"),
        ("openai:http://127.0.0.1:9/v1#whisper", "nothing answers at http://127.0.0.1:9/v1"),
    ],
)
def test_an_unreachable_server_is_a_problem(examine: Examine, tmp_path: Path, engine: str, told: str) -> None:
    furnish(tmp_path)
    finding = examine(SPEECH__STT=engine)[-1]
    assert not finding.ok
    assert told in finding.text


def test_openai_is_not_tried_but_its_key_is_looked_for(
    examine: Examine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnish(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert "Set OPENAI_API_KEY" in examine(SPEECH__STT="openai:whisper-1")[-1].text
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    assert examine(SPEECH__STT="openai:whisper-1")[-1].ok


# The microphone.


def listen(room: bytes, *devices: dict[str, object]) -> list[Finding]:
    """What is found of a machine where this is to be heard."""
    return list(examine_microphone(SystemSoundCard(FakePortAudio(*devices, room=room), lambda seconds: None)))


def noise(level: float) -> bytes:
    return np.random.default_rng(1).normal(0, level, 48_000).clip(-32_768, 32_767).astype(np.int16).tobytes()


def test_a_microphone_that_picks_up_speech_is_healthy() -> None:
    findings = listen(noise(1_000), MICROPHONE, device("Webcam", 2, inputs=2))
    assert all(finding.ok for finding in findings)
    assert "Desk microphone (48000 Hz, default)" in findings[0].text
    assert "Webcam (44100 Hz)" in findings[1].text
    assert "-30 dBFS" in findings[-1].text


@pytest.mark.parametrize(("level", "told"), [(5.0, "muted"), (30_000.0, "turn it down")])
def test_a_microphone_that_cannot_be_used_is_a_problem(level: float, told: str) -> None:
    finding = listen(noise(level), MICROPHONE)[-1]
    assert not finding.ok
    assert told in finding.text


def test_a_machine_without_a_microphone_is_reported() -> None:
    [finding] = listen(b"", SPEAKERS)
    assert not finding.ok
    assert "this machine has none" in finding.text
