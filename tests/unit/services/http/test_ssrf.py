"""What leads into a private network is refused, however it is written, and nothing is connected."""

from urllib.parse import urlsplit

import pytest

from antiphon.services.http.failures import Trouble, WebError
from antiphon.tools.errors import ErrorType, ToolError
from tests.fakes.local_http import Reply
from tests.unit.services.http.conftest import PUBLIC, World

pytestmark = pytest.mark.real_time

RESOLVED = {
    "loopback.test": ["127.0.0.1"],
    "loopback6.test": ["::1"],
    "private.test": ["192.168.0.10"],
    "ten.test": ["10.1.2.3"],
    "link-local.test": ["fe80::1"],
    "metadata.google.internal": ["169.254.169.254"],
    "metadata6.test": ["fd00:ec2::254"],
    "mapped.test": ["::ffff:10.0.0.1"],
    "nat64.test": ["64:ff9b::7f00:1"],
    "6to4.test": ["2002:7f00:1::"],
    "teredo.test": ["2001:0:4136:e378:8000:63bf:3fff:fdd2"],
    "carrier.test": ["100.64.1.1"],
    "multicast.test": ["239.1.1.1"],
    "unspecified.test": ["0.0.0.0"],
    "mixed.test": [PUBLIC, "10.0.0.1"],
    "localhost": ["127.0.0.1"],
}

HOSTILE = [
    *(f"http://{name}/" for name in RESOLVED),
    "http://127.0.0.1/",
    "http://127.0.0.1:8080/",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[fe80::1]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://169.254.169.254/latest/meta-data/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://017700000001/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://0/",
    "http://①②⑦.⓪.⓪.①/",
    "http://example.org@127.0.0.1/",
    "http://127.0.0.1@example.org/",
    "http://user:secret@example.org/",
    "http://example.org:22/",
    "http://example.org:11211/",
    "ftp://example.org/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_FLUSHALL",
    "javascript:alert(1)",
    "http:///etc/passwd",
    "http://",
    "//example.org/",
    "example.org",
    "",
    "http://example.org\\@127.0.0.1/",
    "http://exam ple.org/",
    "http://example.org:99999/",
    "https://" + "a" * 5_000 + ".org/",
]


@pytest.mark.parametrize("url", HOSTILE)
async def test_a_hostile_address_is_refused_and_nothing_is_connected(world: World, url: str) -> None:
    world.internet.names |= {name: [addresses] for name, addresses in RESOLVED.items()}
    with pytest.raises(ToolError) as refused:
        await world.fetch().get(url)
    assert refused.value.type is ErrorType.VALIDATION
    assert world.internet.dialled == []
    assert world.server.received == []


@pytest.mark.parametrize("url", [url for url in HOSTILE if "://" in url and urlsplit(url).netloc])
async def test_a_redirect_to_a_hostile_address_is_refused(world: World, url: str) -> None:
    world.internet.names |= {name: [addresses] for name, addresses in RESOLVED.items()}
    location = url.encode("ascii", "xmlcharrefreplace").decode()
    world.replies["/start"] = Reply(status=302, headers={"location": location})
    with pytest.raises(ToolError) as refused:
        await world.fetch().get("http://example.org/start")
    assert refused.value.type is ErrorType.VALIDATION
    assert world.internet.dialled == [(PUBLIC, 80)]
    assert world.server.paths == ["/start"]


async def test_the_address_that_was_checked_is_the_one_that_is_connected(world: World) -> None:
    """Resolved a second time, the name would lead to this machine."""
    world.internet.names["rebinding.test"] = [[PUBLIC], ["127.0.0.1"]]
    await world.fetch().get("http://rebinding.test/")
    assert world.internet.asked == ["rebinding.test"]
    assert world.internet.dialled == [(PUBLIC, 80)]


async def test_a_name_that_changes_to_a_private_address_is_refused_at_the_next_connection(world: World) -> None:
    world.internet.names["rebinding.test"] = [[PUBLIC], ["127.0.0.1"]]
    world.replies["/"] = Reply("fine", headers={"connection": "close"})
    fetch = world.fetch()
    await fetch.get("http://rebinding.test/")
    with pytest.raises(ToolError, match="private network"):
        await fetch.get("http://rebinding.test/")
    assert world.internet.dialled == [(PUBLIC, 80)]


async def test_the_host_header_stays_the_name(world: World) -> None:
    await world.fetch().get("http://example.org:8080/page")
    assert world.server.received[0].headers["host"] == "example.org:8080"
    assert world.internet.dialled == [(PUBLIC, 8080)]


async def test_a_public_redirect_is_followed(world: World) -> None:
    world.internet.names["other.test"] = [["8.8.8.8"]]
    world.replies["/start"] = Reply(status=301, headers={"location": "http://other.test/end"})
    assert (await world.fetch().get("http://example.org/start")).url == "http://other.test/end"
    assert world.internet.dialled == [(PUBLIC, 80), ("8.8.8.8", 80)]


async def test_the_headers_of_a_request_do_not_follow_it_to_another_host(world: World) -> None:
    world.internet.names["other.test"] = [["8.8.8.8"]]
    world.replies["/start"] = Reply(status=302, headers={"location": "http://other.test/end"})
    await world.fetch().get("http://example.org/start", headers={"Authorization": "Bearer secret"})
    first, second = world.server.received
    assert first.headers["authorization"] == "Bearer secret"
    assert "authorization" not in second.headers


async def test_redirects_end(world: World) -> None:
    world.replies["/"] = Reply(status=302, headers={"location": "/"})
    with pytest.raises(ToolError) as error:
        await world.fetch().get("http://example.org/")
    assert error.value.type is ErrorType.TRANSIENT
    assert len(world.server.received) == 6


async def test_the_proxies_of_the_environment_are_not_used(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://10.0.0.1:3128")
    await world.fetch().get("http://example.org/")
    assert world.internet.dialled == [(PUBLIC, 80)]


async def test_a_configured_host_may_be_private(world: World) -> None:
    world.internet.names["searx.lan"] = [["192.168.1.5"]]
    answer = await world.client(("searx.lan", 8888)).request("GET", "http://searx.lan:8888/search")
    assert answer.status == 200
    assert world.internet.dialled == [("192.168.1.5", 8888)]


@pytest.mark.parametrize(
    "location",
    [
        "http://192.168.1.6:8888/",
        "http://searx.lan:9999/",
        "http://router.lan/",
        "http://169.254.169.254/",
        "ftp://searx.lan/",
    ],
)
async def test_a_configured_host_cannot_send_the_client_to_another_private_one(world: World, location: str) -> None:
    world.internet.names |= {"searx.lan": [["192.168.1.5"]], "router.lan": [["192.168.1.1"]]}
    world.replies["/search"] = Reply(status=302, headers={"location": location})
    with pytest.raises(WebError) as refused:
        await world.client(("searx.lan", 8888)).request("GET", "http://searx.lan:8888/search")
    assert refused.value.trouble is Trouble.FORBIDDEN
    assert world.internet.dialled == [("192.168.1.5", 8888)]


async def test_what_is_configured_for_one_service_is_not_open_to_tools(world: World) -> None:
    world.internet.names["searx.lan"] = [["192.168.1.5"]]
    world.client(("searx.lan", 8080))
    with pytest.raises(ToolError, match="private network"):
        await world.fetch().get("http://searx.lan:8080/")


async def test_a_secure_address_does_not_redirect_to_an_insecure_one(world: World) -> None:
    client = world.client()
    target = client._check("https://example.org/")
    with pytest.raises(Exception, match="insecure"):
        client._follow(target, "http://example.org/")
