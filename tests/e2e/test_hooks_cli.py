"""Hooks that the settings name, as the command line shows them."""

from pathlib import Path

import pytest

from antiphon.cli.doctor import check_hooks
from antiphon.config import load
from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.real_time


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "hooks_of_the_cli.py").write_text("async def note(event): ...\ndef plain(event): ...\n")
    (tmp_path / "antiphon.toml").write_text(
        '[hooks]\nturn_ended = "hooks_of_the_cli:plain"\ntool_called = "hooks_of_the_cli:note"\n'
    )
    return tmp_path


def test_a_server_does_not_start_with_a_hook_that_cannot_be_called(project: Path) -> None:
    shown = Terminal(project).run("serve", "--port", "0")
    assert shown.code == 1
    assert shown.err == (
        "antiphon: hooks.turn_ended is 'hooks_of_the_cli:plain', which is not an async function. "
        "Define it with `async def`.\n"
    )


def test_the_doctor_names_wrong_hooks_and_lists_good_ones(project: Path) -> None:
    file = project / "antiphon.toml"
    [finding] = check_hooks(load(file, {}))
    assert not finding.ok
    assert finding.text.startswith(
        "hooks: hooks.turn_ended is 'hooks_of_the_cli:plain', which is not an async function"
    )
    file.write_text(file.read_text().replace("plain", "note"))
    [finding] = check_hooks(load(file, {}))
    assert (finding.ok, finding.text) == (True, "hooks: turn_ended, tool_called")
    file.write_text("")
    assert list(check_hooks(load(file, {}))) == []
