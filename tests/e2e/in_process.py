"""Calls the entry point of `antiphon` in this process, with its own folder, environment and standard streams."""

import gc
import io
import logging
import os
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import TextIO

import structlog

from antiphon.cli import main


def call_main(
    arguments: list[str], folder: Path, environment: Mapping[str, str], typed: str, timeout_s: float
) -> tuple[int, str, str]:
    """Returns the exit code, and what the command wrote to standard output and standard error.

    The command runs in a thread: it starts an event loop, and the test may be running one.
    """
    codes: list[int] = []
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="surrogateescape") as stdin:
        stdin.write(typed)
        stdin.seek(0)
        with (
            _process_state_restored(),
            chdir(folder),
            _environment_replaced(environment),
            _streams_replaced(arguments, stdin) as (out, err),
        ):
            thread = threading.Thread(target=lambda: codes.append(_exit_code()), daemon=True)
            thread.start()
            thread.join(timeout_s)
            assert codes, f"the command did not end within {timeout_s} s: {_text(out)}{_text(err)}"
            return codes[0], _text(out), _text(err)


def _exit_code() -> int:
    """Calls the entry point and returns the exit code that the interpreter would end with."""
    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


@contextmanager
def _streams_replaced(arguments: list[str], stdin: TextIO) -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    before = sys.argv, sys.stdin, sys.stdout, sys.stderr
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    sys.argv, sys.stdin, sys.stdout, sys.stderr = arguments, stdin, out, err
    try:
        yield out, err
    finally:
        sys.argv, sys.stdin, sys.stdout, sys.stderr = before


@contextmanager
def _environment_replaced(environment: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _process_state_restored() -> Iterator[None]:
    """Undoes what a command sets for its whole process, since other tests run in this one."""
    config, handlers, interval_s = structlog.get_config(), [*logging.getLogger().handlers], sys.getswitchinterval()
    try:
        yield
    finally:
        structlog.configure(**config)
        logging.getLogger().handlers = handlers
        sys.setswitchinterval(interval_s)
        gc.unfreeze()


def _text(stream: io.TextIOWrapper) -> str:
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()
