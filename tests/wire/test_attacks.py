"""What a hostile client tries on the whole server. `test_guard` has what is below the level of messages."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from antiphon.security.quota import Kind, Limit, Rate
from antiphon.security.tokens import make_handle, make_token
from tests.fakes.scripted_live import Hear, Say
from tests.wire.caller import Caller, call, closing_after
from tests.wire.served import Served, serve

pytestmark = pytest.mark.real_time

SECOND_OF_SILENCE: Final = b"\x00" + bytes(2 * 16_000)
UNENDING: Final = (Hear("Hm.", after_ms=600_000), Say("I see."))
"""A voice that hears nothing in ten minutes."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("served"), voice=UNENDING) as served:
        yield served


async def refusal(url: str, **options: Any) -> int:
    """Returns the status with which a handshake is refused."""
    with pytest.raises(InvalidStatus) as refused:
        async with connect(url, **options):
            pass
    return refused.value.response.status_code


# Origins


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost", "http://localhost:{port}.evil.example"]
)
async def test_a_page_of_another_origin_is_refused_at_the_handshake(url: str, origin: str) -> None:
    port = urlsplit(url).port
    assert await refusal(url, origin=origin.format(port=port)) == 403


async def test_the_servers_own_page_is_accepted(url: str) -> None:
    async with call(url, origin=url.replace("ws://", "http://").removesuffix("/ws")) as caller:
        assert await caller.is_answered()


async def test_a_name_that_was_rebound_to_the_server_is_refused(url: str) -> None:
    at = urlsplit(url)
    reader, writer = await asyncio.open_connection(at.hostname, at.port)
    head = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
    key = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    writer.write(f"GET /ws HTTP/1.1\r\nhost: evil.example:{at.port}\r\n{head}{key}\r\n".encode())
    answer = await asyncio.wait_for(reader.read(1000), 5)
    writer.close()
    assert answer.split()[1] == b"421"


# Tokens


async def test_a_token_in_hello_is_accepted(locked: Served, tokens: dict[str, str]) -> None:
    async with call(locked.url, {"token": tokens["ann"]}) as caller:
        assert await caller.is_answered()


async def test_a_token_in_the_header_is_accepted(locked: Served, tokens: dict[str, str]) -> None:
    async with call(locked.url, additional_headers={"Authorization": f"Bearer {tokens['ann']}"}) as caller:
        assert await caller.is_answered()


@pytest.mark.parametrize(
    "hello",
    [
        {},
        {"token": ""},
        {"token": "apn_"},
        {"token": make_token()},
        {"token": make_handle()},
        {"token": "' OR 1=1 --"},
        {"token": 7},
        {"resume": make_handle()},
    ],
    ids=["nothing", "empty", "prefix", "unknown", "handle", "sql", "number", "resume"],
)
async def test_a_wrong_token_is_closed_with_4401(locked: Served, hello: dict[str, Any]) -> None:
    code, caller = await closing_after(locked.url, json.dumps({"type": "hello", **hello}))
    assert code == 4401
    assert [message["code"] for message in caller.received] == ["unauthenticated"]


@pytest.mark.parametrize("first", ['{"type": "ping", "t": 1}', "garbage", b"\x00\x00\x00"], ids=str)
async def test_the_first_message_must_be_hello_where_a_token_is_required(
    locked: Served, tokens: dict[str, str], first: str | bytes
) -> None:
    hello = json.dumps({"type": "hello", "token": tokens["ann"]})
    code, caller = await closing_after(locked.url, first, hello)
    assert code == 4401
    assert not caller.every("session")


async def test_a_wrong_token_in_the_header_is_closed_with_4401(locked: Served) -> None:
    headers = {"Authorization": f"Bearer {make_token()}"}
    code, _ = await closing_after(locked.url, '{"type": "ping", "t": 1}', additional_headers=headers)
    assert code == 4401


@pytest.mark.parametrize("query", ["token={}", "access_token={}", "authorization=Bearer%20{}"])
async def test_a_token_in_the_address_is_ignored(locked: Served, tokens: dict[str, str], query: str) -> None:
    code, _ = await closing_after(f"{locked.url}?{query.format(tokens['ann'])}", '{"type": "hello"}')
    assert code == 4401


