"""Limits of the client: bytes, time, connections; and what its failures are."""

import asyncio
import gzip
import tracemalloc

import pytest

from antiphon.services.http.client import CONNECTIONS_PER_HOST
from antiphon.services.http.failures import Trouble, WebError
from antiphon.tools.errors import ErrorType, ToolError
from tests.fakes.local_http import Received, Reply
from tests.unit.services.http.conftest import PUBLIC, World

pytestmark = pytest.mark.real_time

URL = "http://example.org/"
NOW = "Thu, 01 Jan 2026 12:00:00 GMT"


async def test_text_and_json_are_read(world: World) -> None:
    world.replies["/"] = Reply({"word": "Blåbær"})
    fetched = await world.fetch().get(URL)
    assert fetched.json() == {"word": "Blåbær"}
    assert fetched.text == '{"word": "Bl\\u00e5b\\u00e6r"}'


@pytest.mark.parametrize("charset", ["; charset=latin-1", '; charset="latin-1"; x=y'])
async def test_the_encoding_that_the_server_names_is_used(world: World, charset: str) -> None:
    world.replies["/"] = Reply("Blåbær".encode("latin-1"), headers={"content-type": f"text/plain{charset}"})
    assert (await world.fetch().get(URL)).text == "Blåbær"


async def test_an_unknown_encoding_is_taken_as_utf8(world: World) -> None:
    world.replies["/"] = Reply("Blåbær", headers={"content-type": "text/plain; charset=martian"})
    assert (await world.fetch().get(URL)).text == "Blåbær"


async def test_compressed_answers_are_unpacked(world: World) -> None:
    world.replies["/"] = Reply(gzip.compress(b"hello" * 100), headers={"content-encoding": "gzip"})
    assert (await world.fetch().get(URL)).content == b"hello" * 100


async def test_a_gzip_bomb_is_not_unpacked(world: World) -> None:
    """A hundred kilobytes that unfold to a hundred megabytes."""
    bomb = gzip.compress(bytes(100_000_000), 9)
    world.replies["/"] = Reply(bomb, headers={"content-encoding": "gzip"})
    tracemalloc.start()
    try:
        with pytest.raises(ToolError, match="more than I can read") as error:
            await world.fetch().get(URL, max_bytes=100_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error.value.type is ErrorType.PERMANENT
    assert peak < 3_000_000


async def test_an_answer_may_have_exactly_the_limit(world: World) -> None:
    world.replies["/"] = Reply(b"x" * 1_000)
    assert len((await world.fetch().get(URL, max_bytes=1_000)).content) == 1_000
    with pytest.raises(ToolError):
        await world.fetch().get(URL, max_bytes=999)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(b"not gzip", headers={"content-encoding": "gzip"}),
        Reply(gzip.compress(b"x" * 1_000)[:-9], headers={"content-encoding": "gzip"}),
        Reply(b"x", headers={"content-encoding": "br"}),
        Reply(b"x" * 1_000, is_cut=True),
        Reply(b"", headers={"content-length": "nonsense"}),
    ],
)
async def test_a_broken_answer_is_transient(world: World, reply: Reply) -> None:
    world.replies["/"] = reply
    with pytest.raises(ToolError, match="can't read") as error:
        await world.fetch().get(URL)
    assert error.value.type is ErrorType.TRANSIENT
    assert error.value.retryable


async def test_a_slow_answer_is_given_up(world: World) -> None:
    world.replies["/"] = Reply("late", delay_s=5)
    with pytest.raises(ToolError, match="takes too long") as error:
        await world.fetch().get(URL, timeout_s=0.1)
    assert error.value.type is ErrorType.TRANSIENT


async def test_an_unknown_name_is_no_connection(world: World) -> None:
    with pytest.raises(ToolError, match="internet connection may be down") as error:
        await world.fetch().get("http://nowhere.test/")
    assert error.value.type is ErrorType.TRANSIENT
    assert error.value.retryable


async def test_the_next_address_is_tried_if_one_is_dead(world: World) -> None:
    world.internet.names["two.test"] = [["8.8.8.8", PUBLIC]]
    world.internet.dead = {"8.8.8.8"}
    assert (await world.fetch().get("http://two.test/")).status == 200
    assert world.internet.dialled == [("8.8.8.8", 80), (PUBLIC, 80)]


async def test_all_addresses_dead_is_no_connection(world: World) -> None:
    world.internet.dead = {PUBLIC}
    with pytest.raises(ToolError, match=r"can't reach example\.org"):
        await world.fetch().get(URL)


