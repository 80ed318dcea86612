"""Reads lines from the user: with editing and history at a terminal, plain otherwise."""

import asyncio
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from rich.console import Console

from antiphon.errors import AntiphonError


class Interrupted(AntiphonError):
    """The user pressed Ctrl-C on an empty line."""

    code = "interrupted"


class LineInput(Protocol):
    async def read(self, prompt: str) -> str | None:
        """Reads the next line; None at the end of the input. Raises `Interrupted`."""
        ...


def open_line_input(console: Console, history: Path | None) -> LineInput:
    """`history` is the file that keeps the lines of a terminal between runs; None keeps nothing."""
    is_terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    return EditedLines(history) if is_terminal else PlainLines(console)


class EditedLines:
    """Reads lines from a terminal, with the keys of readline."""

    def __init__(self, history: Path | None) -> None:
        self._session: PromptSession[str] = PromptSession(history=_open_history(history), key_bindings=_bindings())

    async def read(self, prompt: str) -> str | None:
        try:
            return await self._session.prompt_async(prompt)
        except EOFError:
            return None
        except KeyboardInterrupt:
            raise Interrupted from None


class PlainLines:
    """Reads lines from standard input, for scripts and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._loop = asyncio.get_running_loop()
        self._lines = asyncio.Queue[str | None]()
        # A daemon thread: with a worker of the loop, Ctrl-C would end the chat only after Enter.
        threading.Thread(target=self._read_all, daemon=True).start()

    async def read(self, prompt: str) -> str | None:
        self._console.print(prompt, end="", markup=False)
        line = await self._lines.get()
        if line is None:
            self._console.print()
        return line

    def _read_all(self) -> None:
        if sys.stdin is not None:
            # A separate file object, since Python cannot exit while sys.stdin is being read.
            with open(sys.stdin.fileno(), encoding=sys.stdin.encoding, errors="replace", closefd=False) as keyboard:
                for line in keyboard:
                    self._put(line)
        self._put(None)

    def _put(self, line: str | None) -> None:
        with suppress(RuntimeError):  # the chat is over, and the loop closed
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)


def _open_history(path: Path | None) -> History:
    """Opens the history, readable by this user alone. If the file cannot be written, it is kept for this run only."""
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        with open(descriptor, "rb"):
            path.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("c-c")
    def drop_line_or_leave(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt)

    return bindings
