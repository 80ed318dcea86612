"""`antiphon chat`, at a terminal and from a script."""

import os
import pty
import re
import select
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.conftest import write_garden
from tests.e2e.terminal import COMMAND, Terminal, heed_ctrl_c

pytestmark = pytest.mark.real_time

UP = "\x1b[A"
HOME = "\x01"
CTRL_C = "\x03"
CTRL_D = "\x04"
PROMPT = ">"
CONTROL = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[=>()][0-9A-B]?)|\r")


class Chat:
    """A chat in a pseudo-terminal."""

    def __init__(self, process: subprocess.Popen[bytes], keyboard: int) -> None:
        self.process = process
        self._keyboard = keyboard
        self._screen = ""
        self._seen = 0

    def press(self, keys: str) -> None:
        os.write(self._keyboard, keys.encode())

    def sees(self, text: str, timeout_s: float = 30.0) -> None:
        """Reads until the text appears after what was seen before."""
        until = time.monotonic() + timeout_s
        while (at := CONTROL.sub("", self._screen).find(text, self._seen)) < 0:
            assert time.monotonic() < until, f"{text!r} is not in {self._screen[-2000:]!r}"
            if select.select([self._keyboard], [], [], 0.1)[0]:
                self._screen += self._read()
        self._seen = at + len(text)

    def ends(self) -> int:
        """Reads the remaining output, so that the program can finish writing, and returns the exit code."""
        until = time.monotonic() + 30
        while self.process.poll() is None:
            assert time.monotonic() < until, "the chat does not end"
            if select.select([self._keyboard], [], [], 0.1)[0]:
                self._screen += self._read()
        return self.process.returncode

    def _read(self) -> str:
        try:
            text = os.read(self._keyboard, 65_536).decode(errors="replace")
        except OSError:  # the other side has closed
            return ""
        if "\x1b[6n" in text:
            self.press("\x1b[1;1R")  # where the cursor is, as a terminal answers
        return text


@contextmanager
def at_a_terminal(terminal: Terminal, *words: str) -> Iterator[Chat]:
    keyboard, screen = pty.openpty()
    try:
        with subprocess.Popen(
            [COMMAND, "chat", *words],
            cwd=terminal.folder,
            env=terminal.environment(TERM="xterm"),
            stdin=screen,
            stdout=screen,
            stderr=screen,
            start_new_session=True,
            preexec_fn=heed_ctrl_c,
        ) as process:
            os.close(screen)
            try:
                yield Chat(process, keyboard)
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)
    finally:
        os.close(keyboard)


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """A project with a tool that asks for confirmation."""
    folder = tmp_path_factory.mktemp("chat")
    write_garden(folder)
    return Terminal(folder)


@pytest.fixture(scope="module")
def url(terminal: Terminal) -> Iterator[str]:
    with terminal.serve("--port", "0") as announced:
        yield announced[0].rpartition("WebSocket: ")[2].rstrip(").")


def test_a_line_can_be_edited_and_recalled(terminal: Terminal, url: str) -> None:
    with at_a_terminal(terminal, "--url", url) as chat:
        chat.sees(PROMPT)
        chat.press(f"hat is 6 times 7{HOME}w\r")
        chat.sees("6 times 7 is 42.")
        chat.sees(PROMPT)
        chat.press(f"{UP}\r")
        chat.sees("6 times 7 is 42.")
        chat.sees(PROMPT)
        chat.press(CTRL_D)
        assert chat.ends() == 0


def test_what_was_typed_can_be_recalled_in_the_next_chat_by_its_owner_only(terminal: Terminal, url: str) -> None:
    with at_a_terminal(terminal, "--url", url) as chat:
        chat.sees(PROMPT)
        chat.press("what is 6 times 9\r")
        chat.sees("6 times 9 is 54.")
        chat.sees(PROMPT)
        chat.press("exit\r")
        assert chat.ends() == 0
    history = terminal.folder / "data" / "chat_history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    with at_a_terminal(terminal, "--url", url) as chat:
        chat.sees(PROMPT)
        chat.press(f"{UP}{UP}\r")
        chat.sees("6 times 9 is 54.")
        chat.press("exit\r")
        assert chat.ends() == 0


def test_ctrl_c_clears_a_line_and_then_leaves_the_chat(terminal: Terminal, url: str) -> None:
    with at_a_terminal(terminal, "--url", url) as chat:
        chat.sees(PROMPT)
        chat.press("water the gar")
        chat.sees("water the gar")
        chat.press(f"{CTRL_C}what is 6 times 7\r")
        chat.sees("6 times 7 is 42.")
        chat.sees(PROMPT)
        chat.press(CTRL_C)
        assert chat.ends() == 130


def test_a_chat_says_which_server_it_has_joined(terminal: Terminal, url: str) -> None:
    shown = terminal.run("chat", "--url", url, typed="exit\n")
    assert shown.code == 0
    assert f"Connected to {url}." in shown.out


def test_a_chat_says_that_it_started_a_server_of_its_own(terminal: Terminal) -> None:
    shown = terminal.run("chat", typed="exit\n", ANTIPHON_SERVER__PORT="9")
    assert shown.code == 0
    assert "No server answers at ws://127.0.0.1:9/ws, so this chat started its own." in shown.out


def test_from_a_script_a_chat_is_plain_text(terminal: Terminal, url: str) -> None:
    shown = terminal.run("chat", "--url", url, typed="what is 6 times 7\n")
    assert shown.code == 0
    assert "\x1b" not in shown.out
    assert "6 times 7 is 42." in shown.out


def test_tool_calls_are_shown_as_json_and_failures_in_words(terminal: Terminal, url: str) -> None:
    shown = terminal.run("chat", "--url", url, typed="what is 6 divided by 0\nexit\n")
    assert '· calculate {"expression":"6 divided by 0"}' in shown.out
    assert "· calculate failed: A number can't be divided by zero." in shown.out
    assert "{'" not in shown.out


@pytest.mark.parametrize(("answer", "told"), [("yes", "The garden has been watered."), ("no", "All right")])
def test_a_confirmation_is_asked_once(terminal: Terminal, url: str, answer: str, told: str) -> None:
    shown = terminal.run("chat", "--url", url, typed=f"water the garden\n{answer}\nexit\n")
    assert shown.code == 0
    assert shown.out.count("Water the garden?") == 1
    assert shown.out.count("?") == 1
    assert told in shown.out
    assert "CONFIRMATION_REQUIRED" not in shown.out
    assert "failed" not in shown.out
    assert "{'" not in shown.out