async def test_a_wrong_token_is_refused_even_where_none_is_required(url: str) -> None:
    code, _ = await closing_after(url, json.dumps({"type": "hello", "token": make_token()}))
    assert code == 4401


async def test_a_client_that_never_says_hello_is_closed_with_4408(locked: Served) -> None:
    begun_s = time.monotonic()
    async with connect(locked.url) as socket:
        with suppress(TimeoutError):
            await asyncio.wait_for(socket.recv(), 9)
        assert (await Caller(socket).closing()).code == 4408
    assert 9 < time.monotonic() - begun_s < 14


# Messages


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("x" * 65_537, 1009),
        (bytes(65_537), 1009),
        (["x" * 30_000] * 3, 1009),
        ([b""] * 300, 1009),
    ],
    ids=["text", "binary", "fragments", "empty fragments"],
)
async def test_a_frame_that_is_too_large_is_closed_with_1009(url: str, frame: Any, code: int) -> None:
    async with call(url) as caller:
        await caller.socket.send(frame)
        assert (await caller.closing()).code == code


async def test_text_that_is_not_utf_8_is_closed_with_1007_and_one_line_in_the_log(served: Served) -> None:
    async with call(served.url) as caller:
        await caller.socket.send(b'{"type": "ping \xff"}', text=True)
        assert (await caller.closing()).code == 1007
    assert served.log.count("not UTF-8") == 1


BOMBS: Final[dict[str, tuple[str | bytes, str]]] = {
    "empty text": ("", "bad_json"),
    "garbage": ("][", "bad_json"),
    "cut off": ('{"type": "ping", "t": ', "bad_json"),
    "not an object": ("[1, 2]", "bad_message"),
    "null": ("null", "bad_message"),
    "deep lists": ("[" * 60_000, "bad_message"),
    "deep objects": ('{"a":' * 10_000 + "1" + "}" * 10_000, "bad_json"),
    "deep in an unknown field": ('{"type": "ping", "t": 1, "x": ' + "[" * 30_000 + "]" * 30_000 + "}", "bad_json"),
    "nan": ('{"type": "ping", "t": NaN}', "bad_json"),
    "infinity": ('{"type": "ping", "t": -Infinity}', "bad_json"),
    "huge number": ('{"type": "ping", "t": 1e999}', "bad_message"),
    "long number": ('{"type": "ping", "t": ' + "9" * 60_000 + "}", "bad_message"),
    "lone surrogate": (r'{"type": "text_message", "text": "\ud800"}', "bad_json"),
    "half of a pair": (r'{"type": "text_message", "text": "\udc00 x"}', "bad_json"),
    "no type": ('{"t": 1}', "unknown_type"),
    "type is a number": ('{"type": 1}', "unknown_type"),
    "unknown type": ('{"type": "explode"}', "unknown_type"),
    "type of a server": ('{"type": "tool_result", "name": "x", "result": 1}', "unknown_type"),
    "two types": ('{"type": "ping", "t": 1, "type": "explode"}', "unknown_type"),
    "missing field": ('{"type": "text_message"}', "bad_message"),
    "wrong field": ('{"type": "text_message", "text": ["a"]}', "bad_message"),
    "long text": (json.dumps({"type": "text_message", "text": "x" * 8_001}), "too_large"),
    "negative turn": ('{"type": "playback", "turn": -1, "played_ms": 1}', "bad_message"),
    "endless playback": ('{"type": "playback", "turn": 1, "played_ms": 1e300}', "bad_message"),
    "speed out of range": ('{"type": "settings", "voice_speed": 999}', "bad_settings"),
    "another's conversation": ('{"type": "load_conversation", "conversation_id": "../x"}', "unknown_conversation"),
    "no audio at all": (b"", "bad_audio"),
    "only flags": (b"\x00", "bad_audio"),
    "half a sample": (b"\x00\x01", "bad_audio"),
    "odd and huge": (bytes(65_536), "bad_audio"),
}


@pytest.mark.parametrize("name", BOMBS)
async def test_a_bad_message_gets_a_typed_error_and_the_session_continues(url: str, name: str) -> None:
    frame, code = BOMBS[name]
    async with call(url) as caller:
        await caller.socket.send(frame)
        assert (await caller.until("error"))["code"] == code
        assert await caller.is_answered()


