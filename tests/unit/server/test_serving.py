import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator

import pytest
from starlette.applications import Starlette
from structlog.testing import capture_logs

from antiphon.security.origin import is_loopback
from antiphon.server.serving import Server, ServingError, listen, machine_addresses, machine_names


@pytest.fixture
def held() -> Iterator[int]:
    """A port that is in use."""
    with socket.create_server(("127.0.0.1", 0)) as holder:
        yield holder.getsockname()[1]


def test_a_port_in_use_is_reported_with_its_owner_and_a_remedy(held: int) -> None:
    with pytest.raises(ServingError) as caught:
        listen("127.0.0.1", held)
    assert str(caught.value).startswith(f"port {held} is in use. Choose another with --port, or stop the program")
    assert f"(pid {os.getpid()}, " in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "says"),
    [
        ("192.0.2.1", "192.0.2.1 is not an address of this machine. Choose one with --host."),
        ("no-such-host.invalid", "no address was found for the host 'no-such-host.invalid'"),
    ],
)
def test_a_host_of_another_machine_is_reported(host: str, says: str) -> None:
    with pytest.raises(ServingError) as caught:
        listen(host, 0)
    assert says in str(caught.value)


def test_a_host_with_two_addresses_has_one_port() -> None:
    sockets = listen("localhost", 0)
    ports = {each.getsockname()[1] for each in sockets}
    for each in sockets:
        each.close()
    assert len(ports) == 1


def test_two_servers_cannot_share_a_port() -> None:
    (first,) = listen("127.0.0.1", 0)
    with first, pytest.raises(ServingError):
        listen("127.0.0.1", first.getsockname()[1])


def test_the_machine_address_matches_the_family_listened_on() -> None:
    (bound,) = listen("0.0.0.0", 0)
    with bound:
        addresses = machine_addresses([bound])
    assert any(map(is_loopback, addresses))
    assert not any(":" in each for each in addresses)


def test_the_machine_is_called_by_its_name_with_and_without_its_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "kitchen.example.org")
    assert machine_names() == ["kitchen.example.org", "kitchen", "kitchen.local"]


def test_no_name_of_the_machine_is_listed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "kitchen.local")
    assert machine_names() == ["kitchen.local", "kitchen"]


class Draining:
    """A server that is told to stop as soon as it runs, by `signals` in their order, a moment apart."""

    def __init__(self, on_drain: Callable[[], Awaitable[None]], *, drain_s: float = 5.0) -> None:
        self.server = Server(
            Starlette(), host="127.0.0.1", port=0, on_drain=on_drain, drain_s=drain_s, on_started=self.begin
        )
        self.signals: tuple[signal.Signals, ...] = (signal.SIGTERM,)

    def begin(self) -> None:
        loop = asyncio.get_running_loop()
        for number, each in enumerate(self.signals):
            loop.call_later(0.3 * number, self.server.handle_exit, each, None)

    async def seconds(self) -> float:
        started_s = asyncio.get_running_loop().time()
        await asyncio.wait_for(self.server.serve(), 10)
        return asyncio.get_running_loop().time() - started_s


async def wait_long() -> None:
    await asyncio.sleep(60)


@pytest.mark.real_time
async def test_draining_comes_before_the_end() -> None:
    reached: list[bool] = []

    async def connect() -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", draining.server.port)
        reached.append(True)
        writer.close()

    draining = Draining(connect)
    await draining.seconds()
    assert reached == [True]


@pytest.mark.real_time
async def test_draining_has_a_deadline() -> None:
    with capture_logs() as lines:
        seconds = await Draining(wait_long, drain_s=0.3).seconds()
    assert 0.3 <= seconds < 3
    assert [line["event"] for line in lines] == ["drain_cut_short"]


@pytest.mark.real_time
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_ends_at_once(second: signal.Signals) -> None:
    draining = Draining(wait_long, drain_s=60)
    draining.signals = (signal.SIGTERM, second)
    with capture_logs():
        assert await draining.seconds() < 3


@pytest.mark.real_time
async def test_a_failed_drain_is_logged_and_the_server_still_stops() -> None:
    async def fail() -> None:
        raise RuntimeError("no store")

    with capture_logs() as lines:
        await Draining(fail).seconds()
    assert [(line["event"], line["log_level"]) for line in lines] == [("drain_failed", "error")]


@pytest.mark.real_time
async def test_a_server_whose_port_is_taken_reports_it(held: int) -> None:
    with pytest.raises(ServingError, match=f"port {held} is in use"):
        await Server(Starlette(), host="127.0.0.1", port=held).serve()
