"""`antiphon speech serve` when it cannot start. The contract tests of recognizers cover the rest."""

import socket
from pathlib import Path

import pytest

from tests.e2e.terminal import Shown, Terminal

SILENT = {"ANTIPHON_SPEECH__TTS": "none"}


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def assert_refused(shown: Shown, *words: str) -> None:
    assert shown.code == 1
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert shown.err.startswith("antiphon: ")
    assert all(word in shown.err for word in words)


@pytest.mark.parametrize("uri", ["tcp://0.0.0.0:10300", "tcp://[::]:10300", "tcp://box.local:10300"])
def test_other_machines_are_accepted_only_when_explicitly_allowed(terminal: Terminal, uri: str) -> None:
    assert_refused(terminal.run("speech", "serve", "--uri", uri), uri, "--insecure")


@pytest.mark.parametrize("uri", ["", "10300", "127.0.0.1:10300", "http://127.0.0.1:10300", "tcp://127.0.0.1"])
def test_an_invalid_address_is_reported_in_one_line(terminal: Terminal, uri: str) -> None:
    assert_refused(terminal.run("speech", "serve", "--uri", uri), "Write")


def test_an_unavailable_engine_is_reported_in_one_line(terminal: Terminal) -> None:
    shown = terminal.run("speech", "serve", ANTIPHON_SPEECH__STT="wyoming:tcp://127.0.0.1:9", **SILENT)
    assert_refused(shown, "wyoming:tcp://127.0.0.1:9 cannot be reached")


def test_an_unknown_engine_is_reported_in_one_line(terminal: Terminal) -> None:
    shown = terminal.run("speech", "serve", ANTIPHON_SPEECH__STT="wyoming:box:10300", **SILENT)
    assert_refused(shown, 'Write "wyoming:tcp://box:10300"')


def test_a_port_in_use_is_reported_in_one_line(terminal: Terminal) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.listen()
        uri = f"tcp://127.0.0.1:{bound.getsockname()[1]}"
        shown = terminal.run(
            "speech", "serve", "--uri", uri, ANTIPHON_SPEECH__STT="openai:http://127.0.0.1:9/v1#whisper", **SILENT
        )
    assert_refused(shown, "is in use. Choose another with --uri")
