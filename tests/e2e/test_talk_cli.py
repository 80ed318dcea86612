"""`antiphon talk`, and what the doctor says about sound."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from antiphon.audio.wav import read_wav
from antiphon.protocol.limits import MICROPHONE_HZ, SPEECH_HZ
from antiphon.sound_format import write_wav
from tests.e2e.terminal import COMMAND, Shown, Terminal, heed_ctrl_c
from tests.e2e.voices import JOE, SLT, VoiceServer, make_clips
from tests.fakes.tree import PYTHON_PATH

pytestmark = pytest.mark.real_time

MACHINE_WITH_SOUND = Path(__file__).parents[1] / "fakes" / "machine_with_sound"
QUESTION = "What is seventeen times six?"
WISH = "Please water the garden."
FAREWELL = "Goodbye for now."


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Path:
    """A folder with question.wav, wish.wav and farewell.pcm."""
    folder = tmp_path_factory.mktemp("recordings")
    clips = make_clips(models_dir, [(SLT, QUESTION), (JOE, WISH), (SLT, FAREWELL)])
    (folder / "question.wav").write_bytes(write_wav(clips[SLT, QUESTION], MICROPHONE_HZ))
    (folder / "wish.wav").write_bytes(write_wav(clips[JOE, WISH], MICROPHONE_HZ))
    (folder / "farewell.pcm").write_bytes(clips[SLT, FAREWELL])
    return folder


def one_line(shown: Shown, code: int = 1) -> str:
    assert shown.code == code
    assert shown.err.startswith("antiphon: ")
    assert len(shown.err.strip().splitlines()) == 1
    return shown.err


# A file.


def test_a_recording_is_answered_and_its_latency_is_drawn(
    terminal: Terminal, voice_server: VoiceServer, recordings: Path
) -> None:
    shown = terminal.run("talk", str(recordings / "question.wav"), "--url", voice_server.url, "--save", "answer.wav")
    assert shown.err == ""
    assert shown.code == 0
    lines = shown.out.splitlines()
    final = lines.index(f"you  {QUESTION}")
    assert any(line.startswith("you  ") and line.endswith("…") for line in lines[:final])
    assert "· calculate {" in lines[final + 1]
    assert lines[final + 2] == "it   17 times 6 is 102."
    stages = [line.split("  ")[1].strip() for line in lines[final + 3 : final + 7]]
    assert [stage.rstrip(" 0123456789ms") for stage in stages] == [
        "silence",
        "recognition",
        "first word",
        "first audio",
    ]
    assert "you stopped → it spoke: " in shown.out
    pcm, hz = read_wav(terminal.folder / "answer.wav")
    assert hz == SPEECH_HZ
    assert 1 < len(pcm) / 2 / hz < 6
    assert lines[-1] == f"Saved {len(pcm) / 2 / hz:.1f} seconds as answer.wav."


def test_a_confirmation_request_is_shown(terminal: Terminal, voice_server: VoiceServer, recordings: Path) -> None:
    shown = terminal.run("talk", str(recordings / "wish.wav"), "--url", voice_server.url)
    assert "Please confirm: Water the garden?" in shown.out
    assert "Nothing was done" in shown.out


def test_without_a_server_it_starts_its_own(terminal: Terminal, recordings: Path, models_dir: Path) -> None:
    shown = terminal.run_process(
        "talk",
        str(recordings / "question.wav"),
        ANTIPHON_SERVER__PORT="9",
        ANTIPHON_MODELS_DIR=str(models_dir),
    )
    assert "so this call started its own" in shown.out
    assert "Loading the voice…" in shown.out
    assert "it   17 times 6 is 102." in shown.out
    assert shown.code == 0


# What cannot be done.


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere.wav"], "nowhere.wav cannot be read"),
        (["question.wav", "--save", "nowhere/answer.wav"], "there is no folder"),
        (["question.wav", "--save", "."], "which is a folder"),
        (["question.wav", "--save", "question.wav"], "overwrite"),
        (["question.wav", "--url", "ws://127.0.0.1:9/ws"], "no server can be reached"),
        (["question.wav", "--url", "nonsense"], "ws://127.0.0.1:8000/ws"),
    ],
)
def test_a_call_that_cannot_be_made_prints_one_line(
    terminal: Terminal, recordings: Path, words: list[str], told: str
) -> None:
    (terminal.folder / "question.wav").write_bytes((recordings / "question.wav").read_bytes())
    assert told in one_line(terminal.run("talk", *words))


@pytest.mark.parametrize("words", [[], ["question.wav", "--mic"], ["--mic", "--save", "answer.wav"]])
def test_either_a_file_or_the_microphone_must_be_given(terminal: Terminal, words: list[str]) -> None:
    assert "antiphon talk --help" in one_line(terminal.run("talk", *words), code=2)


@pytest.mark.parametrize(("voice", "told"), [("cascade", "antiphon models pull"), ("none", 'model.voice is "none"')])
def test_a_voice_that_cannot_be_loaded_prints_one_line(
    terminal: Terminal, recordings: Path, voice: str, told: str
) -> None:
    shown = terminal.run_process(
        "talk", str(recordings / "question.wav"), ANTIPHON_SERVER__PORT="9", ANTIPHON_MODEL__VOICE=voice
    )
    assert told in one_line(shown)


def test_a_server_without_a_voice_says_so(terminal: Terminal, recordings: Path) -> None:
    token = terminal.run("token", "new").out.strip()
    question = str(recordings / "question.wav")
    with terminal.serve("--port", "0", ANTIPHON_SERVER__AUTH="required") as announced:
        url = announced[0].rpartition("WebSocket: ")[2].rstrip(").")
        assert "token" in one_line(terminal.run("talk", question, "--url", url))
        assert "Voice is not available" in one_line(terminal.run("talk", question, "--url", url, "--token", token))


# A microphone.


def importing(folder: Path) -> str:
    """The `PYTHONPATH` of a process that finds the packages of this folder first."""
    return f"{folder}{os.pathsep}{PYTHON_PATH}"


def sound(folder: Path, spoken: Path) -> dict[str, str]:
    """The environment of a machine whose microphone hears this file."""
    return {"PYTHONPATH": importing(MACHINE_WITH_SOUND), "SPOKEN": str(spoken), "PLAYED": str(folder / "played.pcm")}


def test_a_conversation_lasts_until_somebody_says_goodbye(
    terminal: Terminal, voice_server: VoiceServer, recordings: Path
) -> None:
    shown = terminal.run_process(
        "talk", "--mic", "--url", voice_server.url, **sound(terminal.folder, recordings / "farewell.pcm")
    )
    assert shown.err == ""
    assert shown.code == 0
    assert "You can talk now. Press Ctrl-C to end the call." in shown.out
    assert "it   Goodbye." in shown.out
    played = (terminal.folder / "played.pcm").read_bytes()
    assert 0.3 < len(played.replace(b"\0\0", b"")) / 2 / SPEECH_HZ < 3


def test_ctrl_c_ends_a_conversation(terminal: Terminal, voice_server: VoiceServer) -> None:
    silence = terminal.folder / "silence.pcm"
    silence.write_bytes(bytes(3_200))
    variables = terminal.environment(PYTHONUNBUFFERED="1", **sound(terminal.folder, silence))
    with subprocess.Popen(
        [COMMAND, "talk", "--mic", "--url", voice_server.url],
        cwd=terminal.folder,
        env=variables,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heed_ctrl_c,
    ) as talking:
        assert talking.stdout is not None
        assert talking.stderr is not None
        assert talking.stdout.readline() == "You can talk now. Press Ctrl-C to end the call.\n"
        while not (terminal.folder / "played.pcm").exists():
            assert talking.poll() is None
            time.sleep(0.02)
        talking.send_signal(signal.SIGINT)
        assert talking.wait(20) == 130
        assert talking.stderr.read() == ""


def test_a_microphone_without_its_package_prints_one_line(terminal: Terminal) -> None:
    (terminal.folder / "packages").mkdir()
    (terminal.folder / "packages" / "sounddevice.py").write_text("raise ModuleNotFoundError('sounddevice')")
    shown = terminal.run_process("talk", "--mic", PYTHONPATH=importing(terminal.folder / "packages"))
    assert "pip install 'antiphon[mic]'" in one_line(shown)


def test_the_doctor_listens_when_it_is_asked_to(terminal: Terminal, recordings: Path) -> None:
    spoken = recordings / "farewell.pcm"
    shown = terminal.run_process("doctor", "--mic", ANTIPHON_SERVER__PORT="0", **sound(terminal.folder, spoken))
    assert shown.code == 0
    assert "microphone: A table (48000 Hz, default)" in shown.out
    assert "dBFS on average" in shown.out
    assert "microphone:" not in terminal.run("doctor", ANTIPHON_SERVER__PORT="0").out
