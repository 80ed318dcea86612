"""Every program in examples/ runs. One server has the tools and hooks of all of them."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from playwright.sync_api import expect

from antiphon import client
from antiphon.audio.wav import read_wav
from antiphon.compose.hooks import check_hooks
from antiphon.config import load
from antiphon.protocol.limits import MICROPHONE_HZ, SPEECH_HZ
from antiphon.sound_format import write_wav
from tests.browser.chromium import Chromium
from tests.e2e.terminal import Terminal
from tests.e2e.voices import JOE, VoiceServer, make_clips, serve
from tests.fakes.tree import PYTHON_PATH, ROOT

pytestmark = pytest.mark.real_time

EXAMPLES: Final = ROOT / "examples"
PATIENCE_S: Final = 50.0
SPOKEN: Final = "What is seventeen times six?"
RUN: Final = {
    "ask.py",
    "talk_wav.py",
    "openai_chat.py",
    "embed.html",
    "fastapi_app/main.py",
    "web_hook/antiphon.toml",
    "web_hook/web_hook.py",
    "own_tool/antiphon.toml",
    "own_tool/tools/feed_cat",
    "capability/antiphon.toml",
    "capability/inventory.py",
    "capability/stock.csv",
    "capability/tools/check_stock",
}
"""What the tests below run. A directory is a tool, whose files `tools test` reads."""


def test_no_example_is_without_a_test() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "."],
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        check=True,
    )
    found = {"/".join(file.split("/")[:3]) if "/tools/" in file else file for file in listed.stdout.splitlines()}
    assert found - {"README.md"} == RUN


def test_the_list_of_examples_is_complete() -> None:
    text = (EXAMPLES / "README.md").read_text()
    for name in {each.partition("/")[0] for each in RUN}:
        assert f"({name}" in text


class TurnReceiver:
    """The address that the web hook sends turns to."""

    def __init__(self) -> None:
        self.turns: list[dict[str, Any]] = []
        self.came = threading.Condition()

    def wait_for(self, question: str) -> dict[str, Any]:
        def find() -> dict[str, Any] | None:
            return next((each for each in self.turns if each["question"] == question), None)

        with self.came:
            assert self.came.wait_for(lambda: find() is not None, PATIENCE_S), self.turns
            found = find()
        assert found is not None
        return found


@contextmanager
def http_server(handler: Any) -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def receiver() -> Iterator[tuple[str, TurnReceiver]]:
    received = TurnReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            with received.came:
                received.turns.append(json.loads(body))
                received.came.notify_all()
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with http_server(Handler) as url:
        yield url, received


class QuietFiles(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """A page's own server, which has the folder of the examples."""
    with http_server(partial(QuietFiles, directory=str(EXAMPLES))) as url:
        yield url


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the examples, since a build writes its result into the project."""
    copied = tmp_path_factory.mktemp("copied") / "examples"
    shutil.copytree(EXAMPLES, copied, ignore=shutil.ignore_patterns("tool_registry.json", "__pycache__"))
    return copied


@pytest.fixture(scope="module")
def server(folder: Path, models_dir: Path, site: str, receiver: tuple[str, TurnReceiver]) -> Iterator[VoiceServer]:
    python_path = os.pathsep.join([PYTHON_PATH, str(folder / "capability"), str(folder / "web_hook")])
    settings = {
        "PYTHONPATH": python_path,
        "WEB_HOOK_URL": receiver[0],
        "ANTIPHON_SERVER__ORIGINS": site,
        "ANTIPHON_TOOLS__PATHS": "own_tool/tools,capability/tools",
        "ANTIPHON_TOOLS__CAPABILITIES": '{"inventory": "inventory:offer"}',
        "ANTIPHON_HOOKS__TURN_ENDED": "web_hook:send_turn",
    }
    with serve(folder, models_dir, **settings) as server:
        yield server


def http_address(server: VoiceServer) -> str:
    return server.url.replace("ws:", "http:").removesuffix("/ws")


def run(program: str, *arguments: str, typed: str = "") -> str:
    """Runs a program of the examples and returns what it prints."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / program), *arguments],
        env={**os.environ, "PYTHONPATH": PYTHON_PATH},
        input=typed,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_script_asks_and_approves(server: VoiceServer) -> None:
    told = run("ask.py", "--url", http_address(server), "What is 2 plus 3?", "feed the cat", typed="y\n")
    lines = told.splitlines()
    assert lines[0] == "2 plus 3 is 5."
    assert "Shall I give the cat a small portion? [y/N] The cat got a small portion. I have fed it once." in lines


def test_the_script_explains_a_missing_server() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "ask.py"), "--url", "http://127.0.0.1:1", "hello"],
        env={**os.environ, "PYTHONPATH": PYTHON_PATH},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("ask.py: no server can be reached at http://127.0.0.1:1")


