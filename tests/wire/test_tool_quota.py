"""Tool calls beyond a user's quota are refused one by one, while the conversation continues."""

from pathlib import Path

import httpx2
import pytest

from antiphon.security.quota import Kind, Limit, Rate
from tests.wire.caller import Caller, call
from tests.wire.served import make_known, serve

pytestmark = pytest.mark.real_time

ONE: dict[Kind, Limit] = {Kind.TOOL_CALL: Limit(user=Rate(per_s=0.001, burst=1))}


async def results_of(caller: Caller) -> list[bool]:
    for question in ("What is 2 plus 3?", "What is 3 plus 4?"):
        await caller.ask(question)
    return [result["ok"] for result in caller.every("tool_result")]


async def test_a_users_tool_calls_are_limited_across_sessions(tmp_path: Path) -> None:
    with serve(tmp_path, limits=ONE) as served:
        async with call(served.url, {"mode": "text"}) as first:
            assert await results_of(first) == [True, False]
            refused = first.every("tool_result")[-1]["result"]["error"]
            assert (refused["type"], refused["retryable"]) == ("RATE_LIMIT", True)
            assert refused["retry_after_s"] > 0
        async with call(served.url, {"mode": "text"}) as second:
            assert await results_of(second) == [False, False]
            assert await second.is_answered()


async def test_users_of_one_address_share_a_tool_quota_over_http(tmp_path: Path) -> None:
    tokens = [await make_known(tmp_path, user) for user in ("ann", "bob")]
    limits: dict[Kind, Limit] = {Kind.TOOL_CALL: Limit(address=Rate(per_s=0.001, burst=1))}
    with serve(tmp_path, limits=limits, server={"auth": "required"}) as served:
        async with httpx2.AsyncClient(base_url=served.http, timeout=20) as client:
            answers = [
                await client.post(
                    "/api/chat", json={"message": "What is 2 plus 3?"}, headers={"Authorization": f"Bearer {token}"}
                )
                for token in tokens
            ]
    runs = [run for answer in answers for run in answer.json()["toolCalls"]]
    assert [run["ok"] for run in runs] == [True, False]
    assert runs[1]["result"]["error"]["type"] == "RATE_LIMIT"
