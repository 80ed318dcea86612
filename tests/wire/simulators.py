"""`antiphon sim …` in a child process, as users start it, and its control port."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2


@dataclass(frozen=True)
class RunningSimulator:
    url: str
    control_url: str
    announced: str
    """What it told the user to set."""

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def arm(self, when: Any, do: Any, **more: Any) -> None:
        """Replaces all faults by this one."""
        self.disarm()
        self.add(when, do, **more)

    def add(self, when: Any, do: Any, **more: Any) -> None:
        """Adds a fault."""
        self._request("POST", "/faults", {"when": when, "do": do, **more})

    def disarm(self) -> None:
        self._request("DELETE", "/faults")

    def log(self) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self._request("GET", "/log")["entries"]
        return entries

    def clear_log(self) -> None:
        self._request("DELETE", "/log")

    def sessions(self) -> dict[str, Any]:
        found: dict[str, Any] = self._request("GET", "/sessions")
        return found

    def _request(self, method: str, path: str, body: Any = None) -> Any:
        response = httpx2.request(method, f"{self.control_url}{path}", json=body, trust_env=False)
        assert response.is_success, response.text
        return response.json() if response.content else None


@contextmanager
def run_simulator(name: str, *options: str, folder: Path) -> Iterator[RunningSimulator]:
    """Starts a simulator on free ports, and stops it with SIGTERM at the end."""
    command = [sys.executable, "-m", "antiphon", "sim", name, "--port", "0", "--control-port", "0", *options]
    output = folder / "output"
    with output.open("wb") as file:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, cwd=folder, env={**os.environ})
    assert process.stdout is not None
    try:
        announced = ""
        while "Add a fault" not in announced:
            line = process.stdout.readline().decode()
            assert line, f"the simulator did not start:\n{announced}{output.read_text()}"
            announced += line
        urls = re.findall(r"https?://[\w.]+:\d+", announced)
        yield RunningSimulator(urls[0], urls[-1], announced)
    finally:
        process.terminate()
        assert process.wait(20) == 0, output.read_text()
        process.stdout.close()
        assert "Traceback" not in output.read_text()