def test_a_recording_gets_a_spoken_answer(server: VoiceServer, models_dir: Path, tmp_path: Path) -> None:
    clips = make_clips(models_dir, [(JOE, SPOKEN)])
    (tmp_path / "question.wav").write_bytes(write_wav(clips[JOE, SPOKEN], MICROPHONE_HZ))
    paths = str(tmp_path / "question.wav"), str(tmp_path / "answer.wav")
    told = run("talk_wav.py", "--url", http_address(server), *paths)
    assert "Antiphon: 17 times 6 is 102." in told
    samples, hz = read_wav(tmp_path / "answer.wav")
    assert hz == SPEECH_HZ
    assert len(samples) > hz


def test_the_client_of_openai_chats(server: VoiceServer) -> None:
    assert run("openai_chat.py", "--url", http_address(server), "What is 2 plus 3?") == "2 plus 3 is 5.\n"


def test_the_tools_of_the_projects_answer_and_the_web_hook_gets_the_turns(
    server: VoiceServer, receiver: tuple[str, TurnReceiver]
) -> None:
    answer = client.ask(server.url, "how many lamps are in stock")
    assert answer.text == "There are 4 lamps in stock."
    turn = receiver[1].wait_for("how many lamps are in stock")
    assert turn["answer"] == "There are 4 lamps in stock."
    assert (turn["user"], turn["interrupted"]) == ("local", False)
    assert turn["conversation"] == answer.conversation_id


@pytest.mark.parametrize("project", ["own_tool", "capability"])
def test_the_settings_of_a_project_build_its_tools(folder: Path, project: str) -> None:
    shown = Terminal(folder / project).run("tools", "build")
    assert (shown.code, shown.err) == (0, "")


def test_the_settings_of_the_web_hook_name_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_HOOK_URL", "http://127.0.0.1:1")
    monkeypatch.setattr(sys, "path", [*sys.path])
    settings = load(folder / "web_hook" / "antiphon.toml", {})
    assert check_hooks(settings) == []
    assert settings.hooks.turn_ended == "web_hook:send_turn"


@pytest.mark.parametrize(("project", "tool"), [("own_tool", "feed_cat"), ("capability", "check_stock")])
def test_the_tests_of_a_tool_pass(folder: Path, project: str, tool: str, capfd: pytest.CaptureFixture[str]) -> None:
    shown = Terminal(folder / project).run("tools", "test", tool)
    assert shown.code == 0, shown.out + shown.err
    # pytest is a process of its own, which writes to the real standard output.
    assert "2 passed" in capfd.readouterr().out


def test_the_fastapi_application_has_the_page_and_keeps_the_turns(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": PYTHON_PATH, "ANTIPHON_DATA_DIR": str(tmp_path)}
    command = [sys.executable, str(EXAMPLES / "fastapi_app" / "main.py"), "--port", str(port)]
    url = f"http://127.0.0.1:{port}"
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log) as process,
    ):
        try:
            _wait_until_it_answers(url, process, tmp_path / "log")
            assert "<title>Antiphon</title>" in httpx2.get(f"{url}/voice/").text
            assert client.ask(f"{url}/voice", "What is 2 plus 3?").text == "2 plus 3 is 5."
            kept = _wait_for_turns(url)
        finally:
            process.terminate()
    assert kept["turns"] == [
        {"user": "local", "question": "What is 2 plus 3?", "answer": "2 plus 3 is 5.", "tools": ["calculate"]}
    ]
    assert [each["tool"] for each in kept["calls"]] == ["calculate"]


def _wait_until_it_answers(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            httpx2.get(f"{url}/turns")
            return
        except httpx2.TransportError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline_s, log.read_text()
            time.sleep(0.1)


def _wait_for_turns(url: str) -> Any:
    deadline_s = time.monotonic() + PATIENCE_S
    while not (kept := httpx2.get(f"{url}/turns").json())["turns"]:
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    return kept


def _texts(found: Sequence[str]) -> list[str]:
    return [each.strip() for each in found]


def test_a_page_of_its_own_asks_through_the_module(server: VoiceServer, site: str) -> None:
    chromium = Chromium()
    with chromium.while_used():
        browser = chromium.launch()
        try:
            page = browser.new_page()
            page.goto(f"{site}/embed.html?server={http_address(server)}")
            expect(page.locator("#state")).to_have_text("idle", timeout=PATIENCE_S * 1000)
            page.get_by_placeholder("Ask something").fill("What is 2 plus 3?")
            page.get_by_role("button", name="Ask").click()
            turns = page.locator("#turns li")
            expect(turns).to_have_count(2, timeout=PATIENCE_S * 1000)
            assert _texts(turns.all_inner_texts()) == ["You: What is 2 plus 3?", "Antiphon: 2 plus 3 is 5."]
        finally:
            browser.close()
    chromium.stop()
