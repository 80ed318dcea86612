"""Wrong tokens are refused, limited per address, and logged without the token itself."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from antiphon.security.quota import Kind, Limit, Rate
from antiphon.security.tokens import hash_token, make_token
from tests.wire.caller import call, closing_after
from tests.wire.served import Served, add_token, serve

pytestmark = pytest.mark.real_time

LOCKED = {"auth": "required"}
LIMITS = {Kind.WRONG_TOKEN: Limit(address=Rate(per_s=0.1, burst=3))}


async def get(served: Served, token: str) -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=20) as client:
        return await client.get(f"{served.http}/api/tools", headers={"Authorization": f"Bearer {token}"})


def refusals(served: Served) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in served.log.splitlines()]
    return [line for line in lines if line["event"] == "request_refused"]


async def hello(served: Served, token: str) -> tuple[int, list[str]]:
    """Returns the close code and the error codes for a client with this token."""
    code, caller = await closing_after(served.url, json.dumps({"type": "hello", "token": token}))
    return code, [error["code"] for error in caller.every("error")]


@pytest.fixture
def right(tmp_path: Path) -> str:
    return add_token(tmp_path, "ann")


async def test_after_a_few_wrong_tokens_the_address_must_wait_before_a_right_one_works(
    tmp_path: Path, right: str
) -> None:
    with serve(tmp_path, limits=LIMITS, server=LOCKED) as served:
        refused = [await get(served, make_token()) for _ in range(4)]
        assert [each.status_code for each in refused] == [401, 401, 401, 429]
        early = await get(served, right)
        assert (early.status_code, early.json()["error"]["code"]) == (429, "too_fast")
        assert await hello(served, make_token()) == (1013, ["too_fast"])
        await asyncio.sleep(int(early.headers["retry-after"]))
        assert (await get(served, right)).status_code == 200


async def test_a_previously_accepted_token_is_not_delayed_by_wrong_ones_from_the_same_address(
    tmp_path: Path, right: str
) -> None:
    with serve(tmp_path, limits=LIMITS, server=LOCKED) as served:
        assert (await get(served, right)).status_code == 200
        assert [(await hello(served, make_token()))[0] for _ in range(4)] == [4401, 4401, 4401, 1013]
        assert (await get(served, right)).status_code == 200
        async with call(served.url, {"token": right, "mode": "text"}) as caller:
            assert await caller.is_answered()


async def test_each_refusal_is_logged_with_address_route_and_reason_but_without_the_token(
    tmp_path: Path, right: str
) -> None:
    token = make_token()
    with serve(tmp_path, server=LOCKED) as served:
        await get(served, token)
        await hello(served, token)
        async with httpx2.AsyncClient() as client:
            await client.get(f"{served.http}/", headers={"Origin": "https://evil.example"})
            await client.get(f"{served.http}/", headers={"Host": "rebound.example"})
        received = [(line["address"], line["route"], line["reason"].partition(".")[0]) for line in refusals(served)]
        assert received == [
            ("127.0.0.1", "/api/tools", "wrong token"),
            ("127.0.0.1", "/ws", "wrong token"),
            ("127.0.0.1", "/", "Pages of this origin may not use this server"),
            ("127.0.0.1", "/", "This server does not answer to the name in the Host header"),
        ]
        assert token not in served.log
        assert hash_token(token) not in served.log


async def test_a_flood_of_refusals_does_not_fill_the_log(tmp_path: Path, right: str) -> None:
    with serve(tmp_path, server=LOCKED) as served:
        async with httpx2.AsyncClient(timeout=20) as client:
            for _ in range(300):
                await client.get(f"{served.http}/", headers={"Origin": f"https://{'evil' * 60}.example"})
        assert 1 <= len(refusals(served)) < 30
        assert len(served.log) < 20_000
