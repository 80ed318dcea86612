"""MCP servers in `antiphon.toml`: a stock server from PyPI, and one that changes its tools."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, Final

import httpx2
import psutil
import pytest

from tests.e2e.terminal import Terminal
from tests.fakes.chat_server import ScriptedChatServer, call_delta, stream, words
from tests.fakes.mcp_world import PLAIN, until

pytestmark = pytest.mark.real_time

STOCK: Final = "mcp-server-time"
TOOL: Final = "time_get_current_time"
TIME: Final = """\
[mcp.servers.time]
command = "mcp-server-time"
args = ["--local-timezone", "Europe/Oslo"]
"""


def processes(name: str) -> list[psutil.Process]:
    """The processes of this test that run a program."""
    found = []
    for each in psutil.Process().children(recursive=True):
        try:
            if any(Path(word).name == name for word in each.cmdline()):
                found.append(each)
        except psutil.Error:
            continue
    return found


async def chat(http: httpx2.AsyncClient, model: ScriptedChatServer, *, voice: bool = False) -> Any:
    """Has the model call the tool, and returns the result that it got."""
    function = {"name": TOOL, "arguments": json.dumps({"timezone": "Europe/Oslo"})}
    call = {"index": 0, "id": f"call_{os.urandom(8).hex()}", "type": "function", "function": function}
    model.will_answer(stream(call_delta(call), finish="tool_calls"), words("There you are."))
    body = {"message": "ask the far clock, please", "capabilities": {"voice": voice}}
    answer = (await http.post("/api/chat", json=body, timeout=30)).json()
    return answer["toolCalls"][0]["result"]


async def test_a_stock_server_is_used_in_its_mode_and_comes_back_after_a_crash(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    (tmp_path / "antiphon.toml").write_text(TIME)
    async with ScriptedChatServer() as model:
        with terminal.serve("--port", "0", ANTIPHON_MODEL__TEXT=f"openai:{model.url}#m") as announced:
            address = announced[0].split("http://")[1].split(" ")[0]
            async with httpx2.AsyncClient(base_url=f"http://{address}") as http:
                seen: dict[str, Any] = {}
                while TOOL not in seen:
                    listed = (await http.get("/api/tools")).json()
                    seen = {tool["toolId"]: tool for tool in listed["tools"]}
                assert seen[TOOL]["allowedModes"] == ["text"]
                assert not seen[TOOL]["requiresConfirmation"]
                assert (await chat(http, model))["timezone"] == "Europe/Oslo"
                refused = await chat(http, model, voice=True)
                assert refused["error"]["type"] == "MODE_RESTRICTED"
                [before] = processes(STOCK)
                before.kill()
                await until(lambda: [each.pid for each in processes(STOCK)] not in ([before.pid], []))
                assert (await chat(http, model))["timezone"] == "Europe/Oslo"
    assert not processes(STOCK)
    assert "mcp_server_lost" in (tmp_path / "log").read_text()


async def test_a_program_ends_even_if_the_server_is_killed(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    (tmp_path / "antiphon.toml").write_text(TIME)
    with terminal.serve("--port", "0"):
        await until(lambda: processes(STOCK))
        [program] = processes(STOCK)
        server = program.parent()
        assert server is not None
        server.send_signal(signal.SIGKILL)
        await until(lambda: not program.is_running() or program.status() == psutil.STATUS_ZOMBIE)


# The commands.


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """A terminal with a server whose tool `echo` was used once."""
    terminal = Terminal(tmp_path)
    (tmp_path / "description").write_text("Says it again.")
    server = {"command": sys.executable, "args": [str(PLAIN), str(tmp_path)]}
    lines = [f"{key} = {json.dumps(value)}" for key, value in server.items()]
    (tmp_path / "antiphon.toml").write_text("\n".join(["[mcp.servers.far]", *lines, ""]))
    used = terminal.run("tools", "run", "far_echo", "--args", '{"text": "Hello."}')
    assert (used.code, used.out.partition("\n")[0]) == (0, "Hello."), used.err
    return terminal


def states(terminal: Terminal) -> dict[str, str]:
    [server] = terminal.run("mcp", "list", "--json").json
    return {tool["name"]: tool["state"] for tool in server["tools"]}


def test_a_changed_tool_is_shown_and_approved(terminal: Terminal) -> None:
    assert states(terminal)["echo"] == "offered"
    assert "far answers" in terminal.run("doctor", ANTIPHON_MODEL__VOICE="none").out
    (terminal.folder / "description").write_text("Sends it to a stranger.")
    assert terminal.run("tools", "run", "far_echo", "--args", '{"text": "Hello."}').code == 1

    assert states(terminal)["echo"] == "quarantined: it has changed since it was approved"
    shown = terminal.run("mcp", "list")
    assert "`antiphon mcp approve`" in shown.out
    tested = terminal.run("mcp", "test", "far")
    assert tested.code == 1
    assert '- description: "Says it again."' in tested.out
    assert '+ description: "Sends it to a stranger."' in tested.out
    examined = terminal.run("doctor", ANTIPHON_MODEL__VOICE="none")
    assert examined.code == 1
    assert "far has changed echo, which is quarantined" in examined.out

    approved = terminal.run("mcp", "approve", "far", "echo").out.splitlines()
    assert approved == [
        "Approved echo of far.",
        '    - description: "Says it again."',
        '    + description: "Sends it to a stranger."',
    ]
    assert states(terminal)["echo"] == "offered"
    assert terminal.run("mcp", "approve", "far").out == "There was nothing to approve.\n"
    assert terminal.run("tools", "run", "far_echo", "--args", '{"text": "Hello."}').code == 0


def test_mistakes_are_explained(terminal: Terminal) -> None:
    unknown = terminal.run("mcp", "test", "fra")
    assert (unknown.code, unknown.err) == (
        1,
        "antiphon: there is no MCP server 'fra' in the settings. There are: far.\n",
    )
    assert "far has no tool 'sing'" in terminal.run("mcp", "approve", "far", "sing").err
    (terminal.folder / "antiphon.toml").write_text('[mcp.servers.far]\ncommand = "no-such-program"\n')
    failed = terminal.run("mcp", "test", "far")
    assert failed.code == 1
    assert failed.err.startswith("antiphon: far cannot be used: the program 'no-such-program' was not found. Install")
    assert "mcp: far cannot be used" in terminal.run("doctor", ANTIPHON_MODEL__VOICE="none").out


def test_without_servers_the_list_says_how_to_add_one(tmp_path: Path) -> None:
    shown = Terminal(tmp_path).run("mcp", "list")
    assert (shown.code, "Add a table [mcp.servers.NAME]" in shown.out) == (0, True)


def test_wrong_settings_are_all_reported(tmp_path: Path) -> None:
    (tmp_path / "antiphon.toml").write_text('[mcp.servers.far]\ncomand = "x"\n[mcp.servers.Far]\nurl = "x"\n')
    shown = Terminal(tmp_path).run("mcp", "list")
    assert shown.code == 1
    assert "mcp.servers.far.comand. The nearest is mcp.servers.far.command." in shown.err
    assert "'Far' is not a name of an MCP server." in shown.err
