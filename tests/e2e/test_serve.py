"""`antiphon serve` for other machines, and `antiphon chat` with a running server."""

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import psutil
import pytest

from antiphon import __version__
from tests.e2e.terminal import COMMAND, Terminal, heed_ctrl_c

pytestmark = pytest.mark.real_time

NAME = socket.gethostname().partition(".")[0]
ADDRESSES = [
    each.address for links in psutil.net_if_addrs().values() for each in links if each.family == socket.AF_INET
]
UPGRADE = {
    "Connection": "upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": "13",
}


@dataclass(frozen=True)
class Open:
    """A server that listens on all addresses and asks for no token."""

    terminal: Terminal
    announced: list[str]

    @property
    def port(self) -> int:
        found = re.search(r":(\d+)/ws", self.announced[0])
        assert found is not None
        return int(found[1])

    def get(self, path: str, *, to: str = "127.0.0.1", **headers: str) -> tuple[int, str]:
        with closing(HTTPConnection(to, self.port, timeout=10)) as connection:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, "" if answer.status == 101 else answer.read().decode()

    def shake_hands(self, host: str, origin: str) -> int:
        return self.get("/ws", Host=f"{host}:{self.port}", Origin=origin, **UPGRADE)[0]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    terminal = Terminal(tmp_path_factory.mktemp("open"))
    with terminal.serve("--host", "0.0.0.0", "--port", "0", "--insecure") as announced:
        yield Open(terminal, announced)


@pytest.mark.parametrize("host", ["localhost", NAME, NAME.upper(), f"{NAME}.local", *ADDRESSES])
def test_a_page_of_this_machine_may_connect_by_any_of_its_names(server: Open, host: str) -> None:
    assert server.shake_hands(host, f"http://{host}:{server.port}") == 101


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_address_of_this_machine_answers(server: Open, address: str) -> None:
    status, _ = server.get("/", to=address)
    assert status == 200


@pytest.mark.parametrize("host", ["evil.example", f"{NAME}.evil.example", f"evil{NAME}", "0.0.0.0", "203.0.113.9"])
def test_a_name_that_was_rebound_to_this_machine_is_refused(server: Open, host: str) -> None:
    assert server.shake_hands(host, f"http://{host}:{server.port}") == 421


@pytest.mark.parametrize("origin", ["http://evil.example:{port}", "http://{name}:1", "https://{name}:{port}", "null"])
def test_a_page_of_another_origin_is_refused_by_every_name(server: Open, origin: str) -> None:
    assert server.shake_hands(NAME, origin.format(port=server.port, name=NAME)) == 403


def test_the_server_announces_where_it_can_be_reached(server: Open) -> None:
    assert server.announced[0].startswith(f"Antiphon listens on http://127.0.0.1:{server.port} ")
    outside = [address for address in ADDRESSES if not address.startswith("127.")]
    assert all(any(f"http://{address}:{server.port}" in line for line in server.announced) for address in outside)


def test_a_server_without_tokens_announces_that_anybody_may_use_it(server: Open) -> None:
    assert "Anyone who can reach it may talk to it." in server.announced


def test_the_lag_of_the_loop_is_measured(server: Open) -> None:
    _, metrics = server.get("/metrics")
    found = re.search(r"^antiphon_loop_lag_ms_count (\S+)", metrics, re.MULTILINE)
    assert found is not None
    assert float(found[1]) > 0


def test_a_chat_finds_the_server_that_listens_everywhere(server: Open) -> None:
    settings = {"ANTIPHON_SERVER__HOST": "0.0.0.0", "ANTIPHON_SERVER__PORT": str(server.port)}
    shown = server.terminal.run("chat", typed="fifteen percent of 80\nexit\n", **settings)
    assert "12" in shown.out
    assert "server of its own" not in shown.out


def test_ctrl_c_ends_a_chat_that_waits_for_input(server: Open) -> None:
    with subprocess.Popen(
        [COMMAND, "chat", "--url", f"ws://127.0.0.1:{server.port}/ws"],
        env=server.terminal.environment(PYTHONUNBUFFERED="1"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heed_ctrl_c,
    ) as chat:
        assert chat.stdout is not None
        assert chat.stderr is not None
        while chat.stdout.read(1) != b">":
            assert chat.poll() is None
        chat.send_signal(signal.SIGINT)
        assert chat.wait(20) == 130
        assert chat.stderr.read() == b""


def test_the_doctor_recognises_a_running_server(server: Open) -> None:
    shown = server.terminal.run("doctor", ANTIPHON_SERVER__PORT=str(server.port))
    assert f"Antiphon {__version__} answers at http://127.0.0.1:{server.port}" in shown.out
    assert shown.code == 0


def test_a_chat_needs_a_token_if_the_server_requires_one(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    token = terminal.run("token", "new").out.strip()
    with terminal.serve("--port", "0", ANTIPHON_SERVER__AUTH="required") as announced:
        port = str(announced[0].rpartition(":")[2].partition("/")[0])
        refused = terminal.run("chat", typed="fifteen percent of 80\nexit\n", ANTIPHON_SERVER__PORT=port)
        let_in = terminal.run(
            "chat", "--token", token, typed="fifteen percent of 80\nexit\n", ANTIPHON_SERVER__PORT=port
        )
    assert refused.code == 1
    assert len(refused.err.strip().splitlines()) == 1
    assert "token" in refused.err
    assert "12" in let_in.out


def test_the_date_parser_is_loaded_before_the_first_date(tmp_path: Path) -> None:
    program = """
import asyncio, sys
from pathlib import Path
from antiphon.config import Settings
from antiphon.serve import serving

async def main(folder):
    async with serving(Settings(project_dir=folder, data_dir=folder)), asyncio.timeout(30):
        while "dateparser" not in sys.modules:
            await asyncio.sleep(0.01)

asyncio.run(main(Path(sys.argv[1])))
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
