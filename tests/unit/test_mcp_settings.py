"""The tables `[mcp.servers.NAME]`: what is accepted, and what is said about mistakes."""

import re
from pathlib import Path

import pytest

from antiphon.config import ConfigError, McpServer, Settings, load
from tests.fakes.tree import ROOT

VARIABLE = "ANTIPHON_MCP__SERVERS__FAR__URL"


def read(folder: Path, text: str, **variables: str) -> Settings:
    (folder / "antiphon.toml").write_text(text)
    return load(None, variables, folder)


def problem(folder: Path, text: str, **variables: str) -> str:
    with pytest.raises(ConfigError) as raised:
        read(folder, text, **variables)
    [found] = raised.value.problems
    return found


def test_a_program_and_an_address_are_read(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        """
        [mcp.servers.files]
        command = "mcp-server-files"
        args = ["/data"]
        env = ["FILES_KEY"]
        modes = ["text", "voice"]
        [mcp.servers.files.tools."delete file"]
        confirmation = "always"
        [mcp.servers.far]
        url = "https://example.org/mcp"
        headers = { Authorization = "FAR_AUTHORIZATION" }
        """,
    )
    files, far = settings.mcp_servers["files"], settings.mcp_servers["far"]
    assert (files.command, files.args, files.env) == ("mcp-server-files", ("/data",), ("FILES_KEY",))
    assert (far.url, far.headers) == ("https://example.org/mcp", {"Authorization": "FAR_AUTHORIZATION"})
    assert files.policy("delete file").confirmation == "always"
    assert files.policy("delete file").modes == ("text", "voice")
    assert files.policy("read").confirmation == "auto"


def test_a_disabled_tool_is_switched_off() -> None:
    server = McpServer(command="x", disable=("a",))
    assert (server.policy("a").enabled, server.policy("b").enabled) == (False, True)


def test_the_origins_show_every_key_of_a_server(tmp_path: Path) -> None:
    settings = read(tmp_path, '[mcp.servers.far]\nurl = "http://x/"\n[mcp.servers.far.tools."a.b"]\nbudget_ms = 100\n')
    origins = settings.origins()
    assert origins["mcp.servers.far.url"] == "antiphon.toml"
    assert origins["mcp.servers.far.modes"] == "default"
    assert settings.value("mcp.servers.far.modes") == ("text",)
    assert settings.value("mcp.servers.far.tools.a.b.budget_ms") == 100


PROGRAM = '[mcp.servers.far]\ncommand = "x"\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mcp = 3", "mcp is 3; it must be a table"),
        ("[mcp]\nserver = 3", "there is no setting mcp.server. The nearest is mcp.servers."),
        ("[mcp]\nservers = 3", "mcp.servers is 3; it must be a table"),
        ("[mcp.servers]\nfar = 3", "mcp.servers.far is 3; it must be a table, which starts with [mcp.servers.far]."),
        ('[mcp.servers."a b"]\ncommand = "x"', "'a b' is not a name of an MCP server. Use up to 32 lower-case"),
        ("[mcp.servers.far]", "mcp.servers.far has neither command nor url."),
        (f'{PROGRAM}url = "http://x/"', "mcp.servers.far has both command and url."),
        (f'{PROGRAM}headers = {{ A = "B" }}', "mcp.servers.far.headers has no effect with command"),
        ('[mcp.servers.far]\nurl = "http://x/"\nenv = ["A"]', "mcp.servers.far.env has no effect with url"),
        ('[mcp.servers.far]\nurl = "ftp://x/"', 'mcp.servers.far.url is "ftp://x/"; it must be an address without'),
        ('[mcp.servers.far]\nurl = "http://u:secret@x/"', 'is "http://…@x/"; it must be an address without a user'),
        (f'{PROGRAM}env = ["A=B"]', 'env is ["A=B"]; it must be a list of names of environment variables'),
        (f"{PROGRAM}timeout_ms = 0", "timeout_ms is 0; it must be a number of milliseconds from 100 to 600000."),
        (f"{PROGRAM}modes = []", "modes is []; it must be a list of modes"),
        (f'{PROGRAM}confirmation = "no"', 'confirmation is "no"; it must be "auto", "always" or "never".'),
        (
            f"{PROGRAM}budget = 5",
            "no setting mcp.servers.far.budget. The nearest is mcp.servers.far.budget_ms.",
        ),
        (
            f"{PROGRAM}tools = 5",
            "tools is 5; it must be a table, which has [mcp.servers.far.tools.TOOL]",
        ),
        (f"{PROGRAM}tools.a = 5", "mcp.servers.far.tools.a is 5; it must be a table"),
        (f"{PROGRAM}tools.a.mode = 5", "there is no setting mcp.servers.far.tools.a.mode. The nearest is"),
        (f'{PROGRAM}tools.a.category = "x"', 'it must be "auto", "retrieval", "action" or "utility".'),
    ],
)
def test_a_mistake_is_explained(tmp_path: Path, text: str, expected: str) -> None:
    told = problem(tmp_path, text)
    assert told.startswith("antiphon.toml: ")
    assert expected in told
    assert "secret" not in told


def test_variables_cannot_set_servers(tmp_path: Path) -> None:
    told = problem(tmp_path, PROGRAM, **{VARIABLE: "http://x/"})
    assert told == f"{VARIABLE}: MCP servers are set in antiphon.toml only, as [mcp.servers.NAME]. Remove the variable."


@pytest.mark.parametrize(
    "block", re.findall(r"^```toml\n(.*?)^```", (ROOT / "docs" / "mcp.md").read_text(), re.DOTALL | re.MULTILINE)
)
def test_the_settings_in_the_documentation_are_accepted(tmp_path: Path, block: str) -> None:
    assert read(tmp_path, block).mcp_servers
