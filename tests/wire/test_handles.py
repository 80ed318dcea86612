"""The handle of a session: it works once, for its owner, and is told to nobody else."""

import asyncio
import json

import pytest

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
        seen = [message for message in caller.told if message["n"] <= 5]
        await leave_without_goodbye(caller)
    hello = {"token": tokens["ann"], "resume": before["resume"], "last_n": 5}
    async with call(locked.url, hello) as again:
        assert again.session["resumed"] is True
        assert again.session["session_id"] == before["session_id"]
        assert again.session["resume"] != before["resume"]
        assert await again.is_answered()
    replayed = {message["n"] for message in again.told} | {message["n"] for message in seen}
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
    """Of a session with one turn, whose client is gone."""
    async with call(locked.url, {"token": token, "mode": "text"}) as caller:
        await caller.ask("What is 2 plus 3?")
        await leave_without_goodbye(caller)
    handle: str = caller.session["resume"]
    return handle


async def test_a_handle_works_once(locked: Served, tokens: dict[str, str]) -> None:
    handle = await parked_handle(locked, tokens["ann"])
    assert await is_resumed(locked, tokens["ann"], handle)
    assert not await is_resumed(locked, tokens["ann"], handle)


async def test_two_clients_with_one_handle_cannot_both_have_the_session(locked: Served, tokens: dict[str, str]) -> None:
    handle = await parked_handle(locked, tokens["ann"])
    resumed = await asyncio.gather(*(is_resumed(locked, tokens["ann"], handle) for _ in range(8)))
    assert sum(resumed) == 1


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


async def test_a_session_that_was_left_with_a_goodbye_is_over(locked: Served, tokens: dict[str, str]) -> None:
    async with call(locked.url, {"token": tokens["ann"], "mode": "text"}) as caller:
        await caller.ask("What is 2 plus 3?")
    assert not await is_resumed(locked, tokens["ann"], caller.session["resume"])


async def test_a_second_client_with_the_handle_takes_over_and_the_first_is_told(
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


async def test_no_secret_is_in_the_log_and_no_words(locked: Served, tokens: dict[str, str]) -> None:
    words = "a sentence that nobody else writes"
    async with call(locked.url, {"token": tokens["ann"], "mode": "text"}) as caller:
        await caller.ask(words)
        await caller.socket.send(json.dumps({"type": words}))
        await leave_without_goodbye(caller)
    await is_resumed(locked, tokens["ann"], caller.session["resume"])
    await closing_after(f"{locked.url}?token={tokens['bob']}", '{"type": "hello"}')
    secrets = [*tokens.values(), caller.session["resume"], words, "2 plus 3"]
    assert [secret for secret in secrets if secret in locked.log] == []
