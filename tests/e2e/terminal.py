"""A terminal in which a test runs `antiphon`, with its own working folder and data folder.

`Terminal.run` calls the command in this process, since starting one takes a second. `Terminal.run_process` is for what
only a separate process shows: the installed entry point, signals, terminals and other import paths.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.in_process import call_main

COMMAND = str(Path(sys.executable).with_name("antiphon"))
TIMEOUT_S = 60.0


def heed_ctrl_c() -> None:
    """Restores the default handling of SIGINT in a child process, before it starts.

    A shell makes its background jobs ignore SIGINT, and children inherit that from the tests.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass(frozen=True)
class Shown:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Terminal:
    folder: Path

    def run(self, *words: str, typed: str = "", **variables: str) -> Shown:
        """Calls the command in this process."""
        return Shown(*call_main([COMMAND, *words], self.folder, self.environment(**variables), typed, TIMEOUT_S))

    def run_process(self, *words: str, typed: str = "", **variables: str) -> Shown:
        """Runs the installed command in a separate process."""
        return self.shell([COMMAND, *words], typed, **variables)

    def shell(self, command: str | list[str], typed: str = "", **variables: str) -> Shown:
        """Runs a list of arguments directly, and a string in a shell."""
        done = subprocess.run(
            command,
            shell=isinstance(command, str),
            cwd=self.folder,
            env=self.environment(**variables),
            input=typed,
            text=True,
            capture_output=True,
            timeout=TIMEOUT_S,
        )
        return Shown(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def serve(self, *words: str, **variables: str) -> Iterator[list[str]]:
        """Runs a server while the block lasts, and gives the lines that it announced."""
        with (
            (self.folder / "log").open("ab") as log,
            subprocess.Popen(
                [COMMAND, "serve", *words],
                cwd=self.folder,
                env={"ANTIPHON_MODEL__VOICE": "none", **self.environment(**variables), "PYTHONUNBUFFERED": "1"},
                text=True,
                stdout=subprocess.PIPE,
                stderr=log,
            ) as process,
        ):
            assert process.stdout is not None
            try:
                announced: list[str] = []
                while not announced or not announced[-1].startswith("Try it"):
                    line = process.stdout.readline()
                    assert line, f"the server did not start:\n{(self.folder / 'log').read_text()}"
                    announced.append(line.rstrip("\n"))
                yield announced
            finally:
                process.terminate()

    def environment(self, **variables: str) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANTIPHON_")}
        return {
            **inherited,
            "ANTIPHON_DATA_DIR": str(self.folder / "data"),
            "COLUMNS": "200",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            **variables,
        }