@pytest.mark.parametrize(
    "frame",
    [
        '{"type": "ping", "t": 5, "x": {"y": [1, null, "\\u0000"]}, "": 1}',
        '  {"t": 5, "type": "ping"}\n',
        '{"type": "pi\\u006eg", "t": 5}',
    ],
)
async def test_unknown_fields_of_a_message_are_ignored(url: str, frame: str) -> None:
    async with call(url) as caller:
        await caller.socket.send(frame)
        await caller.until("pong", t=5)
        assert not caller.every("error")


async def test_a_bad_hello_is_an_error_and_the_session_continues(url: str) -> None:
    async with connect(url) as socket:
        caller = Caller(socket)
        await caller.send("hello", mode="telepathy")
        assert (await caller.until("error"))["code"] == "bad_message"
        assert caller.received[0]["state"] == "idle"
        assert await caller.is_answered()


async def test_unusual_characters_are_treated_as_ordinary_text(url: str) -> None:
    text = "\u0000 \u202e \ufeff \U0001f600 </script> '; DROP TABLE turns; --"
    async with call(url, {"mode": "text"}) as caller:
        await caller.ask(text)
        assert caller.every("transcript")[0]["text"] == text


# Rates


async def test_thirty_seconds_of_audio_may_be_sent_at_once(served: Served) -> None:
    async with call(served.url) as caller:
        await caller.send("start_listening")
        await caller.until("state", state="listening")
        for _ in range(30):
            await caller.socket.send(SECOND_OF_SILENCE)
        assert await caller.is_answered()
        assert not caller.every("error")


async def test_audio_faster_than_real_time_is_an_error_and_then_closes_the_session(served: Served) -> None:
    async with call(served.url) as caller:
        await caller.send("start_listening")
        with suppress(ConnectionClosed):
            for _ in range(30 + 300):
                await caller.socket.send(SECOND_OF_SILENCE)
        closing = await caller.closing()
    errors = caller.every("error")
    assert [(error["code"], error["retryable"]) for error in errors] == [("too_fast", True)]
    assert closing.code == 4429


async def test_a_flood_of_messages_is_an_error_and_then_closes_the_session(served: Served) -> None:
    async with call(served.url) as caller:
        with suppress(ConnectionClosed):
            for _ in range(4_000):
                await caller.send("playback", turn=0, played_ms=0)
        closing = await caller.closing()
    assert [error["code"] for error in caller.every("error")] == ["too_fast"]
    assert closing.code == 4429


async def test_connections_that_come_too_fast_are_refused(locked_folder: Path, tokens: dict[str, str]) -> None:
    few = {Kind.CONNECTION: Limit(user=Rate(per_s=0.1, burst=2))}
    with serve(locked_folder, limits=few, server={"auth": "required"}) as strict:
        for _ in range(2):
            async with call(strict.url, {"token": tokens["ann"]}) as caller:
                assert await caller.is_answered()
        hello = json.dumps({"type": "hello", "token": tokens["ann"]})
        assert (await closing_after(strict.url, hello))[0] == 1013
        async with call(strict.url, {"token": tokens["bob"]}) as caller:
            assert await caller.is_answered()


async def test_wrong_tokens_are_counted_against_the_address(locked_folder: Path, tokens: dict[str, str]) -> None:
    few = {Kind.CONNECTION: Limit(address=Rate(per_s=0.1, burst=3))}
    with serve(locked_folder, limits=few, server={"auth": "required"}) as strict:
        codes = [(await closing_after(strict.url, '{"type": "hello"}'))[0] for _ in range(4)]
        assert codes == [4401, 4401, 4401, 1013]


async def test_one_clients_rate_is_not_counted_against_another_session(served: Served) -> None:
    async with call(served.url) as other:
        await test_audio_faster_than_real_time_is_an_error_and_then_closes_the_session(served)
        assert await other.is_answered()
        assert not other.every("error")


def test_the_servers_logged_no_failure(served: Served, locked: Served) -> None:
    """Runs last: none of the tests before has left an exception in the log."""
    assert served.failures + locked.failures == []
