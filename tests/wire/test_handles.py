"""A resume handle works once, only for its owner, and is never disclosed."""

import asyncio
import json
from contextlib import AsyncExitStack

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from antiphon.security.tokens import make_handle
from tests.wire.caller import Caller, call, closing_after
from tests.wire.served import Served

pytestmark = pytest.mark.real_time


async def leave_without_goodbye(caller: Caller) -> None:
    await caller.socket.close(1001)


async def test_a_session_is_resumed_with_its_handle(locked: Served, tokens: dict[str, str]) -> None:
    async with call(locked.url, {"token": tokens["ann"], "mode": "text"}) as caller:
        await caller.ask("What is 2 plus 3?")
        before = caller.session
        seen = [message for message in caller.received if message["n"] <= 5]
        await leave_without_goodbye(caller)
    hello = {"token": tokens["ann"], "resume": before["resume"], "last_n": 5}
    async with call(locked.url, hello) as again:
        assert again.session["resumed"] is True
        assert again.session["session_id"] == before["session_id"]
        assert again.session["resume"] != before["resume"]
        assert await again.is_answered()
    replayed = {message["n"] for message in again.received} | {message["n"] for message in seen}
    assert replayed == set(range(1, max(replayed) + 1))


async def is_resumed(locked: Served, token: str, handle: str) -> bool:
    async with call(locked.url, {"token": token, "resume": handle}) as caller:
        assert await caller.is_answered(), "whatever becomes of the handle, there is a session"
        if not caller.session["resumed"]:
            assert "resume_rejected" in [error["code"] for error in caller.every("error")]
            assert [notice["code"] for notice in caller.every("notice")] == ["new_session"]
        resumed: bool = caller.session["resumed"]
        await leave_without_goodbye(caller)
        return resumed


async def parked_handle(locked: Served, token: str) -> str:
    """The handle of a session with one turn, whose client has disconnected."""
    async with call(locked.url, {"token": token, "mode": "text"}) as caller:
        await caller.ask("What is 2 plus 3?")
        await leave_without_goodbye(caller)
    handle: str = caller.session["resume"]
    return handle


async def test_a_handle_is_invalid_once_the_client_has_sent_something(locked: Served, tokens: dict[str, str]) -> None:
    handle = await parked_handle(locked, tokens["ann"])
    assert await is_resumed(locked, tokens["ann"], handle)
    assert not await is_resumed(locked, tokens["ann"], handle)


async def test_a_client_disconnected_before_its_new_handle_arrived_can_use_the_old_one(
    locked: Served, tokens: dict[str, str]
) -> None:
    handle = await parked_handle(locked, tokens["ann"])
    hello = json.dumps({"type": "hello", "token": tokens["ann"], "resume": handle})
    for wait_s in (0.0, 0.01, 0.03, 0.1, 0.2):
        async with connect(locked.url) as socket:
            await socket.send(hello)
            await asyncio.sleep(wait_s)
            socket.transport.abort()
    assert await is_resumed(locked, tokens["ann"], handle)


async def test_a_handle_is_invalid_once_the_next_one_was_used(locked: Served, tokens: dict[str, str]) -> None:
    handle = await parked_handle(locked, tokens["ann"])
    async with call(locked.url, {"token": tokens["ann"], "resume": handle}) as caller:
        caller.socket.transport.abort()
    async with call(locked.url, {"token": tokens["ann"], "resume": caller.session["resume"]}) as again:
        assert again.session["resumed"] is True
        again.socket.transport.abort()
    assert not await is_resumed(locked, tokens["ann"], handle)


async def test_the_last_of_several_clients_with_one_handle_gets_the_session_and_the_others_are_notified(
    locked: Served, tokens: dict[str, str]
) -> None:
    handle = await parked_handle(locked, tokens["ann"])
    async with AsyncExitStack() as stack:
        hello = {"token": tokens["ann"], "resume": handle}
        rivals = await asyncio.gather(*(stack.enter_async_context(call(locked.url, hello)) for _ in range(8)))
        assert [rival.session["resumed"] for rival in rivals] == [True] * 8
        outcomes = await asyncio.gather(*(rival.is_answered() for rival in rivals), return_exceptions=True)
        lost = [outcome.rcvd.code for outcome in outcomes if isinstance(outcome, ConnectionClosed) and outcome.rcvd]
        assert (lost, outcomes.count(True)) == ([4409] * 7, 1)


async def test_another_users_handle_is_refused_and_still_works_for_its_owner(
    locked: Served, tokens: dict[str, str]
) -> None:
    handle = await parked_handle(locked, tokens["ann"])
    assert not await is_resumed(locked, tokens["bob"], handle)
    assert await is_resumed(locked, tokens["ann"], handle)


@pytest.mark.parametrize(
    "handle",
    ["", "apr_", "x" * 512, "\u0000", "../../etc/passwd", make_handle()],
    ids=["empty", "prefix", "long", "null", "path", "unknown"],
)
async def test_a_made_up_handle_is_refused(locked: Served, tokens: dict[str, str], handle: str) -> None:
    assert not await is_resumed(locked, tokens["ann"], handle)


async def test_a_session_left_with_a_goodbye_cannot_be_resumed(locked: Served, tokens: dict[str, str]) -> None:
    async with call(locked.url, {"token": tokens["ann"], "mode": "text"}) as caller:
        await caller.ask("What is 2 plus 3?")
    assert not await is_resumed(locked, tokens["ann"], caller.session["resume"])


async def test_a_second_client_with_the_handle_takes_over_and_the_first_is_notified(
    locked: Served, tokens: dict[str, str]
) -> None:
    async with call(locked.url, {"token": tokens["ann"], "mode": "text"}) as first:
        await first.ask("What is 2 plus 3?")
        async with call(locked.url, {"token": tokens["ann"], "resume": first.session["resume"]}) as second:
            assert second.session["resumed"] is True
            assert (await first.closing()).code == 4409
            assert await second.is_answered()


async def test_a_conversation_of_another_user_cannot_be_loaded(locked: Served, tokens: dict[str, str]) -> None:
    async with call(locked.url, {"token": tokens["ann"], "mode": "text"}) as ann:
        await ann.ask("What is 2 plus 3?")
    taken = ann.session["conversation_id"]
    async with call(locked.url, {"token": tokens["bob"], "conversation_id": taken}) as bob:
        await bob.send("load_conversation", conversation_id=taken)
        assert await bob.is_answered()
        assert [error["code"] for error in bob.every("error")] == ["unknown_conversation"] * 2
        assert not bob.every("history")


async def test_the_log_contains_no_secrets_and_no_words_spoken(locked: Served, tokens: dict[str, str]) -> None:
    words = "a sentence that nobody else writes"
    async with call(locked.url, {"token": tokens["ann"], "mode": "text"}) as caller:
        await caller.ask(words)
        await caller.socket.send(json.dumps({"type": words}))
        await leave_without_goodbye(caller)
    await is_resumed(locked, tokens["ann"], caller.session["resume"])
    await closing_after(f"{locked.url}?token={tokens['bob']}", '{"type": "hello"}')
    secrets = [*tokens.values(), caller.session["resume"], words, "2 plus 3"]
    assert [secret for secret in secrets if secret in locked.log] == []
