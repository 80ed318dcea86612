"""`antiphon serve` over https, and the commands that talk to such a server."""

import json
import re
import socket
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPSConnection
from pathlib import Path

import pytest

from antiphon import __version__
from antiphon.security.certificates import make_self_signed
from tests.e2e.terminal import COMMAND, Shown, Terminal
from tests.e2e.test_serve import ADDRESSES, NAME, UPGRADE

pytestmark = pytest.mark.real_time

QUESTION = "fifteen percent of 80\nexit\n"


@dataclass(frozen=True)
class Secure:
    """A server with a certificate of its own, on all addresses."""

    terminal: Terminal
    announced: list[str]

    @property
    def port(self) -> int:
        found = re.search(r"wss://127\.0\.0\.1:(\d+)/ws", self.announced[0])
        assert found is not None, self.announced
        return int(found[1])

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def certificate(self) -> Path:
        return self.terminal.folder / "data" / "tls" / "self-signed.pem"

    def get(self, path: str, *, host: str = "127.0.0.1", **headers: str) -> tuple[int, str]:
        """Asks with full verification of the certificate and of its name."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        connection = HTTPSConnection(host, self.port, timeout=10, context=context)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, "" if answer.status == 101 else answer.read().decode()
        finally:
            connection.close()

    @property
    def settings(self) -> dict[str, str]:
        return {"ANTIPHON_SERVER__PORT": str(self.port)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    terminal = Terminal(tmp_path_factory.mktemp("secure"))
    with terminal.serve("--self-signed", "--host", "0.0.0.0", "--port", "0", "--insecure") as announced:
        yield Secure(terminal, announced)


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """A terminal that knows nothing of the server, as on another machine."""
    return Terminal(tmp_path_factory.mktemp("stranger"))


def one_line(shown: Shown) -> str:
    assert shown.code == 1
    assert shown.err.startswith("antiphon: ")
    assert len(shown.err.strip().splitlines()) == 1
    return shown.err


@pytest.mark.parametrize("host", ["localhost", *ADDRESSES])
def test_the_page_is_served_by_every_address_with_a_certificate_for_it(server: Secure, host: str) -> None:
    status, page = server.get("/", host=host)
    assert status == 200
    assert "<html" in page


@pytest.mark.parametrize(
    ("origin", "status"),
    [("https://{name}:{port}", 101), ("http://{name}:{port}", 403), ("https://evil.example:{port}", 403)],
)
def test_only_the_page_that_was_served_by_https_may_connect(server: Secure, origin: str, status: int) -> None:
    page = origin.format(name=NAME, port=server.port)
    found, _ = server.get("/ws", Host=f"{NAME}:{server.port}", Origin=page, **UPGRADE)
    assert found == status


def test_the_policy_of_the_page_lets_it_open_its_socket(server: Secure) -> None:
    context = ssl.create_default_context(cafile=str(server.certificate))
    connection = HTTPSConnection("127.0.0.1", server.port, timeout=10, context=context)
    connection.request("GET", "/")
    policy = connection.getresponse().headers["content-security-policy"]
    connection.close()
    assert f"wss://127.0.0.1:{server.port}" in policy


def test_plain_http_gets_no_answer(server: Secure) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try:
            answer = connection.recv(100)
        except ConnectionError:
            answer = b""
    assert not answer.startswith(b"HTTP")


def test_the_server_announces_its_certificate_and_its_addresses(server: Secure) -> None:
    told = "\n".join(server.announced)
    assert f"Antiphon listens on {server.url} (WebSocket: wss://127.0.0.1:{server.port}/ws)." in told
    assert re.search(r"^SHA-256 fingerprint: ([0-9A-F]{2}:){31}[0-9A-F]{2}$", told, re.MULTILINE)
    assert "http://" not in told


def test_a_chat_on_this_machine_trusts_the_server_of_its_settings(server: Secure) -> None:
    shown = server.terminal.run("chat", typed=QUESTION, **server.settings)
    assert "Connected to wss://" in shown.out
    assert "12" in shown.out


def test_a_chat_finds_the_certificate_for_the_announced_address(server: Secure) -> None:
    shown = server.terminal.run("chat", "--url", server.url, typed=QUESTION)
    assert "12" in shown.out


def test_a_stranger_does_not_trust_the_server_and_is_told_what_to_do(server: Secure, stranger: Terminal) -> None:
    problem = one_line(stranger.run("chat", "--url", server.url, typed=QUESTION))
    assert "is not trusted: self-signed certificate" in problem
    assert "--cacert FILE" in problem


def test_a_stranger_with_the_certificate_is_connected(server: Secure, stranger: Terminal) -> None:
    shown = stranger.run("chat", "--url", server.url, "--cacert", str(server.certificate), typed=QUESTION)
    assert "12" in shown.out


def test_another_certificate_is_not_enough(server: Secure, stranger: Terminal, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    other.write_bytes(make_self_signed(["127.0.0.1"], now=datetime.now(UTC), validity=timedelta(days=9))[0])
    shown = stranger.run("chat", "--url", server.url, "--cacert", str(other), typed=QUESTION)
    assert "is not trusted" in one_line(shown)


@pytest.mark.parametrize("command", [["energy", "show"], ["renew"]])
def test_commands_over_http_trust_the_same_certificates(server: Secure, stranger: Terminal, command: list[str]) -> None:
    refused = one_line(stranger.run(*command, "--url", server.url))
    assert "is not trusted" in refused
    assert "--cacert FILE" in refused
    answered = stranger.run(*command, "--url", server.url, "--cacert", str(server.certificate))
    assert "not trusted" not in answered.err
    assert "No sessions." in answered.out or "there are no sessions" in answered.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--url", "ws://127.0.0.1:1", "--cacert", "x.pem"], "--cacert is for addresses that begin with https or wss"),
        (["--url", "wss://127.0.0.1:1", "--cacert", "missing.pem"], "missing.pem (--cacert) cannot be read: No such"),
        (["--url", "wss://127.0.0.1:1", "--cacert", "empty.pem"], "empty.pem (--cacert) has no certificate in PEM"),
    ],
)
def test_a_wrong_use_of_the_option_is_explained(stranger: Terminal, options: list[str], says: str) -> None:
    (stranger.folder / "empty.pem").write_text("")
    assert says in one_line(stranger.run("chat", *options, typed=QUESTION))


def test_an_address_with_https_of_a_server_without_it_is_explained(stranger: Terminal, tmp_path: Path) -> None:
    with Terminal(tmp_path).serve("--port", "0") as announced:
        port = re.search(r":(\d+)/ws", announced[0])
        assert port is not None
        problem = one_line(stranger.run("chat", "--url", f"https://127.0.0.1:{port[1]}", typed=QUESTION))
    assert "does not speak TLS" in problem


def test_the_doctor_recognises_the_server_and_says_that_the_microphone_works(server: Secure) -> None:
    shown = server.terminal.run("doctor", ANTIPHON_MODEL__VOICE="cascade", **server.settings)
    assert f"Antiphon {__version__} answers at {server.url}" in shown.out
    assert "page: browsers allow the microphone, since the server speaks https" in shown.out


# The settings.


def write_certificate(folder: Path, days: float = 90) -> dict[str, str]:
    now = datetime.now(UTC)
    certificate, key = make_self_signed(["talk.example.org"], now=now, validity=timedelta(days=days))
    (folder / "cert.pem").write_bytes(certificate)
    (folder / "key.pem").write_bytes(key)
    return {"ANTIPHON_SERVER__TLS_CERT": "cert.pem", "ANTIPHON_SERVER__TLS_KEY": "key.pem"}


def test_the_certificate_of_the_settings_is_used_and_trusted_on_this_machine(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    settings = write_certificate(tmp_path)
    with terminal.serve("--port", "0", **settings) as announced:
        port = announced[0].rpartition(":")[2].partition("/")[0]
        shown = terminal.run("chat", typed=QUESTION, ANTIPHON_SERVER__PORT=port, **settings)
    assert any(line.startswith(f"TLS: {tmp_path / 'cert.pem'}, valid until ") for line in announced)
    assert "Connected to wss://" in shown.out
    assert "12" in shown.out


def test_a_chat_starts_its_own_server_without_tls(tmp_path: Path, unused_tcp_port: int) -> None:
    settings = write_certificate(tmp_path) | {"ANTIPHON_SERVER__PORT": str(unused_tcp_port)}
    shown = Terminal(tmp_path).run("chat", typed=QUESTION, **settings)
    assert "No server answers at wss://" in shown.out
    assert "12" in shown.out


def serve_and_fail(folder: Path, *options: str, **variables: str) -> str:
    terminal = Terminal(folder)
    done = subprocess.run(
        [COMMAND, "serve", "--port", "0", *options],
        cwd=folder,
        env=terminal.environment(ANTIPHON_MODEL__VOICE="none", **variables),
        capture_output=True,
        text=True,
        timeout=60,
    )
    return one_line(Shown(done.returncode, done.stdout, done.stderr))


def test_a_server_does_not_start_with_an_expired_certificate(tmp_path: Path) -> None:
    assert "has expired" in serve_and_fail(tmp_path, **write_certificate(tmp_path, days=-0.01))


def test_a_server_does_not_start_with_a_missing_key(tmp_path: Path) -> None:
    settings = write_certificate(tmp_path)
    (tmp_path / "key.pem").unlink()
    assert "(server.tls_key) cannot be read" in serve_and_fail(tmp_path, **settings)


def test_a_server_has_one_certificate(tmp_path: Path) -> None:
    problem = serve_and_fail(tmp_path, "--self-signed", **write_certificate(tmp_path))
    assert "server.tls_cert is set, so --self-signed would make a second certificate" in problem


def test_the_doctor_warns_of_a_certificate_that_ends_soon(tmp_path: Path, unused_tcp_port: int) -> None:
    port = {"ANTIPHON_SERVER__PORT": str(unused_tcp_port)}
    ending = Terminal(tmp_path).run("doctor", **write_certificate(tmp_path, days=13), **port)
    assert re.search(r"problem +tls: .*cert\.pem is valid until \S+ \(12 days\)\. Renew it", ending.out)
    lasting = Terminal(tmp_path).run("doctor", **write_certificate(tmp_path, days=15), **port)
    assert re.search(r"ok +tls: .*cert\.pem is valid until", lasting.out)


def test_the_doctor_says_that_the_microphone_needs_https(tmp_path: Path, unused_tcp_port: int) -> None:
    terminal = Terminal(tmp_path)
    open_to_others = {"ANTIPHON_SERVER__HOST": "0.0.0.0", "ANTIPHON_SERVER__PORT": str(unused_tcp_port)}
    shown = terminal.run("doctor", **open_to_others)
    assert re.search(r"problem +page: from other machines, browsers allow the microphone over https only", shown.out)
    behind_proxy = terminal.run("doctor", ANTIPHON_SERVER__ORIGINS="https://talk.example.org", **open_to_others)
    assert re.search(r"ok +page: browsers allow the microphone at https://talk.example.org", behind_proxy.out)


def test_the_path_of_the_key_is_shown_among_the_settings(tmp_path: Path) -> None:
    shown = Terminal(tmp_path).run("config", "show", "--json", **write_certificate(tmp_path))
    assert json.loads(shown.out)["server.tls_key"]["value"] == "key.pem"
