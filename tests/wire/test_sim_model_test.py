"""`antiphon models test` in its own process, against `antiphon sim openai-realtime`."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.wire.simulators import RunningSimulator, run_simulator

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSimulator]:
    with run_simulator("openai-realtime", "--key", "right", folder=tmp_path_factory.mktemp("sim")) as running:
        yield running


def run_test(
    simulator: RunningSimulator, folder: Path, *, key: str = "right", model: str = "gpt-realtime-2", **variables: str
) -> tuple[int, Any]:
    """Returns the exit code and the report."""
    name = f"openai-realtime:{simulator.url}/v1#{model}"
    command = [sys.executable, "-m", "antiphon", "models", "test", name, "--json"]
    env = {**os.environ, "OPENAI_API_KEY": key, **variables}
    ended = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=100, check=False)
    assert ended.stderr == ""
    return ended.returncode, json.loads(ended.stdout)


def test_the_simulated_provider_speaks_hears_and_calls_a_tool(simulator: RunningSimulator, tmp_path: Path) -> None:
    code, report = run_test(simulator, tmp_path)
    found = {finding["check"]: finding for finding in report["findings"]}
    assert (code, report["ok"]) == (0, True)
    checks = ("first audio", "transcript of answers", "hears", "transcript of speech", "tool call", "tool result")
    assert [found[check]["text"] for check in checks if found[check]["mark"] not in ("good", "fair")] == []
    assert found["tool result"]["text"] == "used in the answer"
    assert found["first audio"]["value"] > 0


def test_a_voice_of_the_model_does_not_keep_the_question_from_being_asked(
    simulator: RunningSimulator, tmp_path: Path
) -> None:
    name = f"openai-realtime:{simulator.url}/v1#gpt-realtime-2"
    chosen = {"ANTIPHON_MODEL__VOICE": name, "ANTIPHON_SPEECH__VOICE": "cedar"}
    code, report = run_test(simulator, tmp_path, **chosen)
    found = {finding["check"]: finding["text"] for finding in report["findings"]}
    assert (code, found["voices"]) == (0, "10; the default is cedar")
    assert found["hears"] == "yes, a spoken question was answered"


def test_a_wrong_key_is_told_with_exit_code_1(simulator: RunningSimulator, tmp_path: Path) -> None:
    code, report = run_test(simulator, tmp_path, key="wrong", ANTIPHON_SPEECH__TTS="none")
    assert (code, report["ok"]) == (1, False)
    told = "openai-realtime:gpt-realtime-2 refused the API key. Check OPENAI_API_KEY."
    assert [finding["text"] for finding in report["findings"]] == [told]


def test_an_unknown_model_is_told_with_exit_code_1(simulator: RunningSimulator, tmp_path: Path) -> None:
    code, report = run_test(simulator, tmp_path, model="gpt-realtime-99", ANTIPHON_SPEECH__TTS="none")
    assert (code, report["ok"]) == (1, False)
    assert "gpt-realtime-99" in report["findings"][0]["text"]
