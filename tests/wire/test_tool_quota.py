"""Tool calls beyond the pace of a user: refused one by one, while the conversation goes on."""

from pathlib import Path

import pytest

from antiphon.security.quota import Kind, Limit, Rate
from tests.wire.caller import Caller, call
from tests.wire.served import serve

pytestmark = pytest.mark.real_time

ONE: dict[Kind, Limit] = {Kind.TOOL_CALL: Limit(user=Rate(per_s=0.001, burst=1))}


async def results_of(caller: Caller) -> list[bool]:
    for question in ("What is 2 plus 3?", "What is 3 plus 4?"):
        await caller.ask(question)
    return [result["ok"] for result in caller.every("tool_result")]


async def test_a_user_gets_no_more_tool_calls_than_the_limit_by_any_session(tmp_path: Path) -> None:
    with serve(tmp_path, limits=ONE) as served:
        async with call(served.url, {"mode": "text"}) as first:
            assert await results_of(first) == [True, False]
            refused = first.every("tool_result")[-1]["result"]["error"]
            assert (refused["type"], refused["retryable"]) == ("RATE_LIMIT", True)
            assert refused["retry_after_s"] > 0
        async with call(served.url, {"mode": "text"}) as second:
            assert await results_of(second) == [False, False]
            assert await second.is_answered()
