"""The wheel, installed into an empty environment outside the checkout: serve, page, voice, doctor, backup and restore.

`make soak` runs it. It needs the package index, from which the dependencies and the model files come.
"""

import json
import os
import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.deploy.wheel import build_wheel, image_extras
from tests.fakes.postgres import PostgresServer
from tests.fakes.tree import ROOT

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(1_200)]

QUESTION = "what is fifteen percent of eighty"
ANSWER = "12"


@dataclass(frozen=True)
class Installation:
    """An environment with nothing but the wheel and its dependencies, and an empty folder to work in."""

    folder: Path
    url: str | None = None
    """The address of a Postgres database; without one, the data is in SQLite."""

    @property
    def bin(self) -> Path:
        return self.folder / "venv" / "bin"

    @property
    def environment(self) -> dict[str, str]:
        # Nothing leads back to the checkout or to the user's own files. The index of packages is kept.
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("ANTIPHON_", "PYTHON", "VIRTUAL_ENV", "PYTEST"))
        }
        return {
            **kept,
            "HOME": str(self.folder / "home"),
            "PATH": f"{self.bin}{os.pathsep}/usr/local/bin:/usr/bin:/bin",
            "PYTHONUNBUFFERED": "1",
            "COLUMNS": "200",
            **({} if self.url is None else {"ANTIPHON_STORAGE__URL": self.url}),
        }

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def data(self) -> Path:
        return self.folder / "home" / ".local" / "share" / "antiphon"

    def run(self, *words: str, timeout_s: float = 120) -> str:
        done = subprocess.run(
            [self.bin / "antiphon", *words],
            cwd=self.work,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
        assert done.returncode == 0, f"antiphon {' '.join(words)}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    @contextmanager
    def serve(self, *words: str) -> Iterator[str]:
        """Runs a server. Gives its address, and stops it with SIGTERM."""
        with (
            (self.folder / "log").open("ab") as log,
            subprocess.Popen(
                [self.bin / "antiphon", "serve", "--port", "0", *words],
                cwd=self.work,
                env=self.environment,
                text=True,
                stdout=subprocess.PIPE,
                stderr=log,
            ) as process,
        ):
            assert process.stdout is not None
            told = ""
            try:
                while "Try it: " not in told:
                    line = process.stdout.readline()
                    assert line, f"the server did not start:\n{(self.folder / 'log').read_text()}"
                    told += line
                assert "Voice: moonshine listens, hibari speaks." in told
                found = re.search(r"listens on (\S+) ", told)
                assert found is not None
                yield found[1]
            finally:
                process.terminate()
                assert process.wait(60) == 0


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    installation = Installation(tmp_path_factory.mktemp("installed"))
    assert ROOT not in installation.folder.parents
    wheel = build_wheel(installation.folder)
    for folder in (installation.work, installation.folder / "home"):
        folder.mkdir()
    subprocess.run([sys.executable, "-m", "venv", installation.folder / "venv"], check=True, timeout=120)
    # The same as the image does: deploy/Dockerfile.
    command = [str(installation.bin / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run(
        [*command, "-c", str(ROOT / "constraints.txt"), f"{wheel}[{image_extras()}]"],
        check=True,
        timeout=900,
        cwd=installation.work,
    )
    installation.run("models", "pull", timeout_s=600)
    return installation


def test_the_package_comes_from_the_wheel(installed: Installation) -> None:
    where = subprocess.run(
        [installed.bin / "python", "-c", "import antiphon; print(antiphon.__file__)"],
        cwd=installed.work,
        env=installed.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(installed.folder / "venv")


def test_page_voice_doctor_backup_and_restore(installed: Installation) -> None:
    speak(QUESTION, installed.work / "question.wav")
    with installed.serve("--self-signed") as url:
        certificate = installed.data / "tls" / "self-signed.pem"
        with urlopen(url, timeout=20, context=ssl.create_default_context(cafile=str(certificate))) as answer:
            assert b"<html" in answer.read()
        said = installed.run("talk", "question.wav", "--url", url, "--save", "answer.wav")
        assert ANSWER in said
        assert (installed.work / "answer.wav").stat().st_size > 20_000
        # The server may go on while it is backed up.
        assert "Backed up" in installed.run("data", "backup", "backup.db")
    assert "Everything is fine." in installed.run("doctor")
    shutil.rmtree(installed.data / "tls")
    (installed.data / "antiphon.db").unlink()
    assert "Restored" in installed.run("data", "restore", "backup.db")
    kept = [json.loads(line) for line in installed.run("data", "export").splitlines()]
    spoken = [turn["text"] for line in kept if line["kind"] == "conversation" for turn in line["turns"]]
    assert any("percent" in text for text in spoken)
    with installed.serve() as url:
        assert ANSWER in installed.run("talk", "question.wav", "--url", url)


def test_the_same_with_postgres(installed: Installation, postgres: PostgresServer) -> None:
    speak(QUESTION, installed.work / "question.wav")
    shared = replace(installed, url=postgres.make_database(has_tables=False))
    with shared.serve() as url:
        with urlopen(url, timeout=20) as answer:
            assert b"<html" in answer.read()
        assert ANSWER in shared.run("talk", "question.wav", "--url", url)
        assert "Backed up postgresql://" in shared.run("data", "backup", "shared.db")
    told = shared.run("doctor")
    assert "(Postgres 1" in told
    assert "Everything is fine." in told
    assert "Deleted 1 conversation" in shared.run("data", "delete", "--user", "local", "--yes")
    assert "Restored postgresql://" in shared.run("data", "restore", "shared.db", "--force")
    with shared.serve() as url:
        assert ANSWER in shared.run("talk", "question.wav", "--url", url)
    # What is in the database of one kind can be moved to the other.
    moved = replace(installed, url=postgres.make_database(has_tables=False))
    assert moved.url is not None
    assert "rows into postgresql://" in installed.run("data", "migrate", moved.url)
    assert "percent" in moved.run("data", "export")


def speak(text: str, file: Path) -> None:
    flite = shutil.which("flite")
    assert flite is not None, "flite is not installed. Run `make system`."
    subprocess.run([flite, "-voice", "slt", "-t", text, "-o", file], check=True, timeout=60)


def test_a_tool_is_made_built_and_run(installed: Installation) -> None:
    installed.run("tools", "new", "greet_guest")
    assert "greet_guest" in installed.run("tools", "list")
    assert '"ok": true' in installed.run("tools", "run", "calculate", "--args", '{"expression": "2 + 3"}', "--json")
