"""A person at a terminal: a folder, a data folder of its own, and the installed `antiphon` command."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


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
        return self.shell([str(Path(sys.executable).with_name("antiphon")), *words], typed, **variables)

    def shell(self, command: str | list[str], typed: str = "", **variables: str) -> Shown:
        """A list is run as it is, a text by the shell."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANTIPHON_")}
        environment = {
            **inherited,
            "ANTIPHON_DATA_DIR": str(self.folder / "data"),
            "COLUMNS": "200",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            **variables,
        }
        done = subprocess.run(
            command,
            shell=isinstance(command, str),
            cwd=self.folder,
            env=environment,
            input=typed,
            text=True,
            capture_output=True,
            timeout=60,
        )
        return Shown(done.returncode, done.stdout, done.stderr)
