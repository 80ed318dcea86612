"""The operator's commands with a Postgres database, whose password is never shown."""

from pathlib import Path

import pytest

from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.real_time

PASSWORD = "hunter2"


class Operator:
    """Types commands for the database of an address."""

    def __init__(self, folder: Path, url: str) -> None:
        self._terminal = Terminal(folder)
        self._url = url.replace("@", f":{PASSWORD}@")

    def type(self, *words: str, code: int = 0) -> str:
        """Returns all that the command says, in which the password must not be."""
        shown = self._terminal.run(*words, ANTIPHON_STORAGE__URL=self._url)
        said = f"{shown.out}{shown.err}"
        assert PASSWORD not in said
        assert shown.code == code, said
        return said


@pytest.fixture
def operator(tmp_path: Path, postgres_url: str) -> Operator:
    return Operator(tmp_path, postgres_url)


def test_tokens_and_other_data_are_in_the_database(operator: Operator) -> None:
    operator.type("token", "new", "--user", "ann")
    assert "ann" in operator.type("token", "list")
    assert "Exported nothing" in operator.type("data", "export")
    assert "Deleted 1 token" in operator.type("data", "delete", "--user", "ann", "--yes")


def test_the_settings_and_the_doctor_do_not_show_the_password(operator: Operator) -> None:
    assert "***@127.0.0.1" in operator.type("config", "show")
    assert "database: postgresql://antiphon@127.0.0.1" in operator.type("doctor")


@pytest.mark.parametrize("words", [["serve"], ["token", "list"]])
def test_a_server_that_is_not_there_is_named_on_one_line(tmp_path: Path, words: list[str]) -> None:
    said = Operator(tmp_path, "postgresql://ann@127.0.0.1:9/antiphon").type(*words, code=1)
    [line] = [line for line in said.splitlines() if line.startswith("antiphon: ")]
    assert "postgresql://ann@127.0.0.1:9/antiphon cannot be reached" in line
    assert "Check that Postgres runs there" in line
    assert "Traceback" not in said
