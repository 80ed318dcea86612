"""The image: built and run where a container engine is there; elsewhere, every step that needs none is taken."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.deploy.proxies import DEPLOY
from tests.e2e.terminal import Terminal
from tests.fakes.tree import ROOT

pytestmark = pytest.mark.real_time

BUILD_S = 900


def instructions() -> list[tuple[str, str]]:
    """Returns the instructions of the Dockerfile, with continued lines joined."""
    lines = [line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in joined.splitlines()) if name]


def builder() -> str | None:
    """Returns a container engine that works here. A client alone, without its server, does not count."""
    for program in ("docker", "podman"):
        if shutil.which(program) is None:
            continue
        if subprocess.run([program, "info"], capture_output=True, timeout=30).returncode == 0:
            return program
    return None


def sends(path: str) -> bool:
    """Returns whether .dockerignore lets a path into the build; the last line that fits it decides."""
    sent = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!").strip()
        if not pattern or pattern.startswith("#"):
            continue
        parts = path.split("/")
        places = ["/".join(parts[: end + 1]) for end in range(len(parts))]
        fits_anywhere = pattern.startswith("**/") and any(fnmatch(part, pattern[3:]) for part in parts)
        if fits_anywhere or any(fnmatch(place, pattern) for place in places):
            sent = line.startswith("!")
    return sent


def test_the_image_can_be_built_or_every_file_extra_and_user_that_it_names_exists() -> None:
    engine = builder()
    if engine is not None:
        command = [engine, "build", "-f", str(DEPLOY / "Dockerfile"), "-t", "antiphon-test", str(ROOT)]
        subprocess.run(command, check=True, timeout=BUILD_S)
        shown = subprocess.run([engine, "run", "--rm", "antiphon-test", "--version"], capture_output=True, text=True)
        assert shown.stdout.startswith("antiphon ")
    found = instructions()
    copied = [words.split()[:-1] for name, words in found if name == "COPY" and not words.startswith("--from")]
    assert copied
    for path in (path for paths in copied for path in paths):
        assert (ROOT / path).exists(), path
        assert sends(path), f".dockerignore keeps {path} out of the build"
    [extras] = [words.removeprefix("EXTRAS=") for name, words in found if name == "ARG"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    [user] = [words for name, words in found if name == "USER"]
    assert re.fullmatch(r"([1-9]\d*):\1", user)
    assert any(f"--uid {user.partition(':')[0]} " in words for name, words in found if name == "RUN")


def test_the_build_gets_no_data_and_no_files_of_git() -> None:
    for path in (".git/config", "antiphon.toml", ".env", "data/antiphon.db", "web/node_modules/vite/package.json"):
        assert not sends(path)
    for path in ("src/antiphon/__pycache__/x.pyc", "src/antiphon/toolkit/open_url/__pycache__/x.pyc"):
        assert not sends(path)
    assert sends("src/antiphon/server/static/index.html")


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    """A folder with an `antiphon` that writes down how it is called, and fails to pull if there is a file `offline`."""
    fake = tmp_path / "antiphon"
    fake.write_text(
        f'#!/bin/sh\necho "$$ $*" >>{tmp_path}/called\n'
        f'[ "$1" = models ] && [ -e {tmp_path}/offline ] && exit 1\nexit 0\n'
    )
    fake.chmod(0o755)
    return tmp_path


def enter(folder: Path, *words: str) -> tuple[list[str], str]:
    """Runs the entry point. Returns the calls in their order, and what was said."""
    variables = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    with subprocess.Popen(
        [DEPLOY / "entrypoint.sh", *words], env=variables, stderr=subprocess.PIPE, text=True
    ) as process:
        _, said = process.communicate(timeout=30)
        calls = [line.split(" ", 1) for line in (folder / "called").read_text().splitlines()]
        # The last call has the number of the script itself, so signals reach it.
        assert calls[-1][0] == str(process.pid)
        assert process.returncode == 0
    return [call for _, call in calls], said


def test_the_entry_pulls_the_models_before_the_server_starts(entry: Path) -> None:
    assert enter(entry, "serve", "--json-log") == (["models pull", "serve --json-log"], "")


def test_the_server_starts_without_models_if_they_cannot_be_pulled(entry: Path) -> None:
    (entry / "offline").touch()
    calls, said = enter(entry, "serve")
    assert calls == ["models pull", "serve"]
    assert "starts without these models" in said


def test_the_entry_passes_other_commands_on(entry: Path) -> None:
    assert enter(entry, "token", "new", "--name", "my phone") == (["token new --name my phone"], "")


@pytest.mark.parametrize("options", [[], ["--self-signed"]])
def test_the_health_check_tells_a_ready_server_from_a_stopped_one(tmp_path: Path, options: list[str]) -> None:
    def check(port: str) -> int:
        command = [sys.executable, str(DEPLOY / "healthcheck.py")]
        return subprocess.run(command, env={**os.environ, "ANTIPHON_SERVER__PORT": port}, timeout=30).returncode

    with Terminal(tmp_path).serve("--port", "0", *options) as announced:
        port = announced[0].rpartition(":")[2].partition("/")[0]
        assert check(port) == 0
    assert check(port) == 1
