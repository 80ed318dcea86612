"""A conversation through the real nginx and the real Caddy, configured by the files of deploy/."""

import asyncio
import json
import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from urllib.request import urlopen

import pytest

from antiphon.client import Resumed, Session, connect
from antiphon.gateway import transcription
from antiphon.protocol import server_messages as s
from antiphon.security.quota import Kind, Limit, Rate
from tests.deploy.proxies import DEPLOY, DOMAIN, Proxy, free_port, run_caddy, run_nginx
from tests.wire.served import UNLIMITED, Served, serve

pytestmark = pytest.mark.real_time

TWO_REQUESTS: dict[Kind, Limit] = {Kind.CONNECTION: Limit(address=Rate(per_s=0.0001, burst=2))}
RUN: dict[str, Callable[[Path, list[int], int], AbstractContextManager[Proxy]]] = {
    "nginx": run_nginx,
    "caddy": run_caddy,
}


@dataclass(frozen=True)
class Site:
    proxy: Proxy
    servers: list[Served]

    def ask(
        self, path: str, body: bytes | None = None, *, client: str = "127.0.0.1", **headers: str
    ) -> tuple[int, str]:
        """Asks through the proxy, from one of this machine's loopback addresses."""
        connection = HTTPSConnection(
            DOMAIN, self.proxy.port, timeout=20, context=self.proxy.tls, source_address=(client, 0)
        )
        try:
            kind = {"Content-Type": "application/json"}
            # An answer may come before all of a long body was sent; then the other side has closed, and it can be read.
            with suppress(ConnectionError, ssl.SSLError):
                connection.request("GET" if body is None else "POST", path, body, {**kind, **headers})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


@contextmanager
def build_site(proxy: str, folder: Path, servers: int, limits: Mapping[Kind, Limit]) -> Iterator[Site]:
    """Runs servers on one database behind one proxy, set up as the comments in its configuration say."""
    port = free_port()
    settings = {"origins": [f"https://{DOMAIN}:{port}"], "proxies": ["127.0.0.1"]}
    with ExitStack() as stack:
        started = [stack.enter_context(serve(folder, limits=limits, server=settings)) for _ in range(servers)]
        yield Site(stack.enter_context(RUN[proxy](folder, [each.port for each in started], port)), started)


@pytest.fixture(scope="module", params=RUN)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with build_site(request.param, tmp_path_factory.mktemp(request.param), 1, TWO_REQUESTS) as site:
        yield site


def find_session(site: Site) -> Served:
    """Returns the server that has the one session."""

    def has_session(served: Served) -> bool:
        with urlopen(f"{served.http}/metrics", timeout=20) as answer:
            return 'antiphon_sessions{client="connected"} 1.0' in answer.read().decode()

    [found] = filter(has_session, site.servers)
    return found


async def ask(session: Session, text: str) -> str:
    return " ".join([each.text async for each in session.type(text) if isinstance(each, s.Response)])


@pytest.mark.parametrize("proxy", RUN)
async def test_a_conversation_goes_on_through_the_proxy_when_its_server_is_stopped(proxy: str, tmp_path: Path) -> None:
    with build_site(proxy, tmp_path, 2, UNLIMITED) as site:
        url = f"wss://{DOMAIN}:{site.proxy.port}/ws"
        async with connect(url, tls=site.proxy.tls, reconnect=True) as session:
            assert "5" in await ask(session, "What is 2 plus 3?")
            server = await asyncio.to_thread(find_session, site)
            stopping = asyncio.create_task(asyncio.to_thread(server.stop))
            async for incoming in session.messages():
                if isinstance(incoming, Resumed):
                    break
            assert "9" in await ask(session, "And 4 plus 5?")
            await stopping
        assert not site.servers[0].failures


def test_the_page_and_its_origin_pass(site: Site) -> None:
    origin = f"https://{DOMAIN}:{site.proxy.port}"
    status, page = site.ask("/", Origin=origin)
    assert status == 200
    assert "<html" in page
    assert site.ask("/", Origin="https://evil.example")[0] == 403


def test_limits_apply_to_the_addresses_of_the_clients_behind_the_proxy(site: Site) -> None:
    body = json.dumps({"message": "What is 2 plus 3?"}).encode()
    spent = [site.ask("/api/chat", body, client="127.0.0.2")[0] for _ in range(3)]
    assert spent == [200, 200, 429]
    assert site.ask("/api/chat", body, client="127.0.0.3")[0] == 200
    # A header of the client's own does not give it another address.
    assert site.ask("/api/chat", body, client="127.0.0.2", **{"X-Forwarded-For": "192.0.2.77"})[0] == 429


def test_the_metrics_are_not_public(site: Site) -> None:
    assert site.ask("/metrics")[0] == 404


def test_the_longest_recording_passes_and_longer_ones_do_not(site: Site) -> None:
    path = transcription.PATH
    # The server itself answers: this one has no voice.
    _, answer = site.ask(path, bytes(transcription.MAX_BODY_BYTES - 1))
    assert "no_voice" in answer
    status, _ = site.ask(path, bytes(27 * 1024 * 1024))
    assert status == 413


def test_nginx_lets_a_call_last_for_hours() -> None:
    text = (DEPLOY / "nginx.conf").read_text()
    for setting in ("proxy_read_timeout", "proxy_send_timeout"):
        found = re.search(rf"^\s*{setting} (\d+)h;", text, re.MULTILINE)
        assert found is not None
        assert int(found[1]) >= 4
    assert re.search(r"^\s*proxy_buffering off;", text, re.MULTILINE)


def test_caddy_lets_a_call_last_as_long_as_it_likes() -> None:
    text = (DEPLOY / "Caddyfile").read_text()
    assert re.search(r"^\s*stream_timeout 0$", text, re.MULTILINE)
    assert re.search(r"^\s*flush_interval -1$", text, re.MULTILINE)
