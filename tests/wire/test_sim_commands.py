"""`antiphon sim`: what it tells users to set, and what it says about mistakes."""

import json
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.wire.simulators import run_simulator

pytestmark = pytest.mark.real_time


def fail(folder: Path, *arguments: str) -> str:
    """Runs a simulator that cannot start, and returns its error, which is one line."""
    command = [sys.executable, "-m", "antiphon", "sim", *arguments]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=40, check=False)
    assert ended.returncode != 0
    (line,) = ended.stderr.splitlines()
    return line


def test_a_script_with_a_mistake_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "faults.yaml").write_text("faults:\n  - when: connect\n    do: {close: {code: 99}}\n")
    told = fail(tmp_path, "gemini-live", "--port", "0", "--script", "faults.yaml")
    assert told == "antiphon: faults.yaml, line 3, faults[0].do.close.code: expected `int` >= 1000."


def test_a_missing_script_is_named(tmp_path: Path) -> None:
    told = fail(tmp_path, "ollama", "--script", "missing.yaml")
    assert told == "antiphon: the script missing.yaml cannot be read: No such file or directory."


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    assert "no/where.log cannot be written" in fail(tmp_path, "ollama", "--port", "0", "--log", "no/where.log")


def test_ollama_answers_with_its_script_and_writes_its_log(tmp_path: Path) -> None:
    (tmp_path / "faults.yaml").write_text("faults:\n  - {when: {connect: 1}, do: {refuse: {status: 503}}}\n")
    options = ("--script", "faults.yaml", "--log", "messages.jsonl", "--allow-model", "mine")
    with run_simulator("ollama", *options, folder=tmp_path) as simulator:
        assert f"OLLAMA_HOST={simulator.url}" in simulator.announced
        body = {"model": "mine", "messages": [{"role": "user", "content": "hello"}], "stream": False}
        first, second = (httpx2.post(f"{simulator.url}/api/chat", json=body) for _ in range(2))
        assert (first.status_code, "server busy" in first.text) == (503, True)
        assert second.json()["message"]["content"] == "Hello! What can I do for you?"
        busy = fail(tmp_path, "ollama", "--port", str(simulator.port))
        assert f"port {simulator.port} is in use" in busy
    entries = [json.loads(line) for line in (tmp_path / "messages.jsonl").read_text().splitlines()]
    assert [entry["event"] for entry in entries] == ["request", "refused", "end", "request", "client", "server", "end"]