@pytest.mark.parametrize(
    ("status", "headers", "kind", "wait_s"),
    [
        (401, {}, ErrorType.AUTH, None),
        (403, {}, ErrorType.AUTH, None),
        (404, {}, ErrorType.NOT_FOUND, None),
        (400, {}, ErrorType.PERMANENT, None),
        (304, {}, ErrorType.PERMANENT, None),
        (429, {}, ErrorType.RATE_LIMIT, 60.0),
        (429, {"retry-after": "7"}, ErrorType.RATE_LIMIT, 7.0),
        (429, {"retry-after": "soon"}, ErrorType.RATE_LIMIT, 60.0),
        (429, {"retry-after": "nan"}, ErrorType.RATE_LIMIT, 60.0),
        (429, {"retry-after": "99999999"}, ErrorType.RATE_LIMIT, 3600.0),
        (429, {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT", "date": NOW}, ErrorType.RATE_LIMIT, 1.0),
        (429, {"retry-after": "Thu, 01 Jan 2026 12:00:30 GMT", "date": NOW}, ErrorType.RATE_LIMIT, 30.0),
        (500, {}, ErrorType.TRANSIENT, None),
        (503, {"retry-after": "9"}, ErrorType.TRANSIENT, 9.0),
    ],
)
async def test_each_status_has_its_error(
    world: World, status: int, headers: dict[str, str], kind: ErrorType, wait_s: float | None
) -> None:
    world.replies["/"] = Reply(status=status, headers=headers)
    with pytest.raises(ToolError) as error:
        await world.fetch().get(URL)
    assert (error.value.type, error.value.retry_after_s) == (kind, wait_s)


async def test_json_is_posted(world: World) -> None:
    await world.fetch().post(URL, json={"a": 1})
    [received] = world.server.received
    assert (received.method, received.json, received.headers["content-type"]) == ("POST", {"a": 1}, "application/json")


async def test_a_post_does_not_follow_redirects(world: World) -> None:
    world.replies["/"] = Reply(status=307, headers={"location": "/elsewhere"})
    with pytest.raises(ToolError, match="moved") as error:
        await world.fetch().post(URL, json={})
    assert error.value.type is ErrorType.PERMANENT
    assert world.server.paths == ["/"]


async def test_a_post_that_got_no_answer_may_have_been_done(world: World) -> None:
    world.replies["/"] = Reply(delay_s=5)
    with pytest.raises(WebError) as error:
        await world.client().request("POST", URL, b"{}", timeout_s=0.1)
    assert (error.value.trouble, error.value.was_sent) == (Trouble.SLOW, True)


async def test_a_post_that_was_never_connected_was_not_done(world: World) -> None:
    world.internet.dead = {PUBLIC}
    with pytest.raises(WebError) as error:
        await world.client().request("POST", URL, b"{}", timeout_s=1)
    assert not error.value.was_sent


async def test_a_header_with_a_line_break_is_refused(world: World) -> None:
    with pytest.raises(ToolError):
        await world.fetch().get(URL, headers={"x-a": "b\r\nx-c: d"})
    assert world.server.received == []


async def test_headers_of_the_connection_cannot_be_set(world: World) -> None:
    await world.fetch().get(URL, headers={"Host": "internal", "Transfer-Encoding": "chunked"})
    [received] = world.server.received
    assert received.headers["host"] == "example.org"
    assert "transfer-encoding" not in received.headers


async def test_cookies_are_not_kept(world: World) -> None:
    world.replies["/"] = Reply("fine", headers={"set-cookie": "a=b"})
    fetch = world.fetch()
    await fetch.get(URL)
    await fetch.get(URL)
    assert all("cookie" not in received.headers for received in world.server.received)


async def test_a_host_gets_few_requests_at_once(world: World) -> None:
    world.replies["/"] = Reply("fine", delay_s=0.05)
    fetch = world.fetch()
    await asyncio.gather(*(fetch.get(f"{URL}?{n}") for n in range(12)))
    assert len(world.server.received) == 12
    assert world.server.connections <= CONNECTIONS_PER_HOST


async def test_a_copy_that_is_fresh_enough_is_used(world: World) -> None:
    fetch = world.fetch()
    await fetch.get(URL, max_age_s=60)
    await fetch.get(URL, max_age_s=60)
    assert len(world.server.received) == 1
    await fetch.get(URL)
    assert len(world.server.received) == 2


async def test_a_failure_is_not_kept(world: World) -> None:
    replies = [Reply(status=500), Reply("fine")]
    world.replies["/"] = lambda request: replies.pop(0)
    fetch = world.fetch()
    with pytest.raises(ToolError):
        await fetch.get(URL, max_age_s=60)
    assert (await fetch.get(URL, max_age_s=60)).text == "fine"


async def test_those_who_ask_at_the_same_time_share_one_request(world: World) -> None:
    world.replies["/"] = Reply("fine", delay_s=0.05)
    fetch = world.fetch()
    await asyncio.gather(*(fetch.get(URL, max_age_s=60) for _ in range(5)))
    assert len(world.server.received) == 1


async def test_copies_are_kept_apart_by_their_headers(world: World) -> None:
    def echo(request: Received) -> Reply:
        return Reply(request.headers.get("authorization", "nobody"))

    world.replies["/"] = echo
    fetch = world.fetch()
    assert (await fetch.get(URL, headers={"Authorization": "ann"}, max_age_s=60)).text == "ann"
    assert (await fetch.get(URL, max_age_s=60)).text == "nobody"


async def test_the_pages_of_a_host_are_verified_by_its_name(world: World) -> None:
    """The server is not a TLS server, so what arrives is the client's greeting, which names the host."""
    seen = asyncio.Event()
    greeting = bytearray()

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        greeting.extend(await reader.read(2_000))
        writer.close()
        seen.set()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    world.server.port = server.sockets[0].getsockname()[1]
    with pytest.raises(ToolError):
        await world.fetch().get("https://example.org/")
    await seen.wait()
    server.close()
    assert b"example.org" in greeting
    assert world.internet.dialled == [(PUBLIC, 443)]
